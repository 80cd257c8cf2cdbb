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
	"github.com/metalaw/metalaw/controllers/revision/rollout"
)

// troubled are the servers that a canary has brought into trouble since it began in its scope.
type troubled struct {
	since          time.Time
	halted, failed map[types.UID]bool
}

// count counts the servers of each revision, and those that a canary has brought into trouble.
func (c *leader) count(ctx context.Context, revisions []policyv1alpha1.PolicyRevision) (
	servers map[string]int32, troubles map[string]rollout.Troubles, err error,
) {
	var list v1alpha1.ServerList
	if err := c.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, err
	}
	servers = map[string]int32{}
	for i := range list.Items {
		if l := list.Items[i].Status.Lifecycle; l != nil {
			servers[l.Revision]++
		}
	}
	troubles = map[string]rollout.Troubles{}
	known := map[string]*troubled{}
	for i := range revisions {
		r := &revisions[i]
		if r.Status.Canary == nil {
			continue
		}
		t := c.troubled[r.Name]
		if since := r.Status.Canary.Since.Time; t == nil || !t.since.Equal(since) {
			t = &troubled{since: since, halted: map[types.UID]bool{}, failed: map[types.UID]bool{}}
		}
		for j := range list.Items {
			t.see(r.Name, &list.Items[j])
		}
		known[r.Name] = t
		troubles[r.Name] = rollout.Troubles{Halts: int32(len(t.halted)), Errors: int32(len(t.failed))}
	}
	c.troubled = known
	return servers, troubles, nil
}

// see counts a server that was halted under a canary, or moved to Error by it, since it began. Each counts once, also when
// it has recovered.
func (t *troubled) see(revision string, s *v1alpha1.Server) {
	l := s.Status.Lifecycle
	if l == nil {
		return
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
