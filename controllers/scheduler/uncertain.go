// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/claims/solve"
	"github.com/metalaw/metalaw/policies/index"
)

// uncertainWrites is what this process does not know for sure: of which writes it does not know whether they happened, by the claim that
// they are for, and which servers may be written for a claim that does not stand behind that. It is safe for concurrent use.
type uncertainWrites struct {
	mu      sync.Mutex
	claims  map[types.UID]uncertainWrite
	servers map[string]struct{}
}

// uncertainWrite is what is not known about one claim.
type uncertainWrite struct {
	// reserved is the server of a reservation whose answer got lost; empty for none. It stays assumed until it was looked up. namespace
	// is that of the claim.
	reserved, namespace string
	// named is when a write that names a server on the claim got no answer; zero for none.
	named time.Time
	// takenBack is the server that was to be taken back from the claim, and back when; empty for none.
	takenBack string
	back      time.Time
}

// suspectAgain is when to look again at a server of which the cache and the API server tell different things.
const suspectAgain = time.Second

func newUncertainWrites() *uncertainWrites {
	return &uncertainWrites{claims: map[types.UID]uncertainWrite{}, servers: map[string]struct{}{}}
}

// of is what is not known about a claim.
func (u *uncertainWrites) of(uid types.UID) uncertainWrite {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.claims[uid]
}

// note changes what is not known about a claim.
func (u *uncertainWrites) note(uid types.UID, change func(*uncertainWrite)) {
	u.mu.Lock()
	defer u.mu.Unlock()
	one := u.claims[uid]
	change(&one)
	if one == (uncertainWrite{}) {
		delete(u.claims, uid)
		return
	}
	u.claims[uid] = one
}

// keep forgets what is over, and what concerns claims that are not open any more. A reservation in doubt is looked up first.
func (u *uncertainWrites) keep(isOpen func(types.UID) bool, now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for uid, one := range u.claims {
		if now.Sub(one.named) >= longestWrite {
			one.named = time.Time{}
		}
		if !isOpen(uid) {
			one.takenBack, one.back = "", time.Time{}
		}
		if u.claims[uid] = one; one == (uncertainWrite{}) {
			delete(u.claims, uid)
		}
	}
}

// reserved are the claims with a reservation in doubt.
func (u *uncertainWrites) reserved() []types.UID {
	u.mu.Lock()
	defer u.mu.Unlock()
	var all []types.UID
	for uid, one := range u.claims {
		if one.reserved != "" {
			all = append(all, uid)
		}
	}
	return all
}

// suspect has a server looked at before the next cycle.
func (u *uncertainWrites) suspect(server string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.servers[server] = struct{}{}
}

func (u *uncertainWrites) cleared(server string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.servers, server)
}

// suspects are the servers to look at, by name.
func (u *uncertainWrites) suspects() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Sorted(maps.Keys(u.servers))
}

// again is when to look at those that are left; 0 for never.
func (u *uncertainWrites) again() time.Duration {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.servers) > 0 {
		return suspectAgain
	}
	return 0
}

// unsure remembers a reservation of which it is not known whether it happened.
func (u *uncertainWrites) unsure(c *v1alpha1.ServerClaim, server string) {
	u.note(c.UID, func(one *uncertainWrite) { one.reserved, one.namespace = server, c.Namespace })
}

// takingBack remembers that a server was to be taken back from a claim, and that it is not known whether it was.
func (u *uncertainWrites) takingBack(uid types.UID, server string, now time.Time) {
	u.note(uid, func(one *uncertainWrite) { one.takenBack, one.back = server, now })
}

// unassume ends what was assumed for a claim. Only servers that may have been written stay assumed, until they were looked at. What is
// assumed takes room from claims that are spread and gives none, so that its end matters to them whatever became of the writes.
func (r *cycle) unassume(m *member) {
	switch isAssumed := m.todo.Action == solve.Bind; {
	case isAssumed && m.done == inDoubt:
		r.s.uncertain.unsure(m.claim, m.entry.Name())
	case isAssumed:
		if e := r.s.fleet.Release(m.entry.Name(), string(m.claim.UID)); e != nil && e.IsFree() {
			r.returned = append(r.returned, e)
		}
		r.again = r.s.pending.respread(m.claim.Namespace, m.claim.UID) || r.again
	}
	if m.done == wasReserved || m.done == wasDropped || m.done == wasBound && !r.s.pending.isOpen(m.claim.UID) {
		r.s.uncertain.suspect(m.server()) // its claim may have gone before it was known that this is written
	}
	if m.done == wasReserved && isUnanswered(m.err) {
		r.s.uncertain.note(m.claim.UID, func(u *uncertainWrite) { u.named = r.s.now() })
	}
}

// resolve looks uncached at the server of a reservation in doubt, before anything else is done for the claim.
func (s *Scheduler) resolve(ctx context.Context, uid types.UID) error {
	one := s.uncertain.of(uid)
	if one.reserved == "" {
		return nil
	}
	if err := s.lookUp(ctx, one.reserved, uid); err != nil {
		return err
	}
	if s.pending.respread(one.namespace, uid) {
		s.binder.freed.Store(true)
	}
	s.uncertain.note(uid, func(u *uncertainWrite) { u.reserved, u.namespace = "", "" })
	return nil
}

// resolveClosed does so for the claims that are no longer served, so that no doubt outlives its claim.
func (s *Scheduler) resolveClosed(ctx context.Context) error {
	var failed error
	for _, uid := range s.uncertain.reserved() {
		if !s.pending.isOpen(uid) {
			failed = errors.Join(failed, s.resolve(ctx, uid))
		}
	}
	return failed
}

// lookUp reads a server uncached that may be written for a claim or not. It is not assumed to be the claim's any more.
func (s *Scheduler) lookUp(ctx context.Context, name string, uid types.UID) error {
	var server v1alpha1.Server
	var found index.Change
	if err := s.binder.live.Get(ctx, types.NamespacedName{Name: name}, &server); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("see whether server %s is written for a claim: %w", name, err)
	} else if err == nil {
		found = s.fleet.Wrote(&server)
	}
	s.fleet.Release(name, string(uid))
	if s.serverChanged(found) { // others may have written to it too
		s.binder.freed.Store(true)
	}
	if e := s.fleet.Get(name); e != nil {
		if s.pending.offered(e) { // to those that took it for claimed
			s.binder.freed.Store(true)
		}
		s.suspect(e) // its claim may have gone before it was known that this is written
	}
	return nil
}

// ready looks up what is in doubt about a claim. It says whether anything may be done for it yet: a write that takes its server back may
// still arrive as long as the server is written for it, and would take it from a claim that names it by then.
func (s *Scheduler) ready(ctx context.Context, uid types.UID) (bool, error) {
	if err := s.resolve(ctx, uid); err != nil {
		return false, err
	}
	one := s.uncertain.of(uid)
	if one.takenBack == "" {
		return true, nil
	}
	now := s.now() // what is read now shows a write that arrived before
	if err := s.lookUp(ctx, one.takenBack, uid); err != nil {
		return false, err
	}
	e := s.fleet.Get(one.takenBack)
	isWritten := e != nil && e.Holder.UID == string(uid)
	if isWritten && now.Sub(one.back) < longestWrite {
		s.backoff.lost(uid, now, longestWait)
		return false, nil
	}
	s.uncertain.note(uid, func(u *uncertainWrite) { u.takenBack, u.back = "", time.Time{} })
	return true, nil
}
