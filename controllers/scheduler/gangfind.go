// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/metalaw/metalaw/policies/index"
)

// find assumes a server for each of a gang's members, or none at all. They choose one after the other first, so that each gets the
// best for it and the policy sees where those before it stand. Where one is left without, they are matched to all that each may
// have. What that finds is exact, and where it finds nothing there is nothing, as long as
//
//   - no member is spread, or all are and by the same counts; and
//   - what the policy allows does not follow the counts of the fleet, which it is asked about anew for each server that is taken.
//
// Members that are spread in different ways are tried in several orders, and may be told to wait though another one would do.
func (r *run) find(ctx context.Context, everyone []asking) ([]*attempt, *shortage) {
	q := &search{everyone: everyone}
	for {
		found, over := r.try(ctx, q)
		switch {
		case found != nil:
			return found, nil
		case over:
			return nil, q.best
		}
	}
}

// maxOrders bounds how often servers are looked for in another order, with the members first for which none was left.
const maxOrders = 8

// findInOrder returns what it found, and where anything is short the members for which there was nothing.
func (r *run) findInOrder(ctx context.Context, everyone []asking, order []int) (found []*attempt, s *shortage, missing []int) {
	s = &shortage{everyone: everyone, steps: make([]step, len(everyone)), given: make([]*index.Entry, len(everyone))}
	for _, i := range order {
		t := r.findOne(ctx, everyone[i])
		s.steps[i], s.given[i] = t.todo, t.entry
		if t.todo.action == refuse || t.todo.action == bind && t.entry == nil {
			missing = append(missing, i)
			continue
		}
		found = append(found, t)
	}
	if len(missing) == 0 {
		return found, nil, nil
	}
	s.improve(found)
	return found, s, missing
}

// improve notes what was found, if it is more than before.
func (s *shortage) improve(found []*attempt) {
	if len(found) <= s.found {
		return
	}
	s.found, s.wanted = len(found), make([]*index.Entry, len(s.everyone))
	for _, t := range found {
		at := slices.IndexFunc(s.everyone, func(a asking) bool { return a.claim.UID == t.claim.UID })
		s.wanted[at] = t.entry
	}
}

// findOne looks for the server of one member: the one that is written for it, or one that is assumed now.
func (r *run) findOne(ctx context.Context, a asking) *attempt {
	if s, done := r.v.written(a.claim); done {
		return &attempt{asking: a, todo: s}
	}
	t := &attempt{asking: a, todo: r.v.pick(ctx, a, false)}
	for afresh := true; t.todo.action == bind; afresh = false {
		if t.at = t.todo.choice.head; r.next(ctx, t) {
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
func (r *run) release(members []asking, found []*attempt) {
	for _, t := range found {
		if t.entry != nil {
			r.s.fleet.Release(t.entry.Name(), t.claim.UID)
		}
	}
	for _, a := range members { // others chose before anything was assumed
		if a.class != nil {
			delete(r.v.exhausted, a.class.key)
			maps.DeleteFunc(r.v.choices, func(key string, _ *choice) bool { return strings.HasPrefix(key, a.class.key+"\x00") })
		}
	}
}
