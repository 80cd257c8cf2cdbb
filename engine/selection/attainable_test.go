// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"strings"
	"testing"
)

// attainable are the candidates that no rule turns away which reads only what lasts.
func attainable(t *testing.T, policy *Policy, claim Claim, candidates []*PreparedCandidate, fleet Fleet) string {
	t.Helper()
	var names []string
	for _, c := range candidates {
		j, err := policy.Judge(t.Context(), claim, c, fleet)
		if err != nil {
			t.Fatal(err)
		}
		if !j.Lasting {
			names = append(names, c.Name())
		}
	}
	r, err := policy.Rank(t.Context(), claim, candidates, fleet, 0)
	if err != nil || r.Lasting != len(candidates)-len(names) {
		t.Errorf("%d are turned away for good, and not %d: %v", r.Lasting, len(candidates)-len(names), err)
	}
	return strings.Join(names, " ")
}

func TestAttainable(t *testing.T) {
	const health = "reject contains {\"code\": \"ill\", \"message\": \"m\"} if input.candidate.health == \"Warning\"\n"
	const tenancy = "reject contains {\"code\": \"theirs\", \"message\": \"m\"} if not input.claim.namespace == input.candidate.labels.tenant\n"
	servers := prepared(
		Candidate{Name: "fine", Health: "OK", Labels: map[string]string{"tenant": "team"}},
		Candidate{Name: "ill", Health: "Warning", Labels: map[string]string{"tenant": "team"}},
		Candidate{Name: "theirs", Health: "OK", Labels: map[string]string{"tenant": "other"}},
		Candidate{Name: "theirs-ill", Health: "Warning", Labels: map[string]string{"tenant": "other"}},
	)
	for name, c := range map[string]struct{ body, want string }{
		"all that is allowed":                             {"allow := true\n", "fine ill theirs theirs-ill"},
		"what passes turns nothing away":                  {"allow := true\n" + health, "fine ill theirs theirs-ill"},
		"what lasts does":                                 {"allow := true\n" + tenancy, "fine ill"},
		"also beside what passes":                         {"allow := true\n" + health + tenancy, "fine ill"},
		"two rules of one code are told apart":            {"allow := true\n" + health + strings.Replace(tenancy, "theirs", "ill", 1), "fine ill"},
		"allow that follows the health":                   {"allow if input.candidate.health == \"OK\"\n" + tenancy, "fine ill"},
		"allow that follows the claim":                    {"allow if input.claim.namespace == \"nobody\"\n" + health, ""},
		"allow with both says nothing of which it was":    {"allow if {\n\tinput.candidate.health == \"OK\"\n\tinput.candidate.labels.tenant == \"team\"\n}\n", "fine ill theirs theirs-ill"},
		"a rule with both says nothing of which it was":   {"allow := true\nreject contains {\"code\": \"a\", \"message\": \"m\"} if {\n\tinput.candidate.labels.tenant == \"other\"\n\tinput.candidate.health != \"Critical\"\n}\n", "fine ill theirs theirs-ill"},
		"a helper reads for who asks it":                  {"allow := true\nreject contains {\"code\": \"a\", \"message\": \"m\"} if bad\nbad if input.fleet.claimed < 5\n", "fine ill theirs theirs-ill"},
		"counts of the fleet pass":                        {"allow if input.fleet.claimed > 5\n", "fine ill theirs theirs-ill"},
		"what only a message reads turns nobody away":     {"allow := true\nreject contains {\"code\": \"a\", \"message\": sprintf(\"it is %s\", [input.candidate.health])} if input.candidate.name == \"ill\"\n", "fine theirs theirs-ill"},
		"interpreted, with something that passes":         {"allow if count([1 | input.candidate.health == \"Warning\"]) == 0\n" + tenancy, "fine ill theirs theirs-ill"},
		"interpreted, with nothing that passes":           {"allow if count([1 | input.candidate.labels.tenant == \"other\"]) == 0\n", "fine ill"},
		"a score that follows counts is no matter for it": {"allow := true\nscore := input.fleet.claimed\n" + tenancy, "fine ill"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := attainable(t, compiled(t, rego(c.body)), Claim{Namespace: "team"}, servers, Fleet{}); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// A string beyond what a message may hold is judged by the interpreter, by the codes of the rules.
func TestAttainableAlsoWhereTheInterpreterHasToBeAsked(t *testing.T) {
	policy := compiled(t, rego("allow := true\n"+
		"reject contains {\"code\": \"theirs\", \"message\": sprintf(\"it is %s\", [input.candidate.model])} if input.candidate.sku == \"theirs\"\n"+
		"reject contains {\"code\": \"ill\", \"message\": \"m\"} if input.candidate.health == \"Warning\"\n"))
	long := strings.Repeat("x", 2000)
	got := attainable(t, policy, Claim{}, prepared(Candidate{Name: "a", SKU: "theirs", Rack: long}, Candidate{Name: "b", Health: "Warning", Rack: long},
		Candidate{Name: "c", Rack: long}), Fleet{})
	if got != "b c" {
		t.Error(got)
	}
}

func TestAttainableInTheDefaultBundle(t *testing.T) {
	if got := attainable(t, compiled(t, bundled(t, "selection.rego")), Claim{}, prepared(Candidate{Name: "a", Health: "Critical"}, Candidate{Name: "b", Health: "OK"}),
		Fleet{}); got != "a b" {
		t.Error(got)
	}
}
