// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"

	"github.com/metalaw/metalaw/engine/internal/celrule"
	"github.com/metalaw/metalaw/engine/selection"
)

// Judgement is what a placement says about one server, without the counts.
type Judgement struct {
	// Accepted: where holds, and an alternative matches if there are any.
	Accepted bool
	// Alternative is the first that matches, from 0; also where the placement has none.
	Alternative int
	// Score is the sum of the weights of the preferences that hold; 0 where it is not accepted.
	Score int64
	// Code and Message say why it is not accepted. The message names no tenant.
	Code, Message string
}

// Judge looks at one server. What cannot be evaluated is neither true nor false: the server is not accepted, and the code is
// CodeError. Only conditions that are asked count: nothing behind a where that is false, and no alternative behind the first
// that matches.
func (p *Placement) Judge(c *selection.Candidate) Judgement {
	j, condition := p.judge(c)
	j.Message = condition.explain(j.Code, c)
	return j
}

// Brief is Judge without the message.
func (p *Placement) Brief(c *selection.Candidate) Judgement {
	j, _ := p.judge(c)
	return j
}

// judge leaves the message out, and returns the condition that turned the server away.
func (p *Placement) judge(c *selection.Candidate) (Judgement, condition) {
	if p == nil {
		return Judgement{Accepted: true}, condition{}
	}
	if code := p.where.rejects(c); code != "" {
		return Judgement{Code: code}, condition{fieldWhere, 0, p.where}
	}
	j, why := p.alternative(c)
	if !j.Accepted {
		return j, why
	}
	for i, one := range p.preferred {
		switch one.where.holds(c) {
		case celrule.True:
			j.Score += one.weight
		case celrule.Failed:
			return Judgement{Code: CodeError}, condition{fieldPreferred, i, one.where}
		case celrule.False, celrule.Unknown:
		}
	}
	return j, condition{}
}

// rejects is the code with which a condition turns a server away; empty where it holds, and where there is none.
func (e *expression) rejects(c *selection.Candidate) string {
	if e == nil {
		return ""
	}
	switch e.holds(c) {
	case celrule.True:
		return ""
	case celrule.False:
		return CodePlacement
	default:
		return CodeError
	}
}

// alternative finds the first that matches.
func (p *Placement) alternative(c *selection.Candidate) (Judgement, condition) {
	for i, a := range p.alternatives {
		if !a.selector.Matches(c.Labels) {
			continue
		}
		switch code := a.where.rejects(c); code {
		case "":
			return Judgement{Accepted: true, Alternative: i}, condition{}
		case CodeError:
			return Judgement{Code: code}, condition{fieldAlternatives, i, a.where}
		}
	}
	if len(p.alternatives) == 0 {
		return Judgement{Accepted: true}, condition{}
	}
	return Judgement{Code: CodePlacement}, condition{field: fieldAlternatives}
}

// condition is one of a placement's conditions; without an expression it is that one of the alternatives has to match.
type condition struct {
	field string
	index int
	*expression
}

// explain says why a condition turned a server away.
func (d condition) explain(code string, c *selection.Candidate) string {
	switch {
	case code == "":
		return ""
	case d.expression == nil:
		return "no alternative of the claim's placement matches"
	case code == CodePlacement:
		return "the claim's placement asks where " + d.shown()
	}
	name := d.field
	if name != fieldWhere {
		name = fmt.Sprintf("%s[%d]", d.field, d.index)
	}
	_, err := d.interpret(c)
	return fmt.Sprintf("%s of the claim's placement cannot be evaluated: %v (%s)", name, err, d.shown())
}
