// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"go.yaml.in/yaml/v3"

	"github.com/metalaw/metalaw/engine/internal/celrule"
	"github.com/metalaw/metalaw/engine/spelling"
)

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

// evaluate follows Kleene's logic: false decides an "and" and true decides an "or", for any other side.
func (g *Condition) evaluate(e *evaluation) celrule.Truth {
	switch g.Op {
	case IfAtom:
		return e.atom(g.Atom)
	case IfConst:
		return celrule.TruthOf(g.Value)
	case IfState:
		return celrule.TruthOf(g.Word == string(e.state.Name))
	case IfEnsuring:
		return celrule.TruthOf(e.ensuring(g.Word))
	case IfActing:
		return celrule.TruthOf(e.acting())
	case IfNot:
		switch g.Kids[0].evaluate(e) {
		case celrule.True:
			return celrule.False
		case celrule.False:
			return celrule.True
		default:
			return celrule.Failed
		}
	case IfAnd:
		return g.decide(e, celrule.False, celrule.True)
	case IfOr:
		return g.decide(e, celrule.True, celrule.False)
	}
	return celrule.Failed // no operator is missing above; an unknown one must not pass for false
}

// decide combines the kids: one that is decisive settles it, and where none is an error outweighs otherwise.
func (g *Condition) decide(e *evaluation, decisive, otherwise celrule.Truth) celrule.Truth {
	result := otherwise
	for _, kid := range g.Kids {
		one := kid.evaluate(e)
		if one == decisive {
			return decisive
		}
		if one == celrule.Failed {
			result = celrule.Failed
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

// condition compiles a guard, by CEL's grammar and none of its evaluation. Invariants may ask for the state and for effects as well;
// of guards there are none. It returns nil for what is no guard; what is wrong has then been recorded at node.
func (c *compiler) condition(rule string, node *yaml.Node, effects map[string]bool) *Condition {
	if node == nil || c.file.Told(node) || misspoken(node.Value, c.misnamed) {
		return nil
	}
	if strings.TrimSpace(node.Value) == "" || node.Tag == "!!null" {
		c.file.Errorf(node, "cel-empty", rule, "write defined names combined with &&, || and !, or take the key out", "the condition is empty")
		return nil
	}
	parsed, issues := c.guardEnv.Parse(node.Value)
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
	p := &guardParse{compiler: c, effects: effects, rule: rule, node: node, ast: parsed.NativeRep(), ok: true}
	g := p.parse(p.ast.Expr())
	if !p.ok {
		return nil
	}
	g.Source, g.At = node.Value, placeOf(node)
	return g
}

type guardParse struct {
	*compiler
	// effects are those for which an invariant may ask; nil for other guards.
	effects map[string]bool
	rule    string
	node    *yaml.Node
	ast     *celast.AST
	ok      bool
}

func (p *guardParse) parse(e celast.Expr) *Condition {
	switch e.Kind() {
	case celast.IdentKind:
		if i, ok := p.atoms[e.AsIdent()]; ok {
			return &Condition{Op: IfAtom, Atom: i}
		}
		return p.fail(e, "guard-unknown-atom", fmt.Sprintf("%q is not defined", e.AsIdent()),
			spelling.Hint(e.AsIdent(), slices.Collect(maps.Keys(p.atoms)), "define it under define"))
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
	if p.effects == nil || left.Kind() != celast.IdentKind || left.AsIdent() != "state" {
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
