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
	"github.com/metalaw/metalaw/policies/index"
)

// settleStrays undoes bindings that no claim stands behind: a crash, the end of the claim, or a claim that named another
// server, came between the two writes. Only servers for which nothing was booted are touched; everything else is for the
// server's lifecycle.
func (s *Scheduler) settleStrays(ctx context.Context) error {
	var failed error
	for _, name := range s.uncertain.suspects() {
		cleared, err := s.settleStray(ctx, name)
		failed = errors.Join(failed, err)
		if cleared {
			s.uncertain.cleared(name)
		}
	}
	return failed
}

// settleStray looks at one server. It says whether nothing is to be done any more until the server or its claim changes.
func (s *Scheduler) settleStray(ctx context.Context, name string) (bool, error) {
	e := s.fleet.Get(name)
	if e == nil || !retractable(index.Server(e)) {
		return true, nil
	}
	var known v1alpha1.ServerClaim
	err := s.client.Get(ctx, types.NamespacedName{Namespace: e.Claim().Namespace, Name: e.Claim().Name}, &known)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return false, err
	case err == nil && standsBehind(&known, index.Server(e)):
		return true, nil
	case !untouched(index.Server(e)) && !(err == nil && namesAnother(&known, index.Server(e))):
		return true, nil
	}
	done, err := s.undo(ctx, e)
	if err != nil && !isDenied(err) { // it may have happened: until that was looked up, nothing is done for the claim, nor for its gang
		s.mayBeTakenBack(types.UID(e.Holder.UID), e.Name())
	}
	return done, err
}

// mayBeTakenBack remembers that a server was to be taken back from a claim, and that it is not known whether it was.
func (s *Scheduler) mayBeTakenBack(uid types.UID, server string) {
	s.uncertain.note(uid, func(u *uncertainWrite) { u.takenBack, u.back = server, s.now() })
}

// suspect has a server looked at before the next pass if it may be written for a claim that does not stand behind that. It says
// whether it does.
func (s *Scheduler) suspect(e *index.Entry) bool {
	if !retractable(index.Server(e)) {
		return false
	}
	if c, _ := s.pending.get(types.UID(e.Holder.UID)); c != nil && standsBehind(c, index.Server(e)) {
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
		if retractable(index.Server(e)) && (c == nil || !standsBehind(c, index.Server(e))) {
			s.uncertain.suspect(e.Name())
			found = true
		}
	}
	return found
}

// standsBehind says that a claim may still want the server that is written for it.
func standsBehind(c *v1alpha1.ServerClaim, server *v1alpha1.Server) bool {
	return holds(c, server) && (c.Spec.ServerRef == nil || c.Spec.ServerRef.Name == server.Name)
}

// namesAnother says that a claim has another server than the one that is written for it.
func namesAnother(c *v1alpha1.ServerClaim, server *v1alpha1.Server) bool {
	return holds(c, server) && c.Spec.ServerRef != nil && c.Spec.ServerRef.Name != server.Name
}

func holds(c *v1alpha1.ServerClaim, server *v1alpha1.Server) bool {
	return string(c.UID) == server.Annotations[v1alpha1.ClaimUIDAnnotation]
}

// undo takes a claim's reference off a server for which nothing was booted, if the claim has another server, or is gone
// and the server never left Available. That is looked up uncached: a claim that the cache does not show is not known to be
// gone. A server that changed meanwhile is left as it is.
func (s *Scheduler) undo(ctx context.Context, e *index.Entry) (bool, error) {
	if !retractable(index.Server(e)) {
		return false, nil
	}
	key, uid := e.Claim(), types.UID(e.Holder.UID)
	var live v1alpha1.ServerClaim
	err := s.live.Get(ctx, types.NamespacedName{Namespace: key.Namespace, Name: key.Name}, &live)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("look for claim %s/%s of server %s: %w", key.Namespace, key.Name, index.Server(e).Name, err)
	}
	if isGone := err != nil || live.UID != uid; isGone && s.pending.foundGone(key.Namespace, uid) {
		s.freed.Store(true)
	}
	if err == nil && (standsBehind(&live, index.Server(e)) || RelationOf(index.Server(e), &live) == Adoptable) {
		return false, nil
	}
	if !untouched(index.Server(e)) && !(err == nil && namesAnother(&live, index.Server(e))) {
		return false, nil
	}
	return s.takeBack(ctx, e)
}

// takeBack takes a claim's reference off a server as it is known. One that changed meanwhile is left as it is, and done is false.
func (s *Scheduler) takeBack(ctx context.Context, e *index.Entry) (done bool, err error) {
	_, err = s.writeServer(ctx, e, func(server *v1alpha1.Server) error {
		ForgetBinding(server)
		return nil
	})
	switch {
	case apierrors.IsConflict(err):
		return false, nil
	case apierrors.IsNotFound(err):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("take server %s back from claim %s/%s: %w", e.Name(), e.Claim().Namespace, e.Claim().Name, err)
	}
	s.tookBack(ctx, e)
	return true, nil
}

// tookBack tells those who may want a server, or keep apart from the claim that it was written for, that it was taken back.
func (s *Scheduler) tookBack(ctx context.Context, e *index.Entry) {
	key, uid := e.Claim(), types.UID(e.Holder.UID)
	isWanted := s.pending.offered(s.fleet.Get(e.Name()))
	if s.pending.respread(key.Namespace, uid) || isWanted {
		s.freed.Store(true)
	}
	undone.Inc()
	logf.FromContext(ctx).Info("binding undone", "server", e.Name(), "claim", key.Namespace+"/"+key.Name, "claimUID", uid)
}

// ForgetBinding takes a binding off a server in memory. It is for servers only for which nothing was booted.
func ForgetBinding(server *v1alpha1.Server) {
	server.Spec.ServerClaimRef = nil
	delete(server.Annotations, v1alpha1.ClaimUIDAnnotation)
	delete(server.Annotations, v1alpha1.BindingAnnotation)
}
