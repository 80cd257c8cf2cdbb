// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"slices"
	"strings"

	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"go.yaml.in/yaml/v3"

	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/internal/celrule"
	"github.com/metalaw/metalaw/engine/internal/yamlpos"
	"github.com/metalaw/metalaw/engine/spelling"
)

// evaluate returns the atom's value, or the error that kept it from having one.
func (a *Expression) evaluate(in *activation) (bool, error) {
	if a.Native != nil {
		if t := a.Native(in.facts); t != celrule.Failed {
			return t == celrule.True, nil
		}
	}
	return a.interpret(in)
}

// interpret evaluates by CEL.
func (a *Expression) interpret(in *activation) (bool, error) {
	value, err := a.Interpret(in)
	if err != nil {
		return false, fmt.Errorf("%s (%s): %w", a.Name, a.Source, err)
	}
	return value, nil
}

// atomCompiler turns definitions into atoms and reports what is wrong with them.
type atomCompiler struct {
	*language
	file *yamlpos.File
	// defined are the names of all definitions: one that is used within another is no misspelt fact.
	defined map[string]bool
	// marks are those that a server may have; nil where no bundle is asked, as for the safety rules.
	marks map[string]bool
	// states are those that a server may be in, and stateHint what to say of a name that is none; nil likewise.
	states    map[string]bool
	stateHint func(meant string) string
}

// compile returns nil when the expression is not usable; what is wrong has then been recorded at node.
func (c *atomCompiler) compile(name string, node *yaml.Node) *Expression {
	if c.file.Told(node) {
		return nil
	}
	w := &atomWalk{compiler: c, atom: &Expression{Name: name}, node: node, agesAllowed: map[int64]bool{}}
	rules := celrule.Compiler[engine.Facts]{File: c.file, Env: c.env, Words: c.words(), Most: maxCost, Source: namesOf(c.vocabulary),
		Inspect: w.inspect}
	rule := rules.Compile(name, node)
	if rule == nil {
		return nil
	}
	w.atom.Rule = *rule
	return w.atom
}

// words are those that report mistakes in a definition.
func (c *atomCompiler) words() celrule.Words {
	return celrule.Words{
		What:           "definition",
		Page:           "the reference page of facts",
		Comprehensions: "a definition looks at single facts, so that its cost is bounded",
		InsteadOf:      `ask for one mark with marked("Dirty"), and for any other word with in`,
		Shorter:        "split it into several definitions",
		Nearest:        c.nearest,
		Known:          c.known,
	}
}

// known explains a name that is no fact and yet means something: another definition, or a word that lacks its quotes.
func (c *atomCompiler) known(name string) (message, hint string) {
	if c.defined[name] {
		return fmt.Sprintf("%s is a definition, and a definition looks at facts only", name),
			"write its expression out here, or combine both names in the guard"
	}
	for _, f := range c.vocabulary.Facts {
		if f.Kind == engine.Enum && slices.Contains(f.Values, name) {
			return fmt.Sprintf("there is no fact %q", name), fmt.Sprintf("words stand in quotes: write %q", name)
		}
	}
	return "", ""
}

// nearest returns the fact of the same group, or of the same field in another group, that comes closest to name.
func (c *atomCompiler) nearest(name string) string {
	group, field := splitFact(name)
	best, bestDistance := "", 4
	for _, f := range c.vocabulary.Facts {
		g, fld := splitFact(f.Name)
		distance := spelling.Distance(field, fld)
		if field == "" {
			distance = spelling.Distance(group, fld)
		} else if g != group {
			distance++
		}
		if distance < bestDistance {
			best, bestDistance = f.Name, distance
		}
	}
	return best
}

// atomWalk looks further into one definition.
type atomWalk struct {
	compiler    *atomCompiler
	ast         *celast.AST
	atom        *Expression
	node        *yaml.Node
	agesAllowed map[int64]bool
	flawed      bool
}

// inspect walks the checked expression: it collects the facts it reads, compares enums with words of their set only, and
// holds ages to comparisons with a literal.
func (w *atomWalk) inspect(_ string, _ *yaml.Node, checked *celast.AST) bool {
	w.ast = checked
	celast.PreOrderVisit(checked.Expr(), celast.NewExprVisitor(w.visit))
	slices.Sort(w.atom.Facts)
	w.atom.Facts = slices.Compact(w.atom.Facts)
	return !w.flawed
}

func (w *atomWalk) fact(e celast.Expr) (int, engine.FactType, bool) {
	return FactOf(w.compiler.vocabulary, w.ast, e)
}

// FactOf is the fact that an expression names, with its position.
func FactOf(v *engine.Vocabulary, ast *celast.AST, e celast.Expr) (int, engine.FactType, bool) {
	i, ok := v.Index(celrule.Name(ast, e))
	if !ok {
		return 0, engine.FactType{}, false
	}
	return i, v.Facts[i], true
}

func (w *atomWalk) visit(e celast.Expr) {
	if i, f, ok := w.fact(e); ok {
		w.atom.Facts = append(w.atom.Facts, i)
		if f.Kind == engine.Age && !w.agesAllowed[e.ID()] {
			w.report(e, "cel-age", fmt.Sprintf("%s changes with time and may only be compared with a duration literal", f.Name),
				fmt.Sprintf(`write %s >= duration("5m")`, f.Name))
		}
		return
	}
	if e.Kind() != celast.CallKind {
		return
	}
	call := e.AsCall()
	if len(call.Args()) == 2 { // sets.contains and its kin; a list on either side
		w.marksAsked(call.Args()[0], call.Args()[1])
		w.marksAsked(call.Args()[1], call.Args()[0])
	}
	celrule.EachEquality(call, w.enumComparison)
	switch call.FunctionName() {
	case operators.In:
		w.markAsked(call.Args()[0], call.Args()[1])
	case operators.Greater, operators.GreaterEquals, operators.Less, operators.LessEquals:
		w.ageComparison(call.Args()[0], call.Args()[1])
		w.ageComparison(call.Args()[1], call.Args()[0])
	}
}

// enumComparison catches a word that an enum never has, and the name of a state that there is not.
func (w *atomWalk) enumComparison(factSide, wordSide celast.Expr) {
	_, f, ok := w.fact(factSide)
	word, isLiteral := celrule.StringLiteral(wordSide)
	if c := w.compiler; ok && isLiteral && c.states != nil && f.Name == engine.FactState && !c.states[word] {
		w.report(wordSide, "state-unknown", fmt.Sprintf("there is no state %q", word), c.stateHint(word))
		return
	}
	if !ok || !isLiteral || f.Kind != engine.Enum || slices.Contains(f.Values, word) {
		return
	}
	w.report(wordSide, "cel-enum", fmt.Sprintf("%s is never %q", f.Name, word), "it is one of "+strings.Join(f.Values, ", "))
}

// marksAsked is markAsked for each literal of a list.
func (w *atomWalk) marksAsked(listSide, factSide celast.Expr) {
	if listSide.Kind() != celast.ListKind {
		return
	}
	for _, element := range listSide.AsList().Elements() {
		w.markAsked(element, factSide)
	}
}

// markAsked catches marked("Drity"): a mark that nothing ever sets. The macro is a question for a member of the marks here,
// however it was written.
func (w *atomWalk) markAsked(wordSide, factSide celast.Expr) {
	_, f, ok := w.fact(factSide)
	word, isLiteral := celrule.StringLiteral(wordSide)
	marks := w.compiler.marks
	if !ok || !isLiteral || marks == nil || f.Name != engine.FactMarks || marks[word] {
		return
	}
	w.report(wordSide, "mark-unknown", fmt.Sprintf("no state sets the mark %q", word), markHint(word, marks))
}

func (w *atomWalk) ageComparison(factSide, literalSide celast.Expr) {
	i, f, ok := w.fact(factSide)
	if !ok || f.Kind != engine.Age {
		return
	}
	if d, isLiteral := celrule.DurationLiteral(literalSide); isLiteral {
		w.agesAllowed[factSide.ID()] = true
		w.atom.ages = append(w.atom.ages, ageThreshold{fact: i, at: d})
	}
}

func (w *atomWalk) report(e celast.Expr, code, message, hint string) {
	w.flawed = true
	at := w.ast.SourceInfo().GetStartLocation(e.ID())
	w.compiler.file.ErrorIn(w.node, at.Line(), at.Column(), code, w.atom.Name, hint, message)
}
