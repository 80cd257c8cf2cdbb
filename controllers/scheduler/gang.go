// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/policies"
)

// A gang is served as a whole, at the turn of the first of its members: a server is found and assumed for each of them, one worker
// then writes the servers, and once all are written it names them on the claims. Between the two nothing is booted, because no
// claim names its server. Whatever comes between them leaves servers that are written for members without a server. They are all
// that is remembered of it: the next time that the gang is served they are completed, or where that cannot be done now, taken back.
// The first member that names its server is the commit: it may boot, and so every member gets what is reserved for it from then on,
// whatever becomes of the others.

// gangAttempt is what is being written for a gang.
type gangAttempt struct {
	key     gangKey
	members []*attempt
	done    []result
	// everyone are the members that are open and have no server; denied is what the API server refused so far.
	everyone []asking
	denied   error
	// committed says that some member names its server: from then on what is reserved is completed.
	committed bool
}

// serveGang does what can be done for a gang, once in a pass.
func (r *run) serveGang(ctx context.Context, key gangKey) {
	if r.gangs[key] {
		return
	}
	r.gangs[key] = true
	for r.flying > 0 && r.s.pending.isSpread(key) { // where its members may stand depends on what becomes of the others
		r.collect(ctx)
	}
	if r.stopped || ctx.Err() != nil {
		r.s.pending.wakeGang(key)
		return
	}
	if !r.s.searches.has(key) { // else it goes on without what was tried
		for _, n := range r.s.pending.neighbours(key.namespace) {
			if n.gangName() == key.name {
				r.s.patience.anew(n.claim.UID, r.s.now())
			}
		}
	}
	r.tryGang(ctx, key, nil)
}

func (r *run) tryGang(ctx context.Context, key gangKey, denied error) {
	defer func() {
		if p := recover(); p != nil {
			r.gangPanicked(key, p)
		}
	}()
	waited := r.s.gangs[key]
	if given := r.s.letGo(key); len(given) > 0 {
		r.given = append(r.given, given...)
		r.v.afresh()
	}
	members, open := r.s.pending.roster(key, r.v.granted, r.s.now())
	var everyone []asking
	for _, m := range members {
		a, ok := open[m.claim.UID]
		if !ok {
			continue
		}
		if isReady, err := r.ready(ctx, a); err != nil || !isReady {
			r.failIf(a, err)
			return
		}
		if m.claim.Spec.ServerRef == nil {
			everyone = append(everyone, a)
		}
	}
	slices.SortFunc(everyone, before)
	if len(everyone) == 0 || r.turnGangAway(ctx, key, members, everyone) {
		r.s.searches.leave(key)
		return
	}
	r.v.together = make(map[types.UID]bool, len(everyone))
	for _, a := range everyone {
		r.v.together[a.claim.UID] = true
	}
	defer func() { r.v.together = nil }()
	if waited.asleep && r.keepAgain(ctx, key, everyone, waited) {
		return
	}
	everyone = r.s.searches.inOrder(key, everyone)
	found, short, over := r.search(ctx, key, everyone)
	if !over {
		r.searchOn(ctx, key, members, everyone, waited)
		return
	}
	if short == nil {
		r.startGang(ctx, &gangAttempt{key: key, members: found, everyone: everyone, denied: denied, committed: r.v.anyNamed(members)})
		return
	}
	r.leaveShort(ctx, key, members, everyone, short, denied)
}

// leaveShort goes on with a gang for which there are too few servers.
func (r *run) leaveShort(ctx context.Context, key gangKey, members []*neighbour, everyone []asking, short *shortage, denied error) {
	left := r.completeOrGiveBack(ctx, key, members, everyone)
	why := r.keep(ctx, key, members, everyone, short)
	if denied != nil {
		r.refuseAll(left, refusedBy(denied))
		return
	}
	words := r.words(ctx, short, key, len(members), why)
	for i, a := range everyone {
		if slices.ContainsFunc(left, func(l asking) bool { return l.claim.UID == a.claim.UID }) {
			r.refuse(a, words[i])
		}
	}
}

// turnGangAway refuses the members of a gang that cannot be given servers whatever the fleet has. It says whether it does.
func (r *run) turnGangAway(ctx context.Context, key gangKey, members []*neighbour, everyone []asking) bool {
	if reason, why := r.v.assembled(key, members); why != "" {
		r.refuseAll(r.completeOrGiveBack(ctx, key, members, everyone), refusal(reason, why))
		return true
	}
	if r.s.observeOnly {
		r.refuseAll(everyone, refusal(v1alpha1.ReasonObserveOnly, "the manager runs with --observe-only, and binds no claim"))
		return true
	}
	if r.holdBack(ctx, key, members, everyone) {
		return true
	}
	if todo, over := r.v.exceeds(key.namespace, r.without(everyone)); over {
		r.refuseAll(r.completeOrGiveBack(ctx, key, members, everyone), todo)
		return true
	}
	return false
}

// gangPanicked is panicked for a gang. Nothing stays assumed for members of which nobody writes.
func (r *run) gangPanicked(key gangKey, p any) {
	members, open := r.s.pending.roster(key, r.v.granted, r.s.now())
	for server, uid := range r.s.fleet.Assumed() {
		if slices.ContainsFunc(members, func(m *neighbour) bool { return m.claim.UID == uid }) && r.s.doubts[uid] != server {
			r.s.fleet.Release(server, uid)
		}
	}
	delete(r.s.gangs, key)
	r.s.searches.leave(key)
	r.v.afresh()
	err := fmt.Errorf("decide on gang %s/%s: panic: %v\n%s", key.namespace, key.name, p, debug.Stack())
	for _, a := range open {
		r.fail(a, err)
		err = nil
	}
}

// without is how many members have no server that is written for them.
func (r *run) without(members []asking) (n int) {
	for _, a := range members {
		if _, has := r.v.written(a.claim); !has {
			n++
		}
	}
	return n
}

// assembled says why a gang cannot be given servers whatever the fleet has; empty where it can.
func (v *view) assembled(key gangKey, members []*neighbour) (reason, why string) {
	sizes, lost := make([]int64, len(members)), 0
	for i, m := range members {
		sizes[i] = m.gang.Size
		if m.claim.Spec.ServerRef != nil && !m.keeps(v.fleet.Get(m.claim.Spec.ServerRef.Name)) {
			lost++
		}
	}
	if reason, why = policies.Assembled(v.quota, key.namespace, sizes, lost); why != "" {
		why = fmt.Sprintf("gang %q: %s", key.name, why)
	}
	return reason, why
}

func (r *run) refuseAll(members []asking, todo step) {
	for _, a := range members {
		r.refuse(a, todo)
	}
}
