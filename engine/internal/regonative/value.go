// SPDX-License-Identifier: Apache-2.0

package regonative

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

type kind uint8

const (
	isNull kind = iota
	isBool
	isInt
	isText
	// isTexts and isCounts are maps of the input.
	isTexts
	isCounts
	// isOther is what only OPA's functions handle: other numbers, arrays, sets, objects.
	isOther
)

// Value is a value of Rego. The zero Value is null.
type Value struct {
	kind kind
	// n is the number, or 1 for true.
	n int64
	s string
	// more holds the map, or the ast.Value.
	more any
}

// Bool is a boolean.
func Bool(b bool) Value {
	if b {
		return Value{kind: isBool, n: 1}
	}
	return Value{kind: isBool}
}

// Int is a whole number.
func Int(n int64) Value { return Value{kind: isInt, n: n} }

// Text is a string.
func Text(s string) Value { return Value{kind: isText, s: s} }

// Texts is an object of strings. The map is not copied and must not change.
func Texts(m map[string]string) Value { return Value{kind: isTexts, more: m} }

// Counts is an object of whole numbers. The map is not copied and must not change.
func Counts(m map[string]int64) Value { return Value{kind: isCounts, more: m} }

// Of takes a value of OPA. A whole number that fits is one here only where it is written as one, because what formats numbers
// goes by their text.
func Of(v ast.Value) Value {
	switch v := v.(type) {
	case ast.Null:
		return Value{}
	case ast.Boolean:
		return Bool(bool(v))
	case ast.String:
		return Text(string(v))
	case ast.Number:
		if n, err := strconv.ParseInt(string(v), 10, 64); err == nil && strconv.FormatInt(n, 10) == string(v) {
			return Int(n)
		}
	}
	return Value{kind: isOther, more: v}
}

// Term is the value as OPA has it.
func (v Value) Term() *ast.Term {
	switch v.kind {
	case isNull:
		return ast.NullTerm()
	case isBool:
		return ast.BooleanTerm(v.n != 0)
	case isInt:
		return ast.IntNumberTerm(int(v.n))
	case isText:
		return ast.StringTerm(v.s)
	case isTexts:
		return objectOf(v.more.(map[string]string), ast.StringTerm)
	case isCounts:
		return objectOf(v.more.(map[string]int64), func(n int64) *ast.Term { return ast.IntNumberTerm(int(n)) })
	default:
		return ast.NewTerm(v.more.(ast.Value))
	}
}

func objectOf[V any](m map[string]V, term func(V) *ast.Term) *ast.Term {
	pairs := make([][2]*ast.Term, 0, len(m))
	for key, value := range m {
		pairs = append(pairs, [2]*ast.Term{ast.StringTerm(key), term(value)})
	}
	return ast.ObjectTerm(pairs...)
}

// IsFalse says whether the value is false, with which an expression does not hold.
func (v Value) IsFalse() bool { return v.kind == isBool && v.n == 0 }

// Truth returns a boolean; ok is false for a value of another type.
func (v Value) Truth() (value, ok bool) { return v.n != 0, v.kind == isBool }

// Text returns a string; ok is false for a value of another type.
func (v Value) Text() (value string, ok bool) { return v.s, v.kind == isText }

// Number returns a whole number; ok is false for any other value, also for other numbers.
func (v Value) Number() (value int64, ok bool) { return v.n, v.kind == isInt }

// compare orders values as Rego does.
func compare(a, b Value) int {
	if a.kind == b.kind {
		switch a.kind {
		case isNull:
			return 0
		case isBool, isInt:
			return cmp.Compare(a.n, b.n)
		case isText:
			return strings.Compare(a.s, b.s)
		case isTexts, isCounts, isOther:
			// as OPA compares them
		}
	}
	return ast.Compare(a.Term().Value, b.Term().Value)
}

func equal(a, b Value) bool {
	if a.kind == b.kind && a.kind <= isText {
		return a.n == b.n && a.s == b.s
	}
	if a.kind < isOther && b.kind < isOther && (a.kind <= isText || b.kind <= isText) {
		return false // of two types, and neither is a number that is written in another way
	}
	return compare(a, b) == 0
}

// At follows a key, as a reference does.
func (v Value) At(key Value) (Value, bool) {
	switch v.kind {
	case isTexts:
		s, ok := v.more.(map[string]string)[key.s]
		return Text(s), ok && key.kind == isText
	case isCounts:
		n, ok := v.more.(map[string]int64)[key.s]
		return Int(n), ok && key.kind == isText
	case isOther:
	default:
		return Value{}, false
	}
	var found *ast.Term
	switch in := v.more.(type) {
	case ast.Object:
		found = in.Get(key.Term())
	case *ast.Array:
		found = in.Get(key.Term())
	case ast.Set:
		if in.Contains(key.Term()) {
			return key, true
		}
	}
	if found == nil {
		return Value{}, false
	}
	return Of(found.Value), true
}

// each calls do for every key and value, as a reference with a new variable does. The order is none that Rego promises.
func (v Value) each(do func(key, value Value)) {
	switch v.kind {
	case isTexts:
		for key, value := range v.more.(map[string]string) {
			do(Text(key), Text(value))
		}
	case isCounts:
		for key, value := range v.more.(map[string]int64) {
			do(Text(key), Int(value))
		}
	case isOther:
		switch in := v.more.(type) {
		case ast.Object:
			in.Foreach(func(key, value *ast.Term) { do(Of(key.Value), Of(value.Value)) })
		case *ast.Array:
			for i := range in.Len() {
				do(Int(int64(i)), Of(in.Elem(i).Value))
			}
		case ast.Set:
			in.Foreach(func(element *ast.Term) { do(Of(element.Value), Of(element.Value)) })
		}
	case isNull, isBool, isInt, isText:
		// has no elements
	}
}

// AppendKey appends bytes that are the same for the same value, and that no other value begins with.
func (v Value) AppendKey(b []byte) []byte {
	b = append(b, byte(v.kind))
	switch v.kind {
	case isBool, isInt:
		return binary.AppendVarint(b, v.n)
	case isText:
		return appendText(b, v.s)
	case isTexts:
		return appendMap(b, v.more.(map[string]string), appendText)
	case isCounts:
		return appendMap(b, v.more.(map[string]int64), binary.AppendVarint)
	case isOther:
		return appendText(b, v.more.(ast.Value).String())
	case isNull:
	}
	return b
}

func appendMap[V any](b []byte, m map[string]V, value func([]byte, V) []byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(m)))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		b = value(appendText(b, key), m[key])
	}
	return b
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}
