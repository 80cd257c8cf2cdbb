// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"
	"slices"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/placement"
	"github.com/metalaw/metalaw/engine/selection"
	"github.com/metalaw/metalaw/policies"
)

// Member is a claim that gets a server together with others.
type Member struct {
	Claim *v1alpha1.ServerClaim
	// Priority is what the bundle grants of the one that the claim asks for.
	Priority int64
}

// Served is what becomes of claims that get servers together or not at all.
type Served struct {
	// Answers has one for each member, in their order. Each sees the servers of those that were judged before it as taken.
	Answers []Answer
	// Complete: every member has a server.
	Complete bool
	// After is the fleet then; as it was before where not every member has a server.
	After *Fleet
}

// Serve judges the members of a gang in turn; one claim by itself is a gang of one. Where one is left without a server, members
// whose servers need not be apart are matched to all that each may have, as the scheduler does it; of members that keep apart it is
// only tried whether another order serves them all, so that it may say of some that they wait which the scheduler serves. The quota
// bounds the servers of their namespace. The error is for a claim that asks for what has no meaning.
func Serve(ctx context.Context, policy *selection.Policy, quota bundle.Quota, members []Member, f *Fleet) (Served, error) {
	s := serve(policy, quota, members, f)
	order := make([]int, len(members))
	for i := range order {
		order[i] = i
	}
	first, missing, err := s.inOrder(ctx, order)
	if err != nil || first.Complete || len(members) == 1 || s.refused != nil {
		return first, err
	}
	if slices.ContainsFunc(members, func(m Member) bool { p, _ := policies.PlacementOf(m.Claim); return p.Spread() != nil }) {
		return s.inOtherOrders(ctx, order, first, missing)
	}
	if served, err := s.matched(ctx); err != nil || served.Complete {
		return served, err
	}
	return first, nil
}

// Missing says what keeps a claim's gang from coming together before servers are looked for: members that are missing or that
// contradict each other. It is empty where there is no gang, or all of it is there. The claims are all those of the namespace;
// the claim itself need not be among them.
func Missing(c *v1alpha1.ServerClaim, claims []*v1alpha1.ServerClaim) string {
	own := policies.GangOf(c)
	if own == nil {
		return ""
	}
	sizes := []int64{own.Size}
	for _, other := range claims {
		if other.Namespace != c.Namespace || other.Name == c.Name || !other.DeletionTimestamp.IsZero() {
			continue
		}
		if gang := policies.GangOf(other); gang != nil && gang.Name == own.Name {
			sizes = append(sizes, gang.Size)
		}
	}
	if muster, message := placement.MusterOf(sizes); muster != placement.Complete {
		return message
	}
	return ""
}
