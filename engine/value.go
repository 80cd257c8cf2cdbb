// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Kind is the type of a fact or of an effect's parameter.
type Kind uint8

const (
	// Bool is true or false.
	Bool Kind = iota + 1
	// Int is a whole number.
	Int
	// String is any text.
	String
	// Enum is one of a closed set of words; comparing it with a word outside the set is a compile error.
	Enum
	// Duration is a length of time that does not change by itself, such as a budget.
	Duration
	// Age is a length of time that grows by itself. It may only be compared with a duration literal, so that the
	// engine can tell when the comparison will change.
	Age
	// Set is an unordered set of words.
	Set
)

var kindNames = map[Kind]string{
	Bool: "bool", Int: "int", String: "string", Enum: "enum", Duration: "duration", Age: "age", Set: "set",
}

// String names the kind as the reference page does.
func (k Kind) String() string {
	if name, ok := kindNames[k]; ok {
		return name
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// Value is the value of one fact. The zero Value is Missing: a rule that reads it halts.
type Value struct {
	kind Kind
	num  int64
	text string
	set  []string
}

// BoolValue makes a Value of kind Bool.
func BoolValue(b bool) Value {
	if b {
		return Value{kind: Bool, num: 1}
	}
	return Value{kind: Bool}
}

// IntValue makes a Value of kind Int.
func IntValue(n int64) Value { return Value{kind: Int, num: n} }

// StringValue makes a Value of kind String.
func StringValue(s string) Value { return Value{kind: String, text: s} }

// EnumValue makes a Value of kind Enum. Whether the word belongs to the set is checked where the fact is made.
func EnumValue(s string) Value { return Value{kind: Enum, text: s} }

// DurationValue makes a Value of kind Duration.
func DurationValue(d time.Duration) Value { return Value{kind: Duration, num: int64(d)} }

// AgeValue makes a Value of kind Age.
func AgeValue(d time.Duration) Value { return Value{kind: Age, num: int64(d)} }

// SetValue makes a Value of kind Set. The slice is not copied and must not change afterwards.
func SetValue(words []string) Value { return Value{kind: Set, set: words} }

// Kind is the kind of the value, or 0 where it is Missing.
func (v Value) Kind() Kind { return v.kind }

// Missing says that the value was never observed.
func (v Value) Missing() bool { return v.kind == 0 }

// Bool is the value of a Bool; false for every other kind.
func (v Value) Bool() bool { return v.kind == Bool && v.num != 0 }

// Int is the value of an Int; 0 for every other kind.
func (v Value) Int() int64 {
	if v.kind != Int {
		return 0
	}
	return v.num
}

// Text is the value of a String or an Enum; empty for every other kind.
func (v Value) Text() string { return v.text }

// Duration is the value of a Duration or an Age; 0 for every other kind.
func (v Value) Duration() time.Duration {
	if v.kind != Duration && v.kind != Age {
		return 0
	}
	return time.Duration(v.num)
}

// Set is the words of a Set; nil for every other kind.
func (v Value) Set() []string { return v.set }

// Has says whether a Set holds the word.
func (v Value) Has(word string) bool { return slices.Contains(v.set, word) }

// String renders the value for traces and decision records.
func (v Value) String() string {
	switch v.kind {
	case Bool:
		return fmt.Sprintf("%t", v.num != 0)
	case Int:
		return fmt.Sprintf("%d", v.num)
	case String, Enum:
		return fmt.Sprintf("%q", v.text)
	case Duration, Age:
		return time.Duration(v.num).String()
	case Set:
		return "[" + strings.Join(v.set, " ") + "]"
	default:
		return "missing"
	}
}
