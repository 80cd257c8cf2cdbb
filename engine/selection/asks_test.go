// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"testing"
)

func TestAsks(t *testing.T) {
	one := Claim{Namespace: "team", Name: "one", Priority: 1, Labels: map[string]string{"size": "big", "owner": "a"}}
	for name, c := range map[string]struct {
		body  string
		other Claim
		same  bool
	}{
		"what no rule reads tells no claims apart": {"allow := true\n", Claim{Namespace: "other", Name: "two"}, true},
		"a field that a rule reads does":           {"allow if input.claim.namespace == \"a\"\n", Claim{Namespace: "other"}, false},
		"the same value does not":                  {"allow if input.claim.namespace == \"a\"\n", Claim{Namespace: "team", Name: "two"}, true},
		"one label that a rule reads does": {"allow if input.claim.labels.size == \"a\"\n",
			Claim{Labels: map[string]string{"size": "small"}}, false},
		"another label does not": {"allow if input.claim.labels.size == \"a\"\n",
			Claim{Labels: map[string]string{"size": "big", "owner": "b"}}, true},
		"a label that is absent is not one that is empty": {"allow if input.claim.labels.none == \"\"\n",
			Claim{Labels: map[string]string{"none": ""}}, false},
		"a label whose name is computed makes all of them count": {"allow if input.claim.labels[input.candidate.sku] == \"a\"\n",
			Claim{Labels: map[string]string{"size": "big", "owner": "b"}}, false},
		"the name of a key may be read from the claim": {"allow if input.candidate.labels[input.claim.name]\n", Claim{Name: "two"}, false},
		"a label that is asked for by object.get is the only one": {"allow if object.get(input.claim.labels, \"size\", \"\") == \"a\"\n",
			Claim{Labels: map[string]string{"size": "big", "owner": "b"}}, true},
		"a message that names the claim tells claims apart": {"allow := true\nreject contains {\"code\": \"a\", \"message\": sprintf(\"not %s\", [input.claim.name])}\n",
			Claim{Namespace: "team", Name: "two"}, false},
		"a helper reads for who calls it": {"allow if helper(input.claim)\nhelper(c) if c.priority > 0\n",
			Claim{Namespace: "team", Name: "two", Priority: 1, Labels: one.Labels}, false},
		"counts of the claim's namespace tell namespaces apart": {"allow if input.fleet.namespaceByRack[input.candidate.rack] < 3\n",
			Claim{Namespace: "other"}, false},
		"counts of the whole fleet do not": {"allow if input.fleet.freeByRack[input.candidate.rack] < 3\n", Claim{Namespace: "other"}, true},
		"a fleet that is handed on may hold those of the namespace": {"allow if helper(input.fleet)\nhelper(f) if f.namespaceByRack.r1 < 3\n",
			Claim{Namespace: "other"}, false},
		"the default policy reads nothing of a claim": {"", Claim{Name: "two"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			files := rego(c.body)
			if c.body == "" {
				files = bundled(t, "selection.rego")
			}
			policy := compiled(t, files)
			if same := policy.Asks(one) == policy.Asks(c.other); same != c.same {
				t.Errorf("%q and %q", policy.Asks(one), policy.Asks(c.other))
			}
		})
	}
}

func TestFollowsFleet(t *testing.T) {
	for body, want := range map[string]bool{
		"allow := true\n": false,
		"allow if input.candidate.cores > input.claim.priority\n":                       false,
		"allow if input.fleet.now > 0\n":                                                true,
		"allow if input.candidate.labels[input.fleet.totalByRack.r1]\n":                 true,
		"allow if helper(input)\nhelper(i) if i.claim.priority > 0\n":                   true,
		"allow := true\nscore := 1 / input.fleet.total if input.claim.image == \"a\"\n": true,
	} {
		t.Run(body, func(t *testing.T) {
			if got := compiled(t, rego(body)).FollowsFleet(); got != want {
				t.Error(got)
			}
		})
	}
	if !compiled(t, bundled(t, "selection.rego")).FollowsFleet() {
		t.Error("the default policy spreads by counts")
	}
}

func TestJudgesPassing(t *testing.T) {
	for body, want := range map[string]bool{
		"allow if input.candidate.cores > input.claim.priority\n": false,
		"allow := true\nscore := input.fleet.total\n":             false,
		"allow if input.fleet.claimed < 5\n":                      true,
		"allow := true\nreject contains {\"code\": \"a\", \"message\": \"m\"} if input.candidate.health == \"Warning\"\n": true,
		"allow if helper(input.candidate)\nhelper(c) if count([1 | c.cores > 1]) > 0\n":                                   true,
	} {
		t.Run(body, func(t *testing.T) {
			if got := compiled(t, rego(body)).passing; got != want {
				t.Error(got)
			}
		})
	}
}
