// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"context"
	"errors"

	"github.com/metalaw/metalaw/engine/selection"
)

// Attaining is a selection policy that tells what it turns away for good from what may pass by itself.
type Attaining interface {
	Attainable(ctx context.Context, claim selection.Claim, candidates []*selection.PreparedCandidate, fleet selection.Fleet) (
		[]*selection.PreparedCandidate, error)
	TurnsAwayForGood() bool
	Asks(claim selection.Claim) string
}

var _ Attaining = &selection.Policy{}

// Attainable are those of some servers, by their numbers in the order given, that a policy might ever allow a claim. One that its rules fail for
// is among them, since of that one nobody knows; where the policy cannot be asked at all they all are. Sure says that it is neither.
func Attainable(ctx context.Context, p Attaining, claim selection.Claim, some []int, at func(i int) *selection.PreparedCandidate,
	fleet selection.Fleet) (could []int, sure bool) {
	if len(some) == 0 {
		return nil, true
	}
	candidates := make([]*selection.PreparedCandidate, len(some))
	for k, i := range some {
		candidates[k] = at(i)
	}
	attained, err := p.Attainable(ctx, claim, candidates, fleet)
	if err != nil && (len(some) == 1 || !errors.As(err, &selection.CandidateError{})) {
		return some, false
	}
	for k, c := range candidates { // attained has them in the same order
		switch {
		case len(attained) > 0 && attained[0] == c:
			could, attained = append(could, some[k]), attained[1:]
		case err != nil: // it is turned away, or the rules fail for it
			one, _ := Attainable(ctx, p, claim, some[k:k+1], at, fleet)
			could = append(could, one...)
		}
	}
	return could, err == nil
}
