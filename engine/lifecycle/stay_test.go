// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalaw/metalaw/engine"
)

const erasing = `apiVersion: policy.metalaw.dev/v1alpha1
kind: Lifecycle
initial: Erasing
define:
  running: bmc.power == "On"
  claimed: claim.bound
states:
  Erasing:
    means: Erased, and left alone until that is done.
    stable: true
    ensure:
    - {do: Erase, when: "!running && !claimed"}
    - {do: Erase, when: "!running && claimed"}
    - Watch
    exits:
    - {rule: Erased, to: Done, when: claimed && running}
  Done:
    means: Done.
    stable: true
    ensure: [Watch]
`

// erases is a vocabulary with an effect that goes on by itself: what is erased must not be handled while the server runs.
func erases() *engine.Vocabulary {
	v := words()
	v.Effects = []engine.EffectType{{Name: "Watch"}, {Name: "Erase", Stays: []engine.Requirement{
		{Rule: "ErasesWhileOff", Must: `bmc.power != "On"`, Doc: "an erase is left alone while off"},
		{Rule: "ErasesSmall", Must: "hardware.cores <= 60", Doc: "an erase is left alone on small servers"},
	}}}
	return v
}

func TestAnEffectOfAStateSaysWhatMustHoldToStay(t *testing.T) {
	l, found, err := Compile("lifecycle.yaml", []byte(erasing), erases())
	if err != nil || l == nil {
		t.Fatal(err, found)
	}
	running := engine.EnumValue("On")
	for name, c := range map[string]struct {
		facts facts
		steps []string
		halt  string
	}{
		"it stays where that holds": {machine("Erasing"), []string{"Erase", "Watch"}, ""},
		"it is halted where that does not hold, though the effect is not wanted": {
			machine("Erasing").with("bmc.power", running), nil, "SafetyRule Erase"},
		"each rule counts":         {machine("Erasing").with("hardware.cores", engine.IntValue(100)), nil, "SafetyRule Erase"},
		"what is missing halts it": {machine("Erasing").with("hardware.cores", engine.Value{}), nil, "SafetyRule Erase"},
		"a state without the effect asks for nothing": {
			machine("Done").with("bmc.power", running), []string{"Watch"}, ""},
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
	left := l.Decide(observed{words: l.vocabulary, facts: machine("Erasing").with("bmc.power", running).with("claim.bound", engine.BoolValue(true))})
	if left.Rule != "Erased" {
		t.Errorf("it is not left, but %+v", left)
	}
}
