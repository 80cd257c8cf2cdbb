// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/placement"
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

// maxOrders bounds how often servers are looked for in another order, with the member first for which none was left.
const maxOrders = 8

// serveGang does what can be done for a gang, once in a pass.
func (r *run) serveGang(ctx context.Context, key gangKey) {
	if r.gangs[key] {
		return
	}
	r.gangs[key] = true
	r.tryGang(ctx, key, nil)
}

func (r *run) tryGang(ctx context.Context, key gangKey, denied error) {
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
		if err := r.s.resolve(ctx, m.claim.UID); err != nil {
			r.fail(a, err)
			return
		}
		if m.claim.Spec.ServerRef == nil {
			everyone = append(everyone, a)
		}
	}
	slices.SortFunc(everyone, before)
	if len(everyone) == 0 {
		return
	}
	if reason, why := r.v.assembled(key, members); why != "" {
		r.refuseAll(r.completeOrGiveBack(ctx, key, members, everyone), refusal(reason, why))
		return
	}
	if r.s.observeOnly {
		r.refuseAll(everyone, refusal(v1alpha1.ReasonObserveOnly, "the manager runs with --observe-only, and binds no claim"))
		return
	}
	found, short := r.find(ctx, everyone)
	if short == nil {
		r.startGang(ctx, &gangAttempt{key: key, members: found, everyone: everyone, denied: denied, committed: r.v.anyNamed(members)})
		return
	}
	r.v.afresh()
	left := r.completeOrGiveBack(ctx, key, members, everyone)
	r.keep(ctx, key, members, everyone)
	if denied != nil {
		r.refuseAll(left, refusedBy(denied))
		return
	}
	for i, a := range everyone {
		if slices.ContainsFunc(left, func(l asking) bool { return l.claim.UID == a.claim.UID }) {
			r.refuse(a, short.words(key.name, len(members), i, len(r.s.gangs[key].kept)))
		}
	}
}

// assembled says why a gang cannot be given servers whatever the fleet has; empty where it can.
func (v *view) assembled(key gangKey, members []*neighbour) (reason, why string) {
	sizes := make([]int64, len(members))
	lost := 0
	for i, m := range members {
		sizes[i] = m.gang.Size
		if m.claim.Spec.ServerRef == nil {
			continue
		}
		if !m.keeps(v.fleet.Get(m.claim.Spec.ServerRef.Name)) {
			lost++
		}
	}
	muster, message := placement.MusterOf(sizes)
	switch {
	case muster == placement.Contradictory:
		return v1alpha1.ReasonInvalidPlacement, fmt.Sprintf("gang %q: %s; none of them gets a server until they agree", key.name, message)
	case muster == placement.Incomplete:
		return v1alpha1.ReasonGangWaiting, fmt.Sprintf("gang %q: %s; none of them gets a server until all do", key.name, message)
	case lost > 0:
		return v1alpha1.ReasonGangWaiting, fmt.Sprintf("gang %q: %d of its %d members name a server that is not theirs; "+
			"none of the others gets a server until that is mended", key.name, lost, len(members))
	}
	return "", ""
}

// shortage is what became of the search for servers that did not find one for every member.
type shortage struct {
	// found is for how many members there is a server, also those that had one before.
	found int
	// everyone are the members, steps what was decided for each.
	everyone []asking
	steps    []step
}

// words are what a member is told: how many members can have servers, and what keeps the others of the fleet from it.
func (s *shortage) words(gang string, size, member, kept int) step {
	todo := s.steps[member]
	if todo.action == refuse && !todo.count {
		return todo
	}
	short := len(s.steps) - s.found
	text := fmt.Sprintf("gang %q: servers for %d of its %d members can be had now, %d short; ", gang, size-short, size, short)
	if kept > 0 {
		text += fmt.Sprintf("%d are kept free for it and count as claimed; ", kept)
	}
	out := step{action: refuse, count: true, spec: todo.spec, rejected: todo.rejected, misplaced: todo.misplaced, follows: todo.follows, gang: text}
	if first := s.first(member); first != nil {
		out.rejected, out.misplaced = first.rejected, maps.Clone(first.misplaced)
		if out.misplaced == nil {
			out.misplaced = map[string]int{}
		}
		if kept == 0 {
			out.misplaced[placement.CodeGang] = first.allowed
		}
	}
	return out
}

// first is the choice that was made before any of the members that ask for the same had a server; nil where none was.
func (s *shortage) first(member int) *choice {
	var first *choice
	for i, todo := range s.steps {
		if s.everyone[i].class == s.everyone[member].class && todo.choice != nil && (first == nil || todo.choice.allowed > first.allowed) {
			first = todo.choice
		}
	}
	return first
}

// find assumes a server for each of a gang's members. Where one is left without, all are tried in another order, with that one
// first, and in the end nothing is assumed.
func (r *run) find(ctx context.Context, everyone []asking) ([]*attempt, *shortage) {
	order := make([]int, len(everyone))
	for i := range order {
		order[i] = i
	}
	var best *shortage
	for range min(maxOrders, len(everyone)) {
		found, short, missing := r.findInOrder(ctx, everyone, order)
		if short == nil {
			return found, nil
		}
		if best == nil || short.found > best.found {
			best = short
		}
		r.release(found)
		order = slices.DeleteFunc(order, func(i int) bool { return i == missing })
		order = slices.Insert(order, 0, missing)
	}
	return nil, best
}

// findInOrder returns what it found, by member, and if anything is short the first member for which there was nothing.
func (r *run) findInOrder(ctx context.Context, everyone []asking, order []int) (found []*attempt, s *shortage, missing int) {
	s, missing = &shortage{everyone: everyone, steps: make([]step, len(everyone))}, -1
	for _, i := range order {
		a := everyone[i]
		t := r.findOne(ctx, a)
		s.steps[i] = t.todo
		if t.todo.action == refuse || t.todo.action == bind && t.entry == nil {
			if missing < 0 {
				missing = i
			}
			continue
		}
		s.found++
		found = append(found, t)
	}
	if missing < 0 {
		return found, nil, 0
	}
	return found, s, missing
}

// findOne looks for the server of one member: the one that is written for it, or one that is assumed now.
func (r *run) findOne(ctx context.Context, a asking) *attempt {
	if s, done := r.v.written(a.claim); done {
		return &attempt{asking: a, todo: s}
	}
	t := &attempt{asking: a, todo: r.v.pick(ctx, a, false)}
	for afresh := true; t.todo.action == bind; afresh = false {
		if t.at = t.todo.choice.head; r.next(t) {
			return t
		}
		if !afresh {
			r.s.patience.retry(a.claim.UID, r.s.now())
			break
		}
		t.todo = r.v.pick(ctx, a, true)
	}
	return t
}

// release ends what was assumed for members in vain.
func (r *run) release(found []*attempt) {
	for _, t := range found {
		if t.entry != nil {
			r.s.fleet.Release(t.entry.Name(), t.claim.UID)
		}
	}
	r.v.afresh()
}

// afresh forgets what was chosen: servers came back that it took for gone.
func (v *view) afresh() {
	clear(v.choices)
	clear(v.exhausted)
}

func (r *run) refuseAll(members []asking, todo step) {
	for _, a := range members {
		r.refuse(a, todo)
	}
}

// hadServer says that a claim had its server once, by the word of its status.
func hadServer(c *v1alpha1.ServerClaim) bool {
	told := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionBound)
	return c.Status.Phase == v1alpha1.PhaseBound || told != nil &&
		(told.Reason == v1alpha1.ReasonBindingLost || told.Reason == v1alpha1.ReasonServerVanished)
}
