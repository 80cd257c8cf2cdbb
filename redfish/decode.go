// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The types of this file decode one JSON value and never fail: a value of an unexpected type reads as absent. BMCs send
// a number where the schema says string, a string where it says number, and null everywhere; one such field must not
// hide the power state beside it.

// as decodes a value, and says false where it is of another type.
func as[T any](raw []byte) (T, bool) {
	var value T
	err := json.Unmarshal(raw, &value)
	return value, err == nil
}

// text is a JSON string; numbers are taken literally, anything else is empty.
type text string

func (t *text) UnmarshalJSON(raw []byte) error {
	*t = ""
	if s, ok := as[string](raw); ok {
		*t = text(strings.TrimSpace(s))
	} else if n, ok := as[json.Number](raw); ok {
		*t = text(n)
	}
	return nil
}

// number is a JSON number; a string that holds one is accepted, anything else is 0.
type number float64

func (n *number) UnmarshalJSON(raw []byte) error {
	*n = 0
	t, _ := as[text](raw) // no text is no number either
	// NaN and infinities are strings that ParseFloat would take.
	if f, err := strconv.ParseFloat(string(t), 64); err == nil && f-f == 0 {
		*n = number(f)
	}
	return nil
}

// flag is a JSON boolean that knows whether it was there.
type flag struct {
	Value, Present bool
}

func (f *flag) UnmarshalJSON(raw []byte) error {
	*f = flag{}
	switch strings.ToLower(strings.Trim(string(raw), `"`)) {
	case "true":
		*f = flag{Value: true, Present: true}
	case "false":
		*f = flag{Present: true}
	}
	return nil
}

// object is a nested object that knows whether it was there.
type object[T any] struct {
	Value   T
	Present bool
}

func (o *object[T]) UnmarshalJSON(raw []byte) error {
	*o = object[T]{}
	if !isObject(raw) {
		return nil
	}
	o.Present = json.Unmarshal(raw, &o.Value) == nil
	return nil
}

// list is an array that knows whether it was there; members of a wrong type read as zero values.
type list[T any] struct {
	Values  []T
	Present bool
}

func (l *list[T]) UnmarshalJSON(raw []byte) error {
	*l = list[T]{}
	members, ok := as[[]json.RawMessage](raw)
	if !ok || members == nil {
		return nil
	}
	l.Present = true
	l.Values = make([]T, len(members))
	for i, member := range members {
		if value, ok := as[T](member); ok {
			l.Values[i] = value
		}
	}
	return nil
}

// link is a reference to a resource: {"@odata.id": "..."}; a bare string is accepted.
type link string

func (l *link) UnmarshalJSON(raw []byte) error {
	*l = ""
	var ref struct {
		ID text `json:"@odata.id"`
	}
	if isObject(raw) && json.Unmarshal(raw, &ref) == nil {
		*l = link(ref.ID)
		return nil
	}
	var t text
	if t.UnmarshalJSON(raw) == nil && strings.HasPrefix(string(t), "/") {
		*l = link(t)
	}
	return nil
}

// isObject reports whether raw begins as a JSON object does.
func isObject(raw []byte) bool {
	raw = bytes.TrimLeft(raw, " \t\r\n")
	return len(raw) > 0 && raw[0] == '{'
}

// words returns the non-empty texts of a list as strings.
func words(l list[text]) []string {
	var out []string
	for _, t := range l.Values {
		if t != "" {
			out = append(out, string(t))
		}
	}
	return out
}

// clip makes text from a BMC fit for a condition or a log line: one line, printable, at most limit bytes.
func clip(s string, limit int) string {
	s = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(s, "?"), func(r rune) bool { return r < ' ' || r == 0x7f }), " ")
	if len(s) <= limit {
		return s
	}
	cut := limit
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "..."
}
