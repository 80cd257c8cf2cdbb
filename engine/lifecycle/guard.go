// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"go.yaml.in/yaml/v3"

	"github.com/metalaw/metalaw/engine/internal/celrule"
	"github.com/metalaw/metalaw/engine/internal/yamlpos"
	"github.com/metalaw/metalaw/engine/spelling"
)

// truth is the outcome of a guard. An error is never false: a guard that cannot be evaluated halts the decision.
type truth = celrule.Truth

const (
	notEvaluated = celrule.Unknown
	isFalse      = celrule.False
	isTrue       = celrule.True
	isError      = celrule.Failed
)

func truthOf(b bool) truth { return celrule.TruthOf(b) }

// ConditionOp is the operator of a node of a Condition.
type ConditionOp uint8

// The operators: three of logic, and the leaves that ask for an atom, a constant, the state and the effects.
const (
	IfAtom ConditionOp = iota
	IfNot
	IfAnd
	IfOr
	IfConst
	IfState
	IfEnsuring
	IfActing
)

// Condition combines atoms with &&, || and !. Guards of invariants may ask for the state and for the effects as well.
type Condition struct {
	Op     ConditionOp
	Atom   int
	Word   string
	Value  bool
	Kids   []*Condition
	Source string
	At     Place
}

// questions is what a guard may ask while it is evaluated.
type questions interface {
	atom(i int) truth
	inState(name string) bool
	ensuring(effect string) bool
	acting() bool
}

// evaluate follows Kleene's logic: false decides an "and" and true decides an "or", whatever the other side is.
func (g *Condition) evaluate(q questions) truth {
	switch g.Op {
	case IfAtom:
		return q.atom(g.Atom)
	case IfConst:
		return truthOf(g.Value)
	case IfState:
		return truthOf(q.inState(g.Word))
	case IfEnsuring:
		return truthOf(q.ensuring(g.Word))
	case IfActing:
		return truthOf(q.acting())
	case IfNot:
		switch g.Kids[0].evaluate(q) {
		case isTrue:
			return isFalse
		case isFalse:
			return isTrue
		default:
			return isError
		}
	case IfAnd:
		return g.decide(q, isFalse, isTrue)
	case IfOr:
		return g.decide(q, isTrue, isFalse)
	}
	return isError // no operator is missing above; an unknown one must not pass for false
}

// decide combines the kids: one that is decisive settles it, and where none is an error outweighs otherwise.
func (g *Condition) decide(q questions, decisive, otherwise truth) truth {
	result := otherwise
	for _, kid := range g.Kids {
		one := kid.evaluate(q)
		if one == decisive {
			return decisive
		}
		if one == isError {
			result = isError
		}
	}
	return result
}

// Atoms lists the definitions that the guard asks for; none where there is no guard.
func (g *Condition) Atoms() []int {
	if g == nil {
		return nil
	}
	if g.Op == IfAtom {
		return []int{g.Atom}
	}
	var all []int
	for _, kid := range g.Kids {
		all = append(all, kid.Atoms()...)
	}
	return all
}

// guardCompiler parses guards. It uses CEL's grammar and none of its evaluation.
type guardCompiler struct {
	file  *yamlpos.File
	env   *cel.Env
	atoms map[string]int
	// misnamed are definitions whose names cannot be read here, which is reported at their own place.
	misnamed []string
	// states and effects are set for invariants, which may ask for them.
	states  map[string]bool
	effects map[string]bool
}

// compile returns nil for an expression that is not a guard; what is wrong has then been recorded at node.
func (c *guardCompiler) compile(rule string, node *yaml.Node) *Condition {
	if misspoken(node.Value, c.misnamed) {
		return nil
	}
	if strings.TrimSpace(node.Value) == "" || node.Tag == "!!null" {
		c.file.Errorf(node, "cel-empty", rule, "write defined names combined with &&, || and !, or take the key out", "the condition is empty")
		return nil
	}
	parsed, issues := c.env.Parse(node.Value)
	if issues != nil && issues.Err() != nil {
		if words := celrule.TooLong(issues.Errors()); words != "" {
			c.file.ErrorIn(node, 1, 0, celrule.CodeTooLong, rule, "define a part of it under a name of its own, and combine names", words)
			return nil
		}
		for _, e := range issues.Errors() {
			c.file.ErrorIn(node, e.Location.Line(), e.Location.Column(), "cel-syntax", rule,
				"a guard combines defined names with &&, || and !", e.Message)
		}
		return nil
	}
	p := &guardParse{guardCompiler: c, rule: rule, node: node, ast: parsed.NativeRep(), ok: true}
	g := p.parse(p.ast.Expr())
	if !p.ok {
		return nil
	}
	g.Source, g.At = node.Value, placeOf(node)
	return g
}

type guardParse struct {
	*guardCompiler
	rule string
	node *yaml.Node
	ast  *celast.AST
	ok   bool
}

func (p *guardParse) parse(e celast.Expr) *Condition {
	switch e.Kind() {
	case celast.IdentKind:
		if i, ok := p.atoms[e.AsIdent()]; ok {
			return &Condition{Op: IfAtom, Atom: i}
		}
		return p.fail(e, "guard-unknown-atom", fmt.Sprintf("%q is not defined", e.AsIdent()), p.nearestAtom(e.AsIdent()))
	case celast.LiteralKind:
		if b, ok := e.AsLiteral().Value().(bool); ok {
			return &Condition{Op: IfConst, Value: b}
		}
	case celast.CallKind:
		return p.parseCall(e)
	case celast.SelectKind:
		for e.Kind() == celast.SelectKind { // the place of a selection is its last dot
			e = e.AsSelect().Operand()
		}
		return p.fail(e, "guard-raw-fact", "a guard combines defined names only",
			"give the raw fact a name under define and use that name here")
	}
	return p.fail(e, "guard-form", "a guard combines defined names with &&, || and !",
		"give what is compared a name under define and use that name here")
}

func (p *guardParse) parseCall(e celast.Expr) *Condition {
	call := e.AsCall()
	switch call.FunctionName() {
	case operators.LogicalNot:
		return &Condition{Op: IfNot, Kids: []*Condition{p.parse(call.Args()[0])}}
	case operators.LogicalAnd:
		return p.combine(IfAnd, call)
	case operators.LogicalOr:
		return p.combine(IfOr, call)
	case operators.Equals, operators.NotEquals:
		if g := p.stateComparison(call); g != nil {
			return g
		}
	case "ensuring":
		if len(call.Args()) == 1 && p.effects != nil {
			if word, ok := celrule.StringLiteral(call.Args()[0]); ok {
				return p.ensuring(call.Args()[0], word)
			}
		}
	case "acting":
		if len(call.Args()) == 0 && p.effects != nil {
			return &Condition{Op: IfActing}
		}
	}
	if word := call.FunctionName(); identifier.MatchString(word) { // the place of a call is its bracket
		return p.failBefore(e, len(word), "guard-form", "a guard has no function "+word+"()", p.functionHint(word))
	}
	hint := "give the comparison a name under define and use that name here"
	return p.fail(e, "guard-form", "a guard combines defined names with &&, || and !", hint)
}

var identifier = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*$`)

// functionHint says what can be asked for instead of a function that is not there, or that was asked for in another way.
func (p *guardParse) functionHint(word string) string {
	if p.effects == nil {
		return "give the expression a name under define and use that name here"
	}
	hint := "beside defined names an invariant may ask for state == 'Available', ensuring('PowerOn') and acting()"
	if near := spelling.Nearest(word, []string{"ensuring", "acting"}); near != "" && near != word {
		hint = "did you mean " + near + "()? " + hint
	}
	return hint
}

// ensuring is the question whether an effect is ensured.
func (p *guardParse) ensuring(at celast.Expr, effect string) *Condition {
	if p.effects[effect] {
		return &Condition{Op: IfEnsuring, Word: effect}
	}
	hint := spelling.Hint(effect, slices.Collect(maps.Keys(p.effects)), "the reference page lists the effects")
	return p.fail(at, "guard-unknown-effect", fmt.Sprintf("there is no effect %q", effect), hint)
}

func (p *guardParse) combine(op ConditionOp, call celast.CallExpr) *Condition {
	g := &Condition{Op: op}
	for _, arg := range call.Args() {
		g.Kids = append(g.Kids, p.parse(arg))
	}
	return g
}

// stateComparison understands state == 'X' and state != 'X' in invariants.
func (p *guardParse) stateComparison(call celast.CallExpr) *Condition {
	left, right := call.Args()[0], call.Args()[1]
	if p.states == nil || left.Kind() != celast.IdentKind || left.AsIdent() != "state" {
		return nil
	}
	word, ok := celrule.StringLiteral(right)
	if !ok {
		return nil
	}
	if !p.states[word] {
		hint := spelling.Hint(word, slices.Collect(maps.Keys(p.states)), "name a state of this lifecycle")
		return p.fail(right, "guard-unknown-state", fmt.Sprintf("there is no state %q", word), hint)
	}
	g := &Condition{Op: IfState, Word: word}
	if call.FunctionName() == operators.NotEquals {
		return &Condition{Op: IfNot, Kids: []*Condition{g}}
	}
	return g
}

func (p *guardParse) nearestAtom(name string) string {
	best, bestDistance := "", 4
	for candidate := range p.atoms {
		d := spelling.Distance(name, candidate)
		if d < bestDistance || (d == bestDistance && candidate < best) {
			best, bestDistance = candidate, d
		}
	}
	if best == "" {
		return "define it under define"
	}
	return "did you mean " + best + "?"
}

func (p *guardParse) fail(e celast.Expr, code, message, hint string) *Condition {
	return p.failBefore(e, 0, code, message, hint)
}

// failBefore records what is wrong some letters before the place of an expression.
func (p *guardParse) failBefore(e celast.Expr, letters int, code, message, hint string) *Condition {
	p.ok = false
	at := p.ast.SourceInfo().GetStartLocation(e.ID())
	p.file.ErrorIn(p.node, at.Line(), max(0, at.Column()-letters), code, p.rule, hint, message)
	return &Condition{Op: IfConst}
}
