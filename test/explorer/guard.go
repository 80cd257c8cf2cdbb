// SPDX-License-Identifier: Apache-2.0

package explorer

import (
	"fmt"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
)

// guard is a combination of definitions.
type guard struct {
	op    guardOp
	atom  int
	parts []*guard
}

type guardOp uint8

const (
	isAtom guardOp = iota
	isNot
	isAnd
	isOr
	isTrue
	isFalse
)

// guardOf reads the text of a guard; empty text always holds.
func (m *Machine) guardOf(text string) (*guard, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // no guard always holds, and that is no error
	}
	parsed, issues := m.env.Parse(text)
	if issues.Err() != nil {
		return nil, fmt.Errorf("guard %q: %w", text, issues.Err())
	}
	g, err := m.guardFrom(parsed.NativeRep().Expr())
	if err != nil {
		return nil, fmt.Errorf("guard %q: %w", text, err)
	}
	return g, nil
}

func (m *Machine) guardFrom(e ast.Expr) (*guard, error) {
	switch e.Kind() {
	case ast.IdentKind:
		i, ok := m.atomNames[e.AsIdent()]
		if !ok {
			return nil, fmt.Errorf("there is no definition %q", e.AsIdent())
		}
		return &guard{op: isAtom, atom: i}, nil
	case ast.LiteralKind:
		if holds, ok := e.AsLiteral().Value().(bool); ok && holds {
			return &guard{op: isTrue}, nil
		}
		return &guard{op: isFalse}, nil
	case ast.CallKind:
		op, ok := map[string]guardOp{operators.LogicalNot: isNot, operators.LogicalAnd: isAnd, operators.LogicalOr: isOr}[e.AsCall().FunctionName()]
		if !ok {
			return nil, fmt.Errorf("%s does not combine definitions", e.AsCall().FunctionName())
		}
		g := &guard{op: op}
		for _, a := range e.AsCall().Args() {
			part, err := m.guardFrom(a)
			if err != nil {
				return nil, err
			}
			g.parts = append(g.parts, part)
		}
		return g, nil
	default:
		return nil, fmt.Errorf("a guard combines definitions only")
	}
}

// holds is false also where a definition cannot be evaluated; e.failed tells that.
func (g *guard) holds(e *evaluation) bool {
	if g == nil {
		return true
	}
	switch g.op {
	case isAtom:
		return e.atom(g.atom)
	case isNot:
		return !g.parts[0].holds(e)
	case isAnd:
		for _, p := range g.parts {
			if !p.holds(e) {
				return false
			}
		}
		return true
	case isOr:
		for _, p := range g.parts {
			if p.holds(e) {
				return true
			}
		}
		return false
	case isTrue:
		return true
	default:
		return false
	}
}
