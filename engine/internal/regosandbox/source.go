// SPDX-License-Identifier: Apache-2.0

package regosandbox

import (
	"fmt"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/metalaw/metalaw/engine/diag"
)

// What Rego may be before anything is made of it: the parser and the compiler cannot be stopped, and some of their stages take a time that
// grows with the square of what they are given, or faster.
const (
	// maxFile and maxSource bound one file and all files of Rego together, in bytes. The largest of the shipped bundles has 4 KiB.
	maxFile   = 64 << 10
	maxSource = 256 << 10
	// maxRules is how many rules one file may have, and maxExpressions how many expressions one rule.
	maxRules       = 500
	maxExpressions = 400
	// maxTerms is how many terms one file may have.
	maxTerms = 16_000
	// maxFindings is how many mistakes of one compilation are shown.
	maxFindings = 64
)

// sourceHint is what to do about Rego that is too large.
const sourceHint = "a policy holds rules, not data: put what differs between servers into their labels, and split what is left"

// tooLarge is the finding about a file that is not even parsed; nil where it may be.
func tooLarge(file string, text []byte, before int) *diag.Diagnostic {
	d := diag.Diagnostic{Severity: diag.Error, Code: CodeLimit, File: file, Hint: sourceHint}
	switch {
	case len(text) > maxFile:
		d.Message = fmt.Sprintf("the file has %d bytes, and one file of Rego may have %d", len(text), maxFile)
		return &d
	case before+len(text) > maxSource:
		d.Message = fmt.Sprintf("the Rego of the bundle has more than %d bytes", maxSource)
		return &d
	}
	if at, deep := deepest(text); deep {
		d.Line, d.Column = at.line, at.column
		d.Message = fmt.Sprintf("brackets are nested more than %d deep", maxNesting)
		d.Hint = "give what is inside a name of its own with :="
		return &d
	}
	return nil
}

// overgrown are the findings about a file that is parsed, and that is not compiled; at most one for each rule.
func overgrown(file string, module *ast.Module) diag.List {
	if len(module.Rules) > maxRules {
		return diag.List{{Severity: diag.Error, Code: CodeLimit, File: file, Line: 1, Column: 1, Hint: sourceHint,
			Message: fmt.Sprintf("the file has %d rules and may have %d", len(module.Rules), maxRules)}}
	}
	var found diag.List
	whole := extent{}
	for _, rule := range module.Rules {
		w := extent{}
		ast.NewBeforeAfterVisitor(w.before, w.after).Walk(rule)
		whole.terms += w.terms
		d := diag.Diagnostic{Severity: diag.Error, Code: CodeLimit, File: file, Rule: rule.Head.Ref().GroundPrefix().String(),
			Line: rule.Loc().Row, Column: rule.Loc().Col, Hint: "split it into rules of their own"}
		switch {
		case w.first != nil:
			d.Line, d.Column, d.Message, d.Hint = w.first.Row, w.first.Col, w.says, w.remedy
		case w.expressions > maxExpressions:
			d.Message = fmt.Sprintf("the rule has %d expressions and may have %d", w.expressions, maxExpressions)
		default:
			continue
		}
		found = append(found, d)
	}
	if whole.terms > maxTerms {
		found = append(found, diag.Diagnostic{Severity: diag.Error, Code: CodeLimit, File: file, Line: 1, Column: 1, Hint: sourceHint,
			Message: fmt.Sprintf("the file has %d terms and may have %d", whole.terms, maxTerms)})
	}
	if len(found) > maxFindings {
		found = append(found[:maxFindings], andMore(found[maxFindings-1]))
	}
	return found
}

// extent is how large a rule is.
type extent struct {
	expressions, terms int
	// depth is how many terms are around the present one, and closures how many comprehensions, every and template strings.
	depth, closures int
	// first is the first place that is nested too deep, or is a number that is too long; says is what is wrong, remedy what to do.
	first        *ast.Location
	says, remedy string
}

func (w *extent) before(node any) bool {
	switch n := node.(type) {
	case *ast.Expr:
		w.expressions++
	case *ast.Rule: // an else lies within the rule before it
		w.depth++
	case *ast.Term:
		w.terms++
		w.depth++
		if w.first == nil && isNumber(n) && manyDigits(n) {
			w.note(n.Location, fmt.Sprintf("a number has more than %d digits", maxDigits), BoundHint)
		}
		if w.depth > 2*maxNesting { // a call in a bracket is two terms
			w.note(n.Location, fmt.Sprintf("an expression is nested more than %d deep", maxNesting),
				"give a part of it a name with :=, or use sum or concat for what is strung together")
		}
	}
	if at := closure(node); at != nil {
		w.closures++
		if w.closures > maxClosures {
			w.note(at, fmt.Sprintf("comprehensions, every and template strings are nested more than %d deep", maxClosures),
				"make a rule of the inner ones, and use it by its name")
		}
	}
	return false
}

func (w *extent) after(node any) {
	switch node.(type) {
	case *ast.Term, *ast.Rule:
		w.depth--
	}
	if closure(node) != nil {
		w.closures--
	}
}

func (w *extent) note(at *ast.Location, says, remedy string) {
	if w.first == nil && at != nil {
		w.first, w.says, w.remedy = at, says, remedy
	}
}

// closure is where something stands that has a scope or a text of its own; nil for anything else.
func closure(node any) *ast.Location {
	switch n := node.(type) {
	case *ast.Every:
		return n.Location
	case *ast.Term:
		switch n.Value.(type) {
		case *ast.ArrayComprehension, *ast.SetComprehension, *ast.ObjectComprehension, *ast.TemplateString:
			return n.Location
		}
	}
	return nil
}

func isNumber(t *ast.Term) bool {
	_, ok := t.Value.(ast.Number)
	return ok
}
