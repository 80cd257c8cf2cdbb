// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalaw/metalaw/engine"
)

// outcome is what a test says of a decision.
type outcome struct {
	To      string
	Rule    string
	Effects []string
	Wake    time.Duration
	Halt    string
}

func outcomeOf(d engine.Decision) outcome {
	o := outcome{Rule: d.Rule, Wake: d.WakeAfter}
	if d.Moves() {
		o.To = string(d.To)
	}
	if d.Halt != nil {
		o.Halt = string(d.Halt.Cause) + " " + d.Halt.Rule
	}
	for _, e := range d.Effects {
		o.Effects = append(o.Effects, e.Name)
	}
	return o
}

func TestDecide(t *testing.T) {
	hot := machine("Inspect").with("probe.running", engine.AgeValue(10*time.Minute))
	for name, c := range map[string]struct {
		facts facts
		want  outcome
	}{
		"ensures the state's effects while no exit matches, and wakes at the next moment that matters": {
			machine("Inspect").with("probe.running", engine.AgeValue(4*time.Minute)),
			outcome{Effects: []string{"PowerOn"}, Wake: 6 * time.Minute}},
		"moves on the first exit that matches": {
			hot, outcome{To: "Ready", Rule: "Passed"}},
		"moves when the deadline, taken from a fact, has passed": {
			machine("Inspect").with("lifecycle.age", engine.AgeValue(2*time.Hour)),
			outcome{To: "Retired", Rule: "TooSlow"}},
		"takes an interrupt before an exit": {
			hot.with("bmc.power", engine.EnumValue("On")).with("hardware.cores", engine.IntValue(100)),
			outcome{To: "Retired", Rule: "Broke"}},
		"moves a dropped state along the migration": {
			machine("Legacy"), outcome{To: "Retired", Rule: "Migrated"}},
		"halts in a state that it does not know": {
			machine("Lost"), outcome{Halt: "UnknownState "}},
		"halts when a fact that a guard reads was not observed": {
			machine("Ready").with("claim.bound", engine.Value{}).with("lifecycle.marks", engine.SetValue([]string{"Dirty"})),
			outcome{Halt: "GuardError Reinspect"}},
		"does not halt on a missing fact that cannot decide the guard": {
			machine("Ready").with("claim.bound", engine.Value{}).with("lifecycle.marks", engine.SetValue([]string{"Managed"})),
			outcome{Effects: []string{"BootImage"}}},
		"halts when a missing fact keeps the first exit from being told, though a later one would match": {
			machine("Inspect").with("probe.running", engine.Value{}).with("lifecycle.age", engine.AgeValue(3*time.Hour)),
			outcome{Halt: "GuardError Passed"}},
		"halts when the length of a deadline is missing": {
			machine("Inspect").with("wipe.budget", engine.Value{}),
			outcome{Halt: "GuardError TooSlow", Wake: 0}},
		"halts rather than break the requirement of an effect": {
			machine("Inspect").with("claim.bound", engine.BoolValue(true)),
			outcome{Halt: "SafetyRule PowerOn"}},
		"clears a mark on a move only as its requirement allows": {
			hot.with("bmc.power", engine.EnumValue("Unknown")),
			outcome{Halt: "SafetyRule Passed"}},
		"asks for a mark to be stored, and for nothing after it, before the effect that needs it": {
			machine("Ready").with("bmc.power", engine.EnumValue("On")),
			outcome{Effects: []string{"PowerOff", "Mark"}}},
		"rests in a stable state": {
			machine("Retired"), outcome{}},
	} {
		t.Run(name, func(t *testing.T) {
			l := compiled(t, fleet)
			in := observed{words: l.vocabulary, facts: c.facts}
			if diff := cmp.Diff(c.want, outcomeOf(l.Decide(in))); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(outcomeOf(l.Decide(in)), outcomeOf(l.Explain(in))); diff != "" {
				t.Errorf("Explain decides otherwise than Decide:\n%s", diff)
			}
		})
	}
}

func TestAMoveIsCheckedAgainstTheMarksAsTheyWillBe(t *testing.T) {
	l := compiled(t, fleet)
	dirty := machine("Inspect").with("probe.running", engine.AgeValue(time.Hour)).with("lifecycle.marks", engine.SetValue([]string{"Dirty"}))
	d := l.Decide(observed{words: l.vocabulary, facts: dirty})
	if d.To != "Ready" || len(d.Clears) != 1 {
		t.Errorf("got %+v, want a move to Ready that clears Dirty", d)
	}
}

func TestMarksAhead(t *testing.T) {
	l := compiled(t, fleet)
	for name, c := range map[string]struct {
		facts facts
		to    engine.State
		want  []string
	}{
		"are those that the state entered stores before its first effects": {machine("Inspect"), "Ready", []string{"Managed"}},
		"are none that is stored":                        {machine("Inspect").with("lifecycle.marks", engine.SetValue([]string{"Managed"})), "Ready", nil},
		"are none where the state entered needs none":    {machine("Inspect"), "Retired", nil},
		"are none where the state entered is left again": {machine("Ready").with("probe.running", engine.AgeValue(time.Hour)), "Inspect", nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := l.MarksAhead(observed{words: l.vocabulary, facts: c.facts}, engine.Decision{From: "Inspect", To: c.to})
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("marks (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnInvariantThatDoesNotHoldHalts(t *testing.T) {
	broken := compiled(t, fleet+"- {rule: NeverInspecting, must: \"state != 'Inspect' || !acting()\"}\n")
	d := broken.Decide(observed{words: broken.ast.Vocabulary, facts: machine("Inspect")})
	if got, want := outcomeOf(d), (outcome{Halt: "InvariantViolated NeverInspecting"}); !cmp.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestStart(t *testing.T) {
	l := compiled(t, fleet)
	for name, c := range map[string]struct {
		facts facts
		want  engine.State
	}{
		"begins in the initial state where no exit matches":     {machine(""), "Inspect"},
		"begins where the initial state's exits lead at once":   {machine("").with("probe.running", engine.AgeValue(time.Hour)), "Ready"},
		"begins in the initial state where a guard cannot tell": {machine("").with("probe.running", engine.Value{}), "Inspect"},
	} {
		t.Run(name, func(t *testing.T) {
			d := l.Start(observed{words: l.vocabulary, facts: c.facts})
			if d.From != "" || d.To != c.want {
				t.Errorf("got a move from %q to %q, want to %q", d.From, d.To, c.want)
			}
		})
	}
}

func readyFirst(source string) string {
	return strings.Replace(source, "initial: Inspect", "initial: Ready", 1)
}

func migratesToReady(source string) string {
	return strings.Replace(source, "migrate: {Legacy: Retired}", "migrate: {Legacy: Ready}", 1)
}

func TestAMoveThatNoRuleAsksForKeepsTheSafetyRules(t *testing.T) {
	dirty := func(state string) facts {
		return machine(state).with("lifecycle.marks", engine.SetValue([]string{"Dirty"}))
	}
	marks := func(source string) string {
		return strings.Replace(source, "means: Free.", "means: Free.\n    marks: [Dirty]", 1)
	}
	start := func(l *Lifecycle, f engine.Facts) engine.Decision { return l.Start(f) }
	decide := func(l *Lifecycle, f engine.Facts) engine.Decision { return l.Decide(f) }
	enter := func(to engine.State) func(*Lifecycle, engine.Facts) engine.Decision {
		return func(l *Lifecycle, f engine.Facts) engine.Decision { return l.Enter(f, to) }
	}
	for name, c := range map[string]struct {
		source string
		decide func(*Lifecycle, engine.Facts) engine.Decision
		facts  facts
		want   outcome
	}{
		"a migration that would break one halts": {
			migratesToReady(fleet), decide, dirty("Legacy"), outcome{Halt: "SafetyRule Migrated"}},
		"a migration that breaks none moves": {
			migratesToReady(fleet), decide, machine("Legacy"), outcome{To: "Ready", Rule: "Migrated"}},
		"a migration is checked with the marks that the new state sets": {
			marks(migratesToReady(fleet)), decide, machine("Legacy"), outcome{Halt: "SafetyRule Migrated"}},
		"a migration halts where the rule cannot be told": {
			migratesToReady(fleet), decide, machine("Legacy").with("lifecycle.marks", engine.Value{}), outcome{Halt: "SafetyRule Migrated"}},
		"a start in the initial state that would break one halts": {
			readyFirst(fleet), start, dirty("").with("claim.bound", engine.BoolValue(true)), outcome{Halt: "SafetyRule NeverOfferDirty"}},
		"a start in the initial state that breaks none begins there": {
			readyFirst(fleet), start, machine(""), outcome{To: "Ready"}},
		"a start is checked with the marks that the initial state sets": {
			marks(readyFirst(fleet)), start, machine("").with("claim.bound", engine.BoolValue(true)), outcome{Halt: "SafetyRule NeverOfferDirty"}},
		"a start whose first move would break one begins in the initial state, where that move halts": {
			strings.Replace(fleet, ", clears: [Dirty]", "", 1), start,
			dirty("").with("probe.running", engine.AgeValue(time.Hour)), outcome{To: "Inspect"}},
		"a state of another program that would break one is not taken up": {
			fleet, enter("Ready"), dirty("Ready"), outcome{Halt: "SafetyRule NeverOfferDirty"}},
		"a state of another program that breaks none is taken up": {
			fleet, enter("Ready"), machine("Ready"), outcome{To: "Ready"}},
		"a state of another program that no rule guards is taken up": {
			fleet, enter("Inspect"), dirty("Inspect"), outcome{To: "Inspect"}},
		"a state that the lifecycle does not have is not taken up": {
			fleet, enter("Lost"), machine("Lost"), outcome{Halt: "UnknownState "}},
	} {
		t.Run(name, func(t *testing.T) {
			l := compiled(t, c.source)
			d := c.decide(l, observed{words: l.vocabulary, facts: c.facts})
			if diff := cmp.Diff(c.want, outcomeOf(d)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestEnterTellsNoMarksAndWhetherTheServerMayRest(t *testing.T) {
	l := compiled(t, fleet)
	for to, want := range map[engine.State]engine.Decision{
		"Inspect": {To: "Inspect", Message: "Being inspected."},
		"Ready":   {To: "Ready", Message: "Free.", Stable: true},
	} {
		if diff := cmp.Diff(want, l.Enter(observed{words: l.vocabulary, facts: machine(string(to))}, to)); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	}
}

func TestExplainNamesTheAtomsOfEachGuard(t *testing.T) {
	l := compiled(t, fleet)
	d := l.Explain(observed{words: l.vocabulary, facts: machine("Ready")})
	want := engine.Trace{
		{Kind: "interrupt", Rule: "Broke", Guard: "large && running", Result: "false", Atoms: map[string]string{"large": "false", "running": "unknown"}},
		{Kind: "exit", Rule: "Reinspect", Guard: "!claimed && dirty", Result: "false", Atoms: map[string]string{"claimed": "false", "dirty": "false"}},
		{Kind: "ensure", Rule: "PowerOff", Guard: "running", Result: "false", Atoms: map[string]string{"running": "false"}},
		{Kind: "ensure", Rule: "BootImage", Result: "true"},
	}
	if diff := cmp.Diff(want, d.Trace); diff != "" {
		t.Errorf("trace (-want +got):\n%s", diff)
	}
}

func TestHasEdge(t *testing.T) {
	l := compiled(t, fleet)
	for name, c := range map[string]struct {
		from, to engine.State
		want     bool
	}{
		"an exit is an edge":                                     {"Inspect", "Ready", true},
		"an interrupt is an edge":                                {"Ready", "Retired", true},
		"a migration is an edge":                                 {"Legacy", "Retired", true},
		"a new object may begin in the initial state":            {"", "Inspect", true},
		"a new object may begin where the initial state leads":   {"", "Ready", true},
		"what no rule says is no edge":                           {"Retired", "Ready", false},
		"a state that does not exist has no edges":               {"Lost", "Retired", false},
		"a new object may not begin where nothing leads at once": {"", "Legacy", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := l.HasEdge(c.from, c.to); got != c.want {
				t.Errorf("HasEdge(%q, %q) is %t", c.from, c.to, got)
			}
		})
	}
}

func TestEnsuresSaysWhatAStateDoesAtSomeTime(t *testing.T) {
	l := compiled(t, fleet)
	for name, c := range map[string]struct {
		state  engine.State
		effect string
		want   bool
	}{
		"of an effect that it ensures":                    {"Inspect", "PowerOn", true},
		"of an effect with a guard that may be false now": {"Ready", "PowerOff", true},
		"of an effect that only another state ensures":    {"Retired", "PowerOn", false},
		"of a state that it does not have":                {"Legacy", "PowerOn", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := l.Ensures(c.state, c.effect); got != c.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestADecisionThatChangesNothingAllocatesNothing(t *testing.T) {
	l := compiled(t, fleet)
	managed := machine("Ready").with("lifecycle.marks", engine.SetValue([]string{"Managed"}))
	for name, c := range map[string]struct {
		facts facts
		want  []string
	}{
		"a state that ensures nothing":        {machine("Retired"), nil},
		"a state that ensures some effects":   {managed, []string{"BootImage"}},
		"the same state with more of these":   {managed.with("bmc.power", engine.EnumValue("On")), []string{"PowerOff", "BootImage"}},
		"a state that waits for time to pass": {machine("Inspect"), []string{"PowerOn"}},
	} {
		t.Run(name, func(t *testing.T) {
			var in engine.Facts = observed{sharedWords(), c.facts}
			var d engine.Decision
			if n := testing.AllocsPerRun(100, func() { d = l.Decide(in) }); n > 0 {
				t.Errorf("a decision allocates %v times", n)
			}
			if diff := cmp.Diff(c.want, outcomeOf(d).Effects); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// A state with more effects than decisions share lists of ensures them all the same.
func TestManyEffectsAreEnsuredInOrder(t *testing.T) {
	source := "apiVersion: policy.metalaw.dev/v1alpha1\nkind: Lifecycle\ninitial: Ready\ndefine:\n  running: bmc.power == \"On\"\n" +
		"states:\n  Ready:\n    means: Free.\n    stable: true\n    ensure:\n"
	var want []string
	for i := range 70 {
		source += fmt.Sprintf("    - {do: PowerOff, with: {graceful: %ds}, when: running}\n", i+1)
		want = append(want, (time.Duration(i+1) * time.Second).String())
	}
	l := compiled(t, source)
	if d := l.Decide(observed{sharedWords(), machine("Ready")}); len(d.Effects) > 0 {
		t.Errorf("ensures %v on a machine that is off", d.Effects)
	}
	var got []string
	for _, e := range l.Decide(observed{sharedWords(), machine("Ready").with("bmc.power", engine.EnumValue("On"))}).Effects {
		got = append(got, e.Param("graceful").Duration().String())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
