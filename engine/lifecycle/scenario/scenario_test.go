// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/lifecycle"
)

// lamps is a vocabulary of lamps that are tested and sold.
func lamps() *engine.Vocabulary {
	return engine.NewVocabulary(engine.Vocabulary{
		Facts: []engine.FactType{
			{Name: "lifecycle.state", Kind: engine.String, Quiet: engine.StringValue("")},
			{Name: "lifecycle.age", Kind: engine.Age, Quiet: engine.AgeValue(0)},
			{Name: "lifecycle.marks", Kind: engine.Set, Quiet: engine.SetValue(nil)},
			{Name: "lifecycle.retries", Kind: engine.Int, Quiet: engine.IntValue(0)},
			{Name: "lamp.power", Kind: engine.Enum, Values: []string{"On", "Off"}, Quiet: engine.EnumValue("Off")},
			{Name: "lamp.sold", Kind: engine.Bool, Quiet: engine.BoolValue(false)},
			{Name: "lamp.colour", Kind: engine.String, Quiet: engine.StringValue("")},
			{Name: "lamp.budget", Kind: engine.Duration, Quiet: engine.DurationValue(time.Minute)},
		},
		Effects: []engine.EffectType{
			{Name: "SwitchOn", Touches: true, Requires: []engine.Requirement{{Rule: "NeverSold", Must: "!lamp.sold", Doc: "a sold lamp is not ours"}}},
			{Name: "Wrap", Marks: []string{"Wrapped"}},
		},
		Marks: map[string]string{"Wrapped": "it is in paper"},
	})
}

const shop = `apiVersion: policy.metalaw.dev/v1alpha1
kind: Lifecycle
initial: Test
define:
  lit: lamp.power == "On"
  sold: lamp.sold
states:
  Test:
    means: It burns.
    ensure: [SwitchOn]
    exits:
    - {rule: Passed, to: Shelf, when: lit && !sold}
    - {rule: TooSlow, to: Shelf, after: lamp.budget}
  Shelf:
    means: It waits for a buyer.
    stable: true
    ensure: [Wrap]
migrate: {Drawer: Shelf}
`

const head = "apiVersion: policy.metalaw.dev/v1alpha1\nkind: Scenarios\nscenarios:\n"

func compiled(t testing.TB) *lifecycle.Lifecycle {
	t.Helper()
	l, found, err := lifecycle.Compile("lifecycle.yaml", []byte(shop), lamps())
	if err != nil || found.Err() != nil {
		t.Fatal(err, found)
	}
	return l
}

// run parses and runs scenarios and returns what was found.
func run(t *testing.T, body string) ([]Result, string) {
	t.Helper()
	l := compiled(t)
	all, found := Parse("scenarios.yaml", []byte(head+body), lamps(), l, nil)
	results, failed := Run("scenarios.yaml", all, l)
	var lines []string
	for _, d := range append(found, failed...) {
		lines = append(lines, d.String())
	}
	return results, strings.Join(lines, "\n")
}

func TestScenariosThatHold(t *testing.T) {
	for name, body := range map[string]string{
		"a move with its rule":            `- {name: a, state: Test, given: {lamp.power: "On"}, expect: {to: Shelf, rule: Passed}}`,
		"a move by time":                  `- {name: a, state: Test, given: {lifecycle.age: 60s}, expect: {to: Shelf, rule: TooSlow}}`,
		"a stay":                          `- {name: a, state: Test, expect: {stays: true, ensures: [SwitchOn]}}`,
		"a stay whose effects are open":   `- {name: a, state: Test, expect: {stays: true}}`,
		"a mark that is stored first":     `- {name: a, state: Shelf, expect: {stays: true, ensures: [Mark(Wrapped)]}}`,
		"a mark that is stored":           `- {name: a, state: Shelf, given: {lifecycle.marks: [Wrapped]}, expect: {stays: true, ensures: [Wrap]}}`,
		"a halt":                          `- {name: a, state: Test, given: {lamp.sold: true}, expect: {halts: SafetyRule, rule: SwitchOn}}`,
		"a state that was dropped":        `- {name: a, state: Drawer, expect: {to: Shelf, rule: Migrated}}`,
		"a text that looks like a number": `- {name: a, state: Test, given: {lamp.colour: "1"}, expect: {stays: true}}`,
	} {
		t.Run(name, func(t *testing.T) {
			if results, found := run(t, body); found != "" || len(results) != 1 || !results[0].Passed {
				t.Errorf("got %+v and %s", results, found)
			}
		})
	}
}

func TestAFindingAboutAScenarioNamesPlaceCauseAndRemedy(t *testing.T) {
	for name, c := range map[string]struct{ body, want string }{
		"a fact that does not exist": {
			`- {name: a, state: Test, given: {lamp.powre: "On"}, expect: {stays: true}}`,
			`scenarios.yaml:4:34: error: a: there is no fact "lamp.powre" (did you mean lamp.power?) [scenario-unknown-fact]`},
		"a fact without its group": {
			`- {name: a, state: Test, given: {power: "On"}, expect: {stays: true}}`,
			`scenarios.yaml:4:34: error: a: there is no fact "power" (did you mean lamp.power?) [scenario-unknown-fact]`},
		"a text where a number belongs": {
			`- {name: a, state: Test, given: {lifecycle.retries: many}, expect: {stays: true}}`,
			`scenarios.yaml:4:53: error: a: lifecycle.retries is of type int and cannot be "many" (write a whole number such as 1, without quotes) [scenario-type]`},
		"a bare On": {
			`- {name: a, state: Test, given: {lamp.power: On}, expect: {stays: true}}`,
			`scenarios.yaml:4:46: error: lamp.power is a bare On, which YAML readers take for a boolean (write "On" in quotes) [yaml-bare-boolean]`},
		"a word outside an enum": {
			`- {name: a, state: Test, given: {lamp.power: Dim}, expect: {stays: true}}`,
			`scenarios.yaml:4:46: error: a: lamp.power is of type enum and cannot be "Dim" (it is one of On, Off) [scenario-type]`},
		"a state that does not exist": {
			`- {name: a, state: Tset, expect: {stays: true}}`,
			`scenarios.yaml:4:20: error: a: there is no state "Tset" (did you mean Test?) [state-unknown]`},
		"a rule that does not exist": {
			`- {name: a, state: Test, expect: {to: Shelf, rule: Passd}}`,
			`scenarios.yaml:4:52: error: a: there is no rule "Passd" (did you mean Passed?) [rule-unknown]`},
		"an effect that does not exist": {
			`- {name: a, state: Test, expect: {stays: true, ensures: [SwichOn]}}`,
			`scenarios.yaml:4:58: error: a: there is no effect "SwichOn" (did you mean SwitchOn?) [effect-unknown]`},
		"two of one name": {
			"- {name: a, state: Test, expect: {stays: true}}\n- {name: a, state: Shelf, expect: {stays: true}}",
			`scenarios.yaml:5:10: error: two scenarios are named "a" (the scenario in line 4 has it already; say what is different here) [scenario-duplicate]`},
		"a move that also acts": {
			`- {name: a, state: Test, expect: {to: Shelf, ensures: [Wrap]}}`,
			`scenarios.yaml:4:46: error: a: ensures belongs to stays and not to to (a decision either moves or acts; keep to or ensures) [scenario-form]`},
		"one that does not hold": {
			`- {name: a, state: Test, given: {lamp.power: "On", lamp.sold: true}, expect: {to: Shelf, rule: Passed}}`,
			`scenarios.yaml:4:78: error: a: the scenario does not hold: it expects a move to Shelf by Passed; it is halted by SafetyRule: ` +
				`SwitchOn would break NeverSold: a sold lamp is not ours; Passed is false, as lit is true and sold is true ` +
				`(correct the lifecycle, or what the scenario gives or expects) [scenario-failed]`},
	} {
		t.Run(name, func(t *testing.T) {
			if _, found := run(t, c.body); found != c.want {
				t.Error(cmp.Diff(c.want, found))
			}
		})
	}
}

func TestWhatIsWrittenIsReadAgain(t *testing.T) {
	l, v := compiled(t), lamps()
	for name, given := range map[string]map[string]engine.Value{
		"a stay":  {"lifecycle.marks": engine.SetValue([]string{"Wrapped"})},
		"a move":  {"lamp.power": engine.EnumValue("On")},
		"a delay": {"lifecycle.age": engine.AgeValue(time.Hour), "lamp.colour": engine.StringValue(`"red"`)},
		"a halt":  {"lamp.sold": engine.BoolValue(true)},
	} {
		t.Run(name, func(t *testing.T) {
			f := make(facts, len(v.Facts))
			var said []Given
			for i, kind := range v.Facts {
				f[i] = kind.Quiet
				if value, ok := given[kind.Name]; ok {
					f[i] = value
					said = append(said, Given{kind.Name, value})
				}
			}
			f[0] = engine.StringValue("Test")
			text := Write("it is so", "Test", said, l.Decide(f))
			if _, found := run(t, text); found != "" {
				t.Errorf("%s\n%s", text, found)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add(`- {name: a, state: Test, given: {lamp.power: "On"}, expect: {to: Shelf, rule: Passed}}`)
	f.Add(`- {name: a, state: Test, given: {lifecycle.age: 60s}, expect: {stays: true, ensures: [SwitchOn], awaits: Wrap}}`)
	f.Add("- name: >\n    a\n  expect: {halts: SafetyRule}\n- &x 1\n- *x")
	l := compiled(f)
	f.Fuzz(func(t *testing.T, body string) {
		all, found := Parse("scenarios.yaml", []byte(head+body), lamps(), l, nil)
		for _, d := range found {
			if d.Line < 1 || d.Column < 1 || d.Message == "" || d.Code == "" {
				t.Errorf("a finding without a place or a message: %+v", d)
			}
		}
		if results, _ := Run("scenarios.yaml", all, l); len(results) != len(all) {
			t.Errorf("%d scenarios gave %d results", len(all), len(results))
		}
	})
}
