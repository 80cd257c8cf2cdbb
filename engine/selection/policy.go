// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/metalaw/metalaw/engine/diag"
	"github.com/metalaw/metalaw/engine/internal/regosandbox"
)

// Package is the Rego package of a selection policy.
const Package = "metalaw.selection"

// What one call of Select may be given. Real objects stay far below: the API server ends at 256 KiB of annotations.
const (
	MaxCandidates     = 20000
	maxClaimBytes     = 512 << 10
	maxCandidateBytes = 512 << 10
)

// The rules that metalaw asks for.
const (
	ruleAllow  = "allow"
	ruleReject = "reject"
	ruleScore  = "score"
)

func spec() regosandbox.Spec {
	return regosandbox.Spec{
		Package: Package,
		Others:  []string{"metalaw.admission"},
		Entrypoints: []regosandbox.Entrypoint{
			{Name: ruleAllow, Form: regosandbox.Boolean, Required: true},
			{Name: ruleReject, Form: regosandbox.Messages},
			{Name: ruleScore, Form: regosandbox.Number},
		},
		InputSchema: Schema(),
	}
}

// Policy is a compiled selection policy. It is immutable and safe for use by many goroutines at once.
type Policy struct{ module *regosandbox.Module }

// Compile compiles those .rego files of a bundle that belong to package metalaw.selection (and metalaw.lib); others and
// tests are passed over. When a finding is an Error the Policy is nil.
func Compile(files map[string][]byte) (*Policy, diag.List) {
	module, found := regosandbox.Compile(spec(), files)
	if module == nil {
		return nil, found
	}
	return &Policy{module}, found
}

// EvalError is a policy that could not be evaluated, with the rule and the cause.
type EvalError = regosandbox.EvalError

// TestReport is what the tests of a bundle showed.
type TestReport = regosandbox.TestReport

// RunTests runs the tests of the bundle (files ending in _test.rego) that belong to this package.
func RunTests(ctx context.Context, files map[string][]byte) (TestReport, diag.List) {
	return regosandbox.RunTests(ctx, spec(), files)
}

// Judgement is what a policy says about one candidate.
type Judgement struct {
	// Allowed: allow is true and nothing rejects.
	Allowed bool
	// Score orders the allowed candidates, higher first; 0 where the policy gives none.
	Score float64
	// Reasons is empty when allowed; else it holds at least one, sorted by code.
	Reasons []Reason
}

// Reason is why a candidate was turned away.
type Reason struct{ Code, Message string }

// Ranked is an allowed candidate.
type Ranked struct {
	Name  string
	Score float64
}

// Rejection counts the candidates that were turned away with one code.
type Rejection struct {
	Count int
	// Message is that of the candidate whose name comes first.
	Message string
}

// Result of Select.
type Result struct {
	// Ranked holds the allowed candidates, best first; ties are broken by name.
	Ranked []Ranked
	// Rejections by code. A candidate that is turned away for two reasons counts under both codes, so that the counts
	// can add up to more than Evaluated - len(Ranked), which is the number of candidates turned away.
	Rejections map[string]Rejection
	// Evaluated is the number of candidates looked at.
	Evaluated int
}

// Select looks at all candidates. The candidates are those that Eligible let pass; their order does not matter. An error
// means that nothing is known: a rule failed, the deadline of ctx (or two seconds) passed, or the input is too large. It
// never means that no server fits.
func (p *Policy) Select(ctx context.Context, claim Claim, candidates []*PreparedCandidate, fleet Fleet) (Result, error) {
	if len(candidates) > MaxCandidates {
		return Result{}, fmt.Errorf("selection: %d candidates are more than the %d that are looked at; narrow them down by index first",
			len(candidates), MaxCandidates)
	}
	session, err := p.begin(ctx, claim, fleet)
	if err != nil {
		return Result{}, err
	}
	defer session.evaluation.Close()

	result := Result{Rejections: map[string]Rejection{}}
	first := map[string]string{} // code -> name of the candidate whose message is kept
	for _, candidate := range candidates {
		judgement, err := session.judge(candidate)
		if err != nil {
			return Result{}, err
		}
		result.Evaluated++
		if judgement.Allowed {
			result.Ranked = append(result.Ranked, Ranked{candidate.name, judgement.Score})
			continue
		}
		for i, reason := range judgement.Reasons {
			if i > 0 && judgement.Reasons[i-1].Code == reason.Code {
				continue
			}
			r := result.Rejections[reason.Code]
			if name, seen := first[reason.Code]; !seen || candidate.name < name {
				first[reason.Code], r.Message = candidate.name, reason.Message
			}
			r.Count++
			result.Rejections[reason.Code] = r
		}
	}
	slices.SortFunc(result.Ranked, func(a, b Ranked) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), strings.Compare(a.Name, b.Name))
	})
	return result, nil
}

// Judge looks at one candidate and returns every reason, for explaining. It agrees with Select.
func (p *Policy) Judge(ctx context.Context, claim Claim, candidate *PreparedCandidate, fleet Fleet) (Judgement, error) {
	session, err := p.begin(ctx, claim, fleet)
	if err != nil {
		return Judgement{}, err
	}
	defer session.evaluation.Close()
	return session.judge(candidate)
}

// session is a claim and a fleet in the form that Rego reads, and the evaluations for them.
type session struct {
	policy       *Policy
	evaluation   *regosandbox.Evaluation
	claim, fleet *ast.Term
}

func (p *Policy) begin(ctx context.Context, claim Claim, fleet Fleet) (*session, error) {
	if size := claim.size(); size > maxClaimBytes {
		return nil, fmt.Errorf("selection: claim %s/%s has %d bytes of labels, annotations and tolerations and at most %d are read; shorten them",
			claim.Namespace, claim.Name, size, maxClaimBytes)
	}
	evaluation, err := p.module.Begin(ctx)
	if err != nil {
		return nil, err
	}
	return &session{p, evaluation, regosandbox.Value(claim), regosandbox.Value(fleet)}, nil
}

// Keys of the input, made once.
var keyClaim, keyCandidate, keyFleet = ast.StringTerm("claim"), ast.StringTerm("candidate"), ast.StringTerm("fleet")

func (s *session) judge(candidate *PreparedCandidate) (Judgement, error) {
	if candidate.size > maxCandidateBytes {
		return Judgement{}, fmt.Errorf("selection: server %s has %d bytes of labels and taints and at most %d are read; shorten them",
			candidate.name, candidate.size, maxCandidateBytes)
	}
	input := ast.ObjectTerm([2]*ast.Term{keyClaim, s.claim}, [2]*ast.Term{keyCandidate, candidate.term}, [2]*ast.Term{keyFleet, s.fleet})
	values, err := s.evaluation.Eval(input)
	if err != nil {
		return Judgement{}, fmt.Errorf("selection: server %s: %w", candidate.name, err)
	}
	judgement, err := s.policy.judgement(values[0], values[1], values[2])
	if err != nil {
		return Judgement{}, fmt.Errorf("selection: server %s: %w", candidate.name, err)
	}
	return judgement, nil
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
		j.Reasons = []Reason{{CodeNotAllowed, "the policy does not allow it"}}
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
