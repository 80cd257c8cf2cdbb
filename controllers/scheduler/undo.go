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
	"github.com/metalaw/metalaw/internal/stored"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/policies/index"
)

// clearSuspects undoes bindings whose claim no longer wants the server: a crash, the end of the claim, or a claim that named another
// server, came between the two writes. Only servers for which nothing was booted are touched; everything else is for the
// server's lifecycle.
func (s *Scheduler) clearSuspects(ctx context.Context) error {
	var failed error
	for _, name := range s.uncertain.suspects() {
		cleared, err := s.clearSuspect(ctx, name)
		failed = errors.Join(failed, err)
		if cleared {
			s.uncertain.cleared(name)
		}
	}
	return failed
}

// clearSuspect looks at one server. It says whether nothing is to be done any more until the server or its claim changes.
func (s *Scheduler) clearSuspect(ctx context.Context, name string) (bool, error) {
	e := s.fleet.Get(name)
	if e == nil || !retractable(index.Server(e)) {
		return true, nil
	}
	known, err := claimOf(ctx, s.binder.client, e)
	if err != nil || !mayClear(index.Server(e), known) {
		return err == nil, err
	}
	done, err := s.binder.undo(ctx, e, false)
	if err != nil && !isDenied(err) { // it may have happened: until that was looked up, nothing is done for the claim, nor for its gang
		s.uncertain.takingBack(types.UID(e.Holder.UID), e.Name(), s.now())
	}
	return done, err
}

// suspect has a server looked at before the next cycle if it may be written for a claim that does not want it. It says
// whether it does.
func (s *Scheduler) suspect(e *index.Entry) bool {
	if !retractable(index.Server(e)) {
		return false
	}
	if c, _ := s.pending.get(types.UID(e.Holder.UID)); c != nil && wants(c, index.Server(e)) {
		return false
	}
	s.uncertain.suspect(e.Name())
	return true
}

// suspectsOf does so for the servers that are written for a claim of this name, of which c is what is known now, nil where it is
// gone.
func (s *Scheduler) suspectsOf(key index.ClaimKey, c *v1alpha1.ServerClaim) bool {
	found := false
	for _, e := range s.fleet.HeldBy(key) {
		if retractable(index.Server(e)) && (c == nil || !wants(c, index.Server(e))) {
			s.uncertain.suspect(e.Name())
			found = true
		}
	}
	return found
}

// undo takes a claim's reference off a server for which nothing was booted, if the claim has another server, or is gone
// and the server never left Available; with unneeded also if it names none. That is looked up uncached: a claim that the cache does not
// show is not known to be gone. A server that changed meanwhile is left as it is, and done is false.
func (b *binder) undo(ctx context.Context, e *index.Entry, unneeded bool) (done bool, err error) {
	server := index.Server(e)
	if !retractable(server) {
		return false, nil
	}
	key, uid := e.Claim(), types.UID(e.Holder.UID)
	live, err := claimOf(ctx, b.live, e)
	if err != nil {
		return false, fmt.Errorf("look for claim %s/%s of server %s: %w", key.Namespace, key.Name, e.Name(), err)
	}
	isGone := live == nil || live.UID != uid
	switch {
	case isGone && b.pending.foundGone(key.Namespace, uid):
		b.freed.Store(true)
	case !isGone && unneeded && live.Spec.ServerRef != nil: // the answer to the write that named it got lost
		b.pending.wrote(live)
		return true, nil
	case !isGone && unneeded:
		return b.takeBack(ctx, e)
	}
	if !mayClear(server, live) || live != nil && policies.RelationOf(server, live) == policies.Adoptable {
		return false, nil
	}
	return b.takeBack(ctx, e)
}

// claimOf reads the claim whose name is written on a server; nil where there is none.
func claimOf(ctx context.Context, from client.Reader, e *index.Entry) (*v1alpha1.ServerClaim, error) {
	return stored.One[v1alpha1.ServerClaim](ctx, from, e.Claim().Namespace, e.Claim().Name)
}

// mayClear says that the reference of a server may be taken away, by the claim of that name, nil where there is none: the claim has
// another server, or does not exist and the server never left Available.
func mayClear(server *v1alpha1.Server, c *v1alpha1.ServerClaim) bool {
	if c != nil && wants(c, server) {
		return false
	}
	return Untouched(server) || c != nil && namesAnother(c, server)
}

// takeBack takes a claim's reference off a server as it is known. One that changed meanwhile is left as it is, and done is false.
func (b *binder) takeBack(ctx context.Context, e *index.Entry) (done bool, err error) {
	key, uid := e.Claim(), types.UID(e.Holder.UID)
	_, err = b.writeServer(ctx, e, ForgetBinding)
	switch {
	case apierrors.IsConflict(err):
		return false, nil
	case apierrors.IsNotFound(err):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("take server %s back from claim %s/%s: %w", e.Name(), key.Namespace, key.Name, err)
	}
	isWanted := b.pending.offered(b.fleet.Get(e.Name()))
	if b.pending.respread(key.Namespace, uid) || isWanted {
		b.freed.Store(true)
	}
	undone.Inc()
	logf.FromContext(ctx).Info("binding undone", "server", e.Name(), "claim", key.Namespace+"/"+key.Name, "claimUID", uid)
	return true, nil
}

// ForgetBinding takes a binding off a server in memory. It is for servers only for which nothing was booted.
func ForgetBinding(server *v1alpha1.Server) {
	server.Spec.ServerClaimRef = nil
	delete(server.Annotations, v1alpha1.ClaimUIDAnnotation)
	delete(server.Annotations, v1alpha1.BindingAnnotation)
}

// wants says that a claim may still want the server that is written for it.
func wants(c *v1alpha1.ServerClaim, server *v1alpha1.Server) bool {
	return holds(c, server) && (c.Spec.ServerRef == nil || c.Spec.ServerRef.Name == server.Name)
}

// namesAnother says that a claim has another server than the one that is written for it.
func namesAnother(c *v1alpha1.ServerClaim, server *v1alpha1.Server) bool {
	return holds(c, server) && c.Spec.ServerRef != nil && c.Spec.ServerRef.Name != server.Name
}

func holds(c *v1alpha1.ServerClaim, server *v1alpha1.Server) bool {
	return string(c.UID) == server.Annotations[v1alpha1.ClaimUIDAnnotation]
}

// Untouched says that a server was written for a claim's UID and that nothing was booted for it: it is still Available, and the mark that
// is stored before the first boot is not there. Its reference may be taken away under the optimistic lock, and no wipe is due.
func Untouched(s *v1alpha1.Server) bool {
	return s.Status.State == v1alpha1.StateAvailable && written(s)
}

// retractable says that a server was written for a claim's UID and may be taken back: nothing was booted for the claim. One
// that has moved to Reserved is so only on the word of the claim itself, and where its lifecycle is known, because a status
// that was lost shows no marks.
func retractable(s *v1alpha1.Server) bool {
	return Untouched(s) || s.Status.State == v1alpha1.StateReserved && s.Status.Lifecycle != nil && written(s)
}

// written says that a server is written for a claim's UID, and not Dirty.
func written(s *v1alpha1.Server) bool {
	return s.Spec.ServerClaimRef != nil && s.Annotations[v1alpha1.ClaimUIDAnnotation] != "" && !v1alpha1.BindingEnded(s) &&
		!policies.ServerStateOf(s).Dirty
}
