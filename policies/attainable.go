// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"context"
	"slices"

	"github.com/metalaw/metalaw/engine/selection"
)

// Attaining is a policy that can say what it might ever allow a claim.
type Attaining interface {
	Attain(ctx context.Context, claim selection.Claim, candidates []*selection.PreparedCandidate, fleet selection.Fleet) (
		[]selection.Attainment, error)
	Attainable(ctx context.Context, claim selection.Claim, candidates []*selection.PreparedCandidate, fleet selection.Fleet) (
		[]*selection.PreparedCandidate, error)
	TurnsAwayForGood() bool
	Asks(claim selection.Claim) string
}

var _ Attaining = &selection.Policy{}

// Attain says of any number of servers, in the order given, whether a policy might ever allow them to a claim. Of those that its rules fail
// for, and of all where it cannot be asked, nobody knows.
func Attain(ctx context.Context, p Attaining, claim selection.Claim, candidates []*selection.PreparedCandidate,
	fleet selection.Fleet) []selection.Attainment {
	all := make([]selection.Attainment, 0, len(candidates))
	for some := range slices.Chunk(candidates, selection.MaxCandidates) {
		each, _ := p.Attain(ctx, claim, some, fleet) // what it could not be asked about is unsure
		all = append(all, each...)
	}
	return all
}
