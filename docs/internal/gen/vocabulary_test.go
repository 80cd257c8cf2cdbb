// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/policies"
)

// section is what the page of the safety rules says of one.
func section(t *testing.T, rule string) string {
	t.Helper()
	_, after, found := strings.Cut(read(t, "docs/reference/safety-rules.md"), "\n## "+rule+"\n")
	if !found {
		t.Fatalf("docs/reference/safety-rules.md has no section about %s", rule)
	}
	text, _, _ := strings.Cut(after, "\n## ")
	return text
}

func TestEveryRequirementOfASafetyRuleIsTold(t *testing.T) {
	v := policies.Vocabulary()
	tell := func(guard string, required []engine.Requirement) {
		for _, r := range required {
			want := fmt.Sprintf("* **Must hold:** `%s`\n", r.Must)
			if r.Awaits != "" {
				want += fmt.Sprintf("* **Is waited for while:** `%s`\n", r.Awaits)
			}
			_, after, told := strings.Cut(section(t, r.Rule), want+"* **Guards:** ")
			guards, _, _ := strings.Cut(after, "\n")
			if !told || !strings.Contains(guards, guard) {
				t.Errorf("of %s the page does not say that it guards %s by\n%s", r.Rule, guard, want)
			}
		}
	}
	for state, required := range v.Enter {
		tell("entering state `"+string(state)+"`", required)
	}
	for state, required := range v.Arrive {
		tell("entering state `"+string(state)+"` by a rule", required)
	}
	for state, required := range v.Leave {
		tell("leaving state `"+string(state)+"`", required)
	}
	for mark, required := range v.Clear {
		tell("clearing the mark `"+mark+"`", required)
	}
	for mark, required := range v.Set {
		tell("setting the mark `"+mark+"`", required)
	}
	for _, e := range v.Effects {
		tell("["+e.Name+"]", e.Requires)
		tell("staying in a state that has ["+e.Name+"]", e.Stays)
	}
}

func TestASafetyRuleIsListedOnceWithAllThatItRequires(t *testing.T) {
	cold := engine.Requirement{Rule: "Cold", Must: "cold"}
	off := engine.Requirement{Rule: "Cold", Must: "off", Awaits: "!known"}
	got := safetyRules(&engine.Vocabulary{
		Enter:   map[engine.State][]engine.Requirement{"Shelf": {cold}},
		Effects: []engine.EffectType{{Name: "Wrap", Requires: []engine.Requirement{off, cold}}, {Name: "Glue", Stays: []engine.Requirement{off}}},
	})
	want := []string{"Cold", "cold: entering state `Shelf`, [Wrap](effects.md#wrap)",
		"off: [Wrap](effects.md#wrap), staying in a state that has [Glue](effects.md#glue)"}
	var said []string
	for _, rule := range got {
		said = append(said, rule.name)
		for _, g := range rule.requires {
			said = append(said, g.Must+": "+strings.Join(g.guards, ", "))
		}
	}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestTheRunbookSaysOfEverySafetyRuleWhatToLookFor(t *testing.T) {
	page := read(t, "docs/runbooks/policy.md")
	for _, rule := range safetyRules(policies.Vocabulary()) {
		if !strings.Contains(page, "| `"+rule.name+"`") && !strings.Contains(page, ", `"+rule.name+"`") {
			t.Errorf("docs/runbooks/policy.md says nothing of %s", rule.name)
		}
	}
}
