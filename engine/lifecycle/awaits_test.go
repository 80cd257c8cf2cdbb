// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalaw/metalaw/engine"
)

// careful is a vocabulary with safety rules of which it may be open whether they hold: a server blinks only while it is known
// to be off, and it is ours by being switched on while off and inspected (0 cores are not inspected yet).
func careful() *engine.Vocabulary {
	v := words()
	v.Effects = []engine.EffectType{
		{Name: "Blink", Touches: true, Requires: []engine.Requirement{{Rule: "KnownOff", Doc: "only a server that is off blinks",
			Must: `bmc.power == "Off"`, Awaits: `bmc.power == "Unknown"`}}},
		{Name: "Adopt", Touches: true, Marks: []string{"Adopted", "Dirty"}},
		{Name: "BootImage"},
		{Name: "Keep", Earns: []string{"Adopted", "Dirty"}},
	}
	v.Marks["Adopted"] = "it was adopted by us"
	v.Set = map[string][]engine.Requirement{"Adopted": {{Rule: "AdoptedInspected", Doc: "a server is adopted once it is inspected",
		Must: `hardware.cores > 0 && !claim.bound`, Awaits: `hardware.cores == 0 && !claim.bound`}}}
	return v
}

const blinking = `apiVersion: policy.metalaw.dev/v1alpha1
kind: Lifecycle
initial: Blinking
define:
  claimed: claim.bound
states:
  Blinking:
    means: Booted, made to blink, and booted again.
    stable: true
    ensure: [BootImage, Blink, BootImage]
  Adopting:
    means: Adopted.
    stable: true
    ensure: [BootImage, Adopt, BootImage]
  Kept:
    means: Kept.
    stable: true
    ensure: [BootImage, Keep, BootImage]
  Both:
    means: Made to blink and adopted.
    stable: true
    ensure: [Blink, Adopt]
invariants:
- {rule: NotClaimedWhileBlinking, must: "state != 'Blinking' || !claimed || !ensuring('Blink')"}
`

func onBlinking(t *testing.T) *Lifecycle {
	t.Helper()
	l, found, err := Compile("lifecycle.yaml", []byte(blinking), careful())
	if err != nil || l == nil {
		t.Fatal(err, found)
	}
	return l
}

// steps is what a decision does, in order: effects, and marks by their names.
func steps(d engine.Decision) []string {
	var all []string
	for _, e := range d.Effects {
		name := strings.TrimSpace(e.Name + " " + strings.Join(e.Earns, " "))
		if name == engine.MarkEffect {
			name += " " + e.Param("mark").Text()
		}
		all = append(all, name)
	}
	return all
}

func TestAnEffectWaitsForASafetyRuleThatIsStillOpen(t *testing.T) {
	power := func(word string) engine.Value { return engine.EnumValue(word) }
	marks := func(words ...string) engine.Value { return engine.SetValue(words) }
	for name, c := range map[string]struct {
		facts  facts
		steps  []string
		awaits *engine.Awaited
		halt   string
	}{
		"it is ensured where the rule holds": {
			machine("Blinking"), []string{"BootImage", "Blink", "BootImage"}, nil, ""},
		"it waits, and so does what comes after it, where that is open": {
			machine("Blinking").with("bmc.power", power("Unknown")), []string{"BootImage"},
			&engine.Awaited{Effect: "Blink", Rule: "KnownOff", Message: "only a server that is off blinks"}, ""},
		"it halts where the rule is broken": {
			machine("Blinking").with("bmc.power", power("On")), nil, nil, "SafetyRule Blink"},
		"it halts where the rule cannot be evaluated": {
			machine("Blinking").with("bmc.power", engine.Value{}), nil, nil, "SafetyRule Blink"},
		"an invariant sees what waits": {
			machine("Blinking").with("bmc.power", power("Unknown")).with("claim.bound", engine.BoolValue(true)), nil, nil,
			"InvariantViolated NotClaimedWhileBlinking"},
		"every mark that is not stored comes before the effect": {
			machine("Adopting"), []string{"BootImage", "Mark Adopted", "Mark Dirty"}, nil, ""},
		"a mark that is stored does not": {
			machine("Adopting").with("lifecycle.marks", marks("Adopted")), []string{"BootImage", "Mark Dirty"}, nil, ""},
		"it follows once all marks are stored": {
			machine("Adopting").with("lifecycle.marks", marks("Dirty", "Adopted")), []string{"BootImage", "Adopt", "BootImage"}, nil, ""},
		"what an effect earns goes with it": {
			machine("Kept"), []string{"BootImage", "Keep Adopted Dirty", "BootImage"}, nil, ""},
		"what is earned already does not": {
			machine("Kept").with("lifecycle.marks", marks("Adopted")), []string{"BootImage", "Keep Dirty", "BootImage"}, nil, ""},
		"it waits where it is open whether what it earns may be set": {
			machine("Kept").with("hardware.cores", engine.IntValue(0)), []string{"BootImage"},
			&engine.Awaited{Effect: "Keep", Rule: "AdoptedInspected", Message: "a server is adopted once it is inspected"}, ""},
		"it halts where what it earns may not be set": {
			machine("Kept").with("claim.bound", engine.BoolValue(true)), nil, nil, "SafetyRule Keep"},
		"it waits where it is open whether its mark may be set": {
			machine("Adopting").with("hardware.cores", engine.IntValue(0)), []string{"BootImage"},
			&engine.Awaited{Effect: "Adopt", Rule: "AdoptedInspected", Message: "a server is adopted once it is inspected"}, ""},
		"it halts where its mark may not be set": {
			machine("Adopting").with("claim.bound", engine.BoolValue(true)), nil, nil, "SafetyRule Adopt"},
		"what must hold to set a mark does not count once it is set": {
			machine("Adopting").with("claim.bound", engine.BoolValue(true)).with("lifecycle.marks", marks("Dirty", "Adopted")),
			[]string{"BootImage", "Adopt", "BootImage"}, nil, ""},
		"a rule that is broken halts, whatever waits before it": {
			machine("Both").with("bmc.power", power("Unknown")).with("claim.bound", engine.BoolValue(true)), nil, nil, "SafetyRule Adopt"},
		"of two that wait the first is named": {
			machine("Both").with("bmc.power", power("Unknown")).with("hardware.cores", engine.IntValue(0)), nil,
			&engine.Awaited{Effect: "Blink", Rule: "KnownOff", Message: "only a server that is off blinks"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			l := onBlinking(t)
			d := l.Decide(observed{words: l.vocabulary, facts: c.facts})
			if diff := cmp.Diff(c.steps, steps(d)); diff != "" {
				t.Errorf("steps (-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(c.awaits, d.Awaits); diff != "" {
				t.Errorf("awaits (-want +got)\n%s", diff)
			}
			if got := outcomeOf(d).Halt; got != c.halt {
				t.Errorf("halted by %q, want %q", got, c.halt)
			}
		})
	}
}

func TestExplainShowsTheRuleThatIsWaitedFor(t *testing.T) {
	l := onBlinking(t)
	d := l.Explain(observed{words: l.vocabulary, facts: machine("Blinking").with("bmc.power", engine.EnumValue("Unknown"))})
	want := engine.Trace{
		{Kind: "ensure", Rule: "BootImage", Result: "true"},
		{Kind: "ensure", Rule: "Blink", Result: "true"},
		{Kind: "ensure", Rule: "BootImage", Result: "true"},
		{Kind: "safety", Rule: "KnownOff", Guard: `bmc.power == "Off"`, Result: "waiting"},
	}
	if diff := cmp.Diff(want, d.Trace); diff != "" {
		t.Errorf("trace (-want +got)\n%s", diff)
	}
}

func TestAStateCannotSetAMarkThatHasToBeEarned(t *testing.T) {
	source := `apiVersion: policy.metalaw.dev/v1alpha1
kind: Lifecycle
initial: Blinking
define:
  claimed: claim.bound
states:
  Blinking:
    means: Adopted because the state says so.
    stable: true
    marks: [Adopted]
`
	l, found, err := Compile("lifecycle.yaml", []byte(source), careful())
	if err != nil || l != nil || len(found) != 1 {
		t.Fatal(err, l != nil, found)
	}
	want := `lifecycle.yaml:10:13: error: Blinking: a state cannot set the mark "Adopted": entering a state proves nothing about a machine ` +
		`(take it out; the engine sets it with an effect that earns it) [mark-earned]`
	if got := found[0].String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestAMarkThatTheEngineKeepsIsNeitherSetNorCleared(t *testing.T) {
	source := `apiVersion: policy.metalaw.dev/v1alpha1
kind: Lifecycle
initial: Blinking
define:
  claimed: claim.bound
states:
  Blinking:
    means: Cracked because we say so.
    stable: true
    marks: [Cracked]
    exits:
    - {rule: Repaired, to: Broken, when: claimed, clears: [Cracked]}
  Broken:
    means: Off.
    stable: true
`
	v := careful()
	v.Kept, v.Marks["Cracked"] = []string{"Cracked"}, "a crack was seen"
	l, found, err := Compile("lifecycle.yaml", []byte(source), v)
	if err != nil || l != nil {
		t.Fatal(err, l != nil)
	}
	var got []string
	for _, d := range found {
		got = append(got, d.String())
	}
	const hint = ` (take it out; it comes and goes with what the engine sees of the machine) [mark-kept]`
	want := []string{`lifecycle.yaml:10:13: error: Blinking: a state cannot set the mark "Cracked": the engine keeps it` + hint,
		`lifecycle.yaml:12:60: error: Repaired: a rule cannot clear the mark "Cracked": the engine keeps it` + hint}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// An effect that earns something only here or there asks for it there only: elsewhere no rule of the mark holds it back.
func TestAnEffectEarnsNothingWhereItAsksForNothing(t *testing.T) {
	for name, c := range map[string]struct {
		facts facts
		want  string
		halts bool
	}{
		"where it asks":                     {machine("Kept"), "BootImage, Keep Adopted Dirty, BootImage", false},
		"where it does not":                 {machine("Kept").with("bmc.power", engine.EnumValue("On")), "BootImage, Keep, BootImage", false},
		"nor is it halted by the mark":      {machine("Kept").with("bmc.power", engine.EnumValue("On")).with("claim.bound", engine.BoolValue(true)), "BootImage, Keep, BootImage", false},
		"it is where it asks":               {machine("Kept").with("claim.bound", engine.BoolValue(true)), "", true},
		"and where that cannot be told":     {machine("Kept").with("bmc.power", engine.Value{}), "", true},
		"what is earned is earned for good": {machine("Kept").with("lifecycle.marks", engine.SetValue([]string{"Adopted", "Dirty"})), "BootImage, Keep, BootImage", false},
	} {
		v := careful()
		v.Effects[3].EarnsWhere = `bmc.power == "Off"`
		l, found, err := Compile("lifecycle.yaml", []byte(blinking), v)
		if err != nil || found.Err() != nil {
			t.Fatal(err, found)
		}
		d := l.Decide(observed{words: l.vocabulary, facts: c.facts})
		if got := strings.Join(steps(d), ", "); got != c.want || (d.Halt != nil) != c.halts {
			t.Errorf("%s: does %q, halted by %+v", name, got, d.Halt)
		}
	}
}

func TestAMistakeInWhatIsAwaitedIsOneOfTheVocabulary(t *testing.T) {
	v := careful()
	v.Effects[0].Requires[0].Awaits = `bmc.power == "Dimmed"`
	if _, _, err := Compile("lifecycle.yaml", []byte(blinking), v); err == nil {
		t.Error("a word that the enum does not have is accepted")
	}
}
