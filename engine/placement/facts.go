// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/internal/celrule"
	"github.com/metalaw/metalaw/engine/selection"
)

// group begins the name of every fact.
const group = "server"

// Fact is one thing that a condition may ask about a server.
type Fact struct {
	// Name is such as server.memoryGiB.
	Name string
	// Type is the name of its type in CEL.
	Type string
	// Values is the closed set of its words, where it has one.
	Values []string
	// Doc is one sentence.
	Doc string

	kind engine.Kind // 0 for labels
	path []int
}

// leftOut are fields that say nothing without the present instant, which a condition does not know.
var leftOut = []string{"server.availableSince", "server.availableDay"}

// Facts lists every fact, in the order of selection.Candidate, whose fields and documentation they are. What has another
// type than a condition can compare, such as a list of taints, is none.
func Facts() []Fact { return facts().all }

type factTable struct {
	all    []Fact
	byName map[string]*Fact
}

var facts = sync.OnceValue(func() factTable {
	table := factTable{byName: map[string]*Fact{}}
	table.add(reflect.TypeFor[selection.Candidate](), group, nil)
	for i := range table.all {
		table.byName[table.all[i].Name] = &table.all[i]
	}
	return table
})

var labelsType = reflect.TypeFor[map[string]string]()

func (t *factTable) add(of reflect.Type, prefix string, path []int) {
	for i := range of.NumField() {
		field := of.Field(i)
		f := Fact{Name: prefix + "." + field.Tag.Get("json"), Doc: field.Tag.Get("doc"), path: append(path[:len(path):len(path)], i)}
		switch {
		case slices.Contains(leftOut, f.Name):
			continue
		case field.Type == labelsType:
			f.Type = "map of string to string"
		case field.Type.Kind() == reflect.Int64:
			f.Type, f.kind = "int", engine.Int
		case field.Type.Kind() == reflect.String:
			f.Type, f.kind = "string", engine.String
			if words := field.Tag.Get("enum"); words != "" {
				f.kind, f.Values = engine.Enum, strings.Split(words, ",")
			}
		case field.Type.Kind() == reflect.Struct:
			t.add(field.Type, f.Name, f.path)
			continue
		default:
			continue
		}
		t.all = append(t.all, f)
	}
}

var celTypes = map[engine.Kind]*cel.Type{
	0: cel.MapType(cel.StringType, cel.StringType), engine.Int: cel.IntType, engine.String: cel.StringType, engine.Enum: cel.StringType,
}

func (f *Fact) field(c *selection.Candidate) reflect.Value {
	v := reflect.ValueOf(c).Elem().Field(f.path[0])
	for _, i := range f.path[1:] {
		v = v.Field(i)
	}
	return v
}

type operand = celrule.Operand[*selection.Candidate]

// operand reads the fact without CEL. A candidate has every fact.
func (f *Fact) operand() operand {
	switch f.kind {
	case engine.Int:
		return operand{Kind: f.kind, Number: func(c *selection.Candidate) (int64, bool) { return f.field(c).Int(), true }}
	case engine.String, engine.Enum:
		return operand{Kind: engine.String,
			Text: func(c *selection.Candidate) (string, bool) { return f.field(c).String(), true }}
	default:
		return operand{}
	}
}

func (f *Fact) labels(c *selection.Candidate) map[string]string {
	labels, _ := f.field(c).Interface().(map[string]string)
	return labels
}

// names says how the names in a condition are read without CEL.
func names() celrule.Source[*selection.Candidate] {
	return celrule.Source[*selection.Candidate]{
		Fact: func(name string) operand {
			if f := facts().byName[name]; f != nil {
				return f.operand()
			}
			return operand{}
		},
		Labels: func(name string) func(*selection.Candidate) map[string]string {
			if f := facts().byName[name]; f != nil && f.kind == 0 {
				return f.labels
			}
			return nil
		},
		Label: labelFunction,
	}
}

// activation gives CEL the facts of one server.
type activation struct{ candidate *selection.Candidate }

// ResolveName implements cel.Activation.
func (a activation) ResolveName(name string) (any, bool) {
	f := facts().byName[name]
	if f == nil {
		return nil, false
	}
	return f.celValue(a.candidate), true
}

// Parent implements cel.Activation.
func (activation) Parent() cel.Activation { return nil }

func (f *Fact) celValue(c *selection.Candidate) ref.Val {
	switch f.kind {
	case engine.Int:
		return types.Int(f.field(c).Int())
	case engine.String, engine.Enum:
		return types.String(f.field(c).String())
	default:
		return types.NewStringStringMap(types.DefaultTypeAdapter, f.labels(c))
	}
}
