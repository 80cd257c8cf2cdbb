// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"github.com/metalaw/metalaw/engine/admission/objectonly"
)

// ManagerUser is who the shipped manifests run the manager as; what it writes by itself is not asked about.
const ManagerUser = "system:serviceaccount:metalaw-system:metalaw-manager"

// ObjectRules are metalaw's own rules about a ServerClaim that need only the object, in CEL: each refuses what checkClaim refuses,
// and nothing that is stored already. What the definition of the API refuses by itself is not repeated.
func ObjectRules() []objectonly.Rule {
	var rules []objectonly.Rule
	for _, ref := range []string{"ignitionSecretRef", "userDataRef"} {
		rules = append(rules, objectonly.Rule{Code: "secret-name", Field: "spec." + ref + ".name",
			Expression: "!(has(object.spec." + ref + ") && object.spec." + ref + ".?name.orValue('') == '' && (oldObject == null || " +
				"!has(oldObject.spec." + ref + ") || oldObject.spec." + ref + ".?name.orValue('') != ''))",
			Message: "write the name of a Secret in the claim's namespace, or leave " + ref + " out"})
	}
	const added = "object.spec.?tolerations.orValue([]).exists(t, !(oldObject == null ? [] : oldObject.spec.?tolerations.orValue([]))" +
		".exists(o, ['key', 'operator', 'value', 'effect'].all(f, o[?f].orValue('') == t[?f].orValue(''))) && "
	const protect = ".metadata.?annotations[?'policy.metalaw.dev/protect']"
	return append(rules,
		objectonly.Rule{Code: "toleration-key", Field: "spec.tolerations",
			Expression: "!" + added + "t.?key.orValue('') == '' && t.?operator.orValue('') != 'Exists')",
			Message:    "without a key it tolerates nothing; name the key, or use the operator Exists, which then tolerates every taint"},
		objectonly.Rule{Code: "toleration-value", Field: "spec.tolerations",
			Expression: "!" + added + "t.?operator.orValue('') == 'Exists' && t.?value.orValue('') != '')",
			Message:    "the operator Exists tolerates every value; leave the value out, or use the operator Equal"},
		objectonly.Rule{Code: "protect-value", Field: "metadata.annotations[policy.metalaw.dev/protect]",
			Expression: "!(object" + protect + ".hasValue() && (oldObject == null || oldObject" + protect + " != object" + protect +
				") && !(object" + protect + ".orValue('') in ['true', 'false']))",
			Message: `supported values: "true", "false"`})
}

// ObjectRulesLeft are metalaw's own rules about a ServerClaim that take more than the object, and why.
func ObjectRulesLeft() []objectonly.Left {
	return []objectonly.Left{
		{Rule: "serverRef and the selector of one claim agree", Why: "it looks up the Server that is named"},
		{Rule: "some server can satisfy the claim", Why: "it looks at the whole fleet"},
		{Rule: "quota of the namespace", Why: "it counts the claims of the namespace"},
		{Rule: "the placement is well-formed, and agrees with the gang's other members", Why: "it compiles the annotation, and looks up claims"},
		{Rule: "the selector has a meaning", Why: "it parses label selectors, which CEL has no function for here"},
		{Rule: "protection from deletion", Why: "it is asked on DELETE, and the webhook refuses while no manager answers as well"},
	}
}
