// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/rollout"
	"github.com/metalaw/metalaw/engine"
)

// troubled are the servers that a canary has brought into trouble since it began in its scope.
type troubled struct {
	since          time.Time
	halted, failed map[types.UID]bool
}

func newTroubled(since time.Time) *troubled {
	return &troubled{since: since, halted: map[types.UID]bool{}, failed: map[types.UID]bool{}}
}

// has says that a server was counted.
func (t *troubled) has(server types.UID) bool { return t.halted[server] || t.failed[server] }

// counts is what was counted of the servers, by revision.
type counts struct {
	servers  map[string]int32
	troubles map[string]rollout.Troubles
	// dropped are the servers that a revision is to govern and cannot, by their state.
	dropped map[string]map[string]int32
}

// count counts the servers of each revision, those that a canary has brought into trouble, and those in states that the
// revision which is to govern them has dropped.
func (c *reconciler) count(ctx context.Context, revisions []policyv1alpha1.PolicyRevision) (counts, error) {
	var list v1alpha1.ServerList
	n := counts{servers: map[string]int32{}, troubles: map[string]rollout.Troubles{}, dropped: map[string]map[string]int32{}}
	if err := c.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return n, err
	}
	for i := range list.Items {
		s := &list.Items[i]
		l := s.Status.Lifecycle
		if l == nil {
			continue
		}
		n.servers[l.Revision]++
		b := c.Store.Governing(s)
		if c.Store.Missing() != "" {
			continue
		}
		if state := string(s.Status.State); b.Revision.Name != l.Revision && !b.Takes(engine.State(state)) {
			if n.dropped[b.Revision.Name] == nil {
				n.dropped[b.Revision.Name] = map[string]int32{}
			}
			n.dropped[b.Revision.Name][state]++
		}
	}
	known := map[string]*troubled{}
	for i := range revisions {
		r := &revisions[i]
		if r.Status.Canary == nil {
			continue
		}
		t := c.troubled[r.Name]
		if since := r.Status.Canary.Since.Time; t == nil || !t.since.Equal(since) {
			t = newTroubled(since)
		}
		for j := range list.Items {
			t.see(r.Name, &list.Items[j])
		}
		known[r.Name] = t
		n.troubles[r.Name] = rollout.Troubles{Halts: int32(len(t.halted)), Errors: int32(len(t.failed))}
	}
	c.troubled = known
	return n, nil
}

// see counts a server that was halted under a canary, or moved to Error by it, since it began. Each counts once, also when
// it has recovered.
func (t *troubled) see(revision string, s *v1alpha1.Server) {
	l := s.Status.Lifecycle
	if l == nil {
		return
	}
	for _, h := range l.Halts {
		if h.Revision == revision && t.counts(h.At.Time) {
			t.halted[s.UID] = true
		}
	}
	for _, c := range s.Status.Conditions {
		halted := c.Type == v1alpha1.ConditionPolicyHalted && c.Status == metav1.ConditionTrue
		if halted && l.Revision == revision && t.counts(c.LastTransitionTime.Time) {
			t.halted[s.UID] = true
		}
	}
	for i := range l.History {
		if m := &l.History[i]; m.Revision == revision && m.To == v1alpha1.StateError && t.counts(m.At.Time) {
			t.failed[s.UID] = true
		}
	}
}

// counts says whether something happened since the canary began; both are told to the second.
func (t *troubled) counts(at time.Time) bool {
	return !at.Truncate(time.Second).Before(t.since.Truncate(time.Second))
}
