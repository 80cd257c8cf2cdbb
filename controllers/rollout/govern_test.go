// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"

	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/policies"
)

func TestWhichRevisionGovernsAServer(t *testing.T) {
	shipped, err := policies.Default()
	if err != nil {
		t.Fatal(err)
	}
	named := func(name string) Candidate {
		b := *shipped
		b.Revision.Name = name
		return Candidate{Bundle: &b}
	}
	refused := func(c Candidate) Candidate { c.Refused, c.Why = true, "no"; return c }
	v1, v2, canary := named("v1"), named("v2"), named("canary")
	nothing := Candidate{Bundle: &bundle.Bundle{StandsIn: true}, Refused: true, Why: "none was promoted here"}
	for name, c := range map[string]struct {
		q    Question
		want string
		asks Asks
	}{
		"a new server":             {Question{Target: v2, Active: v2}, "v2", Asks{}},
		"a new server in a canary": {Question{Target: canary, Active: v2, Answers: true}, "v2", Asks{Place: canary.Bundle}},
		"a new server that got a place": {Question{Target: canary, Active: v2, Answers: true, Grants: Grants{Place: Granted}},
			"canary", Asks{}},
		"a new server whose BMC is silent": {Question{Target: canary, Active: v2}, "v2", Asks{}},
		"a new server under a refused one": {Question{Target: refused(v2), Active: v2}, "halt RevisionHeld", Asks{}},
		"at rest, before its turn": {Question{State: "Available", Revision: "v1", Pinned: v1, Target: v2, Active: v2},
			"v1", Asks{Turn: RestingTurn}},
		"at rest and halted": {Question{State: "Available", Revision: "v1", Pinned: v1, Target: v2, Active: v2, Halted: true},
			"v1", Asks{Turn: HaltedTurn}},
		"at rest, in its turn": {Question{State: "Available", Revision: "v1", Pinned: v1, Target: v2, Active: v2, Grants: Grants{Turn: Granted}},
			"v2", Asks{}},
		"at rest, where its turn has not come": {Question{State: "Available", Revision: "v1", Pinned: v1, Target: v2, Active: v2,
			Grants: Grants{Turn: Denied}}, "v1", Asks{}},
		"at rest, while its machine changes": {Question{State: "Available", Revision: "v1", Pinned: v1, Target: v2, Active: v2,
			Changing: true, Grants: Grants{Turn: Granted}}, "v1", Asks{}},
		"at rest, under a canary first its place": {Question{State: "Available", Revision: "v1", Pinned: v1, Target: canary, Active: v1,
			Answers: true}, "v1", Asks{Place: canary.Bundle}},
		"at rest, where the other is refused": {Question{State: "Available", Revision: "v1", Pinned: v1, Target: refused(v2), Active: v2},
			"v1", Asks{}},
		"on its way":                   {Question{State: "Cleanup", Revision: "v1", Pinned: v1, Target: v2, Active: v2}, "v1, then v2", Asks{}},
		"on its way, under a held one": {Question{State: "Cleanup", Revision: "v1", Pinned: refused(v1), Target: v2, Active: v2}, "halt RevisionHeld, then v2", Asks{}},
		"under one that is lost": {Question{State: "Available", Revision: "v0", Target: v2, Active: v2, Lost: true},
			"halt UnknownState, then v2, lost", Asks{}},
		"while nothing governs, on its way": {Question{State: "Cleanup", Revision: "v1", Pinned: v1, Target: nothing, Active: nothing},
			"halt PromotionMissing", Asks{}},
		"while nothing governs, at rest, in its turn": {Question{State: "Available", Revision: "v1", Pinned: v1, Target: canary, Active: nothing,
			Answers: true, Grants: Grants{Place: Granted, Turn: Granted}}, "halt PromotionMissing", Asks{}},
		"while nothing governs, a new server": {Question{Target: nothing, Active: nothing}, "halt PromotionMissing", Asks{}},
		"where the other drops its state":     {Question{State: "Strange", Revision: "v1", Pinned: v1, Target: v2, Active: v2}, "v1, dropped by v2", Asks{}},
	} {
		t.Run(name, func(t *testing.T) {
			g := Governs(c.q)
			if got := governanceText(g); got != c.want || g.Asks != c.asks {
				t.Errorf("%s, asks %+v", got, g.Asks)
			}
			if again := Governs(c.q); governanceText(again) != governanceText(g) || again.Asks != g.Asks {
				t.Errorf("asked again: %s", governanceText(again))
			}
		})
	}
}

func governanceText(g Governance) string {
	name := func(prefix string, b *bundle.Bundle) string {
		if b == nil {
			return ""
		}
		return prefix + b.Revision.Name
	}
	text := name("", g.Bundle)
	if g.Unloaded != nil {
		text = "halt " + string(g.Unloaded.Cause)
	}
	text += name(", then ", g.Successor) + name(", dropped by ", g.Dropping)
	if g.Lost {
		text += ", lost"
	}
	return text
}
