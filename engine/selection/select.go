// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

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
	// Ranked holds the allowed candidates, best first; ties are broken by name. It ends after MaxRanked, or after as many as
	// Rank was asked for: Allowed says how many there are.
	Ranked []Ranked
	// Allowed is the number of allowed candidates.
	Allowed int
	// Lasting is the number of candidates that some rule turns away which reads only what lasts: what the claim asks for and what the
	// server is. The others that are turned away may be allowed another time.
	Lasting int
	// Rejections by code. A candidate that is turned away for two reasons counts under both codes, so that the counts
	// can add up to more than Evaluated - Allowed, which is the number of candidates turned away.
	Rejections map[string]Rejection
	// Unjudged counts the candidates for which the rules fail: nothing is known of these. They are not among the
	// Rejections. Its message is for those who may not know which servers there are.
	Unjudged Rejection
	// Failures are what the rules fail with for unjudged candidates, for those who may know them: MaxTold at most, in the order in
	// which they were met.
	Failures []CandidateError
	// Evaluated is the number of candidates looked at.
	Evaluated int
}

// Select looks at all candidates. The candidates are those that Eligible let pass; their order does not matter. An error
// means that nothing is known: rules fail in more than MaxFailures evaluations, the deadline of ctx passed (or two seconds of
// interpretation), or the input is too large. It never means that no server fits.
//
// Where rules fail for some candidates alone, such as one of which a BMC reports what no rule expects, these are
// Unjudged, and the others are judged.
//
// Candidates that agree in all that the rules read are judged once. Rules are evaluated natively, where Compile did not
// find that they have to be interpreted; the result is the same.
func (p *Policy) Select(ctx context.Context, claim Claim, candidates []*PreparedCandidate, fleet Fleet) (Result, error) {
	return p.Rank(ctx, claim, candidates, fleet, MaxRanked)
}

// MaxTold bounds the Failures of a Result.
const MaxTold = 256

// Rank is Select with a ranking of at most so many.
func (p *Policy) Rank(ctx context.Context, claim Claim, candidates []*PreparedCandidate, fleet Fleet, most int) (Result, error) {
	if len(candidates) > MaxCandidates {
		return Result{}, fmt.Errorf("selection: %d candidates are more than the %d that are looked at; narrow them down by index first",
			len(candidates), MaxCandidates)
	}
	l, err := p.look(ctx, &claim, &fleet)
	if err != nil {
		return Result{}, err
	}
	defer l.close()
	count := newTally(most, len(candidates))
	for i, candidate := range candidates {
		if i%1024 == 0 {
			if err := p.module.Stopped(ctx); err != nil {
				return Result{}, err
			}
		}
		if l.isNative(candidate) {
			if v := l.native.verdict(l.scratch, l.places.of(candidate), candidate); !v.unsure {
				count.verdict(v, candidate)
				continue
			}
		}
		judgement, err := l.interpret(candidate)
		if err == nil {
			count.judgement(judgement, candidate)
			continue
		}
		var failed CandidateError
		if err = l.setAside(candidate, err); !errors.As(err, &failed) {
			return Result{}, err
		}
		count.fail(failed, candidate)
	}
	if err := l.words(count); err != nil {
		return Result{}, err
	}
	return count.result(len(candidates)), nil
}

// Judge looks at one candidate and returns every reason, for explaining. It agrees with Select.
func (p *Policy) Judge(ctx context.Context, claim Claim, candidate *PreparedCandidate, fleet Fleet) (Judgement, error) {
	l, err := p.look(ctx, &claim, &fleet)
	if err != nil {
		return Judgement{}, err
	}
	defer l.close()
	if j, ok := l.judge(candidate); ok {
		return j, nil
	}
	j, err := l.interpret(candidate)
	if err != nil {
		return Judgement{}, l.setAside(candidate, err)
	}
	return j, nil
}

func (c *PreparedCandidate) fits() error {
	if c.size > maxCandidateBytes {
		return fmt.Errorf("it has %d bytes of labels and taints and at most %d are read; shorten them", c.size, maxCandidateBytes)
	}
	return nil
}

// looking is a policy that looks at candidates for one claim.
type looking struct {
	*Policy
	ctx   context.Context //nolint:containedctx // it is the context of the one call that this serves
	claim *Claim
	fleet *Fleet
	// scratch, places and longest are of the native evaluation.
	scratch *scratch
	places  *places
	longest int
	// session is the interpreter's, which begins when it is needed; judged are its judgements by class.
	session *session
	judged  map[string]judged
	key     []byte
	// failures is how many evaluations failed.
	failures int
}

// judged is what the interpreter says of a class.
type judged struct {
	Judgement
	err error
}

// MaxFailures is how many evaluations may fail before a policy counts as one that cannot be evaluated. Candidates that agree in all that
// the rules read share one. Those that fail are interpreted, which takes long, and a policy that fails for all servers would keep other
// claims waiting.
const MaxFailures = 128

// setAside makes a CandidateError of an error that is about one candidate, so that the others are judged. Any other
// error is about the policy as a whole.
func (l *looking) setAside(candidate *PreparedCandidate, err error) error {
	switch {
	case l.session != nil && l.session.evaluation.Stopped():
		return err
	case l.failures > MaxFailures:
		return fmt.Errorf("selection: the rules fail for too many servers, of late: %w; mend the rule, or give what it reads a default", err)
	}
	return CandidateError{candidate.Name(), err}
}

// isNative says that a candidate can be evaluated natively, if its rules do not fail.
func (l *looking) isNative(candidate *PreparedCandidate) bool {
	return l.native != nil && candidate.longest <= l.longest && candidate.size <= maxCandidateBytes
}

func (p *Policy) look(ctx context.Context, claim *Claim, fleet *Fleet) (*looking, error) {
	if size := claim.size(); size > maxClaimBytes {
		return nil, fmt.Errorf("selection: claim %s/%s has %d bytes of labels, annotations and tolerations and at most %d are read; shorten them",
			claim.Namespace, claim.Name, size, maxClaimBytes)
	}
	if err := p.module.Stopped(ctx); err != nil {
		return nil, err
	}
	fleet.Today = dayOf(fleet.Now)
	l := &looking{Policy: p, ctx: ctx, claim: claim, fleet: fleet}
	if p.native != nil {
		l.places, l.scratch = p.native.generation(), p.native.begin(claim, fleet)
		if l.longest = p.native.longest; claim.longest() > l.longest {
			l.longest = -1
		}
	}
	return l, nil
}

func (l *looking) close() {
	if l.session != nil {
		l.session.evaluation.Close()
	}
	if l.native != nil {
		l.native.end(l.scratch)
	}
}

// judge is the native judgement of one candidate; ok is false where the interpreter has to be asked.
func (l *looking) judge(candidate *PreparedCandidate) (j Judgement, ok bool) {
	if !l.isNative(candidate) {
		return j, false
	}
	at := l.places.of(candidate)
	v := l.native.verdict(l.scratch, at, candidate)
	if v.unsure {
		return j, false
	}
	if j.Allowed = v.allowed; j.Allowed {
		j.Score = v.score
		return j, true
	}
	j.Lasting = v.lasting
	if v.codes == 1 {
		j.Reasons = []Reason{notAllowed}
		return j, true
	}
	j.Reasons, ok = l.native.reasons(l.scratch, at, candidate)
	return j, ok
}

// interpret asks the interpreter, once for each class. The error names no candidate.
func (l *looking) interpret(candidate *PreparedCandidate) (Judgement, error) {
	if err := candidate.fits(); err != nil {
		return Judgement{}, err
	}
	if l.session == nil {
		var err error
		if l.session, err = l.begin(l.ctx, *l.claim, *l.fleet); err != nil {
			return Judgement{}, err
		}
	}
	if l.reads.whole[ofCandidate] || l.single {
		return l.evaluate(candidate)
	}
	l.key = l.tells.AppendKey(l.key[:0], &subject{candidate: &candidate.facts})
	known, ok := l.judged[string(l.key)]
	if !ok {
		if l.judged == nil {
			l.judged = map[string]judged{}
		}
		known.Judgement, known.err = l.evaluate(candidate)
		l.judged[string(l.key)] = known
	}
	return known.Judgement, known.err
}

// evaluate asks the interpreter about one candidate.
func (l *looking) evaluate(candidate *PreparedCandidate) (Judgement, error) {
	j, err := l.session.judge(candidate)
	if err != nil {
		l.failures++
	}
	j.Lasting = err == nil && !j.Allowed && slices.ContainsFunc(j.Reasons, func(r Reason) bool { return l.alwaysLasts(r.Code) })
	return j, err
}

// words finds the message of each code for the candidate whose message is shown.
func (l *looking) words(count *tally) error {
	for bit := range count.byBit {
		r := &count.byBit[bit]
		if r.Count == 0 {
			continue
		}
		j, ok := l.judge(r.first)
		if !ok {
			var err error
			if j, err = l.interpret(r.first); err != nil {
				return err
			}
		}
		code := l.native.codes[bit]
		for i, reason := range j.Reasons {
			if reason.Code == code && (i == 0 || j.Reasons[i-1].Code != code) {
				count.add(reason, r.first, r.Count)
			}
		}
	}
	return nil
}
