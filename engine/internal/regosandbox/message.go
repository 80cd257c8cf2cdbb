// SPDX-License-Identifier: Apache-2.0

package regosandbox

import (
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// Bounds of what a rule may say, so that no policy can fill a condition, a metric or an event.
const (
	MaxMessages = 32
	maxCode     = 63
	MaxMessage  = 1024
)

// The keys that each element of a rule of form Messages has.
const (
	keyCode    = "code"
	keyMessage = "message"
)

// Message is one element of a rule of form Messages.
type Message struct {
	// Code is lower-case letters, digits and dashes.
	Code, Message string
	// Fields holds the optional keys that were set.
	Fields map[string]string
}

// Messages reads the value of a rule of form Messages, sorted by code and message. A nil value has none.
func (m *Module) Messages(rule string, value ast.Value) ([]Message, error) {
	if value == nil {
		return nil, nil
	}
	set, ok := value.(ast.Set)
	if !ok {
		return nil, m.Misshapen(rule, "is not a set; write `%s contains {...}`", rule)
	}
	if set.Len() > MaxMessages {
		return nil, m.Misshapen(rule, "has %d elements and at most %d are read", set.Len(), MaxMessages)
	}
	var out []Message
	for _, term := range set.Slice() {
		message, err := m.message(rule, term)
		if err != nil {
			return nil, err
		}
		out = append(out, message)
	}
	slices.SortFunc(out, func(a, b Message) int {
		if c := strings.Compare(a.Code, b.Code); c != 0 {
			return c
		}
		return strings.Compare(a.Message, b.Message)
	})
	return out, nil
}

func (m *Module) message(rule string, term *ast.Term) (Message, error) {
	object, ok := term.Value.(ast.Object)
	if !ok {
		return Message{}, m.Misshapen(rule, "contains something else than an object with code and message: %s", cut(term.String()))
	}
	var out Message
	var failure error
	object.Foreach(func(key, value *ast.Term) {
		name, _ := key.Value.(ast.String)
		text, ok := value.Value.(ast.String)
		switch {
		case !ok:
			failure = m.Misshapen(rule, "contains an object whose %s is not a string: %s", cut(strings.Trim(key.String(), `"`)), cut(value.String()))
		case name == keyCode:
			out.Code = string(text)
		case name == keyMessage:
			out.Message = string(text)
		case slices.Contains(m.fields(rule), string(name)):
			if out.Fields == nil {
				out.Fields = map[string]string{}
			}
			out.Fields[string(name)] = string(text)
		default:
			failure = m.Misshapen(rule, "contains an object with the unknown key %s", cut(key.String()))
		}
	})
	if failure == nil && !ValidCode(out.Code) {
		failure = m.Misshapen(rule, "contains %s", misspeltCode(out.Code))
	}
	if failure == nil && !validMessage(out.Message) {
		failure = m.Misshapen(rule, "contains %s", misspeltMessage(out))
	}
	return out, failure
}

func (m *Module) fields(rule string) []string {
	for _, e := range m.spec.Entrypoints {
		if e.Name == rule {
			return e.Fields
		}
	}
	return nil
}

// codeLetters are all that a code is made of.
const codeLetters = "abcdefghijklmnopqrstuvwxyz0123456789-"

// ValidCode says whether a rule may say so: lower-case letters, digits and dashes.
func ValidCode(code string) bool {
	return code != "" && len(code) <= maxCode && strings.Trim(code, codeLetters) == "" &&
		code[0] != '-' && code[len(code)-1] != '-'
}

func misspeltCode(code string) string {
	return fmt.Sprintf("the code %q; a code is 1 to %d lower-case letters, digits and dashes", cut(code), maxCode)
}

func validMessage(message string) bool { return message != "" && len(message) <= MaxMessage }

// misspeltMessage says what is wrong with the message, and under which code it is where that is known.
func misspeltMessage(m Message) string {
	under := ""
	if m.Code != "" {
		under = " for code " + m.Code
	}
	return fmt.Sprintf("a message of %d bytes%s; a message has 1 to %d", len(m.Message), under, MaxMessage)
}

func cut(s string) string {
	if len(s) > 60 {
		return strings.ToValidUTF8(s[:60], "") + "..."
	}
	return s
}
