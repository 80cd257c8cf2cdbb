// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"math/rand/v2"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/internal/celrule"
	"github.com/metalaw/metalaw/engine/internal/yamlpos"
)

// parityWords has a fact of every kind, and two of those that can be compared with each other.
var parityWords = engine.NewVocabulary(engine.Vocabulary{
	Facts: []engine.FactType{
		{Name: "a.yes", Kind: engine.Bool}, {Name: "a.too", Kind: engine.Bool},
		{Name: "a.count", Kind: engine.Int}, {Name: "a.other", Kind: engine.Int},
		{Name: "a.word", Kind: engine.Enum, Values: []string{"On", "Off"}}, {Name: "a.text", Kind: engine.String},
		{Name: "a.budget", Kind: engine.Duration}, {Name: "a.age", Kind: engine.Age},
		{Name: "lifecycle.marks", Kind: engine.Set},
	},
})

func parityAtom(t testing.TB, source string) *Expression {
	t.Helper()
	env, err := newEnv(parityWords)
	if err != nil {
		t.Fatal(err)
	}
	file := &yamlpos.File{Name: "test"}
	c := &atomCompiler{language: &language{env: env, vocabulary: parityWords}, file: file}
	a := c.compile("it", &yaml.Node{Kind: yaml.ScalarNode, Value: source, Line: 1, Column: 1})
	if a == nil {
		t.Fatalf("%s: %v", source, file.Found)
	}
	return a
}

// valuesOf are all values that a fact has in this test, the missing one first.
func valuesOf(k engine.Kind) []engine.Value {
	missing := engine.Value{}
	switch k {
	case engine.Bool:
		return []engine.Value{missing, engine.BoolValue(false), engine.BoolValue(true)}
	case engine.Int:
		return []engine.Value{missing, engine.IntValue(-1), engine.IntValue(2), engine.IntValue(3)}
	case engine.Enum:
		return []engine.Value{missing, engine.EnumValue("On"), engine.EnumValue("Off")}
	case engine.Duration:
		return []engine.Value{missing, engine.DurationValue(0), engine.DurationValue(time.Minute)}
	case engine.Age:
		return []engine.Value{missing, engine.AgeValue(59 * time.Second), engine.AgeValue(time.Minute)}
	case engine.Set:
		return []engine.Value{missing, engine.SetValue(nil), engine.SetValue([]string{"Dirty", "On"})}
	default:
		return []engine.Value{missing, engine.StringValue(""), engine.StringValue("On")}
	}
}

type drawn []engine.Value

// Fact implements engine.Facts.
func (d drawn) Fact(i int) engine.Value { return d[i] }

func TestTheNativeFragmentYieldsWhatCELYields(t *testing.T) {
	const seed = 1
	random := rand.New(rand.NewPCG(seed, seed))
	for _, source := range []string{
		`a.yes`, `!a.yes`, `true`, `a.yes && a.too`, `a.yes || !a.too`, `a.yes == a.too`, `a.yes != true`,
		`a.count == 2`, `a.count != a.other`, `a.count < a.other`, `a.count <= 2`, `3 > a.count`, `a.count >= -1`,
		`a.word == "On"`, `"On" == a.word`, `a.text != "On"`, `a.text == a.word`, `a.word in ["On", "Off"]`, `a.text in lifecycle.marks`, `marked("Dirty")`,
		`a.age >= duration("1m")`, `duration("1m") > a.age`, `a.budget == duration("0s")`, `a.budget < duration("2m")`,
		`a.yes && (a.count == a.other || a.word == "Off") && !marked("Dirty")`,
		`a.text.startsWith("O")`, `!a.word.endsWith("ff")`, `a.text.contains("n") && "Only".startsWith(a.text)`,
		`size(a.text) == 2`, `a.word.size() > a.count`, `a.text < a.word`, `a.word >= "On"`, `a.yes ? a.too : a.count > 2`, `a.count in [2, 3]`,
		`a.count + 1 == 3`, `a.count * a.other - 1 > a.other / a.count`, `a.count % 2 == 0 || a.other / (a.count - 2) > 0`,
		`a.count * 9223372036854775807 > 0`, `a.count + 9223372036854775806 > 0`, `a.count - 9223372036854775807 - 2 < 0`,
		`(-9223372036854775807 - 1) / a.count < 0`, `(-9223372036854775807 - 1) % a.count < 0`, `(-9223372036854775807 - 1) * a.count < 0`,
		`(a.text == "On" || a.age < duration("1m")) && (a.too || a.budget <= duration("1m"))`,
	} {
		t.Run(source, func(t *testing.T) {
			a := parityAtom(t, source)
			if a.Native == nil {
				t.Fatal("it is in the fragment, and is left to CEL")
			}
			for range 3000 {
				facts := make(drawn, len(parityWords.Facts))
				for i, f := range parityWords.Facts {
					all := valuesOf(f.Kind)
					facts[i] = all[random.IntN(len(all))]
				}
				in := &activation{vocabulary: parityWords, facts: facts}
				want, err := a.interpret(in)
				got := a.Native(facts)
				if (err != nil) != (got == celrule.Failed) || (err == nil && got != celrule.TruthOf(want)) {
					t.Fatalf("seed %d: native says %s, CEL says %t, %v\nfacts: %v", seed, got, want, err, facts)
				}
			}
		})
	}
}

func TestWhatLiesOutsideTheFragmentIsLeftToCEL(t *testing.T) {
	for _, source := range []string{`a.text.matches("O")`, `a.text + "x" == "Onx"`, `size(lifecycle.marks) > 0`, `a.yes < a.too`, `lifecycle.marks == []`, `a.text in []`, `!(a.word in [])`} {
		a := parityAtom(t, source)
		if a.Native != nil {
			t.Errorf("%s is not in the fragment", source)
		}
		if _, err := a.evaluate(&activation{vocabulary: parityWords, facts: drawn{engine.BoolValue(true), engine.BoolValue(true),
			engine.IntValue(1), engine.IntValue(1), engine.EnumValue("On"), engine.StringValue("O"), engine.DurationValue(0),
			engine.AgeValue(0), engine.SetValue(nil)}}); err != nil {
			t.Errorf("%s: %v", source, err)
		}
	}
}

func TestMembershipInAnEmptyListIsFalseAlsoOfAFactThatIsMissing(t *testing.T) {
	for source, want := range map[string]bool{`a.text in []`: false, `!(a.word in [])`: true} {
		got, err := parityAtom(t, source).evaluate(&activation{vocabulary: parityWords, facts: make(drawn, len(parityWords.Facts))})
		if err != nil || got != want {
			t.Errorf("%s is %t, %v", source, got, err)
		}
	}
}

func TestNumbersOfDifferentTypesAreNotCompared(t *testing.T) {
	env, err := newEnv(parityWords)
	if err != nil {
		t.Fatal(err)
	}
	for _, source := range []string{`a.count < 2.5`, `2.5 >= a.count`, `a.count > 1u`, `a.count == 2u`, `a.count == 2.0`, `a.age > 60`} {
		file := &yamlpos.File{Name: "test"}
		c := &atomCompiler{language: &language{env: env, vocabulary: parityWords}, file: file}
		if c.compile("it", &yaml.Node{Kind: yaml.ScalarNode, Value: source, Line: 1, Column: 1}) != nil || len(file.Found) == 0 {
			t.Errorf("%s compiles", source)
		}
	}
}
