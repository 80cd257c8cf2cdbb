// SPDX-License-Identifier: Apache-2.0

package explorer

import (
	"fmt"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/ext"
)

// truth is what an evaluation of a definition gave.
type truth uint8

const (
	unasked truth = iota
	no
	yes
	failed
)

// atom is one definition. What it said of the values of the facts that it reads is kept: there are few of them.
type atom struct {
	name    string
	program cel.Program
	reads   []fact
	said    map[uint64]truth
}

var factOf = func() map[string]fact {
	all := map[string]fact{}
	for i := range vocabulary {
		all[vocabulary[i].name] = fact(i)
	}
	return all
}()

// newEnv declares every fact, and marked(), which asks the marks of the world that is being read.
func (m *Machine) newEnv() (*cel.Env, error) {
	options := []cel.EnvOption{
		cel.ClearMacros(), ext.Strings(), ext.Math(), ext.Sets(),
		cel.Function("marked", cel.Overload("marked_string", []*cel.Type{cel.StringType}, cel.BoolType,
			cel.UnaryBinding(func(name ref.Val) ref.Val {
				s, _ := name.Value().(string)
				return types.Bool(m.reading&m.markBits[s] != 0)
			}))),
	}
	for i := range vocabulary {
		options = append(options, cel.Variable(vocabulary[i].name, vocabulary[i].kind))
	}
	return cel.NewEnv(options...)
}

func (m *Machine) newAtom(name, text string) (*atom, error) {
	checked, issues := m.env.Compile(text)
	if issues.Err() != nil {
		return nil, fmt.Errorf("definition %s: %w", name, issues.Err())
	}
	if checked.OutputType() != cel.BoolType {
		return nil, fmt.Errorf("definition %s is no truth value", name)
	}
	program, err := m.env.Program(checked)
	if err != nil {
		return nil, fmt.Errorf("definition %s: %w", name, err)
	}
	a := &atom{name: name, program: program, said: map[uint64]truth{}}
	seen := map[fact]bool{}
	read := func(f fact) {
		if !seen[f] {
			seen[f] = true
			a.reads = append(a.reads, f)
		}
	}
	ast.PreOrderVisit(checked.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.IdentKind:
			if f, ok := factOf[e.AsIdent()]; ok {
				read(f)
			}
		case ast.SelectKind:
			if r, ok := checked.NativeRep().ReferenceMap()[e.ID()]; ok {
				if f, ok := factOf[r.Name]; ok {
					read(f)
				}
			}
		case ast.CallKind:
			m.noteCall(e, read)
		default:
		}
	}))
	m.readsAge = m.readsAge || seen[age]
	if len(a.reads) > 8 {
		return nil, fmt.Errorf("definition %s reads more than 8 facts", name)
	}
	return a, nil
}

// noteCall notes what a call reads of the marks, and the durations that an age may be compared with.
func (m *Machine) noteCall(e ast.Expr, read func(fact)) {
	args := e.AsCall().Args()
	if len(args) != 1 || args[0].Kind() != ast.LiteralKind {
		return
	}
	text, _ := args[0].AsLiteral().Value().(string)
	switch e.AsCall().FunctionName() {
	case "marked":
		read(marks)
		m.markBit(text)
	case "duration":
		if d, err := time.ParseDuration(text); err == nil {
			m.noteAge(d)
		}
	}
}

// ask evaluates a definition for a reading.
func (a *atom) ask(m *Machine, r *reading) truth {
	var key uint64
	for _, f := range a.reads {
		key = key<<8 | uint64(r[f])
	}
	if t := a.said[key]; t != unasked {
		return t
	}
	m.reading = r[marks]
	values := make(map[string]any, len(a.reads))
	for _, f := range a.reads {
		values[vocabulary[f].name] = m.value(f, r[f])
	}
	result, _, err := a.program.Eval(values)
	t := no
	if err != nil {
		t = failed
	} else if holds, ok := result.Value().(bool); ok && holds {
		t = yes
	}
	a.said[key] = t
	return t
}

// value is the value of a fact that stands at a place.
func (m *Machine) value(f fact, place uint8) any {
	switch f {
	case state:
		return m.states[place].name
	case age:
		return m.ages[place]
	case retries:
		return int64(place)
	case marks:
		set := []string{}
		for name, b := range m.markBits {
			if place&b != 0 {
				set = append(set, name)
			}
		}
		return set
	default:
		return vocabulary[f].values[place]
	}
}
