// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/claims"
	"github.com/metalaw/metalaw/policies"
)

// order is where a claim stands among those that wait.
type order struct {
	// Place counts from 1; Of is how many wait.
	Place int `json:"place"`
	Of    int `json:"of"`
	// Priority is what the bundle grants of Asked; with what the claim has waited it is Aged.
	Priority int64 `json:"priority"`
	Asked    int64 `json:"asked"`
	Aged     int64 `json:"aged"`
	// Everywhere says that the claims of all namespaces are counted, and not of this one alone.
	Everywhere bool `json:"everywhere"`
}

// waits says that a claim is to get a server.
func waits(c *v1alpha1.ServerClaim) bool {
	return c.DeletionTimestamp.IsZero() && !v1alpha1.Ignored(c) && !meta.IsStatusConditionTrue(c.Status.Conditions, v1alpha1.ConditionBound)
}

func (w *world) granted() bundle.Priority {
	if w.bundle == nil {
		return bundle.Priority{Max: bundle.MaxPriority}
	}
	return w.bundle.Settings.Claims.Priority
}

// quota bounds the servers of namespaces; nothing is bounded where the bundle is not known.
func (w *world) quota() bundle.Quota {
	if w.bundle == nil {
		return bundle.Quota{}
	}
	return w.bundle.Settings.Claims.Quota
}

// claimOf is a claim as the solver sees it.
func (w *world) claimOf(c *v1alpha1.ServerClaim) *claims.Claim {
	one := policies.ClaimOf(c, w.granted(), w.now)
	if w.objects == nil {
		w.objects = map[*claims.Claim]*v1alpha1.ServerClaim{}
	}
	w.objects[one] = c
	return one
}

// queue are the claims that wait, in the order of the scheduler.
func (w *world) queue() []*claims.Claim {
	var all []*claims.Claim
	for i := range w.claims {
		if waits(&w.claims[i]) {
			all = append(all, w.claimOf(&w.claims[i]))
		}
	}
	slices.SortFunc(all, claims.Before)
	return all
}

// orderOf is nil where the claim is not among those that the reader may list.
func (w *world) orderOf(c *v1alpha1.ServerClaim) *order {
	queue := w.queue()
	at := slices.IndexFunc(queue, func(o *claims.Claim) bool { return o.UID == string(c.UID) })
	if at < 0 {
		return nil
	}
	is := queue[at]
	return &order{Place: at + 1, Of: len(queue), Priority: is.Asked.Priority, Asked: is.Wants, Aged: is.Rank, Everywhere: w.everywhere}
}

// misnames says why a claim gets no server because it names one; empty where it may. The members of a gang get theirs together, so that
// only one that had a server names it.
func (w *world) misnames(c *v1alpha1.ServerClaim) string {
	if c.Spec.ServerRef == nil || policies.GangOf(c) == nil || policies.HadServer(c) || w.written(c) != nil {
		return ""
	}
	return "another claim in its place, without spec.serverRef: a claim of a gang cannot name its server, and serverRef cannot be changed"
}

// gang are the members of a claim's gang that wait and can be given a server, in order; the claim alone where it has none, or where it
// asks for a server that it had. A member that names a server asks for no other: what it keeps or lost counts for the others.
func (w *world) gang(c *v1alpha1.ServerClaim) []*claims.Claim {
	own := w.claimOf(c)
	if own.Gang() == nil || own.ServerRef != "" {
		return []*claims.Claim{own}
	}
	var all []*claims.Claim
	for _, other := range w.queue() {
		isMember := other.Namespace == own.Namespace && other.GangName() == own.GangName()
		if isMember && (other.Name == own.Name || other.ServerRef == "" && other.CountsAsMember()) {
			all = append(all, other)
		}
	}
	if !slices.ContainsFunc(all, func(o *claims.Claim) bool { return o.Name == own.Name }) {
		all = append(all, own)
	}
	return all
}
