// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"context"
	"math"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/metalaw/metalaw/engine/internal/regosandbox"
)

// session is a claim and a fleet in the form that Rego reads, and the evaluations for them.
type session struct {
	policy       *Policy
	evaluation   *regosandbox.Evaluation
	claim, fleet *ast.Term
}

func (p *Policy) begin(ctx context.Context, claim Claim, fleet Fleet) (*session, error) {
	evaluation, err := p.module.Begin(ctx)
	if err != nil {
		return nil, err
	}
	return &session{p, evaluation, regosandbox.Value(claim), regosandbox.Value(fleet)}, nil
}

// Keys of the input, made once.
var keyClaim, keyCandidate, keyFleet = ast.StringTerm("claim"), ast.StringTerm("candidate"), ast.StringTerm("fleet")

func (s *session) judge(candidate *PreparedCandidate) (Judgement, error) {
	input := ast.ObjectTerm([2]*ast.Term{keyClaim, s.claim}, [2]*ast.Term{keyCandidate, candidate.term()}, [2]*ast.Term{keyFleet, s.fleet})
	values, err := s.evaluation.Eval(input)
	if err != nil {
		return Judgement{}, err
	}
	return s.policy.judgement(values[0], values[1], values[2])
}

func (p *Policy) judgement(allow, reject, score ast.Value) (Judgement, error) {
	messages, err := p.module.Messages(ruleReject, reject)
	if err != nil {
		return Judgement{}, err
	}
	allowed, ok := allow.(ast.Boolean)
	if allow != nil && !ok {
		return Judgement{}, p.module.Misshapen(ruleAllow, "is %s, and must be true or false", allow)
	}
	var j Judgement
	for _, m := range messages {
		j.Reasons = append(j.Reasons, Reason{m.Code, m.Message})
	}
	if len(j.Reasons) == 0 && !bool(allowed) {
		j.Reasons = []Reason{notAllowed}
	}
	j.Allowed = len(j.Reasons) == 0
	if j.Allowed && score != nil {
		if j.Score, err = p.number(score); err != nil {
			return Judgement{}, err
		}
	}
	return j, nil
}

func (p *Policy) number(score ast.Value) (float64, error) {
	number, ok := score.(ast.Number)
	if !ok {
		return 0, p.module.Misshapen(ruleScore, "is %s, and must be a number", score)
	}
	value, ok := number.Float64()
	if !ok || math.IsInf(value, 0) || math.IsNaN(value) {
		return 0, p.module.Misshapen(ruleScore, "is %s, which is too large for a number", score)
	}
	return value, nil
}

// notAllowed is the reason where the rules give none.
var notAllowed = Reason{CodeNotAllowed, "the policy does not allow it"}
