// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalaw/metalaw/engine"
)

// careful is a vocabulary with safety rules of which it may be open whether they hold: a lamp glows only while it is known
// to be cold, and it is ours by being switched on cold and with its fuse in (0 watts are not measured yet).
func careful() *engine.Vocabulary {
	v := words()
	v.Effects = []engine.EffectType{
		{Name: "Glow", Touches: true, Requires: []engine.Requirement{{Rule: "KnownCold", Doc: "only a cold lamp glows",
			Must: `lamp.power == "Off"`, Awaits: `lamp.power == "Unknown"`}}},
		{Name: "Take", Touches: true, Marks: []string{"Ours", "Scratched"}},
		{Name: "Wrap"},
		{Name: "Keep", Earns: []string{"Ours", "Scratched"}},
	}
	v.Marks["Ours"] = "it was taken by us"
	v.Set = map[string][]engine.Requirement{"Ours": {{Rule: "TakenMeasured", Doc: "a lamp is taken once it is measured",
		Must: `lamp.watts > 0 && !lamp.sold`, Awaits: `lamp.watts == 0 && !lamp.sold`}}}
	return v
}

const bench = `apiVersion: policy.metalaw.dev/v1alpha1
kind: Lifecycle
initial: Glowing
define:
  sold: lamp.sold
states:
  Glowing:
    means: Wrapped, made to glow, and wrapped again.
    stable: true
    ensure: [Wrap, Glow, Wrap]
  Taken:
    means: Taken.
    stable: true
    ensure: [Wrap, Take, Wrap]
  Kept:
    means: Kept.
    stable: true
    ensure: [Wrap, Keep, Wrap]
  Both:
    means: Made to glow and taken.
    stable: true
    ensure: [Glow, Take]
invariants:
- {rule: NotSoldWhileGlowing, must: "state != 'Glowing' || !sold || !ensuring('Glow')"}
`

func onTheBench(t *testing.T) *Lifecycle {
	t.Helper()
	l, found, err := Compile("lifecycle.yaml", []byte(bench), careful())
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
			lamp("Glowing"), []string{"Wrap", "Glow", "Wrap"}, nil, ""},
		"it waits, and so does what comes after it, where that is open": {
			lamp("Glowing").with("lamp.power", power("Unknown")), []string{"Wrap"},
			&engine.Awaited{Effect: "Glow", Rule: "KnownCold", Message: "only a cold lamp glows"}, ""},
		"it halts where the rule is broken": {
			lamp("Glowing").with("lamp.power", power("On")), nil, nil, "SafetyRule Glow"},
		"it halts where the rule cannot be evaluated": {
			lamp("Glowing").with("lamp.power", engine.Value{}), nil, nil, "SafetyRule Glow"},
		"an invariant sees what waits": {
			lamp("Glowing").with("lamp.power", power("Unknown")).with("lamp.sold", engine.BoolValue(true)), nil, nil,
			"InvariantViolated NotSoldWhileGlowing"},
		"every mark that is not stored comes before the effect": {
			lamp("Taken"), []string{"Wrap", "Mark Ours", "Mark Scratched"}, nil, ""},
		"a mark that is stored does not": {
			lamp("Taken").with("lifecycle.marks", marks("Ours")), []string{"Wrap", "Mark Scratched"}, nil, ""},
		"it follows once all marks are stored": {
			lamp("Taken").with("lifecycle.marks", marks("Scratched", "Ours")), []string{"Wrap", "Take", "Wrap"}, nil, ""},
		"what an effect earns goes with it": {
			lamp("Kept"), []string{"Wrap", "Keep Ours Scratched", "Wrap"}, nil, ""},
		"what is earned already does not": {
			lamp("Kept").with("lifecycle.marks", marks("Ours")), []string{"Wrap", "Keep Scratched", "Wrap"}, nil, ""},
		"it waits where it is open whether what it earns may be set": {
			lamp("Kept").with("lamp.watts", engine.IntValue(0)), []string{"Wrap"},
			&engine.Awaited{Effect: "Keep", Rule: "TakenMeasured", Message: "a lamp is taken once it is measured"}, ""},
		"it halts where what it earns may not be set": {
			lamp("Kept").with("lamp.sold", engine.BoolValue(true)), nil, nil, "SafetyRule Keep"},
		"it waits where it is open whether its mark may be set": {
			lamp("Taken").with("lamp.watts", engine.IntValue(0)), []string{"Wrap"},
			&engine.Awaited{Effect: "Take", Rule: "TakenMeasured", Message: "a lamp is taken once it is measured"}, ""},
		"it halts where its mark may not be set": {
			lamp("Taken").with("lamp.sold", engine.BoolValue(true)), nil, nil, "SafetyRule Take"},
		"what must hold to set a mark does not count once it is set": {
			lamp("Taken").with("lamp.sold", engine.BoolValue(true)).with("lifecycle.marks", marks("Scratched", "Ours")),
			[]string{"Wrap", "Take", "Wrap"}, nil, ""},
		"a rule that is broken halts, whatever waits before it": {
			lamp("Both").with("lamp.power", power("Unknown")).with("lamp.sold", engine.BoolValue(true)), nil, nil, "SafetyRule Take"},
		"of two that wait the first is named": {
			lamp("Both").with("lamp.power", power("Unknown")).with("lamp.watts", engine.IntValue(0)), nil,
			&engine.Awaited{Effect: "Glow", Rule: "KnownCold", Message: "only a cold lamp glows"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			l := onTheBench(t)
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
	l := onTheBench(t)
	d := l.Explain(observed{words: l.vocabulary, facts: lamp("Glowing").with("lamp.power", engine.EnumValue("Unknown"))})
	want := engine.Trace{
		{Kind: "ensure", Rule: "Wrap", Result: "true"},
		{Kind: "ensure", Rule: "Glow", Result: "true"},
		{Kind: "ensure", Rule: "Wrap", Result: "true"},
		{Kind: "safety", Rule: "KnownCold", Guard: `lamp.power == "Off"`, Result: "waiting"},
	}
	if diff := cmp.Diff(want, d.Trace); diff != "" {
		t.Errorf("trace (-want +got)\n%s", diff)
	}
}

func TestReadsNamesWhatTheRulesOfAMarkAndWhatIsAwaitedRead(t *testing.T) {
	l := onTheBench(t)
	var got []string
	for _, i := range l.Reads("Taken") {
		got = append(got, l.vocabulary.Facts[i].Name)
	}
	want := []string{"lifecycle.age", "lifecycle.marks", "lamp.sold", "lamp.watts"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestAStateCannotSetAMarkThatHasToBeEarned(t *testing.T) {
	source := `apiVersion: policy.metalaw.dev/v1alpha1
kind: Lifecycle
initial: Glowing
define:
  sold: lamp.sold
states:
  Glowing:
    means: Ours because we say so.
    stable: true
    marks: [Ours]
`
	l, found, err := Compile("lifecycle.yaml", []byte(source), careful())
	if err != nil || l != nil || len(found) != 1 {
		t.Fatal(err, l != nil, found)
	}
	want := `lifecycle.yaml:10:13: error: Glowing: a state cannot set the mark "Ours": entering a state proves nothing about a machine ` +
		`(take it out; the engine sets it with an effect that earns it) [mark-earned]`
	if got := found[0].String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestAMarkThatTheEngineKeepsIsNeitherSetNorCleared(t *testing.T) {
	source := `apiVersion: policy.metalaw.dev/v1alpha1
kind: Lifecycle
initial: Glowing
define:
  sold: lamp.sold
states:
  Glowing:
    means: Cracked because we say so.
    stable: true
    marks: [Cracked]
    exits:
    - {rule: Mended, to: Dark, when: sold, clears: [Cracked]}
  Dark:
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
	want := []string{`lifecycle.yaml:10:13: error: Glowing: a state cannot set the mark "Cracked": the engine keeps it` + hint,
		`lifecycle.yaml:12:53: error: Mended: a rule cannot clear the mark "Cracked": the engine keeps it` + hint}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestAMistakeInWhatIsAwaitedIsOneOfTheVocabulary(t *testing.T) {
	v := careful()
	v.Effects[0].Requires[0].Awaits = `lamp.power == "Dim"`
	if _, _, err := Compile("lifecycle.yaml", []byte(bench), v); err == nil {
		t.Error("a word that the enum does not have is accepted")
	}
}
