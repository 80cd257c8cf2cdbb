// SPDX-License-Identifier: Apache-2.0

package regosandbox

import (
	"slices"
	"strings"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"
)

// allowed are the built-in functions that policies may call. All are pure, and none can be made to work for long on a
// small input. The list only ever grows: a bundle that was accepted stays acceptable.
var allowed = []string{
	// comparison, assignment, membership, string templates
	"eq", "equal", "neq", "lt", "lte", "gt", "gte", "assign", "internal.member_2", "internal.member_3", "internal.template_string",
	// numbers
	"plus", "minus", "mul", "div", "rem", "abs", "round", "ceil", "floor", "to_number", "format_int",
	"bits.and", "bits.or", "bits.xor", "bits.negate", "bits.lsh", "bits.rsh",
	// collections
	"and", "or", "intersection", "union", "count", "sum", "product", "max", "min", "sort",
	"array.concat", "array.reverse", "array.slice",
	"object.get", "object.keys", "object.filter", "object.remove", "object.subset", "object.union", "object.union_n",
	// strings
	"concat", "contains", "endswith", "startswith", "indexof", "lower", "upper", "replace", "split", "sprintf", "substring",
	"strings.replace_n", "strings.reverse", "strings.any_prefix_match", "strings.any_suffix_match", "strings.count",
	"trim", "trim_left", "trim_prefix", "trim_right", "trim_space", "trim_suffix",
	"regex.match", "regex.is_valid", "regex.replace", "regex.split", "glob.match", "glob.quote_meta",
	// kinds of values
	"is_array", "is_boolean", "is_null", "is_number", "is_object", "is_set", "is_string", "type_name",
	// versions, quantities and moments that the input names
	"semver.compare", "semver.is_valid", "units.parse", "units.parse_bytes",
	"time.parse_rfc3339_ns", "time.parse_duration_ns",
}

// testOnly is called by the rewritten bodies of tests with named cases.
const testOnly = "internal.test_case"

// Capabilities are made once, and must not be changed: OPA only reads them, and takes longer to list its own than to parse a
// short module.
var (
	// understood is all that OPA knows: what is refused of it can then be named.
	understood = sync.OnceValue(everything)
	ofPolicies = sync.OnceValue(func() *ast.Capabilities { return limited(false) })
	ofTests    = sync.OnceValue(func() *ast.Capabilities { return limited(true) })
)

func everything() *ast.Capabilities {
	return ast.CapabilitiesForThisVersion(ast.CapabilitiesRegoVersion(ast.RegoV1))
}

// capabilities is what a module may use.
func capabilities(forTests bool) *ast.Capabilities {
	if forTests {
		return ofTests()
	}
	return ofPolicies()
}

// limited forbids every host too, by an AllowNet that is empty and not nil.
func limited(forTests bool) *ast.Capabilities {
	caps := everything()
	caps.AllowNet = []string{}
	caps.Builtins = slices.DeleteFunc(caps.Builtins, func(b *ast.Builtin) bool {
		return !slices.Contains(allowed, b.Name) && !(forTests && b.Name == testOnly)
	})
	return caps
}

// refusal says why a built-in function that OPA has is not there, by the beginning of its name; first match wins.
var refusal = []struct{ prefix, hint string }{
	{"print", "print and trace are for debugging; compare values in a test rule instead"},
	{"trace", "print and trace are for debugging; compare values in a test rule instead"},
	{"http.", "a policy reads nothing but its input; decide on labels and facts"},
	{"net.", "a policy reads nothing but its input; decide on labels and facts"},
	{"opa.", "a policy reads nothing but its input, so that a decision can be replayed"},
	{"time.now", "the moment of the decision is in the input, so that a decision can be replayed"},
	{"rand.", "a decision must come out the same when it is replayed"},
	{"uuid.", "a decision must come out the same when it is replayed"},
	{"io.jwt", "policies decide on facts and handle no secrets or tokens"},
	{"crypto.", "policies decide on facts and handle no secrets or tokens"},
	{"providers.", "policies decide on facts and handle no secrets or tokens"},
	{"", "only pure and cheap functions can be used in a policy"},
}

func refusalHint(name string) string {
	for _, r := range refusal {
		if strings.HasPrefix(name, r.prefix) {
			return r.hint
		}
	}
	return ""
}
