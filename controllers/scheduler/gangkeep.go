// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/trigger"
	"github.com/metalaw/metalaw/engine/selection"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/policies/index"
)

// gangWaits is what is kept for a gang that waits.
type gangWaits struct {
	// until is when it is to be looked at again, since it has waited for long enough then; zero for never.
	until time.Time
	// kept are servers that are kept free for it, by the member for which they are assumed.
	kept map[string]types.UID
	// lent are those that it gave back for the sake of claims that come before it, and gets again at its turn where they do not take
	// them. asleep says that it has its turn for that alone.
	lent   map[string]types.UID
	asleep bool
}

// keep has servers kept free for a gang that is short of them, if it has waited for long enough and the fleet has enough that it
// could ever have. It says why not, where the gang has waited for long enough.
func (r *run) keep(ctx context.Context, key gangKey, members []*neighbour, everyone []asking, short *shortage) (why string) {
	claims := make([]*v1alpha1.ServerClaim, len(members))
	for i, m := range members {
		claims[i] = m.claim
	}
	if until := policies.KeepsFrom(claims); r.s.now().Before(until) {
		r.s.gangs[key] = gangWaits{until: until}
		return ""
	}
	ever := r.v.matchEver(ctx, members, everyone)
	tooFew := ever.isExact() && !ever.complete() || !ever.couldBe()
	switch {
	case tooFew && ever.failed+ever.unknown != "":
		return "nothing is kept free for it, because nobody knows which servers its members could ever have: " + cmp.Or(ever.failed, ever.unknown)
	case tooFew:
		return "nothing is kept free for it, because the fleet has too few servers for all its members, free or not"
	}
	r.s.gangs[key] = gangWaits{kept: r.takeWanted(ctx, everyone, short.wanted)}
	return ""
}

// takeWanted assumes servers for members, as many as can be had of one for each; nil for none.
func (r *run) takeWanted(ctx context.Context, everyone []asking, wanted []*index.Entry) map[string]types.UID {
	kept := map[string]types.UID{}
	for more := true; more; { // where the members keep apart, one may make room for another
		more = false
		for i, e := range wanted {
			if e == nil || kept[e.Name()] != "" {
				continue
			}
			if t := r.takeThis(ctx, everyone[i], e); t != nil {
				kept[e.Name()], more = t.claim.UID, true
			}
		}
	}
	return kept
}

// keepAgain has servers kept that were until now, without a search. It says whether they all are. None is where one is not, so that
// others can be looked for.
func (r *run) keepAgain(ctx context.Context, key gangKey, everyone []asking, waited gangWaits) bool {
	kept := r.takeAgain(ctx, everyone, waited)
	if len(kept) < len(waited.kept)+len(waited.lent) {
		for server, uid := range kept {
			r.s.fleet.Release(server, uid)
		}
		return false
	}
	r.s.gangs[key] = gangWaits{kept: kept}
	return true
}

func (r *run) takeAgain(ctx context.Context, everyone []asking, waited gangWaits) map[string]types.UID {
	wanted := make([]*index.Entry, len(everyone))
	for _, servers := range []map[string]types.UID{waited.kept, waited.lent} {
		for server, uid := range servers {
			if at := slices.IndexFunc(everyone, func(a asking) bool { return a.claim.UID == uid }); at >= 0 {
				wanted[at] = r.s.fleet.Get(server)
			}
		}
	}
	return r.takeWanted(ctx, everyone, wanted)
}

// searchOn leaves a gang whose search is not over without servers for now. What is kept for it stays so; what is reserved is completed or
// given back, as for one that is short of servers.
func (r *run) searchOn(ctx context.Context, key gangKey, members []*neighbour, everyone []asking, waited gangWaits) {
	left := r.completeOrGiveBack(ctx, key, members, everyone)
	if kept := r.takeAgain(ctx, everyone, waited); len(kept) > 0 {
		r.s.gangs[key] = gangWaits{kept: kept}
	}
	for _, a := range left {
		if _, told := r.s.verdicts.get(a.claim.UID); !told {
			r.refuse(a, refusal(v1alpha1.ReasonGangWaiting, fmt.Sprintf("gang %q: servers are being looked for; "+
				"its members ask for so much, and of so many servers, that it takes a while", key.name)))
		}
	}
}

// matchEver looks up what each member could have if every server were free but for those of the gang itself, as admission does. A
// server that the policy turns away only by what passes by itself counts as one that it could have.
func (v *view) matchEver(ctx context.Context, members []*neighbour, everyone []asking) *matched {
	own := map[string]bool{}
	for _, m := range members {
		if s, has := v.written(m.claim); has {
			own[s.server] = true
		}
	}
	feasible := map[string][]*index.Entry{}
	return v.match(ctx, everyone, listing{
		servers: func(a asking) []*index.Entry {
			all, found := feasible[a.class.asked]
			if !found {
				for _, e := range v.matchingOf(a) {
					if ok, _, _ := selection.Feasible(a.spec, e.State); ok && !own[e.Name()] {
						all = append(all, e)
					}
				}
				feasible[a.class.asked] = all
			}
			return all
		},
		ask: func(claim selection.Claim, some []*index.Entry) opinion { return v.attainable(ctx, claim, some) },
	}, nil)
}

// attainable are the servers that the policy turns away by nothing but what passes, in no order.
func (v *view) attainable(ctx context.Context, claim selection.Claim, some []*index.Entry) opinion {
	p, ok := v.policy.(policies.Attaining)
	if !ok {
		return v.opinionOf(ctx, claim, some)
	}
	byName, candidates := make(map[string]*index.Entry, len(some)), make([]*selection.PreparedCandidate, len(some))
	for i, e := range some {
		byName[e.Name()], candidates[i] = e, e.Candidate()
	}
	v.judgements.work += lookCost * int64(len(some))
	could, err := p.Attainable(ctx, claim, candidates, v.fleet.CountsFor(claim.Namespace, v.now))
	o := opinion{scores: make([]float64, len(could))}
	switch {
	case errors.As(err, &selection.CandidateError{}):
		o.unknown = selection.Anonymous(err)
	case err != nil:
		o.failed = selection.Anonymous(err)
	}
	for _, c := range could {
		o.allowed = append(o.allowed, byName[c.Name()])
	}
	return o
}

// wakeGangs has the next pass look at the gangs that have waited for long enough, or whose members are gone, and gives back what is kept
// for them; and at the one whose search goes on. It returns what it gave back.
func (s *Scheduler) wakeGangs(now time.Time) []string {
	var given []string
	for key, g := range s.gangs { // letGo takes away the one at hand alone
		if !g.until.IsZero() && !now.Before(g.until) || len(g.kept) > 0 && !s.pending.inGang(key) {
			s.pending.wakeGang(key)
			given = append(given, s.letGo(key)...)
		}
	}
	if key, ok := s.searches.call(now); ok {
		s.pending.wakeGang(key)
	}
	slices.Sort(given)
	return given
}

// due takes the claims that a pass is to look at. What is kept for a gang is given back where some of them come before it, so that they
// can have it, and taken again at its turn. Those that come behind it could not have it anyway.
func (s *Scheduler) due(r *run, began time.Time) []asking {
	r.given = s.wakeGangs(began)
	due := s.pending.take(r.v.granted, began)
	lent := false
	for key, g := range maps.Clone(s.gangs) { // one that is taken out and put back would come again, and count as awake
		if len(g.kept) == 0 {
			g.asleep = false
			s.gangs[key] = g
			continue
		}
		first, ok := s.pending.firstOf(key, r.v.granted, began)
		isOf := func(a asking) bool {
			return a.claim.Namespace == key.namespace && a.placed.Gang() != nil && a.placed.Gang().Name == key.name
		}
		if !ok || !slices.ContainsFunc(due, func(a asking) bool { return !isOf(a) && before(a, first) < 0 }) {
			continue
		}
		r.given = append(r.given, s.letGo(key)...)
		s.gangs[key] = gangWaits{lent: g.kept, asleep: !slices.ContainsFunc(due, isOf)}
		s.pending.wakeGang(key)
		lent = true
	}
	if !lent {
		return due
	}
	for _, a := range due {
		s.pending.wake(a.claim.UID)
	}
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

// isKept says that a server is kept free for a gang.
func (s *Scheduler) isKept(server string) bool {
	for _, g := range s.gangs {
		if _, is := g.kept[server]; is {
			return true
		}
	}
	return false
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
	return trigger.Earlier(least, s.searches.wait(now))
}
