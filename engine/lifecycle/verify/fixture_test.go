// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"strings"
	"sync"
	"testing"

	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/lifecycle"
)

// words is a small vocabulary of one machine: a lamp that is tested, put on the shelf and sold.
var words = sync.OnceValue(func() *engine.Vocabulary {
	return engine.NewVocabulary(engine.Vocabulary{
		Facts: []engine.FactType{
			{Name: "lifecycle.state", Kind: engine.String},
			{Name: "lifecycle.entry", Kind: engine.Int, Quiet: engine.IntValue(1)},
			{Name: "lifecycle.age", Kind: engine.Age},
			{Name: "lifecycle.retries", Kind: engine.Int},
			{Name: "lifecycle.marks", Kind: engine.Set},
			{Name: "lamp.power", Kind: engine.Enum, Values: []string{"Off", "On", "Unknown"}},
			{Name: "lamp.known", Kind: engine.Bool, Quiet: engine.BoolValue(true)},
			{Name: "lamp.sold", Kind: engine.Bool},
			{Name: "lamp.budget", Kind: engine.Duration, Quiet: engine.DurationValue(7200e9)},
			{Name: "lamp.watts", Kind: engine.Int, Quiet: engine.IntValue(40)},
			{Name: "lamp.volts", Kind: engine.Int, Quiet: engine.IntValue(230)},
			{Name: "lamp.model", Kind: engine.String},
			{Name: "report.entry", Kind: engine.Int, Quiet: engine.IntValue(-1)},
			{Name: "report.good", Kind: engine.Bool},
			{Name: "operation.name", Kind: engine.Enum, Values: []string{"None", "mend", "sell"}},
			{Name: "operation.entry", Kind: engine.Int, Quiet: engine.IntValue(-1)},
			{Name: "operation.reset", Kind: engine.Bool},
		},
		Effects: []engine.EffectType{
			{Name: "SwitchOn", Touches: true, Requires: []engine.Requirement{
				{Rule: "NeverSold", Must: "!lamp.sold", Doc: "a sold lamp is not ours to switch"},
				{Rule: "Known", Must: "lamp.known", Halts: "!lamp.known", Doc: "an unknown lamp is left alone"}}},
			{Name: "SwitchOff", Touches: true, Requires: []engine.Requirement{
				{Rule: "Settled", Must: `lamp.power == "On"`, Awaits: `lamp.power == "Unknown"`, Doc: "only what is on is switched off"}}},
			{Name: "Mend", Serves: []string{"sell"}},
			{Name: "Wrap", Marks: []string{"Wrapped"}},
			{Name: "Fill", Stays: []engine.Requirement{
				{Rule: "NeverFullAndLit", Must: `lamp.power == "Off" || !lamp.sold`, Doc: "what is filled and sold stays dark"}}},
		},
		Enter: map[engine.State][]engine.Requirement{
			"Shelf": {{Rule: "NoScratchOnShelf", Must: `!marked("Scratched")`, Doc: "a scratched lamp is never shown"}}},
		Leave: map[engine.State][]engine.Requirement{
			"Loan": {{Rule: "OnlySold", Must: "lamp.sold", Doc: "a lamp on loan comes back only once it is sold"}}},
		Clear: map[string][]engine.Requirement{
			"Scratched": {{Rule: "PolishedCold", Must: `lamp.power == "Off"`, Doc: "a lamp is polished only while off"}}},
		Set: map[string][]engine.Requirement{
			"Wrapped": {{Rule: "WrappedCold", Must: `lamp.power == "Off"`, Doc: "a lamp is wrapped only while off"}}},
		Marks:      map[string]string{"Wrapped": "it is in paper", "Scratched": "it is not as new"},
		Forfeits:   map[string]engine.Forfeit{"Wrapped": {Loses: "its warranty ends", Instead: "leave it wrapped"}},
		Operations: []string{"mend", "sell"},
		Axioms: []engine.Axiom{
			{Holds: `lamp.known || lamp.power == "Unknown"`, Doc: "of an unknown lamp nothing is known"},
			{Holds: `lifecycle.entry >= 0 && lifecycle.retries >= 0`, Doc: "counts begin at zero"}},
		AfterMove:    []engine.Axiom{{Holds: `report.entry != lifecycle.entry`, Doc: "a report belongs to one entry"}},
		Destinations: map[string]engine.State{"mend": "Test"},
		Entries:      map[engine.State]string{"Attic": "left by another shop"},
	})
})

// shop is a lifecycle of which nothing is to be said. Its line numbers stand in the tests' expectations.
const shop = `apiVersion: policy.metalaw.dev/v1alpha1
kind: Lifecycle
initial: Test
define:
  lit: lamp.power == "On"
  dark: lamp.power == "Off"
  sold: lamp.sold
  scratched: marked("Scratched")
  good: report.entry == lifecycle.entry && report.good
  spent: lifecycle.retries >= 2
  mendAsked: operation.name == "mend"
  sellAsked: operation.name == "sell"
states:
  Test:
    means: Being tested.
    ensure:
    - {do: SwitchOn, when: "!sold"}
    exits:
    - {rule: Passed, to: Shelf, when: good && !scratched}
    - {rule: Failed, to: Bin, when: spent && !good, after: 10m}
    - {rule: Again, to: Pause, after: lamp.budget, retry: true}
  Pause:
    means: Cooling down.
    exits:
    - {rule: Cooled, to: Test, after: 5m}
  Shelf:
    means: For sale.
    stable: true
    operations: [sell]
    ensure:
    - {do: SwitchOff, when: lit}
    - {do: Wrap, when: dark}
    exits:
    - {rule: Scratch, to: Test, when: scratched}
    - {rule: Sale, to: Bin, when: sellAsked && !scratched}
  Bin:
    means: Gone.
    stable: true
    operations: [mend]
    exits:
    - {rule: Mended, to: Test, when: mendAsked}
`

// compiled is the shop after it was rewritten: pairs of what it says and what is put there.
func compiled(t testing.TB, pairs ...string) *lifecycle.Lifecycle {
	t.Helper()
	text := shop
	for i := 0; i < len(pairs); i += 2 {
		if strings.Count(text, pairs[i]) != 1 {
			t.Fatalf("the shop does not say %q once", pairs[i])
		}
		text = strings.Replace(text, pairs[i], pairs[i+1], 1)
	}
	return compiledText(t, text)
}
