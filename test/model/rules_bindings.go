// SPDX-License-Identifier: Apache-2.0

package model

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

func uidOf(text string) types.UID { return types.UID(text) }

// The API shows the versions of one kind in the order in which they were stored, so that what two objects of a kind say at
// one moment can be told exactly.

// judgeServer compares a new version of a server with the other servers, and with the version before. It is called with
// the lock held.
func (r *record) judgeServer(at time.Time, s *v1alpha1.Server) {
	r.judgeHands(at, s)
	ref := s.Spec.ServerClaimRef
	if ref == nil {
		return
	}
	machine := machineOf(s.Name)
	uid := s.Annotations[v1alpha1.ClaimUIDAnnotation]
	for name, h := range r.servers {
		other, there := h.last()
		if !there || other.Spec.ServerClaimRef == nil || name == s.Name {
			continue
		}
		if *other.Spec.ServerClaimRef == *ref && other.Annotations[v1alpha1.ClaimUIDAnnotation] == uid && !r.meddled[name] && !r.meddled[s.Name] {
			r.breach("one server for one claim", machine, at, "claim %s is on the servers %s and %s", ref.Name, name, s.Name)
		}
	}
	if was, there := r.servers[s.Name].last(); there && was.UID == s.UID && was.Spec.ServerClaimRef != nil {
		if *was.Spec.ServerClaimRef != *ref {
			r.breach("one claim for one server", machine, at, "it was taken from claim %s and given to %s", was.Spec.ServerClaimRef.Name, ref.Name)
		}
	}
}

// judgeClaim compares a new version of a claim with the other claims, and with the version before. It is called with the
// lock held.
func (r *record) judgeClaim(at time.Time, tenant string, c *v1alpha1.ServerClaim) {
	was, there := r.claims[tenant].last()
	if there && was.Spec.ServerRef != nil && (c.Spec.ServerRef == nil || *c.Spec.ServerRef != *was.Spec.ServerRef) {
		former := was.Spec.ServerRef.Name
		r.breach("a claim keeps its server", machineOf(former), at, "claim %s named %s, and now names %v", c.Name, former, c.Spec.ServerRef)
	}
	if !has(c) || r.meddled[c.Spec.ServerRef.Name] {
		return
	}
	for name, h := range r.claims {
		if other, there := h.last(); there && name != tenant && has(other) && *other.Spec.ServerRef == *c.Spec.ServerRef {
			r.breach("one claim for one server", machineOf(c.Spec.ServerRef.Name), at, "it has the claims %s and %s", other.Name, c.Name)
		}
	}
}

// has says that a claim is told to have the server that it names.
func has(c *v1alpha1.ServerClaim) bool {
	return c.Status.Phase == v1alpha1.PhaseBound && c.Spec.ServerRef != nil && c.DeletionTimestamp.IsZero()
}

// machineOf is the machine that a server stands for.
func machineOf(server string) string {
	const ending = "-system-0"
	return server[:max(0, len(server)-len(ending))]
}
