// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalaw/metalaw/engine"
)

// doing is the vocabulary with one effect, Do, that a shop's test can ensure instead of SwitchOn.
func doing(e engine.EffectType) *engine.Vocabulary {
	w := words()
	e.Name = "Do"
	w.Effects = append(w.Effects, e)
	return w
}

// rounds are the rounds that a check warns of.
func roundsOf(r Report) []string {
	var all []string
	for _, f := range r.Findings {
		if f.Code == CodeRound {
			_, moves, _ := strings.Cut(f.Message, ": ")
			all = append(all, moves)
		}
	}
	return all
}

// TestRoundsFollowWhatEffectsDo has a lamp go to the shelf once it is lit, or wrapped, by what its test ensures; the shelf puts it out.
func TestRoundsFollowWhatEffectsDo(t *testing.T) {
	ensuring := func(effects string, pairs ...string) []string {
		return append(pairs, `    - {do: SwitchOn, when: "!sold"}`, "    - "+effects, "    - {do: SwitchOff, when: lit}\n    - {do: Wrap, when: dark}", "    - Dim")
	}
	lit := []string{"when: good && !scratched}", "when: lit && !scratched}", "when: scratched}", "when: dark || scratched}"}
	wrapped := []string{"  good: ", "  wrapped: marked(\"Wrapped\")\n  good: ", "when: good && !scratched}", "when: wrapped && !scratched}",
		"when: scratched}", "when: wrapped && dark, clears: [Wrapped]}"}
	on, unsold := engine.Change{Facts: []string{"lamp.power"}, Makes: `lamp.power == "On"`}, `{do: Do, when: "!sold"}`
	onWith := func(needs string) engine.Change { return engine.Change{Facts: on.Facts, Makes: on.Makes, Needs: needs} }
	notOff := engine.Change{Facts: on.Facts, Makes: `lamp.power != "Off"`}
	heavy := engine.Change{Facts: []string{"lamp.watts"}, Makes: "lamp.watts == 60"}
	never := []engine.Requirement{{Rule: "Never", Must: "lamp.sold && !lamp.sold", Halts: "true", Doc: "it is never done"}}
	gift := engine.EffectType{Params: []engine.ParamType{{Name: "as", Kind: engine.String}},
		Remembers: []engine.Memory{{Mark: "Wrapped", By: "as", Except: []string{"Ware"}}}}
	round := []string{"Test -Passed-> Shelf -Scratch-> Test"}
	for name, c := range map[string]struct {
		do      engine.EffectType
		rewrite []string
		want    []string
	}{
		"it changes a fact":                 {engine.EffectType{Change: on}, ensuring("Do", lit...), round},
		"it changes one where that can be":  {engine.EffectType{Change: onWith("lamp.known")}, ensuring(unsold, lit...), round},
		"it changes one to another of some": {engine.EffectType{Change: notOff}, ensuring("Do", lit...), round},
		"it changes one once retries are spent": {engine.EffectType{Change: on}, ensuring("{do: Do, when: spent}", lit...), []string{
			"Test -Again-> Pause -Cooled-> Test -Again-> Pause -Cooled-> Test -Passed-> Shelf -Scratch-> Test"}},
		"it is wanted where it changes none":     {engine.EffectType{Change: onWith("lamp.sold")}, ensuring(unsold, lit...), nil},
		"it is halted":                           {engine.EffectType{Change: on, Requires: never}, ensuring("Do", lit...), nil},
		"another does after it":                  {engine.EffectType{Change: heavy, Marks: []string{"Wrapped"}}, ensuring("Do\n    - Light", lit...), round},
		"another is halted with it":              {engine.EffectType{Change: heavy, Requires: never}, ensuring("Do\n    - Light", lit...), nil},
		"it has a mark stored first":             {engine.EffectType{Marks: []string{"Wrapped"}}, ensuring("Do", wrapped...), round},
		"it earns a mark as it changes a fact":   {engine.EffectType{Earns: []string{"Wrapped"}, Change: on}, ensuring("Do", wrapped...), round},
		"it earns a mark and does nothing":       {engine.EffectType{Earns: []string{"Wrapped"}}, ensuring("Do", wrapped...), nil},
		"it remembers by a mark what it did":     {gift, ensuring("{do: Do, with: {as: Gift}}", wrapped...), round},
		"it did what leaves no mark":             {gift, ensuring("{do: Do, with: {as: Ware}}", wrapped...), nil},
		"it did nothing of what it is asked for": {gift, ensuring("Do", wrapped...), nil},
	} {
		t.Run(name, func(t *testing.T) {
			off := engine.Change{Facts: on.Facts, Makes: `lamp.power == "Off"`}
			w := doing(c.do)
			w.Effects = append(w.Effects, engine.EffectType{Name: "Light", Change: on}, engine.EffectType{Name: "Dim", Change: off})
			if diff := cmp.Diff(c.want, roundsOf(Check(compiledIn(t, w, c.rewrite...)))); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// counting rewrites the shop into one in which dark lamps go from the shelf through a state for each of so many marks, which count, and
// are left alone for a while before they come back; so are lit ones, which do not count.
func counting(marks int) []string {
	var asks, exits, states, below, clears string
	for i := range marks {
		asks += fmt.Sprintf("  bit%d: marked(\"Bit%d\")\n", i, i)
		exits += fmt.Sprintf("    - {rule: Count%d, to: At%d, when: dark%s && !bit%d, after: 10s, clears: [%s]}\n", i, i, below, i, clears)
		states += fmt.Sprintf("  At%d:\n    means: It counts.\n    marks: [Bit%d]\n    exits:\n    - {rule: Counted%d, to: Idle, after: 10s}\n", i, i, i)
		below, clears = below+fmt.Sprintf(" && bit%d", i), clears+fmt.Sprintf("Bit%d,", i)
	}
	exits += fmt.Sprintf("    - {rule: Count, to: At, when: dark%s, after: 10s, clears: [%s]}\n", below, clears)
	states += "  At:\n    means: It counts anew.\n    exits:\n    - {rule: Counted, to: Idle, after: 10s}\n"
	return append([]string{"  good: ", asks + "  good: ", "  Bin:\n", states + "  Bin:\n"}, resting("10s", exits)...)
}

// resting rewrites the shop into one in which lit lamps on the shelf are left alone for a while, again and again; and those by more exits.
func resting(after, more string) []string {
	idle := "  Idle:\n    means: Left alone.\n    stable: true\n    exits:\n    - {rule: Rested, to: Shelf, when: \"!scratched\", after: " + after + "}\n"
	return []string{"    - {rule: Scratch,", more + "    - {rule: Rest, to: Idle, when: lit, after: 10s}\n    - {rule: Scratch,",
		"  Pause:\n", idle + "  Pause:\n"}
}

func TestARoundThatMarksMakeLongHidesNoOther(t *testing.T) {
	const forEver = "servers can go round for ever by what the states ensure and by time alone"
	const mend = " (let one of the rules ask for what only somebody outside brings, or count the retries and give up) [endless-round]"
	const rests = "warning: Rested: " + forEver + ": Shelf -Rest-> Idle -Rested-> Shelf" + mend
	for name, c := range map[string]struct {
		marks int
		want  []string
	}{
		"few moves, all of which are told": {1, []string{
			rests, "warning: Counted0: " + forEver + ": Shelf -Count-> At -Counted-> Idle -Rested-> Shelf -Count0-> At0 -Counted0-> Idle " +
				"-Rested-> Shelf" + mend}},
		"many moves, of which the first and the last are told": {8, []string{
			rests, "warning: Counted0: " + forEver + ": Shelf -Count-> At -Counted-> Idle -Rested-> Shelf -Count0-> At0 -Counted0-> Idle " +
				"-Rested-> Shelf ... 760 moves ... At0 -Counted0-> Idle -Rested-> Shelf" + mend}},
		"more moves than are followed": {9, []string{
			rests, "warning: Count0: " + forEver + ", by moves that were not followed to where they begin again: Idle -Rested-> Shelf -Count0-> At0 " +
				"-Counted0-> Idle -Rested-> Shelf -Count1-> At1 -Counted1-> Idle ... 992 moves ... At0 -Counted0-> Idle -Rested-> Shelf " +
				"(let no marks count, or let one of the rules ask for what only somebody outside brings) [endless-round]"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := Check(compiled(t, counting(c.marks)...))
			var got []string
			for _, f := range r.Findings {
				if f.Code == CodeRound {
					_, words, _ := strings.Cut(f.String(), ": ")
					got = append(got, words)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if len(r.Undecided) > 0 {
				t.Errorf("it leaves open %q", r.Undecided)
			}
		})
	}
}

func TestRoundsAreFoundBesideOthers(t *testing.T) {
	uncounted := []string{"lifecycle.retries >= 2", "lifecycle.retries >= 2 && lifecycle.retries < 2"}
	for name, c := range map[string]struct {
		rewrite []string
		want    []string
	}{
		"another that is left out before": {append(uncounted, resting("10s", "")...),
			[]string{"Shelf -Rest-> Idle -Rested-> Shelf", "Test -Again-> Pause -Cooled-> Test"}},
		"a move that comes too late to lead out of it": {
			append(uncounted, "  good: ", "  aged: lifecycle.age >= duration(\"1h\")\n  good: ",
				"    - {rule: Cooled,", "    - {rule: Aged, to: Attic, when: aged}\n    - {rule: Cooled,",
				"  Bin:\n", "  Attic:\n    means: Old.\n    stable: true\n    exits:\n    - {rule: Found, to: Pause, when: lit}\n  Bin:\n"),
			[]string{"Test -Again-> Pause -Cooled-> Test", "Pause -Aged-> Attic -Found-> Pause"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := Check(compiled(t, c.rewrite...))
			if diff := cmp.Diff(c.want, roundsOf(r)); diff != "" || len(r.Undecided) > 0 {
				t.Errorf("(-want +got)\n%s, and open is %q", diff, r.Undecided)
			}
		})
	}
}

func TestAStateThatIsLeftWithinTheHourIsNoRest(t *testing.T) {
	for after, want := range map[string][]string{"59m": {"Shelf -Rest-> Idle -Rested-> Shelf"}, "1h": nil, "lamp.budget": nil} {
		if diff := cmp.Diff(want, roundsOf(Check(compiled(t, resting(after, "")...)))); diff != "" {
			t.Errorf("after %s (-want +got)\n%s", after, diff)
		}
	}
}
