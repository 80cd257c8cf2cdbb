// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
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
	hot := lamp("Test").with("lamp.burning", engine.AgeValue(10*time.Minute))
	for name, c := range map[string]struct {
		facts facts
		want  outcome
	}{
		"ensures the state's effects while no exit matches, and wakes at the next moment that matters": {
			lamp("Test").with("lamp.burning", engine.AgeValue(4*time.Minute)),
			outcome{Effects: []string{"SwitchOn"}, Wake: 6 * time.Minute}},
		"moves on the first exit that matches": {
			hot, outcome{To: "Shelf", Rule: "Passed"}},
		"moves when the deadline, taken from a fact, has passed": {
			lamp("Test").with("lifecycle.age", engine.AgeValue(2*time.Hour)),
			outcome{To: "Bin", Rule: "TooSlow"}},
		"takes an interrupt before an exit": {
			hot.with("lamp.power", engine.EnumValue("On")).with("lamp.watts", engine.IntValue(100)),
			outcome{To: "Bin", Rule: "Broke"}},
		"moves a dropped state along the migration": {
			lamp("Attic"), outcome{To: "Bin", Rule: "Migrated"}},
		"halts in a state that it does not know": {
			lamp("Cellar"), outcome{Halt: "UnknownState "}},
		"halts when a fact that a guard reads was not observed": {
			lamp("Shelf").with("lamp.sold", engine.Value{}).with("lifecycle.marks", engine.SetValue([]string{"Scratched"})),
			outcome{Halt: "GuardError Retest"}},
		"does not halt on a missing fact that cannot decide the guard": {
			lamp("Shelf").with("lamp.sold", engine.Value{}).with("lifecycle.marks", engine.SetValue([]string{"Wrapped"})),
			outcome{Effects: []string{"Wrap"}}},
		"halts when a missing fact keeps the first exit from being told, though a later one would match": {
			lamp("Test").with("lamp.burning", engine.Value{}).with("lifecycle.age", engine.AgeValue(3*time.Hour)),
			outcome{Halt: "GuardError Passed"}},
		"halts when the length of a deadline is missing": {
			lamp("Test").with("lamp.budget", engine.Value{}),
			outcome{Halt: "GuardError TooSlow", Wake: 0}},
		"halts rather than break the requirement of an effect": {
			lamp("Test").with("lamp.sold", engine.BoolValue(true)),
			outcome{Halt: "SafetyRule SwitchOn"}},
		"clears a mark on a move only as its requirement allows": {
			hot.with("lamp.power", engine.EnumValue("Unknown")),
			outcome{Halt: "SafetyRule Passed"}},
		"asks for a mark to be stored, and for nothing after it, before the effect that needs it": {
			lamp("Shelf").with("lamp.power", engine.EnumValue("On")),
			outcome{Effects: []string{"SwitchOff", "Mark"}}},
		"rests in a stable state": {
			lamp("Bin"), outcome{}},
	} {
		t.Run(name, func(t *testing.T) {
			l := compiled(t, shop)
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
	l := compiled(t, shop)
	scratched := lamp("Test").with("lamp.burning", engine.AgeValue(time.Hour)).with("lifecycle.marks", engine.SetValue([]string{"Scratched"}))
	d := l.Decide(observed{words: l.vocabulary, facts: scratched})
	if d.To != "Shelf" || len(d.Clears) != 1 {
		t.Errorf("got %+v, want a move to Shelf that clears Scratched", d)
	}
}

func TestAnInvariantThatDoesNotHoldHalts(t *testing.T) {
	broken := compiled(t, shop+"- {rule: NeverTested, must: \"state != 'Test' || !acting()\"}\n")
	d := broken.Decide(observed{words: broken.ast.Vocabulary, facts: lamp("Test")})
	if got, want := outcomeOf(d), (outcome{Halt: "InvariantViolated NeverTested"}); !cmp.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestStart(t *testing.T) {
	l := compiled(t, shop)
	for name, c := range map[string]struct {
		facts facts
		want  engine.State
	}{
		"begins in the initial state where no exit matches":     {lamp(""), "Test"},
		"begins where the initial state's exits lead at once":   {lamp("").with("lamp.burning", engine.AgeValue(time.Hour)), "Shelf"},
		"begins in the initial state where a guard cannot tell": {lamp("").with("lamp.burning", engine.Value{}), "Test"},
	} {
		t.Run(name, func(t *testing.T) {
			d := l.Start(observed{words: l.vocabulary, facts: c.facts})
			if d.From != "" || d.To != c.want {
				t.Errorf("got a move from %q to %q, want to %q", d.From, d.To, c.want)
			}
		})
	}
}

func shelfFirst(source string) string {
	return strings.Replace(source, "initial: Test", "initial: Shelf", 1)
}

func migratesToTheShelf(source string) string {
	return strings.Replace(source, "migrate: {Attic: Bin}", "migrate: {Attic: Shelf}", 1)
}

func TestAMoveThatNoRuleAsksForKeepsTheSafetyRules(t *testing.T) {
	scratched := func(state string) facts {
		return lamp(state).with("lifecycle.marks", engine.SetValue([]string{"Scratched"}))
	}
	marks := func(source string) string {
		return strings.Replace(source, "means: For sale.", "means: For sale.\n    marks: [Scratched]", 1)
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
			migratesToTheShelf(shop), decide, scratched("Attic"), outcome{Halt: "SafetyRule Migrated"}},
		"a migration that breaks none moves": {
			migratesToTheShelf(shop), decide, lamp("Attic"), outcome{To: "Shelf", Rule: "Migrated"}},
		"a migration is checked with the marks that the new state sets": {
			marks(migratesToTheShelf(shop)), decide, lamp("Attic"), outcome{Halt: "SafetyRule Migrated"}},
		"a migration halts where the rule cannot be told": {
			migratesToTheShelf(shop), decide, lamp("Attic").with("lifecycle.marks", engine.Value{}), outcome{Halt: "SafetyRule Migrated"}},
		"a start in the initial state that would break one halts": {
			shelfFirst(shop), start, scratched("").with("lamp.sold", engine.BoolValue(true)), outcome{Halt: "SafetyRule NoScratchOnShelf"}},
		"a start in the initial state that breaks none begins there": {
			shelfFirst(shop), start, lamp(""), outcome{To: "Shelf"}},
		"a start is checked with the marks that the initial state sets": {
			marks(shelfFirst(shop)), start, lamp("").with("lamp.sold", engine.BoolValue(true)), outcome{Halt: "SafetyRule NoScratchOnShelf"}},
		"a start whose first move would break one begins in the initial state, where that move halts": {
			strings.Replace(shop, ", clears: [Scratched]", "", 1), start,
			scratched("").with("lamp.burning", engine.AgeValue(time.Hour)), outcome{To: "Test"}},
		"a state of another program that would break one is not taken up": {
			shop, enter("Shelf"), scratched("Shelf"), outcome{Halt: "SafetyRule NoScratchOnShelf"}},
		"a state of another program that breaks none is taken up": {
			shop, enter("Shelf"), lamp("Shelf"), outcome{To: "Shelf"}},
		"a state of another program that no rule guards is taken up": {
			shop, enter("Test"), scratched("Test"), outcome{To: "Test"}},
		"a state that the lifecycle does not have is not taken up": {
			shop, enter("Cellar"), lamp("Cellar"), outcome{Halt: "UnknownState "}},
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
	l := compiled(t, shop)
	for to, want := range map[engine.State]engine.Decision{
		"Test":  {To: "Test", Message: "Being tested."},
		"Shelf": {To: "Shelf", Message: "For sale.", Stable: true},
	} {
		if diff := cmp.Diff(want, l.Enter(observed{words: l.vocabulary, facts: lamp(string(to))}, to)); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	}
}

func TestExplainNamesTheAtomsOfEachGuard(t *testing.T) {
	l := compiled(t, shop)
	d := l.Explain(observed{words: l.vocabulary, facts: lamp("Shelf")})
	want := engine.Trace{
		{Kind: "interrupt", Rule: "Broke", Guard: "big && lit", Result: "false", Atoms: map[string]string{"big": "false", "lit": "unknown"}},
		{Kind: "exit", Rule: "Retest", Guard: "!sold && scratched", Result: "false", Atoms: map[string]string{"sold": "false", "scratched": "false"}},
		{Kind: "ensure", Rule: "SwitchOff", Guard: "lit", Result: "false", Atoms: map[string]string{"lit": "false"}},
		{Kind: "ensure", Rule: "Wrap", Result: "true"},
	}
	if diff := cmp.Diff(want, d.Trace); diff != "" {
		t.Errorf("trace (-want +got):\n%s", diff)
	}
}

func TestHasEdge(t *testing.T) {
	l := compiled(t, shop)
	for name, c := range map[string]struct {
		from, to engine.State
		want     bool
	}{
		"an exit is an edge":                                     {"Test", "Shelf", true},
		"an interrupt is an edge":                                {"Shelf", "Bin", true},
		"a migration is an edge":                                 {"Attic", "Bin", true},
		"a new object may begin in the initial state":            {"", "Test", true},
		"a new object may begin where the initial state leads":   {"", "Shelf", true},
		"what no rule says is no edge":                           {"Bin", "Shelf", false},
		"a state that does not exist has no edges":               {"Cellar", "Bin", false},
		"a new object may not begin where nothing leads at once": {"", "Attic", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := l.HasEdge(c.from, c.to); got != c.want {
				t.Errorf("HasEdge(%q, %q) is %t", c.from, c.to, got)
			}
		})
	}
}

func TestEnsuresSaysWhatAStateDoesAtSomeTime(t *testing.T) {
	l := compiled(t, shop)
	for name, c := range map[string]struct {
		state  engine.State
		effect string
		want   bool
	}{
		"of an effect that it ensures":                    {"Test", "SwitchOn", true},
		"of an effect with a guard that may be false now": {"Shelf", "SwitchOff", true},
		"of an effect that only another state ensures":    {"Bin", "SwitchOn", false},
		"of a state that it does not have":                {"Attic", "SwitchOn", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := l.Ensures(c.state, c.effect); got != c.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
