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

// maxOrders bounds how often servers are looked for in another order; it is the scheduler's.
const maxOrders = 8

// Serve judges the members of a gang in turn; one claim by itself is a gang of one. As the scheduler does, it tries another order
// where a member is left without a server, with that one first. The quota bounds the servers of their namespace. The error is for
// a claim that asks for what has no meaning.
func Serve(ctx context.Context, policy *selection.Policy, quota bundle.Quota, members []Member, f *Fleet) (Served, error) {
	order := make([]int, len(members))
	for i := range order {
		order[i] = i
	}
	var best Served
	most := -1
	for range max(1, min(maxOrders, len(members))) {
		served, missing, err := serveInOrder(ctx, policy, quota, members, order, f)
		if err != nil || served.Complete {
			return served, err
		}
		if found := len(members) - len(missing); found > most {
			best, most = served, found
		}
		order = slices.DeleteFunc(order, func(i int) bool { return i == missing[0] })
		order = slices.Insert(order, 0, missing[0])
	}
	return best, nil
}

// serveInOrder judges the members in an order. It returns those that are left without a server, the first one first.
func serveInOrder(ctx context.Context, policy *selection.Policy, quota bundle.Quota, members []Member, order []int, f *Fleet) (
	Served, []int, error,
) {
	served := Served{Answers: make([]Answer, len(members)), After: f}
	var missing []int
	for _, i := range order {
		a, err := Judge(ctx, policy, members[i].Claim, members[i].Priority, served.After)
		if err != nil {
			return Served{}, nil, err
		}
		namespace := members[i].Claim.Namespace
		if words := quota.Exceeded(namespace, served.After.heldIn[namespace], 1); words != "" {
			a.Refused = &Reason{v1alpha1.ReasonQuotaExceeded, words, Namespace}
		}
		served.Answers[i] = a
		if taken, ok := a.Taken(); ok {
			served.After = served.After.Bind(members[i].Claim, taken.Name)
		} else {
			missing = append(missing, i)
		}
	}
	if served.Complete = len(missing) == 0; !served.Complete {
		served.After = f
	}
	return served, missing, nil
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
