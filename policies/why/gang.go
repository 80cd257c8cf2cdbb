// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"
	"fmt"
	"slices"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
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
	// Answers has one for each member, in their order. Each sees the servers of those that were judged before it as taken; where not every
	// member has a server, as free, and those that fit are turned away under placement.CodeGang.
	Answers []Answer
	// Complete: every member has a server.
	Complete bool
	// After is the fleet then; as it was before where not every member has a server.
	After *Fleet
}

// Serve judges the members of a gang in turn; one claim by itself is a gang of one. Where one is left without a server they are matched
// to all that each may have, as the scheduler does it; members that are spread in different ways are tried in several orders besides.
// Members for which a server is written have that one. The quota bounds the servers of their namespace. The error is for a claim that
// asks for what has no meaning.
func Serve(ctx context.Context, policy *selection.Policy, quota bundle.Quota, members []Member, f *Fleet) (Served, error) {
	s := newSearch(policy, quota, members, f)
	first, missing, err := s.inOrder(ctx, s.wanting)
	if err != nil || first.Complete || len(members) == 1 || s.refused != nil {
		return first, err
	}
	m, err := s.match(ctx)
	if err != nil {
		return Served{}, err
	}
	if served, err := s.asMatched(ctx, m); err != nil || served.Complete {
		return served, err
	}
	if !m.isExact() && m.couldBe() {
		if served, err := s.inOtherOrders(ctx, m); err != nil || served.Complete {
			return served, err
		}
	}
	return s.short(ctx, first, missing)
}

// Missing says what keeps the gang of some claims from coming together before servers are looked for: members that are missing, that
// contradict each other, or that lost their server, or more of them than the quota of their namespace ever allows, or than the fleet has
// servers. It is empty where there is no gang, or all of it is there. The claims are those of the gang that are to be served, which
// count as members; others are the other claims, of which those count that the scheduler counts.
func Missing(quota bundle.Quota, claims, others []*v1alpha1.ServerClaim, f *Fleet) string {
	own := policies.GangOf(claims[0])
	if own == nil {
		return ""
	}
	members := musteredWith(claims, others, own.Name)
	sizes, lost := make([]int64, len(members)), 0
	for i, m := range members {
		sizes[i] = policies.GangOf(m).Size
		if m.Spec.ServerRef != nil && f.own[keyOf(m)] == "" {
			lost++
		}
	}
	if _, why := policies.Assembled(quota, claims[0].Namespace, sizes, lost); why != "" {
		return why
	}
	if own.Size > int64(len(f.servers)) {
		return fmt.Sprintf("it takes %d servers, and the whole fleet, free or not, has %d; "+
			"its members wait until there are more or the gang is smaller", own.Size, len(f.servers))
	}
	return ""
}

// musteredWith are some members of a gang together with those among other claims that count.
func musteredWith(claims, others []*v1alpha1.ServerClaim, gang string) []*v1alpha1.ServerClaim {
	members := slices.Clone(claims)
	for _, other := range others {
		same := func(c *v1alpha1.ServerClaim) bool { return keyOf(c) == keyOf(other) }
		if other.Namespace != claims[0].Namespace || !policies.Musters(other) || slices.ContainsFunc(claims, same) {
			continue
		}
		if theirs := policies.GangOf(other); theirs != nil && theirs.Name == gang {
			members = append(members, other)
		}
	}
	return members
}
