// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
)

// Attainment is what is known of whether a claim could have a server now, or once what passes by itself has passed.
type Attainment uint8

const (
	// Unsure is one that the rules fail for, or were not asked about.
	Unsure Attainment = iota
	// Attained is one that it could have.
	Attained
	// TurnedAway is one that any rule turns away which reads only what lasts: what the claim asks for, and what the server is. A reject
	// rule turns away where it holds, allow where it does not.
	TurnedAway
)

// Attain says of each candidate, in the order given, whether a claim could have it. It is always as long as candidates.
//
// A rule that reads something of both what lasts and what passes, such as a label and the health, says nothing about which of the two
// it was: a candidate that only such rules turn away counts as attained. Write a rule for each. Where the rules are interpreted it is
// not known what reads what, and either all or none of the rules count as those that read what passes.
//
// A CandidateError is about the first of the candidates for which the rules fail; the others are told of as ever. Any other error leaves
// those Unsure to which it had not come.
func (p *Policy) Attain(ctx context.Context, claim Claim, candidates []*PreparedCandidate, fleet Fleet) ([]Attainment, error) {
	all := make([]Attainment, len(candidates))
	if len(candidates) > MaxCandidates {
		return all, fmt.Errorf("selection: %d candidates are more than the %d that are looked at", len(candidates), MaxCandidates)
	}
	l, err := p.look(ctx, &claim, &fleet)
	if err != nil {
		return all, err
	}
	defer l.close()
	var unknown error
	for i, candidate := range candidates {
		if i%1024 == 0 {
			if err := p.module.Stopped(ctx); err != nil {
				return all, err
			}
		}
		lasting, err := l.lasts(candidate)
		switch {
		case err != nil:
			if err = l.setAside(candidate, err); !errors.As(err, &CandidateError{}) {
				return all, err
			}
			unknown = cmp.Or(unknown, err)
		case lasting:
			all[i] = TurnedAway
		default:
			all[i] = Attained
		}
	}
	return all, unknown
}

// Attainable are those of the candidates that Attain calls Attained, in the order given. With any error but a CandidateError there are none.
func (p *Policy) Attainable(ctx context.Context, claim Claim, candidates []*PreparedCandidate, fleet Fleet) ([]*PreparedCandidate, error) {
	each, err := p.Attain(ctx, claim, candidates, fleet)
	if err != nil && !errors.As(err, &CandidateError{}) {
		return nil, err
	}
	var all []*PreparedCandidate
	for i, is := range each {
		if is == Attained {
			all = append(all, candidates[i])
		}
	}
	return all, err
}

// TurnsAwayForGood says that it is known of some rule that it reads only what lasts. It is not where the rules are interpreted and any of them
// reads what passes: then nothing is turned away for good, and Attain need not be asked.
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
