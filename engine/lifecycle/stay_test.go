// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalaw/metalaw/engine"
)

const oven = `apiVersion: policy.metalaw.dev/v1alpha1
kind: Lifecycle
initial: Drying
define:
  lit: lamp.power == "On"
  sold: lamp.sold
states:
  Drying:
    means: Glued, and left alone until that is dry.
    stable: true
    ensure:
    - {do: Glue, when: "!lit && !sold"}
    - {do: Glue, when: "!lit && sold"}
    - Watch
    exits:
    - {rule: Dried, to: Drawer, when: sold && lit}
  Drawer:
    means: Put away.
    stable: true
    ensure: [Watch]
`

// gluing is a vocabulary with an effect that goes on by itself: what was glued must not be handled while the lamp glows.
func gluing() *engine.Vocabulary {
	v := words()
	v.Effects = []engine.EffectType{{Name: "Watch"}, {Name: "Glue", Stays: []engine.Requirement{
		{Rule: "DriesDark", Must: `lamp.power != "On"`, Doc: "glue dries in the dark"},
		{Rule: "DriesCheap", Must: "lamp.watts <= 60", Doc: "glue dries beside small lamps"},
	}}}
	return v
}

func TestAnEffectOfAStateSaysWhatMustHoldToStay(t *testing.T) {
	l, found, err := Compile("lifecycle.yaml", []byte(oven), gluing())
	if err != nil || l == nil {
		t.Fatal(err, found)
	}
	lit := engine.EnumValue("On")
	for name, c := range map[string]struct {
		facts facts
		steps []string
		halt  string
	}{
		"it stays where that holds": {lamp("Drying"), []string{"Glue", "Watch"}, ""},
		"it is halted where that does not hold, though the effect is not wanted": {
			lamp("Drying").with("lamp.power", lit), nil, "SafetyRule Glue"},
		"each rule counts":         {lamp("Drying").with("lamp.watts", engine.IntValue(100)), nil, "SafetyRule Glue"},
		"what is missing halts it": {lamp("Drying").with("lamp.watts", engine.Value{}), nil, "SafetyRule Glue"},
		"a state without the effect asks for nothing": {
			lamp("Drawer").with("lamp.power", lit), []string{"Watch"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := l.Decide(observed{words: l.vocabulary, facts: c.facts})
			if diff := cmp.Diff(c.steps, steps(d)); diff != "" {
				t.Errorf("steps (-want +got)\n%s", diff)
			}
			if got := outcomeOf(d).Halt; got != c.halt {
				t.Errorf("halted by %q, want %q", got, c.halt)
			}
		})
	}
	left := l.Decide(observed{words: l.vocabulary, facts: lamp("Drying").with("lamp.power", lit).with("lamp.sold", engine.BoolValue(true))})
	if left.Rule != "Dried" {
		t.Errorf("it is not left, but %+v", left)
	}
}

func TestReadsNamesWhatStayingDependsOn(t *testing.T) {
	l, found, err := Compile("lifecycle.yaml", []byte(oven), gluing())
	if err != nil || l == nil {
		t.Fatal(err, found)
	}
	var got []string
	for _, i := range l.Reads("Drying") {
		got = append(got, l.vocabulary.Facts[i].Name)
	}
	if diff := cmp.Diff([]string{"lifecycle.age", "lifecycle.marks", "lamp.power", "lamp.sold", "lamp.watts"}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
