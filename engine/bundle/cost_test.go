// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"fmt"
	"strings"
	"testing"

	"github.com/metalaw/metalaw/engine/admission"
	"github.com/metalaw/metalaw/engine/selection"
)

// loops are so many in each other over what is at a path; the condition within them never holds.
func loops(many int, path string) string {
	var names, body []string
	for i := range many {
		name := fmt.Sprintf("v%d", i)
		names, body = append(names, name), append(body, fmt.Sprintf("some %s, _ in %s", name, path))
	}
	return fmt.Sprintf("if {\n\t%s\n\tsprintf(\"%%v\", [[%s]]) == \"-\"\n}\n", strings.Join(body, "\n\t"), strings.Join(names, ", "))
}

func TestWhatRegoCostsIsMeasuredOnServersAndClaimsOfTheSizeThatThereAre(t *testing.T) {
	const reject, deny = "allow := true\n\nreject contains {\"code\": \"slow\", \"message\": \"x\"} ", "deny contains {\"code\": \"slow\", \"message\": \"x\"} "
	for name, c := range map[string]struct{ selection, admission, want string }{
		"every server's labels":                            {reject + loops(1, "input.candidate.labels"), "", ""},
		"every two labels of a server":                     {reject + loops(2, "input.candidate.labels"), "", ""},
		"every three labels of a server":                   {reject + loops(3, "input.candidate.labels"), "", "selection.rego rego-cost"},
		"every four labels of a server":                    {reject + loops(4, "input.candidate.labels"), "", "selection.rego rego-cost"},
		"every two taints of a server":                     {reject + loops(2, "input.candidate.taints"), "", ""},
		"every two labels of the claim":                    {reject + loops(2, "input.claim.labels"), "", ""},
		"every four labels of the claim":                   {reject + loops(4, "input.claim.labels"), "", "selection.rego rego-cost"},
		"every two racks of the fleet":                     {reject + loops(2, "input.fleet.totalByRack"), "", ""},
		"every five racks of the fleet":                    {reject + loops(5, "input.fleet.totalByRack"), "", "selection.rego rego-cost"},
		"every two labels of a claim that is created":      {"", deny + loops(2, "input.object.metadata.labels"), ""},
		"every six labels of a claim that is created":      {"", deny + loops(6, "input.object.metadata.labels"), "admission.rego rego-cost"},
		"every two tolerations of a claim that is created": {"", deny + loops(2, "input.object.spec.tolerations"), ""},
		"a rule that fails for a server with labels":       {"allow := true\nscore := to_number(input.candidate.labels[\"example.com/label-0\"])\n", "", "selection.rego rego-evaluation"},
		"a rule that fails for a server without a zone":    {"allow := true\nscore := to_number(concat(\"\", [\"1\", substring(input.candidate.zone, 0, 0 - 1)])) if {\n\tto_number(concat(\"\", [object.get({\"\": \"x\"}, input.candidate.zone, \"1\")])) > 0\n}\n", "", "selection.rego rego-evaluation"},
		"a rule that fails for a claim that says little":   {"", "deny contains {\"code\": \"a\", \"message\": \"x\"} if to_number(object.get(input.object.metadata, \"labels\", \"x\")) > 0\n", "admission.rego rego-evaluation"},
		"a rule that fails for a claim that says much":     {"", "deny contains {\"code\": \"a\", \"message\": \"x\"} if to_number(input.object.metadata.labels[\"example.com/label-0\"]) > 0\n", "admission.rego rego-evaluation"},
	} {
		t.Run(name, func(t *testing.T) {
			b := &Bundle{}
			if c.selection != "" {
				policy, found := selection.Compile(map[string][]byte{SelectionFile: []byte("package metalaw.selection\n\n" + c.selection)})
				if b.Selection = policy; policy == nil {
					t.Fatal(found)
				}
			}
			if c.admission != "" {
				policy, found := admission.Compile(map[string][]byte{AdmissionFile: []byte("package metalaw.admission\n\n" + c.admission)})
				if b.Admission = policy; policy == nil {
					t.Fatal(found)
				}
			}
			var got []string
			for _, d := range b.regoCost(t.Context()) {
				t.Log(d)
				got = append(got, d.File+" "+d.Code)
			}
			if strings.Join(got, ", ") != c.want {
				t.Errorf("found %q, want %q", got, c.want)
			}
		})
	}
}
