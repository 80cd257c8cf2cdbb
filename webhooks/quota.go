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
	"github.com/metalaw/metalaw/policies/index"
)

// quotas counts the claims of namespaces. The cache knows those that are stored; a process also remembers what it admitted a
// moment ago. What another replica admitted meanwhile it does not know: the scheduler counts again before it binds.
type quotas struct {
	cache client.Reader
	now   func() time.Time

	mu sync.Mutex
	// recent are the claims that were admitted, by namespace and name.
	recent map[string]map[string]time.Time
	// swept is when recent was last swept.
	swept time.Time
}

// usage is how many claims a namespace has beside the one that is asked for.
type usage struct {
	namespace, bundle string
	used, limit       int
	// pending are those of used that were admitted a moment ago and are not known to be stored.
	pending int
	// stored says that there is a claim of the name that is asked for; kept that a server is held for a former one.
	stored, kept bool
}

func newQuotas(cache client.Reader, now func() time.Time) *quotas {
	return &quotas{cache: cache, now: now, recent: map[string]map[string]time.Time{}}
}

// take counts the claims of a namespace and, where there is room for one more and keep is set, reserves it for the claim.
func (q *quotas) take(ctx context.Context, c *v1alpha1.ServerClaim, limit int, keep bool) (usage, error) {
	q.mu.Lock() // until the claim is counted: of two that come at once the second sees the first
	defer q.mu.Unlock()
	var all v1alpha1.ServerClaimList
	if err := q.cache.List(ctx, &all, client.InNamespace(c.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return usage{}, fmt.Errorf("the claims of namespace %s cannot be counted: %w", c.Namespace, err)
	}
	u := usage{namespace: c.Namespace, limit: limit}
	recent := q.recent[c.Namespace]
	for i := range all.Items {
		other := &all.Items[i]
		delete(recent, other.Name)
		switch {
		case other.Name == c.Name:
			u.stored = true
		case takesServer(other):
			u.used++
		}
	}
	now := q.now()
	q.sweep(now)
	for name, at := range recent {
		switch {
		case now.Sub(at) >= inFlight:
			delete(recent, name)
		case name != c.Name:
			u.used++
			u.pending++
		}
	}
	if keep && u.used < u.limit {
		if recent == nil {
			recent = map[string]time.Time{}
			q.recent[c.Namespace] = recent
		}
		recent[c.Name] = now
	} else if len(recent) == 0 {
		delete(q.recent, c.Namespace)
	}
	return u, nil
}

// sweep forgets what was admitted long ago in namespaces of which nobody has asked since.
func (q *quotas) sweep(now time.Time) {
	if now.Sub(q.swept) < inFlight {
		return
	}
	q.swept = now
	for namespace, recent := range q.recent {
		maps.DeleteFunc(recent, func(_ string, at time.Time) bool { return now.Sub(at) >= inFlight })
		if len(recent) == 0 {
			delete(q.recent, namespace)
		}
	}
}

// release forgets that a claim was admitted.
func (q *quotas) release(c *v1alpha1.ServerClaim) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.recent[c.Namespace], c.Name)
}

// takesServer says that a claim holds a server or asks for one. A claim that ends asks for none, and holds its server until it
// is gone.
func takesServer(c *v1alpha1.ServerClaim) bool {
	return c.DeletionTimestamp.IsZero() || refOf(c) != ""
}

// usage counts for a claim that is created in a namespace with a quota; nil for any other, and for one that comes back to its
// server s: that one counts for the namespace as it is.
func (l *lookup) usage(ctx context.Context, c change[v1alpha1.ServerClaim], s *v1alpha1.Server, b *bundle.Bundle) (*usage, error) {
	if !c.created() || comesBack(c.new, s) {
		return nil, nil
	}
	limit, ok := b.Settings.Claims.Quota.Limit(c.new.Namespace)
	if !ok {
		return nil, nil
	}
	u, err := l.quotas.take(ctx, c.new, limit, !c.dryRun)
	if err != nil {
		return nil, err
	}
	if !c.dryRun && u.used < u.limit {
		c.onDenial(func() { l.quotas.release(c.new) })
	}
	u.bundle = b.Revision.Name
	if !u.stored {
		u.kept = l.isKept(c.new)
	}
	return &u, nil
}

// comesBack says that a server which a claim names is held for it, or for a former claim of its name.
func comesBack(c *v1alpha1.ServerClaim, s *v1alpha1.Server) bool {
	return s != nil && refOf(c) == s.Name && namesClaim(s, c) && !v1alpha1.BindingEnded(s)
}

// isKept says that a server is held for a former claim of a name. Which one is not told: it may be of the namespace's former tenant, and
// whoever names it has its data.
func (l *lookup) isKept(c *v1alpha1.ServerClaim) bool {
	return slices.ContainsFunc(l.servers.Index().HeldBy(index.ClaimKey{Namespace: c.Namespace, Name: c.Name}), func(e *index.Entry) bool {
		return !v1alpha1.BindingEnded(e.Server)
	})
}

// checkQuota refuses a claim that its namespace has no room for.
func checkQuota(u *usage, found *findings) {
	if u == nil || u.used < u.limit {
		return
	}
	back := ""
	if u.kept {
		back = "; a server is held for a former claim of this name: a claim that names it in spec.serverRef has it back"
	}
	if u.limit == 0 {
		found.deny(field.Forbidden(field.NewPath("metadata", "namespace"), fmt.Sprintf(
			"exceeded quota: namespace %q may have no claims; ask who keeps the policy to raise settings.claims.quota of the bundle in force (%s)%s",
			u.namespace, u.bundle, back)))
		return
	}
	pending := ""
	if u.pending > 0 {
		pending = fmt.Sprintf(" (%d of them admitted a moment ago; if one of those was not stored, try again in two seconds)", u.pending)
	}
	found.deny(field.Forbidden(field.NewPath("metadata", "namespace"), fmt.Sprintf(
		"exceeded quota: namespace %q has %d of %d claims%s; delete one of them, or ask who keeps the policy to raise settings.claims.quota "+
			"of the bundle in force (%s)%s", u.namespace, u.used, u.limit, pending, u.bundle, back)))
}
