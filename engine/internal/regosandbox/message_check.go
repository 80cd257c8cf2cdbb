// SPDX-License-Identifier: Apache-2.0

package regosandbox

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/metalaw/metalaw/engine/diag"
)

// The keys that each element of a rule of form Messages has.
const (
	keyCode    = "code"
	keyMessage = "message"
)

// checkMessages finds codes and messages with which every evaluation that comes to them fails, in the rules of form Messages. It finds those
// alone of which that is sure: what is written out, in the object or under a name, and what can be no text by its type.
func checkMessages(spec Spec, compiler *ast.Compiler) diag.List {
	names := patterns{compiler: compiler}
	for _, module := range compiler.Modules {
		names.replacedIn(module)
	}
	var found diag.List
	for _, e := range spec.Entrypoints {
		if e.Form != Messages {
			continue
		}
		for _, rule := range rulesNamed(spec.Package, e.Name, compiler.Modules) {
			w := written{names: &names, rule: rule, equal: equalIn(rule.Body)}
			found = append(found, w.misspelt(e)...)
		}
	}
	return found
}

// written is what the text of a rule says about the values in it.
type written struct {
	names *patterns
	rule  *ast.Rule
	// equal are the values that variables have wherever the rule holds.
	equal map[ast.Var]*ast.Term
}

// equalIn are the variables that a body says are equal to something, whether by := or by ==: where it is not so, the body does not hold.
func equalIn(body ast.Body) map[ast.Var]*ast.Term {
	equal := map[ast.Var]*ast.Term{}
	for _, e := range body {
		if !e.IsEquality() || e.Negated || len(e.With) > 0 {
			continue
		}
		for i, operand := range e.Operands() {
			other := e.Operand(1 - i)
			_, isText := other.Value.(ast.String)
			if name, is := operand.Value.(ast.Var); is && (equal[name] == nil || isText) {
				equal[name] = other
			}
		}
	}
	return equal
}

// value follows names to what they stand for, as far as that is written out.
func (w written) value(term *ast.Term) *ast.Term {
	for range len(w.equal) { // two variables may be equal to each other
		name, is := term.Value.(ast.Var)
		if !is || w.equal[name] == nil {
			break
		}
		term = w.equal[name]
	}
	if text := w.names.writtenOut(nil, term); text != nil {
		return text
	}
	return term
}

// misspelt looks at the object that a rule adds, where it is spelt out.
func (w written) misspelt(e Entrypoint) diag.List {
	if w.rule.Head.Key == nil {
		return nil
	}
	object, is := w.value(w.rule.Head.Key).Value.(ast.Object)
	if !is {
		return nil
	}
	var found diag.List
	for _, name := range append([]string{keyCode, keyMessage}, e.Fields...) {
		given := object.Get(ast.StringTerm(name))
		if given == nil {
			continue
		}
		value := w.value(given)
		why, hint := w.misfit(name, value)
		if why == "" {
			continue
		}
		at := cmp.Or(value.Location, given.Location, w.rule.Location)
		if at.Row == 0 {
			at = w.rule.Location
		}
		found = append(found, diag.Diagnostic{Severity: diag.Error, Code: CodeEntrypoint, File: at.File, Line: at.Row, Column: at.Col,
			Rule: e.Name, Message: e.Name + " contains " + why, Hint: hint})
	}
	return found
}

// misfit says why a value cannot stand under a key of a message, and what can; both are empty where it may be that it can.
func (w written) misfit(key string, value *ast.Term) (why, hint string) {
	text, is := value.Value.(ast.String)
	switch {
	case !is && !w.couldBeText(value):
		why = fmt.Sprintf("an object whose %s is not a string: %s", key, asWritten(value))
		if key == keyCode {
			return why, codeHint("")
		}
		return why, textHint
	case !is:
		return "", ""
	case key == keyCode && !ValidCode(string(text)):
		return misspeltCode(string(text)), codeHint(string(text))
	case key == keyMessage && !validMessage(string(text)):
		return misspeltMessage(Message{Message: string(text)}), "write a sentence that says what is wrong, and what to do about it"
	}
	return "", ""
}

const textHint = `write a text in quotes, or make one of it: sprintf("it is %v", [value])`

// couldBeText asks OPA's type checker whether a value that the rule puts together may be a string. Of a body with the modifier with, by
// which anything may be something else, the checker says nothing here.
func (w written) couldBeText(value *ast.Term) bool {
	body := w.rule.Body.Copy()
	modified := false
	ast.WalkExprs(body, func(e *ast.Expr) bool {
		modified = modified || len(e.With) > 0
		return modified
	})
	if modified || !w.names.compiler.PassesTypeCheck(body) {
		return true
	}
	body.Append(ast.NewExpr([]*ast.Term{ast.RefTerm(ast.VarTerm(ast.StartsWith.Name)), value, ast.StringTerm("")}))
	return w.names.compiler.PassesTypeCheck(body)
}

// asWritten is a term as its author wrote it.
func asWritten(term *ast.Term) string {
	if term.Location != nil && len(term.Location.Text) > 0 {
		return cut(string(term.Location.Text))
	}
	return cut(term.String())
}

// codeHint suggests a code like the one that cannot be.
func codeHint(code string) string {
	like := strings.Map(func(r rune) rune {
		if strings.ContainsRune(codeLetters, r) {
			return r
		}
		return '-'
	}, strings.ToLower(code))
	if like = strings.Trim(like, "-"); !ValidCode(like) {
		like = "unfit"
	}
	return fmt.Sprintf("write a code such as %q: it is counted, and shown beside the message", like)
}
