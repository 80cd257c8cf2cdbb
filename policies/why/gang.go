// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"

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
	// Answers has one for each member, in their order. Each sees the servers of those before it as taken.
	Answers []Answer
	// Complete: every member has a server.
	Complete bool
	// After is the fleet then; as it was before where not every member has a server.
	After *Fleet
}

// Serve judges the members of a gang in turn; one claim by itself is a gang of one. The quota bounds the servers of their
// namespace. The error is for a claim that asks for what has no meaning.
func Serve(ctx context.Context, policy *selection.Policy, quota bundle.Quota, members []Member, f *Fleet) (Served, error) {
	served := Served{Complete: true, After: f}
	for _, m := range members {
		a, err := Judge(ctx, policy, m.Claim, m.Priority, served.After)
		if err != nil {
			return Served{}, err
		}
		if words := quota.Exceeded(m.Claim.Namespace, served.After.heldIn[m.Claim.Namespace], 1); words != "" {
			a.Refused = &Reason{v1alpha1.ReasonQuotaExceeded, words, Namespace}
		}
		served.Answers = append(served.Answers, a)
		if taken, ok := a.Taken(); ok {
			served.After = served.After.Bind(m.Claim, taken.Name)
		} else {
			served.Complete = false
		}
	}
	if !served.Complete {
		served.After = f
	}
	return served, nil
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
