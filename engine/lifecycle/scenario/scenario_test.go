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

// vocabulary is a vocabulary of servers that are inspected and claimed.
func vocabulary() *engine.Vocabulary {
	return engine.NewVocabulary(engine.Vocabulary{
		Facts: []engine.FactType{
			{Name: "lifecycle.state", Kind: engine.String, Quiet: engine.StringValue("")},
			{Name: "lifecycle.age", Kind: engine.Age, Quiet: engine.AgeValue(0)},
			{Name: "lifecycle.marks", Kind: engine.Set, Quiet: engine.SetValue(nil)},
			{Name: "lifecycle.retries", Kind: engine.Int, Quiet: engine.IntValue(0)},
			{Name: "bmc.power", Kind: engine.Enum, Values: []string{"On", "Off"}, Quiet: engine.EnumValue("Off")},
			{Name: "claim.bound", Kind: engine.Bool, Quiet: engine.BoolValue(false)},
			{Name: "hardware.model", Kind: engine.String, Quiet: engine.StringValue("")},
			{Name: "wipe.budget", Kind: engine.Duration, Quiet: engine.DurationValue(time.Minute)},
		},
		Effects: []engine.EffectType{
			{Name: "PowerOn", Touches: true, Requires: []engine.Requirement{{Rule: "NeverClaimed", Must: "!claim.bound", Doc: "a claimed server is not ours"}}},
			{Name: "BootImage", Marks: []string{"Managed"}},
		},
		Marks: map[string]string{"Managed": "it was booted by us"},
	})
}

const fleet = `apiVersion: policy.metalaw.dev/v1alpha1
kind: Lifecycle
initial: Inspect
define:
  running: bmc.power == "On"
  claimed: claim.bound
states:
  Inspect:
    means: It is inspected.
    ensure: [PowerOn]
    exits:
    - {rule: Passed, to: Ready, when: running && !claimed}
    - {rule: TooSlow, to: Ready, after: wipe.budget}
  Ready:
    means: It waits for a claim.
    stable: true
    ensure: [BootImage]
migrate: {Done: Ready}
`

const head = "apiVersion: policy.metalaw.dev/v1alpha1\nkind: Scenarios\nscenarios:\n"

func compiled(t testing.TB) *lifecycle.Lifecycle {
	t.Helper()
	l, found, err := lifecycle.Compile("lifecycle.yaml", []byte(fleet), vocabulary())
	if err != nil || found.Err() != nil {
		t.Fatal(err, found)
	}
	return l
}

// run parses and runs scenarios and returns what was found.
func run(t *testing.T, body string) ([]Result, string) {
	t.Helper()
	l := compiled(t)
	all, found := Parse("scenarios.yaml", []byte(head+body), vocabulary(), l, nil)
	results, failed := Run("scenarios.yaml", all, l)
	var lines []string
	for _, d := range append(found, failed...) {
		lines = append(lines, d.String())
	}
	return results, strings.Join(lines, "\n")
}

func TestScenariosThatHold(t *testing.T) {
	for name, body := range map[string]string{
		"a move with its rule":            `- {name: a, state: Inspect, given: {bmc.power: "On"}, expect: {to: Ready, rule: Passed}}`,
		"a move by time":                  `- {name: a, state: Inspect, given: {lifecycle.age: 60s}, expect: {to: Ready, rule: TooSlow}}`,
		"a stay":                          `- {name: a, state: Inspect, expect: {stays: true, ensures: [PowerOn]}}`,
		"a stay whose effects are open":   `- {name: a, state: Inspect, expect: {stays: true}}`,
		"a mark that is stored first":     `- {name: a, state: Ready, expect: {stays: true, ensures: [Mark(Managed)]}}`,
		"a mark that is stored":           `- {name: a, state: Ready, given: {lifecycle.marks: [Managed]}, expect: {stays: true, ensures: [BootImage]}}`,
		"a halt":                          `- {name: a, state: Inspect, given: {claim.bound: true}, expect: {halts: SafetyRule, rule: PowerOn}}`,
		"a state that was dropped":        `- {name: a, state: Done, expect: {to: Ready, rule: Migrated}}`,
		"a text that looks like a number": `- {name: a, state: Inspect, given: {hardware.model: "1"}, expect: {stays: true}}`,
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
			`- {name: a, state: Inspect, given: {bmc.powre: "On"}, expect: {stays: true}}`,
			`scenarios.yaml:4:37: error: a: there is no fact "bmc.powre" (did you mean bmc.power?) [scenario-unknown-fact]`},
		"a fact without its group": {
			`- {name: a, state: Inspect, given: {power: "On"}, expect: {stays: true}}`,
			`scenarios.yaml:4:37: error: a: there is no fact "power" (did you mean bmc.power?) [scenario-unknown-fact]`},
		"a text where a number belongs": {
			`- {name: a, state: Inspect, given: {lifecycle.retries: many}, expect: {stays: true}}`,
			`scenarios.yaml:4:56: error: a: lifecycle.retries is of type int and cannot be "many" (write a whole number such as 1, without quotes) [scenario-type]`},
		"a bare On": {
			`- {name: a, state: Inspect, given: {bmc.power: On}, expect: {stays: true}}`,
			`scenarios.yaml:4:48: error: bmc.power is a bare On, which YAML readers take for a boolean (write "On" in quotes) [yaml-bare-boolean]`},
		"a word outside an enum": {
			`- {name: a, state: Inspect, given: {bmc.power: Dimmed}, expect: {stays: true}}`,
			`scenarios.yaml:4:48: error: a: bmc.power is of type enum and cannot be "Dimmed" (it is one of On, Off) [scenario-type]`},
		"a state that does not exist": {
			`- {name: a, state: Inspcet, expect: {stays: true}}`,
			`scenarios.yaml:4:20: error: a: there is no state "Inspcet" (did you mean Inspect?) [state-unknown]`},
		"a rule that does not exist": {
			`- {name: a, state: Inspect, expect: {to: Ready, rule: Passd}}`,
			`scenarios.yaml:4:55: error: a: there is no rule "Passd" (did you mean Passed?) [rule-unknown]`},
		"an effect that does not exist": {
			`- {name: a, state: Inspect, expect: {stays: true, ensures: [PwerOn]}}`,
			`scenarios.yaml:4:61: error: a: there is no effect "PwerOn" (did you mean PowerOn?) [effect-unknown]`},
		"two of one name": {
			"- {name: a, state: Inspect, expect: {stays: true}}\n- {name: a, state: Ready, expect: {stays: true}}",
			`scenarios.yaml:5:10: error: two scenarios are named "a" (the scenario in line 4 has it already; say what is different here) [scenario-duplicate]`},
		"a move that also acts": {
			`- {name: a, state: Inspect, expect: {to: Ready, ensures: [BootImage]}}`,
			`scenarios.yaml:4:49: error: a: ensures belongs to stays and not to to (a decision either moves or acts; keep to or ensures) [scenario-form]`},
		"one that does not hold": {
			`- {name: a, state: Inspect, given: {bmc.power: "On", claim.bound: true}, expect: {to: Ready, rule: Passed}}`,
			`scenarios.yaml:4:82: error: a: the scenario does not hold: it expects a move to Ready by Passed; it is halted by SafetyRule: ` +
				`PowerOn would break NeverClaimed: a claimed server is not ours; Passed is false, as claimed is true and running is true ` +
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
	l, v := compiled(t), vocabulary()
	for name, given := range map[string]map[string]engine.Value{
		"a stay":  {"lifecycle.marks": engine.SetValue([]string{"Managed"})},
		"a move":  {"bmc.power": engine.EnumValue("On")},
		"a delay": {"lifecycle.age": engine.AgeValue(time.Hour), "hardware.model": engine.StringValue(`"red"`)},
		"a halt":  {"claim.bound": engine.BoolValue(true)},
	} {
		t.Run(name, func(t *testing.T) {
			f := make(engine.Values, len(v.Facts))
			var said []Given
			for i, kind := range v.Facts {
				f[i] = kind.Quiet
				if value, ok := given[kind.Name]; ok {
					f[i] = value
					said = append(said, Given{kind.Name, value})
				}
			}
			f[0] = engine.StringValue("Inspect")
			text := Write("it is so", "Inspect", said, l.Decide(f))
			if _, found := run(t, text); found != "" {
				t.Errorf("%s\n%s", text, found)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add(`- {name: a, state: Inspect, given: {bmc.power: "On"}, expect: {to: Ready, rule: Passed}}`)
	f.Add(`- {name: a, state: Inspect, given: {lifecycle.age: 60s}, expect: {stays: true, ensures: [PowerOn], awaits: BootImage}}`)
	f.Add("- name: >\n    a\n  expect: {halts: SafetyRule}\n- &x 1\n- *x")
	l := compiled(f)
	f.Fuzz(func(t *testing.T, body string) {
		all, found := Parse("scenarios.yaml", []byte(head+body), vocabulary(), l, nil)
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
