// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
)

// Attainable are those of the candidates that a claim could have now, or once what passes by itself has passed, in the order in
// which they are given. It leaves out a candidate that any rule turns away which reads only what lasts: what the claim asks for, and
// what the server is. A reject rule turns away where it holds, allow where it does not.
//
// A rule that reads something of both, such as a label and the health, says nothing about which of the two it was: a candidate that
// only such rules turn away counts as attainable. Write a rule for each. Where the rules are interpreted it is not known what reads
// what, and either all or none of the rules count as those that read what passes.
//
// A CandidateError is about candidates for which the rules fail, the first of them in the order given: of these nobody knows, and
// those that are attainable of the others are returned with it.
func (p *Policy) Attainable(ctx context.Context, claim Claim, candidates []*PreparedCandidate, fleet Fleet) ([]*PreparedCandidate, error) {
	if len(candidates) > MaxCandidates {
		return nil, fmt.Errorf("selection: %d candidates are more than the %d that are looked at", len(candidates), MaxCandidates)
	}
	l, err := p.look(ctx, &claim, &fleet)
	if err != nil {
		return nil, err
	}
	defer l.close()
	var all []*PreparedCandidate
	var unknown error
	for i, candidate := range candidates {
		if i%1024 == 0 {
			if err := p.module.Stopped(ctx); err != nil {
				return nil, err
			}
		}
		lasting, err := l.lasts(candidate)
		switch {
		case err == nil && !lasting:
			all = append(all, candidate)
		case err != nil:
			if err = l.setAside(candidate, err); !errors.As(err, &CandidateError{}) {
				return nil, err
			}
			unknown = cmp.Or(unknown, err)
		}
	}
	return all, unknown
}

// TurnsAwayForGood says that it is known of some rule that it reads only what lasts. It is not where the rules are interpreted and any of them
// reads what passes: then nothing is turned away for good, and Attainable, which is all of the candidates, need not be asked.
func (p *Policy) TurnsAwayForGood() bool { return p.native != nil || !p.passing }

// lasts says that a rule turns a candidate away which reads only what lasts.
func (l *looking) lasts(candidate *PreparedCandidate) (bool, error) {
	if l.isNative(candidate) {
		if v, _ := l.native.verdict(l.scratch, l.places.of(candidate), candidate); !v.unsure {
			return v.lasting, nil
		}
	}
	j, err := l.interpret(candidate)
	if err != nil || j.Allowed {
		return false, err
	}
	return slices.ContainsFunc(j.Reasons, func(r Reason) bool { return l.alwaysLasts(r.Code) }), nil
}

// alwaysLasts says that every rule with a code reads only what lasts. CodeNotAllowed is that of allow.
func (p *Policy) alwaysLasts(code string) bool {
	if p.native == nil {
		return !p.passing
	}
	if code == CodeNotAllowed && !p.native.lastingAllow {
		return false
	}
	for i, r := range p.native.rejects {
		if r.Code == code && !p.native.lasting[i] {
			return false
		}
	}
	return true
}
