// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/metalaw/metalaw/engine"
)

// Vocabulary returns the words in which lifecycle bundles are written. It is built once and must not be changed.
func Vocabulary() *engine.Vocabulary { return vocabulary().words }

var vocabulary = sync.OnceValue(buildVocabulary)

// table joins the words with the struct fields that hold their values.
type table struct {
	words  *engine.Vocabulary
	fields [][]int
}

var (
	durationType = reflect.TypeFor[time.Duration]()
	setType      = reflect.TypeFor[[]string]()
)

func buildVocabulary() table {
	t := table{words: &engine.Vocabulary{
		Effects:     effects,
		Enter:       enterRules,
		Clear:       clearRules,
		Set:         setRules,
		Marks:       marks,
		Operations:  operations,
		StateFact:   "lifecycle.state",
		AgeFact:     "lifecycle.age",
		MarksFact:   "lifecycle.marks",
		RetriesFact: "lifecycle.retries",
	}}
	root := reflect.TypeFor[Facts]()
	for g := range root.NumField() {
		group := root.Field(g)
		for i := range group.Type.NumField() {
			field := group.Type.Field(i)
			t.words.Facts = append(t.words.Facts, factType(group.Tag.Get("fact"), field))
			t.fields = append(t.fields, []int{g, i})
		}
	}
	t.words.Index("") // builds the name table before the vocabulary is shared
	return t
}

func factType(group string, field reflect.StructField) engine.FactType {
	name, option, _ := strings.Cut(field.Tag.Get("fact"), ",")
	f := engine.FactType{Name: group + "." + name, Doc: field.Tag.Get("doc")}
	words := field.Tag.Get("enum")
	switch {
	case words == "*":
		f.Kind = engine.String
	case words == "@operations":
		f.Kind, f.Values = engine.Enum, append([]string{"None"}, operations...)
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
	f.Quiet = quietValue(f, field.Tag.Get("quiet"))
	return f
}

// quietValue reads the tag of a fact's quiet value; without one it is false, zero, empty, or an enum's first word.
func quietValue(f engine.FactType, text string) engine.Value {
	var number int64
	var length time.Duration
	var err error
	switch {
	case text == "":
	case f.Kind == engine.Int:
		number, err = strconv.ParseInt(text, 10, 64)
	case f.Kind == engine.Duration || f.Kind == engine.Age:
		length, err = time.ParseDuration(text)
	}
	if err != nil {
		panic(fmt.Sprintf("the quiet value of %s: %v", f.Name, err)) // a mistake in this package that every test meets
	}
	switch f.Kind {
	case engine.Bool:
		return engine.BoolValue(text == "true")
	case engine.Int:
		return engine.IntValue(number)
	case engine.Enum:
		if text == "" {
			text = f.Values[0]
		}
		return engine.EnumValue(text)
	case engine.Duration:
		return engine.DurationValue(length)
	case engine.Age:
		return engine.AgeValue(length)
	case engine.Set:
		return engine.SetValue(nil)
	default:
		return engine.StringValue(text)
	}
}

// Fact implements engine.Facts. An enum with a word outside its set is Missing, so that a rule which reads it halts.
func (f *Facts) Fact(i int) engine.Value {
	t := vocabulary()
	if i < 0 || i >= len(t.fields) {
		return engine.Value{}
	}
	at := t.fields[i]
	v := reflect.ValueOf(f).Elem().Field(at[0]).Field(at[1])
	kind := t.words.Facts[i]
	switch kind.Kind {
	case engine.Bool:
		return engine.BoolValue(v.Bool())
	case engine.Int:
		return engine.IntValue(v.Int())
	case engine.String:
		return engine.StringValue(v.String())
	case engine.Enum:
		word := v.String()
		for _, known := range kind.Values {
			if known == word {
				return engine.EnumValue(word)
			}
		}
		return engine.Value{}
	case engine.Duration:
		return engine.DurationValue(time.Duration(v.Int()))
	case engine.Age:
		return engine.AgeValue(time.Duration(v.Int()))
	case engine.Set:
		words, ok := v.Interface().([]string)
		if !ok {
			return engine.Value{}
		}
		return engine.SetValue(words)
	default:
		return engine.Value{}
	}
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
