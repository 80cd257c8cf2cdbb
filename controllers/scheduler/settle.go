// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

// settleStrays undoes bindings that no claim stands behind: a crash, or the end of the claim, came between the two
// writes. Only servers that never left Available are touched; everything else is for the server's lifecycle.
func (s *Scheduler) settleStrays(ctx context.Context) error {
	var failed error
	for _, e := range s.fleet.unmoved() {
		var known v1alpha1.ServerClaim
		err := s.client.Get(ctx, types.NamespacedName{Namespace: e.key().namespace, Name: e.key().name}, &known)
		if err == nil && standsBehind(&known, e.server) {
			continue
		}
		if client.IgnoreNotFound(err) != nil {
			failed = errors.Join(failed, err)
			continue
		}
		if _, err := s.undo(ctx, e); err != nil {
			failed = errors.Join(failed, err)
		}
	}
	return failed
}

// standsBehind says that a claim may still want the server that is written for it.
func standsBehind(c *v1alpha1.ServerClaim, server *v1alpha1.Server) bool {
	return string(c.UID) == server.Annotations[v1alpha1.ClaimUIDAnnotation] &&
		(c.Spec.ServerRef == nil || c.Spec.ServerRef.Name == server.Name)
}

// undo takes a claim's reference off a server for which nothing was booted, if the claim is gone or has another server.
// That is looked up uncached: a claim that the cache does not show is not known to be gone. A server that changed
// meanwhile is left as it is.
func (s *Scheduler) undo(ctx context.Context, e *entry) (bool, error) {
	if !untouched(e.server) {
		return false, nil
	}
	key := e.key()
	var live v1alpha1.ServerClaim
	err := s.live.Get(ctx, types.NamespacedName{Namespace: key.namespace, Name: key.name}, &live)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("look for claim %s/%s of server %s: %w", key.namespace, key.name, e.server.Name, err)
	}
	if err == nil && (standsBehind(&live, e.server) || RelationOf(e.server, &live) == Adoptable) {
		return false, nil
	}
	_, err = s.writeServer(ctx, e, func(server *v1alpha1.Server) error {
		ForgetBinding(server)
		return nil
	})
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("take server %s back from claim %s/%s: %w", e.server.Name, key.namespace, key.name, err)
	}
	s.freed = true
	undone.Inc()
	logf.FromContext(ctx).Info("binding undone", "server", e.server.Name, "claim", key.namespace+"/"+key.name,
		"claimUID", e.server.Annotations[v1alpha1.ClaimUIDAnnotation])
	return true, nil
}

// ForgetBinding takes a binding off a server in memory. It is for servers that are Untouched only.
func ForgetBinding(server *v1alpha1.Server) {
	server.Spec.ServerClaimRef = nil
	delete(server.Annotations, v1alpha1.ClaimUIDAnnotation)
	delete(server.Annotations, v1alpha1.BindingAnnotation)
}

// unsure remembers a write to a server of which nobody knows whether it happened.
func (s *Scheduler) unsure(uid types.UID, server string) { s.doubts[uid] = server }

// resolve looks uncached at the server of a write in doubt, before anything else is done for the claim.
func (s *Scheduler) resolve(ctx context.Context, uid types.UID) error {
	name, ok := s.doubts[uid]
	if !ok {
		return nil
	}
	var server v1alpha1.Server
	if err := s.live.Get(ctx, types.NamespacedName{Name: name}, &server); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("see whether server %s was reserved: %w", name, err)
	} else if err == nil {
		s.fleet.wrote(&server)
	}
	delete(s.doubts, uid)
	return nil
}
