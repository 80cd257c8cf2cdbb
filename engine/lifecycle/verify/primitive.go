// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"fmt"
	"time"

	"github.com/metalaw/metalaw/engine"
)

// primitiveKind is what a primitive asks.
type primitiveKind uint8

const (
	// isTrue asks a boolean fact.
	isTrue primitiveKind = iota
	// isWord asks whether an enum or a string has a word.
	isWord
	// isIn asks whether a set has a word.
	isIn
	// isCompared compares numbers or lengths of time.
	isCompared
	// isOpaque is an expression that is not taken apart.
	isOpaque
)

// comparison is one of the three to which all others can be brought.
type comparison uint8

const (
	less comparison = iota
	lessOrEqual
	equal
)

func (c comparison) holds(a, b int64) bool {
	switch c {
	case less:
		return a < b
	case lessOrEqual:
		return a <= b
	default:
		return a == b
	}
}

// operand is a fact by its position, or a literal where that is negative.
type operand struct {
	fact    int
	literal int64
}

func (o operand) value(v engine.Values) int64 {
	if o.fact < 0 {
		return o.literal
	}
	return numberOf(v[o.fact])
}

// numberOf is the number in an Int, a Duration or an Age.
func numberOf(v engine.Value) int64 {
	if v.Kind() == engine.Int {
		return v.Int()
	}
	return int64(v.Duration())
}

// primitive is a question about facts that is either true or false, and for an opaque one perhaps an error.
type primitive struct {
	kind primitiveKind
	fact int
	// word is the word asked for, or the source of an opaque expression.
	word        string
	op          comparison
	left, right operand
	// reads, literals and canFail are of an opaque expression.
	reads    []int
	literals []any
	canFail  bool

	// variable is true where the answer is not that of the quiet facts, which is what flipped says.
	variable int
	flipped  bool
	// failure is the variable that says that an opaque expression is an error; -1 where it cannot be one.
	failure int
}

func (p *primitive) key() string {
	return fmt.Sprintf("%d/%d/%d/%v/%v/%s", p.kind, p.fact, p.op, p.left, p.right, p.word)
}

// first is the position by which primitives are ordered, so that what depends on each other stands together.
func (p *primitive) first() int {
	switch p.kind {
	case isCompared:
		return p.left.fact
	case isOpaque:
		return 1 << 30
	default:
		return p.fact
	}
}

// holds answers a primitive that is not opaque.
func (p *primitive) holds(v engine.Values) bool {
	switch p.kind {
	case isTrue:
		return v[p.fact].Bool()
	case isWord:
		return v[p.fact].Text() == p.word
	case isIn:
		return v[p.fact].Has(p.word)
	default:
		return p.op.holds(p.left.value(v), p.right.value(v))
	}
}

// ordered makes a value of an ordered kind.
func ordered(kind engine.Kind, n int64) engine.Value {
	switch kind {
	case engine.Int:
		return engine.IntValue(n)
	case engine.Age:
		return engine.AgeValue(time.Duration(n))
	default:
		return engine.DurationValue(time.Duration(n))
	}
}
