// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/metalaw/metalaw/engine"
)

func TestQuietFactsAreThoseOfACleanFreeMachineThatIsKnownAndOff(t *testing.T) {
	for name, want := range map[string]string{
		"server.claimRefSet":   "false",
		"server.reclaimPolicy": `"Recycle"`,
		"lifecycle.entry":      "1",
		"lifecycle.age":        "0s",
		"lifecycle.marks":      "[]",
		"bmc.reachable":        "true",
		"bmc.power":            `"Off"`,
		"bmc.health":           `"OK"`,
		"bmc.identity":         `"Same"`,
		"boot.purpose":         `"None"`,
		"claim.power":          `"None"`,
		"probe.entry":          "-1",
		"wipe.entry":           "-1",
		"wipe.budget":          "4h0m0s",
		"operation.name":       `"None"`,
		"operation.entry":      "-1",
		"policy.sanitization":  `"required"`,
	} {
		i, ok := Vocabulary().Index(name)
		if !ok {
			t.Fatalf("there is no fact %s", name)
		}
		if got := Vocabulary().Facts[i].Quiet.String(); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}

// distinct sets a field to a value that no other field of its kind has, where the kind has as many, and says which it is. An
// enum gets its last word, which is never the zero value.
func distinct(t *testing.T, kind engine.FactType, field reflect.Value, n int) engine.Value {
	t.Helper()
	switch kind.Kind {
	case engine.Bool:
		field.SetBool(true)
		return engine.BoolValue(true)
	case engine.Int:
		field.SetInt(int64(n))
		return engine.IntValue(int64(n))
	case engine.Duration:
		field.SetInt(int64(n) * int64(time.Second))
		return engine.DurationValue(time.Duration(n) * time.Second)
	case engine.Age:
		field.SetInt(int64(n) * int64(time.Second))
		return engine.AgeValue(time.Duration(n) * time.Second)
	case engine.Enum:
		word := kind.Values[len(kind.Values)-1]
		field.SetString(word)
		return engine.EnumValue(word)
	case engine.String:
		word := fmt.Sprintf("word %d", n)
		field.SetString(word)
		return engine.StringValue(word)
	case engine.Set:
		words := []string{fmt.Sprintf("word %d", n)}
		field.Set(reflect.ValueOf(words))
		return engine.SetValue(words)
	}
	t.Fatalf("%s is a %s, of which this test makes none", kind.Name, kind.Kind)
	return engine.Value{}
}

func TestEveryFactIsReadFromTheFieldThatHasItsName(t *testing.T) {
	names := map[string]bool{}
	root := reflect.TypeFor[Facts]()
	for g := range root.NumField() {
		group := root.Field(g)
		for i := range group.Type.NumField() {
			kind := factType(group.Tag.Get("fact"), group.Type.Field(i))
			names[kind.Name] = true
			position, ok := Vocabulary().Index(kind.Name)
			if !ok {
				t.Fatalf("the vocabulary has no %s", kind.Name)
			}
			// Only this field differs from the facts' zero, so that a fact which is read from another one shows, also of a kind that
			// has but two values.
			f := &Facts{}
			want := distinct(t, kind, reflect.ValueOf(f).Elem().Field(g).Field(i), len(names))
			if got := f.Fact(position); got.String() != want.String() {
				t.Errorf("%s is read as %s, want %s", kind.Name, got, want)
			}
			if before := (&Facts{}).Fact(position); before.String() == want.String() {
				t.Errorf("%s is %s whatever its field holds", kind.Name, before)
			}
		}
	}
	if len(names) != len(Vocabulary().Facts) {
		t.Errorf("%d fields make %d facts", len(names), len(Vocabulary().Facts))
	}
	if got := (&Facts{}).Fact(len(names)); !got.Missing() {
		t.Errorf("beyond the last fact there is %s", got)
	}
}

func TestAQuietValueThatMakesNoSenseIsFoundWhenTheVocabularyIsBuilt(t *testing.T) {
	for name, c := range map[string]struct {
		tag   reflect.StructTag
		kind  reflect.Type
		panic bool
	}{
		"a truth value":                   {`fact:"a" quiet:"true"`, reflect.TypeFor[bool](), false},
		"a truth value in capitals":       {`fact:"a" quiet:"True"`, reflect.TypeFor[bool](), true},
		"a word of the enum":              {`fact:"a" enum:"On,Off" quiet:"Off"`, reflect.TypeFor[string](), false},
		"a word outside of it":            {`fact:"a" enum:"On,Off" quiet:"off"`, reflect.TypeFor[string](), true},
		"a number":                        {`fact:"a" quiet:"-1"`, reflect.TypeFor[int64](), false},
		"no number":                       {`fact:"a" quiet:"one"`, reflect.TypeFor[int64](), true},
		"a duration":                      {`fact:"a" quiet:"4h"`, reflect.TypeFor[time.Duration](), false},
		"a duration without a unit":       {`fact:"a" quiet:"4"`, reflect.TypeFor[time.Duration](), true},
		"an age without a unit":           {`fact:"a,age" quiet:"4"`, reflect.TypeFor[time.Duration](), true},
		"a set, which is quiet as it is":  {`fact:"a"`, reflect.TypeFor[[]string](), false},
		"a set with something in it":      {`fact:"a" quiet:"Dirty"`, reflect.TypeFor[[]string](), true},
		"a text, of which any is allowed": {`fact:"a" enum:"*" quiet:"Initial"`, reflect.TypeFor[string](), false},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if found := recover(); (found != nil) != c.panic {
					t.Errorf("found: %v", found)
				}
			}()
			factType("group", reflect.StructField{Name: "A", Type: c.kind, Tag: c.tag})
		})
	}
}
