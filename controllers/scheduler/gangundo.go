// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/claims/solve"
	"github.com/metalaw/metalaw/policies/index"
)

// completeOrGiveBack goes on with what is reserved for a gang that cannot all have servers now: it is completed where some member names
// its server, and else given back. It returns the members that get nothing in this pass.
func (r *cycle) completeOrGiveBack(ctx context.Context, key gangKey, members []*namespaceClaim, everyone []pendingClaim) (left []pendingClaim) {
	var reserved []pendingClaim
	for _, a := range everyone {
		if r.reservedFor(a) != nil {
			reserved = append(reserved, a)
		} else {
			left = append(left, a)
		}
	}
	if len(reserved) == 0 || r.s.observeOnly {
		return everyone
	}
	committed, err := r.committed(ctx, members, reserved)
	if err != nil {
		r.fail(reserved[0], err)
		return left
	}
	if !committed {
		if !r.mayArrive(reserved) {
			r.giveBack(ctx, reserved)
		}
		return everyone
	}
	g := &gangAttempt{key: key, everyone: reserved, committed: true}
	for _, a := range reserved {
		if todo, is := r.snapshot.Written(a.ask); is {
			g.members = append(g.members, &bindAttempt{pendingClaim: a, todo: todo, revision: r.revision})
		}
	}
	r.startGang(ctx, g)
	return left
}

// longestWrite is how long after a write that got no answer it may still arrive: an API server ends a request after a minute.
const longestWrite = time.Minute

// mayArrive says that a write which names a server on some member may still arrive. Then nothing is taken back: the claim would name
// a server that is somebody else's by then, and the others would have lost theirs. It is looked at again.
func (r *cycle) mayArrive(reserved []pendingClaim) bool {
	now := r.s.now()
	for _, a := range reserved {
		if at := r.s.uncertain.of(a.claim.UID).named; now.Sub(at) < longestWrite {
			r.s.backoff.lost(a.claim.UID, now, longestWait)
			return true
		}
	}
	return false
}

// committed says that some member of a gang names its server. Of those that are not known to, that is looked up uncached: the answer
// to the write that named it may have got lost.
func (r *cycle) committed(ctx context.Context, members []*namespaceClaim, reserved []pendingClaim) (bool, error) {
	if r.anyNamed(members) {
		return true, nil
	}
	for _, a := range reserved {
		var live v1alpha1.ServerClaim
		err := r.s.live.Get(ctx, client.ObjectKeyFromObject(a.claim), &live)
		if client.IgnoreNotFound(err) != nil {
			return false, fmt.Errorf("see whether claim %s names its server: %w", claimName(a.claim), err)
		}
		if e := r.reservedFor(a); err == nil && e != nil && live.UID == a.claim.UID && live.DeletionTimestamp.IsZero() &&
			live.Spec.ServerRef != nil && live.Spec.ServerRef.Name == e.Name() {
			r.s.pending.wrote(&live)
			return true, nil
		}
	}
	return false, nil
}

// anyNamed says that some member of a gang names the server that is written for it.
func (r *cycle) anyNamed(members []*namespaceClaim) bool {
	return slices.ContainsFunc(members, func(m *namespaceClaim) bool {
		if m.claim.Spec.ServerRef == nil {
			return false
		}
		e := r.s.fleet.Get(m.claim.Spec.ServerRef.Name)
		return e != nil && RelationOf(index.Server(e), m.claim) == Holds
	})
}

// giveBack takes back the servers that are written for members which cannot all have one now. Where that cannot be done now, it is
// tried again soon, whatever the claim is told meanwhile.
func (r *cycle) giveBack(ctx context.Context, members []pendingClaim) {
	type reserved struct {
		pendingClaim
		entry *index.Entry
		done  bool
		err   error
	}
	var all []reserved
	for _, a := range members {
		if e := r.reservedFor(a); e != nil && !r.s.observeOnly {
			all = append(all, reserved{pendingClaim: a, entry: e})
		}
	}
	r.s.each(len(all), func(i int) bool {
		all[i].done, all[i].err = r.s.undoMember(ctx, all[i].claim, all[i].entry)
		return true
	}, func(i int, p any) {
		all[i].err = fmt.Errorf("take server %s back from claim %s: panic: %v", all[i].entry.Name(), claimName(all[i].claim), p)
	})
	for _, one := range all {
		r.snapshot.Forget()
		switch {
		case one.err != nil:
			if !isDenied(one.err) {
				r.s.mayBeTakenBack(one.claim.UID, one.entry.Name())
			}
			r.fail(one.pendingClaim, one.err)
		case !one.done:
			r.s.uncertain.suspect(one.entry.Name()) // its claim may have gone
			r.s.backoff.lost(one.claim.UID, r.s.now(), longestWait)
		}
	}
}

// reservedFor is the server that is written for a member which does not name it, and for which nothing was booted; else nil.
func (r *cycle) reservedFor(a pendingClaim) *index.Entry {
	todo, done := r.snapshot.Written(a.ask)
	if !done || todo.Action != solve.Complete {
		return nil
	}
	if e := r.s.fleet.Get(todo.Server); e != nil && untouched(index.Server(e)) {
		return e
	}
	return nil
}

// undoMember takes back a server that is written for a member of a gang, which does not name it. That is looked up uncached: the
// answer to the write that named it may have got lost. A server that changed meanwhile is left as it is, and done is false where
// it is to be looked at again.
func (s *Scheduler) undoMember(ctx context.Context, c *v1alpha1.ServerClaim, e *index.Entry) (done bool, err error) {
	var live v1alpha1.ServerClaim
	err = s.live.Get(ctx, client.ObjectKeyFromObject(c), &live)
	switch {
	case apierrors.IsNotFound(err) || err == nil && live.UID != c.UID:
		return s.undo(ctx, e)
	case err != nil:
		return false, fmt.Errorf("look for claim %s of server %s: %w", claimName(c), e.Name(), err)
	case live.Spec.ServerRef != nil:
		s.pending.wrote(&live)
		return true, nil
	}
	return s.takeBack(ctx, e)
}
