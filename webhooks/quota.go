// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/policies/index"
	"github.com/metalaw/metalaw/webhooks/review"
)

// quotas counts the claims of namespaces. The cache knows those that are stored; a process also remembers what it admitted a
// moment ago. What another replica admitted meanwhile it does not know: the scheduler counts again before it binds.
type quotas struct {
	cache client.Reader
	now   func() time.Time

	mu sync.Mutex
	// recent are the claims that were admitted a moment ago.
	recent map[client.ObjectKey]time.Time
}

// usage is how many claims a namespace has beside the one that is asked for.
type usage struct {
	policies.ClaimUsage
	// pending are those that are counted, were admitted a moment ago and are not known to be stored.
	pending int
	// stored says that there is a claim of the name that is asked for.
	stored bool
}

func newQuotas(cache client.Reader, now func() time.Time) *quotas {
	return &quotas{cache: cache, now: now, recent: map[client.ObjectKey]time.Time{}}
}

// take counts the claims of a namespace and, where there is room for one more and keep is set, reserves it for the claim.
func (q *quotas) take(ctx context.Context, c *v1alpha1.ServerClaim, limit int, keep bool) (usage, error) {
	q.mu.Lock() // until the claim is counted: of two that come at once the second sees the first
	defer q.mu.Unlock()
	var all v1alpha1.ServerClaimList
	if err := q.cache.List(ctx, &all, client.InNamespace(c.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return usage{}, fmt.Errorf("the claims of namespace %s cannot be counted: %w", c.Namespace, err)
	}
	u := usage{ClaimUsage: policies.ClaimUsage{Namespace: c.Namespace, Limit: limit}}
	for i := range all.Items {
		other := &all.Items[i]
		delete(q.recent, client.ObjectKeyFromObject(other))
		switch {
		case other.Name == c.Name:
			u.stored = true
		case policies.TakesServer(other):
			u.Used++
		}
	}
	now, self := q.now(), client.ObjectKeyFromObject(c)
	maps.DeleteFunc(q.recent, func(_ client.ObjectKey, at time.Time) bool { return now.Sub(at) >= inFlight })
	for key := range q.recent {
		if key.Namespace == c.Namespace && key != self {
			u.Used++
			u.pending++
		}
	}
	if keep && u.Used < u.Limit {
		q.recent[self] = now
	}
	return u, nil
}

// release forgets that a claim was admitted.
func (q *quotas) release(c *v1alpha1.ServerClaim) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.recent, client.ObjectKeyFromObject(c))
}

// usage counts for a claim that is created in a namespace with a quota; nil for any other, and for one that comes back to its
// server s: that one counts for the namespace as it is.
func (l *claimRules) usage(ctx context.Context, c review.Change[v1alpha1.ServerClaim], s *v1alpha1.Server, b *bundle.Bundle) (*usage, error) {
	if !c.Created() || policies.ComesBack(c.New, s) {
		return nil, nil
	}
	limit, ok := b.Settings.Claims.Quota.Limit(c.New.Namespace)
	if !ok {
		return nil, nil
	}
	u, err := l.quotas.take(ctx, c.New, limit, !c.DryRun)
	if err != nil {
		return nil, err
	}
	if !c.DryRun && u.Used < u.Limit {
		c.OnDenial(func() { l.quotas.release(c.New) })
	}
	u.Revision, u.Kept = b.Revision.Name, !u.stored && l.isKept(c.New)
	if u.pending > 0 {
		u.Among = fmt.Sprintf("%d of them admitted a moment ago; if one of those was not stored, try again in two seconds", u.pending)
	}
	return &u, nil
}

// isKept says that a server is held for a former claim of a name. Which one is not told: it may be of the namespace's former tenant, and
// whoever names it has its data.
func (l *claimRules) isKept(c *v1alpha1.ServerClaim) bool {
	return slices.ContainsFunc(l.servers.Index().HeldBy(index.ClaimKey{Namespace: c.Namespace, Name: c.Name}), func(e *index.Entry) bool {
		return policies.HeldFor(index.Server(e), c)
	})
}

// checkQuota refuses a claim that its namespace has no room for.
func checkQuota(u *usage, found *review.Findings) {
	if u == nil {
		return
	}
	if words := u.Refusal(); words != "" {
		found.Deny(field.Forbidden(field.NewPath("metadata", "namespace"), words))
	}
}
