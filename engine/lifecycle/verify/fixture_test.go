// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"strings"
	"sync"
	"testing"

	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/lifecycle"
)

// words is a small vocabulary of one machine: a server that is inspected, offered and claimed.
var words = sync.OnceValue(func() *engine.Vocabulary {
	return engine.NewVocabulary(engine.Vocabulary{
		Facts: []engine.FactType{
			{Name: "lifecycle.state", Kind: engine.String},
			{Name: "lifecycle.entry", Kind: engine.Int, Quiet: engine.IntValue(1)},
			{Name: "lifecycle.age", Kind: engine.Age},
			{Name: "lifecycle.retries", Kind: engine.Int},
			{Name: "lifecycle.marks", Kind: engine.Set},
			{Name: "bmc.power", Kind: engine.Enum, Values: []string{"Off", "On", "Unknown"}},
			{Name: "bmc.known", Kind: engine.Bool, Quiet: engine.BoolValue(true)},
			{Name: "claim.bound", Kind: engine.Bool},
			{Name: "wipe.budget", Kind: engine.Duration, Quiet: engine.DurationValue(7200e9)},
			{Name: "hardware.cores", Kind: engine.Int, Quiet: engine.IntValue(40)},
			{Name: "hardware.disks", Kind: engine.Int, Quiet: engine.IntValue(230)},
			{Name: "hardware.model", Kind: engine.String},
			{Name: "probe.entry", Kind: engine.Int, Quiet: engine.IntValue(-1)},
			{Name: "probe.good", Kind: engine.Bool},
			{Name: "operation.name", Kind: engine.Enum, Values: []string{"None", "repair", "release"}},
			{Name: "operation.entry", Kind: engine.Int, Quiet: engine.IntValue(-1)},
			{Name: "operation.reset", Kind: engine.Bool},
		},
		Effects: []engine.EffectType{
			{Name: "PowerOn", Touches: true, Requires: []engine.Requirement{
				{Rule: "NeverClaimed", Must: "!claim.bound", Doc: "a claimed server is not ours to switch"},
				{Rule: "Known", Must: "bmc.known", Halts: "!bmc.known", Doc: "an unknown server is left alone"}}},
			{Name: "PowerOff", Touches: true, Requires: []engine.Requirement{
				{Rule: "Settled", Must: `bmc.power == "On"`, Awaits: `bmc.power == "Unknown"`, Doc: "only what is on is powered off"}}},
			{Name: "Repair", Serves: []string{"release"}},
			{Name: "BootImage", Marks: []string{"Managed"}},
			{Name: "BootWipe", Stays: []engine.Requirement{
				{Rule: "WipeStaysUnclaimed", Must: `bmc.power == "Off" || !claim.bound`, Doc: "a claimed server is not wiped"}}},
		},
		Enter: map[engine.State][]engine.Requirement{
			"Ready": {{Rule: "NeverOfferDirty", Must: `!marked("Dirty")`, Doc: "a dirty server is never offered"}}},
		Leave: map[engine.State][]engine.Requirement{
			"Lent": {{Rule: "OnlyClaimed", Must: "claim.bound", Doc: "a server on loan comes back only with a claim"}}},
		Clear: map[string][]engine.Requirement{
			"Dirty": {{Rule: "CleanedWhileOff", Must: `bmc.power == "Off"`, Doc: "a server is cleaned only while off"}}},
		Set: map[string][]engine.Requirement{
			"Managed": {{Rule: "ManagedWhileOff", Must: `bmc.power == "Off"`, Doc: "a server is taken over only while off"}}},
		Marks:      map[string]string{"Managed": "it was booted by us", "Dirty": "it may hold data"},
		Forfeits:   map[string]engine.Forfeit{"Managed": {Loses: "its history is lost", Instead: "keep the mark"}},
		Operations: []string{"repair", "release"},
		Axioms: []engine.Axiom{
			{Holds: `bmc.known || bmc.power == "Unknown"`, Doc: "of an unknown server nothing is known"},
			{Holds: `lifecycle.entry >= 0 && lifecycle.retries >= 0`, Doc: "counts begin at zero"}},
		AfterMove:    []engine.Axiom{{Holds: `probe.entry != lifecycle.entry`, Doc: "a report belongs to one entry"}},
		Destinations: map[string]engine.State{"repair": "Inspect"},
		Entries:      map[engine.State]string{"Legacy": "left by another operator"},
	})
})

// fleet is a lifecycle of which nothing is to be said. Its line numbers stand in the tests' expectations.
const fleet = `apiVersion: policy.metalaw.dev/v1alpha1
kind: Lifecycle
initial: Inspect
define:
  running: bmc.power == "On"
  stopped: bmc.power == "Off"
  claimed: claim.bound
  dirty: marked("Dirty")
  passed: probe.entry == lifecycle.entry && probe.good
  spent: lifecycle.retries >= 2
  repairAsked: operation.name == "repair"
  releaseAsked: operation.name == "release"
states:
  Inspect:
    means: Being inspected.
    ensure:
    - {do: PowerOn, when: "!claimed"}
    exits:
    - {rule: Passed, to: Ready, when: passed && !dirty}
    - {rule: Failed, to: Retired, when: spent && !passed, after: 10m}
    - {rule: Again, to: Pause, after: wipe.budget, retry: true}
  Pause:
    means: Cooling down.
    exits:
    - {rule: Cooled, to: Inspect, after: 5m}
  Ready:
    means: Free.
    stable: true
    operations: [release]
    ensure:
    - {do: PowerOff, when: running}
    - {do: BootImage, when: stopped}
    exits:
    - {rule: Soiled, to: Inspect, when: dirty}
    - {rule: Released, to: Retired, when: releaseAsked && !dirty}
  Retired:
    means: Gone.
    stable: true
    operations: [repair]
    exits:
    - {rule: Repaired, to: Inspect, when: repairAsked}
`

// compiled is the fixture after it was rewritten: pairs of what it says and what is put there.
func compiled(t testing.TB, pairs ...string) *lifecycle.Lifecycle {
	t.Helper()
	text := fleet
	for i := 0; i < len(pairs); i += 2 {
		if strings.Count(text, pairs[i]) != 1 {
			t.Fatalf("the fixture does not say %q once", pairs[i])
		}
		text = strings.Replace(text, pairs[i], pairs[i+1], 1)
	}
	return compiledText(t, text)
}
