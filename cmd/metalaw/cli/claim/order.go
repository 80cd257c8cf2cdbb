// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
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

// priority is what the bundle grants a claim, without what it has waited.
func (w *world) priority(c *v1alpha1.ServerClaim) int64 {
	return w.granted().Grant(c.Namespace, policies.PriorityOf(c))
}

// queue are the claims that wait, the first to be served first: by priority with what they have waited, then age, then namespace
// and name.
func (w *world) queue() []*v1alpha1.ServerClaim {
	var all []*v1alpha1.ServerClaim
	for i := range w.claims {
		if waits(&w.claims[i]) {
			all = append(all, &w.claims[i])
		}
	}
	slices.SortFunc(all, w.before)
	return all
}

// before puts the claim first that is to be served first.
func (w *world) before(a, b *v1alpha1.ServerClaim) int {
	return cmp.Or(cmp.Compare(w.aged(b), w.aged(a)), a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
		cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

func (w *world) aged(c *v1alpha1.ServerClaim) int64 {
	return w.granted().Aged(w.priority(c), w.now.Sub(c.CreationTimestamp.Time).Truncate(time.Second))
}

// orderOf is nil where the claim is not among those that the reader may list.
func (w *world) orderOf(c *v1alpha1.ServerClaim) *order {
	queue := w.queue()
	at := slices.IndexFunc(queue, func(o *v1alpha1.ServerClaim) bool { return o.UID == c.UID })
	if at < 0 {
		return nil
	}
	return &order{Place: at + 1, Of: len(queue), Priority: w.priority(c), Asked: policies.PriorityOf(c), Aged: w.aged(c), Everywhere: w.everywhere}
}

// misnames says why a claim gets no server because it names one; empty where it may. The members of a gang get theirs together, so that
// only one that had a server names it.
func (w *world) misnames(c *v1alpha1.ServerClaim) string {
	if c.Spec.ServerRef == nil || policies.GangOf(c) == nil || policies.HadServer(c) {
		return ""
	}
	if w.written(c) != nil {
		return ""
	}
	return "another claim in its place, without spec.serverRef: a claim of a gang cannot name its server, and serverRef cannot be changed"
}

// gang are the members of a claim's gang that wait and can be given a server, in order; the claim alone where it has none, or where it
// asks for a server that it had. A member that names a server asks for no other: what it keeps or lost counts for the others.
func (w *world) gang(c *v1alpha1.ServerClaim) []*v1alpha1.ServerClaim {
	own := policies.GangOf(c)
	if own == nil || c.Spec.ServerRef != nil {
		return []*v1alpha1.ServerClaim{c}
	}
	var all []*v1alpha1.ServerClaim
	found := false
	for _, other := range w.queue() {
		if other.Namespace != c.Namespace || other.Name != c.Name && (other.Spec.ServerRef != nil || !policies.Musters(other)) {
			continue
		}
		if gang := policies.GangOf(other); gang != nil && gang.Name == own.Name {
			all = append(all, other)
			found = found || other.Name == c.Name
		}
	}
	if !found {
		all = append(all, c)
	}
	return all
}
