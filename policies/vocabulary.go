// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine"
)

//go:generate go run generate.go

// Vocabulary returns the words in which lifecycle bundles are written. It is built once and must not be changed.
func Vocabulary() *engine.Vocabulary { return vocabulary() }

var vocabulary = sync.OnceValue(buildVocabulary)

var (
	durationType = reflect.TypeFor[time.Duration]()
	setType      = reflect.TypeFor[[]string]()
)

func buildVocabulary() *engine.Vocabulary {
	words := engine.Vocabulary{
		Effects:  effects,
		Enter:    enterRules,
		Arrive:   arriveRules,
		Leave:    leaveRules,
		Clear:    clearRules,
		Set:      setRules,
		Kept:     kept,
		Marks:    marks,
		Forfeits: forfeits,

		Destinations: destinations,
		Resumes:      resumes,
		Operations:   operations,
		Handled:      []string{OperationRelease, OperationUndo},
		Moves:        []string{v1alpha1.RuleAdopted, v1alpha1.RuleForced},

		Axioms:    axioms,
		AfterMove: afterMove,
		Entries:   entries,
	}
	root := reflect.TypeFor[Facts]()
	for g := range root.NumField() {
		group := root.Field(g)
		for i := range group.Type.NumField() {
			field := group.Type.Field(i)
			words.Facts = append(words.Facts, factType(group.Tag.Get("fact"), field))
		}
	}
	return engine.NewVocabulary(words)
}

func factType(group string, field reflect.StructField) engine.FactType {
	name, option, _ := strings.Cut(field.Tag.Get("fact"), ",")
	f := engine.FactType{Name: group + "." + name, Doc: field.Tag.Get("doc")}
	words := field.Tag.Get("enum")
	switch {
	case words == "*":
		f.Kind = engine.String
	case words == "@operations":
		f.Kind, f.Values = engine.Enum, operationWords
	case words != "":
		f.Kind, f.Values = engine.Enum, strings.Split(words, ",")
	case option == "age":
		f.Kind = engine.Age
	case field.Type == durationType:
		f.Kind = engine.Duration
	case field.Type == setType:
		f.Kind = engine.Set
	case field.Type.Kind() == reflect.Bool:
		f.Kind = engine.Bool
	case field.Type.Kind() == reflect.Int64:
		f.Kind = engine.Int
	case field.Type.Kind() == reflect.String:
		f.Kind = engine.String
	}
	quiet, err := quietValue(f, field.Tag.Get("quiet"))
	if err != nil {
		panic(fmt.Sprintf("the quiet value of %s: %v", f.Name, err)) // a mistake in this package that every test meets
	}
	f.Quiet = quiet
	f.Least = min(0, quiet.Int()) // counts begin with zero, and -1 is the entry of what is not there
	return f
}

// quietValue reads the tag of a fact's quiet value; without one it is Missing.
func quietValue(f engine.FactType, text string) (engine.Value, error) {
	if text == "" {
		return engine.Value{}, nil
	}
	switch f.Kind {
	case engine.Bool:
		if text != "true" && text != "false" {
			return engine.Value{}, fmt.Errorf("%q is neither true nor false", text)
		}
		return engine.BoolValue(text == "true"), nil
	case engine.Int:
		number, err := strconv.ParseInt(text, 10, 64)
		return engine.IntValue(number), err
	case engine.Duration, engine.Age:
		length, err := time.ParseDuration(text)
		if f.Kind == engine.Age {
			return engine.AgeValue(length), err
		}
		return engine.DurationValue(length), err
	case engine.Enum:
		if !slices.Contains(f.Values, text) {
			return engine.Value{}, fmt.Errorf("%q is none of %s", text, strings.Join(f.Values, ", "))
		}
		return engine.EnumValue(text), nil
	case engine.String:
		return engine.StringValue(text), nil
	default:
		return engine.Value{}, fmt.Errorf("a %s has none but its zero", f.Kind)
	}
}

// oneOf is the value of an enum; Missing for a word outside its set.
func oneOf(word string, set []string) engine.Value {
	if !slices.Contains(set, word) {
		return engine.Value{}
	}
	return engine.EnumValue(word)
}

// Record renders all facts by name, for decision records and traces.
func (f *Facts) Record() map[string]string {
	all := make(map[string]string, len(Vocabulary().Facts))
	for i, kind := range Vocabulary().Facts {
		all[kind.Name] = f.Fact(i).String()
	}
	return all
}

// Validate says whether every enum holds one of its words; it names the first that does not.
func (f *Facts) Validate() error {
	for i, kind := range Vocabulary().Facts {
		if f.Fact(i).Missing() {
			return fmt.Errorf("fact %s has no valid value", kind.Name)
		}
	}
	return nil
}
