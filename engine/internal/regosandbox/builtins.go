// SPDX-License-Identifier: Apache-2.0

package regosandbox

import (
	"slices"
	"strings"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"
)

// growth says what a built-in function can make of its operands, and so what is asked before it works.
type growth int

const (
	// constant: the result is a truth value, a number, or a part of an operand that is not copied, and the time is that of reading
	// the operands once. Nothing is asked.
	constant growth = iota
	// comparing: as constant, but reading is to the depth of the first operand, whose parts may be shared many times over. It is
	// measured where it is a collection.
	comparing
	// numeric: the result has at most the digits of both operands together, and the time grows faster than they. No number, and no
	// text that is read as one, may have more than maxDigits.
	numeric
	// linear: the result is a new value of at most the size of the operands together. They are measured and charged.
	linear
	// growing: the result can be much larger than the operands, or the time. A function of its own predicts by how much.
	growing
	// parsing: a short text is read by a parser that may be slow. It may have maxParsed bytes.
	parsing
)

// builtin is a function that policies may call.
type builtin struct {
	name   string
	growth growth
	// predict is what a growing function comes to, in bytes that are made or looked at; over the limit of one result where it is
	// more than that.
	predict func(operands []*ast.Term) int
}

// allowed are the built-in functions that policies may call. All are pure. Each says how its result and its time grow, because an
// evaluation can only be stopped between two of its steps, and one call is one step: what a call may take is bounded before it is made.
var allowed = []builtin{
	// Comparison, assignment and membership look at values and make none.
	{"eq", comparing, nil}, {"equal", comparing, nil}, {"neq", comparing, nil}, {"lt", comparing, nil}, {"lte", comparing, nil},
	{"gt", comparing, nil}, {"gte", comparing, nil}, {"assign", constant, nil}, {"internal.member_2", comparing, nil},
	{"internal.member_3", comparing, nil},
	// Numbers are kept in decimal, and every operation reads and writes that text. A set minus a set is measured.
	{"plus", numeric, nil}, {"minus", numeric, nil}, {"mul", numeric, nil}, {"div", numeric, nil}, {"rem", numeric, nil},
	{"abs", numeric, nil}, {"round", numeric, nil}, {"ceil", numeric, nil}, {"floor", numeric, nil}, {"to_number", numeric, nil},
	{"sum", numeric, nil},
	// Collections.
	{"count", constant, nil}, {"max", comparing, nil}, {"min", comparing, nil}, {"sort", linear, nil},
	{"and", linear, nil}, {"or", linear, nil}, {"intersection", linear, nil}, {"union", linear, nil},
	{"array.concat", linear, nil}, {"array.reverse", linear, nil}, {"array.slice", constant, nil},
	{"object.get", constant, nil}, {"object.keys", linear, nil}, {"object.filter", linear, nil}, {"object.remove", linear, nil},
	{"object.union", linear, nil},
	// Texts. Those that look for something, or cut off an end, make no copy.
	{"contains", constant, nil}, {"endswith", constant, nil}, {"startswith", constant, nil}, {"indexof", constant, nil},
	{"strings.any_prefix_match", constant, nil}, {"strings.any_suffix_match", constant, nil}, {"strings.count", constant, nil},
	{"trim", constant, nil}, {"trim_left", constant, nil}, {"trim_prefix", constant, nil}, {"trim_right", constant, nil},
	{"trim_space", constant, nil}, {"trim_suffix", constant, nil},
	{"lower", linear, nil}, {"upper", linear, nil}, {"substring", linear, nil}, {"strings.reverse", linear, nil},
	{"concat", growing, concatSize}, {"replace", growing, replaceSize}, {"split", growing, splitSize}, {"sprintf", growing, sprintfSize},
	{"internal.template_string", growing, templateSize},
	{"regex.match", growing, regexWork}, {"regex.is_valid", growing, regexWork}, {"glob.match", growing, globWork},
	// Kinds of values.
	{"is_array", constant, nil}, {"is_boolean", constant, nil}, {"is_null", constant, nil}, {"is_number", constant, nil},
	{"is_object", constant, nil}, {"is_set", constant, nil}, {"is_string", constant, nil}, {"type_name", constant, nil},
	// Versions, quantities and moments that the input names. A quantity may have an exponent.
	{"semver.compare", parsing, nil}, {"semver.is_valid", parsing, nil}, {"units.parse", numeric, nil}, {"units.parse_bytes", numeric, nil},
	{"time.parse_rfc3339_ns", parsing, nil}, {"time.parse_duration_ns", parsing, nil},
}

// allowedNames are the names of the functions that policies may call.
func allowedNames() []string {
	names := make([]string, 0, len(allowed))
	for _, b := range allowed {
		names = append(names, b.name)
	}
	return names
}

// testOnly is called by the rewritten bodies of tests with named cases.
const testOnly = "internal.test_case"

// Capabilities are made once, and must not be changed: OPA only reads them, and takes longer to list its own than to parse a
// short module.
var (
	// understood is all that OPA knows: what is refused of it can then be named.
	understood = sync.OnceValue(everything)
	ofPolicies = sync.OnceValue(func() *ast.Capabilities { return limited(allowedNames()) })
	ofTests    = sync.OnceValue(func() *ast.Capabilities { return limited(append(allowedNames(), testOnly)) })
)

func everything() *ast.Capabilities {
	return ast.CapabilitiesForThisVersion(ast.CapabilitiesRegoVersion(ast.RegoV1))
}

// limited forbids every host too, by an AllowNet that is empty and not nil.
func limited(names []string) *ast.Capabilities {
	caps := everything()
	caps.AllowNet = []string{}
	caps.Builtins = slices.DeleteFunc(caps.Builtins, func(b *ast.Builtin) bool { return !slices.Contains(names, b.Name) })
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
	{"bits.", "one call of it can make a number of any length, which no deadline stops; compare names and facts instead of flags"},
	{"numbers.range", "one call of it can make a list of any length; write out the numbers that are meant"},
	{"product", "its result has as many digits as all its factors together; multiply the two that are meant with *"},
	{"format_int", `write sprintf("%d", [n])`},
	{"regex.replace", "its result can be of any length; use replace, or regex.match on what is compared"},
	{"strings.replace_n", "its result can be of any length; use replace once for each text"},
	{"object.union_n", "use object.union for two at a time"},
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
