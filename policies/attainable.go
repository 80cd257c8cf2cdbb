// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"context"

	"github.com/metalaw/metalaw/engine/selection"
)

// Attaining is a selection policy that tells what it turns away for good from what may pass by itself.
type Attaining interface {
	Attainable(ctx context.Context, claim selection.Claim, candidates []*selection.PreparedCandidate, fleet selection.Fleet) (
		[]*selection.PreparedCandidate, error)
}

var _ Attaining = &selection.Policy{}

// Attainable are those of some servers, by their numbers, that a policy might ever allow a claim. Where the policy fails nobody knows, and
// it is all of them.
func Attainable(ctx context.Context, p Attaining, claim selection.Claim, some []int, at func(i int) *selection.PreparedCandidate,
	fleet selection.Fleet) []int {
	candidates := make([]*selection.PreparedCandidate, len(some))
	for k, i := range some {
		candidates[k] = at(i)
	}
	could, err := p.Attainable(ctx, claim, candidates, fleet)
	if err != nil {
		return some
	}
	var all []int
	for k, c := range candidates { // could has them in the same order
		if len(could) > 0 && could[0] == c {
			all, could = append(all, some[k]), could[1:]
		}
	}
	return all
}
