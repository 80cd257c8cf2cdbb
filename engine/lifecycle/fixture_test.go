// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"sync"
	"testing"
	"time"

	"github.com/metalaw/metalaw/engine"
)

// words is a small vocabulary of one machine: a server that may be switched, inspected and claimed.
func words() *engine.Vocabulary {
	return engine.NewVocabulary(engine.Vocabulary{
		Facts: []engine.FactType{
			{Name: "lifecycle.state", Kind: engine.String},
			{Name: "lifecycle.age", Kind: engine.Age},
			{Name: "lifecycle.marks", Kind: engine.Set},
			{Name: "lifecycle.retries", Kind: engine.Int},
			{Name: "bmc.power", Kind: engine.Enum, Values: []string{"On", "Off", "Unknown"}},
			{Name: "claim.bound", Kind: engine.Bool},
			{Name: "probe.running", Kind: engine.Age},
			{Name: "wipe.budget", Kind: engine.Duration},
			{Name: "hardware.cores", Kind: engine.Int},
		},
		Effects: []engine.EffectType{
			{Name: "PowerOn", Touches: true, Requires: []engine.Requirement{{Rule: "NeverClaimed", Must: "!claim.bound", Doc: "a claimed server is not ours to switch"}}},
			{Name: "PowerOff", Touches: true, Params: []engine.ParamType{{Name: "graceful", Kind: engine.Duration}, {Name: "force", Kind: engine.Bool}}},
			{Name: "BootImage", Marks: []string{"Managed"}},
		},
		Enter:      map[engine.State][]engine.Requirement{"Ready": {{Rule: "NeverOfferDirty", Must: `!marked("Dirty")`, Doc: "a dirty server is never offered"}}},
		Clear:      map[string][]engine.Requirement{"Dirty": {{Rule: "CleanedWhileOff", Must: `bmc.power == "Off"`, Doc: "a server is cleaned only while off"}}},
		Marks:      map[string]string{"Managed": "it was booted by us", "Dirty": "it may hold data"},
		Operations: []string{"release"},
	})
}

// sharedWords is the vocabulary of tests that do not change it.
var sharedWords = sync.OnceValue(words)

// facts is what is known of the server; a fact left out was not observed.
type facts map[string]engine.Value

func (f facts) with(name string, v engine.Value) facts {
	all := facts{}
	for k, old := range f {
		all[k] = old
	}
	all[name] = v
	return all
}

type observed struct {
	words *engine.Vocabulary
	facts facts
}

func (o observed) Fact(i int) engine.Value { return o.facts[o.words.Facts[i].Name] }

// machine is a server in a state, off, not claimed, for no time yet.
func machine(state string) facts {
	return facts{
		"lifecycle.state":   engine.StringValue(state),
		"lifecycle.age":     engine.AgeValue(0),
		"lifecycle.marks":   engine.SetValue(nil),
		"lifecycle.retries": engine.IntValue(0),
		"bmc.power":         engine.EnumValue("Off"),
		"claim.bound":       engine.BoolValue(false),
		"probe.running":     engine.AgeValue(0),
		"wipe.budget":       engine.DurationValue(2 * time.Hour),
		"hardware.cores":    engine.IntValue(40),
	}
}

const fleet = `apiVersion: policy.metalaw.dev/v1alpha1
kind: Lifecycle
initial: Inspect
define:
  running: bmc.power == "On"
  stopped: bmc.power == "Off"
  claimed: claim.bound
  probed: probe.running >= duration("10m")
  dirty: marked("Dirty")
  large: hardware.cores > 60
interrupts:
- {rule: Broke, to: Retired, when: large && running, except: [Retired]}
states:
  Inspect:
    means: Being inspected.
    marks: [Inspected]
    ensure:
    - PowerOn
    exits:
    - {rule: Passed, to: Ready, when: probed, clears: [Dirty]}
    - {rule: TooSlow, to: Retired, after: wipe.budget}
  Ready:
    means: Free.
    stable: true
    operations: [release]
    ensure:
    - {do: PowerOff, with: {graceful: 5s, force: true}, when: running}
    - BootImage
    exits:
    - {rule: Reinspect, to: Inspect, when: "!claimed && dirty", retry: true}
  Retired:
    means: Gone.
    stable: true
migrate: {Legacy: Retired}
invariants:
- {rule: OffWhileFree, must: "state != 'Ready' || !ensuring('PowerOn')"}
`

func compiled(t testing.TB, source string) *Lifecycle {
	t.Helper()
	l, found, err := Compile("lifecycle.yaml", []byte(source), sharedWords())
	if err != nil {
		t.Fatal(err)
	}
	if l == nil {
		t.Fatal(found.Err())
	}
	return l
}
