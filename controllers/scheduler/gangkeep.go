// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/metalaw/metalaw/controllers/scheduler/index"
	"github.com/metalaw/metalaw/engine/selection"
)

// gangWaits is what is kept for a gang that waits.
type gangWaits struct {
	// until is when it is to be looked at again, since it has waited for long enough then; zero for never.
	until time.Time
	// kept are servers that are kept free for it, by the member for which they are assumed.
	kept map[string]types.UID
}

// gangPatience is how long a complete gang that is short of servers lets claims behind it have what comes up. From then on its
// servers are kept free for it one by one, as they come up at its turn. Without that, claims that ask for a single server would
// always be there first.
const gangPatience = 5 * time.Minute

// keep has servers kept free for a gang that is short of them, if it has waited for long enough and the fleet has enough that it
// could ever have. It says why not, where the gang has waited for long enough.
func (r *run) keep(ctx context.Context, key gangKey, members []*neighbour, everyone []asking, short *shortage) (why string) {
	since := time.Time{}
	for _, m := range members {
		if made := m.claim.CreationTimestamp.Time; made.After(since) {
			since = made
		}
	}
	if until := since.Add(gangPatience); r.s.now().Before(until) {
		r.s.gangs[key] = gangWaits{until: until}
		return ""
	}
	ever := r.v.matchEver(ctx, members, everyone)
	switch {
	case ever.failed != "":
		return "nothing is kept free for it, because nobody knows which servers its members could ever have: " + ever.failed
	case ever.isExact() && !ever.complete(), !ever.couldBe():
		return "nothing is kept free for it, because the fleet has too few servers for all its members, free or not"
	}
	kept := map[string]types.UID{}
	for more := true; more; { // where the members keep apart, one may make room for another
		more = false
		for i, e := range short.wanted {
			if e == nil || kept[e.Name()] != "" {
				continue
			}
			if t := r.takeThis(ctx, everyone[i], e); t != nil {
				kept[e.Name()], more = t.claim.UID, true
			}
		}
	}
	r.s.gangs[key] = gangWaits{kept: kept}
	return ""
}

// attaining is a Policy that tells what it turns away for good from what may pass by itself.
type attaining interface {
	Attainable(ctx context.Context, claim selection.Claim, candidates []*selection.PreparedCandidate, fleet selection.Fleet) (
		[]*selection.PreparedCandidate, error)
}

var _ attaining = &selection.Policy{}

// matchEver looks up what each member could have if every server were free but for those of the gang itself, as admission does. A
// server that the policy turns away only by what passes by itself counts as one that it could have.
func (v *view) matchEver(ctx context.Context, members []*neighbour, everyone []asking) *matched {
	own := map[string]bool{}
	for _, m := range members {
		if s, has := v.written(m.claim); has {
			own[s.server] = true
		}
	}
	return v.match(everyone, func(a asking, claim selection.Claim) ([]*index.Entry, string) {
		var all []*index.Entry
		for _, e := range v.fleet.Matching(a.spec) {
			if ok, _, _ := selection.Feasible(a.spec, e.State); ok && !own[e.Name()] {
				all = append(all, e)
			}
		}
		p, ok := v.policy.(attaining)
		if !ok {
			return v.everything(ctx, a, claim, all)
		}
		accepted := acceptedOf(a, all)
		could, err := p.Attainable(ctx, claim, slices.Concat(accepted.groups...), v.fleet.CountsFor(claim.Namespace, v.now))
		if err != nil {
			return nil, withoutNames(err)
		}
		all = all[:0]
		for _, c := range could {
			all = append(all, accepted.entries[c.Name()])
		}
		return all, ""
	}, nil)
}

// wakeGangs has the next pass look at the gangs for which servers are kept, or that have waited for long enough, and gives back
// what is kept, so that a claim that comes before them can have it. It returns what it gave back.
func (s *Scheduler) wakeGangs(now time.Time) []string {
	var given []string
	for key, g := range s.gangs {
		if !g.until.IsZero() && !now.Before(g.until) || len(g.kept) > 0 && !s.pending.inGang(key) {
			s.pending.wakeGang(key)
			given = append(given, s.letGo(key)...)
		}
	}
	if len(given) > 0 || s.pending.anyDue() {
		for key, g := range s.gangs {
			if len(g.kept) > 0 {
				s.pending.wakeGang(key)
				given = append(given, s.letGo(key)...)
			}
		}
	}
	slices.Sort(given)
	return given
}

// due takes the claims that a pass is to look at. Where there are any, nothing is kept for a gang meanwhile: whoever comes first can
// have it.
func (s *Scheduler) due(r *run, began time.Time) []asking {
	r.given = s.wakeGangs(began)
	due := s.pending.take(r.v.granted, began)
	if len(due) == 0 || !slices.ContainsFunc(slices.Collect(maps.Values(s.gangs)), func(g gangWaits) bool { return len(g.kept) > 0 }) {
		return due
	}
	for _, a := range due { // the first of them became due after the gangs were looked at
		s.pending.wake(a.claim.UID)
	}
	r.given = append(r.given, s.wakeGangs(began)...)
	return s.pending.take(r.v.granted, began)
}

// letGo forgets what is kept for a gang, and releases its servers. It returns those that were.
func (s *Scheduler) letGo(key gangKey) []string {
	var given []string
	for server, uid := range s.gangs[key].kept {
		if s.fleet.Release(server, uid) != nil {
			given = append(given, server)
		}
	}
	delete(s.gangs, key)
	return given
}

// notKept has the next pass look at the claims that could have what was kept for a gang and no longer is.
func (r *run) notKept() {
	assumed := r.s.fleet.Assumed()
	for _, server := range r.given {
		if _, kept := assumed[server]; !kept && r.s.pending.offered(r.s.fleet.Get(server)) {
			r.rewoke = true
		}
	}
}

// nextGang is when to look at a gang that will have waited for long enough; 0 for never.
func (s *Scheduler) nextGang(now time.Time) time.Duration {
	least := time.Duration(0)
	for _, g := range s.gangs {
		if !g.until.IsZero() {
			if left := max(g.until.Sub(now), time.Millisecond); least == 0 || left < least {
				least = left
			}
		}
	}
	return least
}
