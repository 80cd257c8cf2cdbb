// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"sync"
	"testing"
	"time"

	"github.com/metalaw/metalaw/engine"
)

// words is a small vocabulary of one machine: a lamp that may be switched, tested and sold.
func words() *engine.Vocabulary {
	return engine.NewVocabulary(engine.Vocabulary{
		Facts: []engine.FactType{
			{Name: "lifecycle.state", Kind: engine.String},
			{Name: "lifecycle.age", Kind: engine.Age},
			{Name: "lifecycle.marks", Kind: engine.Set},
			{Name: "lifecycle.retries", Kind: engine.Int},
			{Name: "lamp.power", Kind: engine.Enum, Values: []string{"On", "Off", "Unknown"}},
			{Name: "lamp.sold", Kind: engine.Bool},
			{Name: "lamp.burning", Kind: engine.Age},
			{Name: "lamp.budget", Kind: engine.Duration},
			{Name: "lamp.watts", Kind: engine.Int},
		},
		Effects: []engine.EffectType{
			{Name: "SwitchOn", Touches: true, Requires: []engine.Requirement{{Rule: "NeverSold", Must: "!lamp.sold", Doc: "a sold lamp is not ours to switch"}}},
			{Name: "SwitchOff", Touches: true, Params: []engine.ParamType{{Name: "dim", Kind: engine.Duration}, {Name: "force", Kind: engine.Bool}}},
			{Name: "Wrap", Marks: []string{"Wrapped"}},
		},
		Enter:      map[engine.State][]engine.Requirement{"Shelf": {{Rule: "NoScratchOnShelf", Must: `!marked("Scratched")`, Doc: "a scratched lamp is never shown"}}},
		Clear:      map[string][]engine.Requirement{"Scratched": {{Rule: "PolishedCold", Must: `lamp.power == "Off"`, Doc: "a lamp is polished only while off"}}},
		Marks:      map[string]string{"Wrapped": "it is in paper", "Scratched": "it is not as new"},
		Operations: []string{"sell"},
	})
}

// shopWords is the vocabulary of tests that do not change it.
var shopWords = sync.OnceValue(words)

// facts is what is known of the lamp; a fact left out was not observed.
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

// lamp is a lamp in a state, off, not sold, for no time yet.
func lamp(state string) facts {
	return facts{
		"lifecycle.state":   engine.StringValue(state),
		"lifecycle.age":     engine.AgeValue(0),
		"lifecycle.marks":   engine.SetValue(nil),
		"lifecycle.retries": engine.IntValue(0),
		"lamp.power":        engine.EnumValue("Off"),
		"lamp.sold":         engine.BoolValue(false),
		"lamp.burning":      engine.AgeValue(0),
		"lamp.budget":       engine.DurationValue(2 * time.Hour),
		"lamp.watts":        engine.IntValue(40),
	}
}

const shop = `apiVersion: policy.metalaw.dev/v1alpha1
kind: Lifecycle
initial: Test
define:
  lit: lamp.power == "On"
  dark: lamp.power == "Off"
  sold: lamp.sold
  warm: lamp.burning >= duration("10m")
  scratched: marked("Scratched")
  big: lamp.watts > 60
interrupts:
- {rule: Broke, to: Bin, when: big && lit, except: [Bin]}
states:
  Test:
    means: Being tested.
    marks: [Tested]
    ensure:
    - SwitchOn
    exits:
    - {rule: Passed, to: Shelf, when: warm, clears: [Scratched]}
    - {rule: TooSlow, to: Bin, after: lamp.budget}
  Shelf:
    means: For sale.
    stable: true
    operations: [sell]
    ensure:
    - {do: SwitchOff, with: {dim: 5s, force: true}, when: lit}
    - Wrap
    exits:
    - {rule: Retest, to: Test, when: "!sold && scratched", retry: true}
  Bin:
    means: Gone.
    stable: true
migrate: {Attic: Bin}
invariants:
- {rule: ColdOnTheShelf, must: "state != 'Shelf' || !ensuring('SwitchOn')"}
`

func compiled(t testing.TB, source string) *Lifecycle {
	t.Helper()
	l, found, err := Compile("lifecycle.yaml", []byte(source), shopWords())
	if err != nil {
		t.Fatal(err)
	}
	if l == nil {
		t.Fatal(found.Err())
	}
	return l
}
