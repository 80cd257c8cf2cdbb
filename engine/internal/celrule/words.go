// SPDX-License-Identifier: Apache-2.0

package celrule

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"go.yaml.in/yaml/v3"

	"github.com/metalaw/metalaw/engine/internal/yamlpos"
)

// Words say what is wrong with an expression, in the terms of its author.
type Words struct {
	// What is what such an expression is, for example a condition.
	What string
	// Page names the reference that lists facts and functions.
	Page string
	// Comprehensions says why there are none, and InsteadOf what to write; Shorter says how to write less.
	Comprehensions, InsteadOf, Shorter string
	// Nearest is the fact that is most like a name; empty where none is.
	Nearest func(name string) string
	// Known says what a name is that is no fact, and what to write instead; an empty message where it is nothing that is known.
	// It may be nil.
	Known func(name string) (message, hint string)
}

// macros are what CEL has for looking at many values; no expression has any of them.
var macros = []string{"all", "exists", "exists_one", "existsOne", "map", "filter", "has", "transformList", "transformMap"}

// report records what CEL says of the expression at a node. It reports only the beginning of what cannot be read, and of a
// comprehension only that it is one: the rest follows from it.
func (w Words) report(file *yamlpos.File, node *yaml.Node, rule string, errs []*cel.Error) {
	for _, e := range errs {
		if function := functionAt(node.Value, e); slices.Contains(macros, function) {
			file.ErrorIn(node, e.Location.Line(), e.Location.Column()-len(function), "cel-comprehension", rule, w.InsteadOf,
				fmt.Sprintf("%s() is not available: %s", function, w.Comprehensions))
			return
		}
	}
	for _, e := range errs {
		code, message, hint := w.explain(e, node.Value)
		file.ErrorIn(node, e.Location.Line(), e.Location.Column(), code, rule, hint, message)
		if code == codeSyntax {
			return
		}
	}
}

const codeSyntax = "cel-syntax"

// explain gives CEL's message a stable code and a hint.
func (w Words) explain(e *cel.Error, source string) (code, message, hint string) {
	switch {
	case strings.Contains(e.Message, "undeclared reference"):
		if function := functionAt(source, e); function != "" {
			return "cel-unknown-function", fmt.Sprintf("there is no function %s()", function), w.Page + " lists what an expression may use"
		}
		name := pathAt(source, e.Location.Line(), e.Location.Column())
		if w.Known != nil {
			if message, hint = w.Known(name); message != "" {
				return "cel-unknown-fact", message, hint
			}
		}
		hint = w.Page + " lists what exists"
		if near := w.Nearest(name); near != "" {
			hint = "did you mean " + near + "?"
		}
		return "cel-unknown-fact", fmt.Sprintf("there is no fact %q", name), hint
	case strings.Contains(e.Message, "no matching overload"):
		return w.typeWords(e.Message)
	case strings.Contains(e.Message, "Syntax error"):
		message, hint = syntaxWords(e.Message)
		return codeSyntax, message, hint
	case tooLong(e) != "":
		return CodeTooLong, tooLong(e), w.Shorter
	case strings.Contains(e.Message, "int literal"):
		return "cel-literal", "this is no number that can be compared with", "write a whole number of at most 18 digits"
	case strings.Contains(e.Message, "duration argument"):
		return "cel-literal", "this is no duration", "write numbers with units, such as 90m or 1h30m, of " + yamlpos.Longest + " at most"
	case strings.Contains(e.Message, "timestamp argument"):
		return "cel-literal", "this is no moment", "write it as 2006-01-02T15:04:05Z"
	case strings.Contains(e.Message, "matches argument"):
		return "cel-literal", "this is no regular expression", "write one in the syntax of RE2, with each bracket closed"
	default:
		return "cel-invalid", e.Message, "correct the expression; " + w.Page + " shows the type of each fact"
	}
}

// CodeTooLong is the code of an expression that is not read because of its size.
const CodeTooLong = "cel-too-long"

// TooLong says of the errors of CEL's parser that the expression is too long or too deep; empty where it is neither.
func TooLong(errs []*cel.Error) string {
	for _, e := range errs {
		if words := tooLong(e); words != "" {
			return words
		}
	}
	return ""
}

func tooLong(e *cel.Error) string {
	switch {
	case strings.Contains(e.Message, "size exceeds limit"):
		return fmt.Sprintf("the expression has more than %d characters", MaxLength)
	case strings.Contains(e.Message, "recursion depth"):
		return fmt.Sprintf("the expression is deeper than %d levels; each sign of a sum is one", MaxDepth)
	}
	return ""
}

var (
	operator = regexp.MustCompile(`overload for '_(.+)_' applied to '\((.+), (.+)\)'`)
	call     = regexp.MustCompile(`overload for '(.+)' applied to '(.*)'`)
)

// typeWords says which types do not go together.
func (w Words) typeWords(text string) (code, message, hint string) {
	if m := operator.FindStringSubmatch(text); m != nil {
		return "cel-type", fmt.Sprintf("%s cannot combine %s with %s", m[1], m[2], m[3]), "both sides must have the same type"
	}
	if m := call.FindStringSubmatch(text); m != nil {
		return "cel-type", fmt.Sprintf("%s cannot be used on %s", m[1], m[2]), w.Page + " shows the type of each fact"
	}
	return "cel-type", text, "both sides must have the same type"
}

var unexpected = regexp.MustCompile(`(?:extraneous|mismatched) input ('.*?') expecting`)

// syntaxWords says what the parser says, without the list of all that could stand there.
func syntaxWords(text string) (message, hint string) {
	hint = "strings stand in double quotes; combine with &&, || and !"
	if strings.Contains(text, "token recognition error at: '= ") || strings.Contains(text, "token recognition error at: '=\"") {
		return "a single = compares nothing", "write =="
	}
	if m := unexpected.FindStringSubmatch(text); m != nil {
		if m[1] == "'<EOF>'" {
			return "the expression ends where something is missing", "complete it, or close what was opened"
		}
		return m[1] + " cannot stand here", hint
	}
	return text, hint
}

var functionName = regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*$`)

// functionAt is the function whose call an error is about: CEL places it at the bracket. Empty where it is about no call.
func functionAt(source string, e *cel.Error) string {
	before, after := around(source, e.Location.Line(), e.Location.Column())
	if !strings.HasPrefix(after, "(") {
		return ""
	}
	return functionName.FindString(before)
}

var path = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*`)

// pathAt is the dotted name at a place in an expression, because CEL names only its first part.
func pathAt(source string, line, column int) string {
	_, after := around(source, line, column)
	return path.FindString(after)
}

// around is the line of a place, up to the place and from it on; both are empty where there is no such place.
func around(source string, line, column int) (before, after string) {
	lines := strings.Split(source, "\n")
	if line < 1 || line > len(lines) {
		return "", ""
	}
	text := []rune(lines[line-1])
	if column < 0 || column > len(text) {
		return "", ""
	}
	return string(text[:column]), string(text[column:])
}
