// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"cmp"
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/metalaw/metalaw/engine/placement"
)

// A search for the servers of a gang asks about every member and every server. One that may take long is spread over passes, so that other
// claims need not wait for it: in each pass a little of it is done, and the next begins many times as long after. One such search at a time
// is under way, and the gangs that want one take turns. What is found out about servers is remembered meanwhile. Between passes nothing is
// assumed for the gang but what is kept for it anyway.

// What a search may cost, in units of which a hundred million take about a second. It is counted, and not measured, so that what a gang gets
// does not depend on what else the machine does.
const (
	// unit is about how long one takes.
	unit = 10 * time.Nanosecond
	// lookCost is what it costs to ask a policy about one server.
	lookCost = 20
	// easySearch is what a search may cost at most each time that it asks about every member, to be done at once.
	easySearch = 2_500_000
	// searchInPass is how much is done of another one in a pass. A try is not left off in the middle.
	searchInPass = 25_000_000
	// searchShare bounds what searches cost altogether: the next goes on no sooner than so many times what the last took.
	searchShare = 20
)

// searchLimits are those of a scheduler.
type searchLimits struct{ easy, inPass int64 }

// searches are those that are spread over passes. Only the loop uses it.
type searches struct {
	limits searchLimits
	// queue are the gangs that wait for theirs, or are at it: the first has its turn.
	queue []gangKey
	// current is the search of the first; nil where it has not begun.
	current *search
	// next is when somebody may go on.
	next time.Time
	// called says that the first was told to go on and did not yet.
	called bool
}

// search is what was done so far to find servers for the members of a gang.
type search struct {
	everyone []asking
	// sequence is what was known of servers when it began; passes is how many it took part in.
	sequence uint64
	passes   int
	// judged says that it is known what all placements say; matched that the members were matched to what they may have.
	judged, matched bool
	// order is the next one to be tried, and tried how many were.
	order []int
	tried int
	best  *shortage
}

// turn is the search of a gang that has its turn; nil for any other, which takes its place in the queue.
func (s *searches) turn(key gangKey, everyone []asking, sequence uint64, now time.Time) *search {
	if !s.has(key) {
		s.queue = append(s.queue, key)
	}
	if s.queue[0] != key || now.Before(s.next) {
		return nil
	}
	if s.current == nil || inOrderOf(s.current.everyone, everyone) == nil {
		s.current = &search{sequence: sequence}
	}
	s.called = false
	s.current.everyone = everyone
	s.current.passes++
	return s.current
}

// inOrder are the members in the order in which the search for their gang that is under way has them: what was found out so far is told
// by their places in it.
func (s *searches) inOrder(key gangKey, everyone []asking) []asking {
	if s.current != nil && s.queue[0] == key {
		if as := inOrderOf(s.current.everyone, everyone); as != nil {
			return as
		}
	}
	return everyone
}

// inOrderOf are the members as they are now, in the order in which they were searched for; nil where others ask, or for something else.
// A claim that was written meanwhile, its status for example, asks for the same though its class was made anew.
func inOrderOf(before, now []asking) []asking {
	if len(before) != len(now) {
		return nil
	}
	byUID := make(map[types.UID]asking, len(now))
	for _, a := range now {
		byUID[a.claim.UID] = a
	}
	ordered := make([]asking, len(before))
	for i, b := range before {
		a, is := byUID[b.claim.UID]
		if !is || a.priority != b.priority || (a.class == nil) != (b.class == nil) || a.class != nil && a.class.key != b.class.key {
			return nil
		}
		ordered[i] = a
	}
	return ordered
}

// call returns the gang that is to go on now; false for none. One that was called and did not come wants no servers any more, and its
// turn is over.
func (s *searches) call(now time.Time) (gangKey, bool) {
	if s.called {
		s.leave(s.queue[0])
	}
	if len(s.queue) == 0 || now.Before(s.next) {
		return gangKey{}, false
	}
	s.called = true
	return s.queue[0], true
}

// has says that a gang's search is under way, or that it waits for its turn.
func (s *searches) has(key gangKey) bool { return slices.Contains(s.queue, key) }

// leave ends what is done for a gang.
func (s *searches) leave(key gangKey) {
	if len(s.queue) > 0 && s.queue[0] == key {
		s.current, s.called = nil, false
	}
	s.queue = slices.DeleteFunc(s.queue, func(k gangKey) bool { return k == key })
}

// spent has others wait after so much work.
func (s *searches) spent(work int64, now time.Time) {
	s.next = now.Add(searchShare * unit * time.Duration(work))
}

// wait is when a search goes on; 0 where none is under way.
func (s *searches) wait(now time.Time) time.Duration {
	if len(s.queue) == 0 {
		return 0
	}
	return max(s.next.Sub(now), time.Millisecond)
}

// search looks for the servers of a gang as far as this pass may. It says whether it is over.
func (r *run) search(ctx context.Context, key gangKey, everyone []asking) (found []*attempt, short *shortage, over bool) {
	all, work := &r.s.searches, &r.v.judgements.work
	if r.v.costOfTry(everyone) <= all.limits.easy {
		found, short = r.find(ctx, everyone)
		r.searched(key, everyone, short != nil)
		return found, short, true
	}
	q := all.turn(key, everyone, r.v.fleet.Sequence(), r.s.now())
	if q == nil {
		return nil, nil, false
	}
	r.v.judgements.keepOnly(placementsOf(everyone))
	began := *work
	defer func() { all.spent(*work-began, r.s.now()) }()
	for *work-began < all.limits.inPass {
		if !q.judged {
			q.judged = r.judgeSome(everyone, began+all.limits.inPass)
			continue
		}
		if found, over = r.try(ctx, q); over {
			r.searched(key, everyone, found == nil)
			if found != nil {
				return found, nil, true
			}
			return nil, q.best, true
		}
	}
	return nil, nil, false
}

// searched ends a search. A gang for which there was nothing is looked at again where servers changed meanwhile, or where servers were left
// out that may be tried again.
func (r *run) searched(key gangKey, everyone []asking, inVain bool) {
	all, again := &r.s.searches, false
	if inVain && all.has(key) {
		again = all.queue[0] == key && all.current != nil && all.current.passes > 1 && all.current.sequence != r.v.fleet.Sequence()
		for _, a := range everyone {
			again = r.s.patience.anew(a.claim.UID, r.s.now()) || again
		}
	}
	all.leave(key)
	if again {
		r.rewoke = r.s.pending.wakeGang(key) || r.rewoke
	}
}

// costOfTry is what it costs at most to ask about every member that has no server.
func (v *view) costOfTry(everyone []asking) (cost int64) {
	texts := map[string]bool{}
	for _, a := range everyone {
		if _, has := v.written(a.claim); has || a.class == nil {
			continue
		}
		cost += lookCost * int64(len(v.fit(a).entries))
		if asks := a.placed.Asks(); !texts[asks] {
			texts[asks] = true
			cost += a.placed.Cost() * int64(v.judgements.unjudged(v.judgements.of(a.placed), v.matchingOf(a)))
		}
	}
	return cost
}

func placementsOf(members []asking) []*placement.Placement {
	all := make([]*placement.Placement, len(members))
	for i, a := range members {
		all[i] = a.placed
	}
	return all
}

// judgeSome finds out what placements say of the servers that their claims ask for, until so much work is done. It says whether all is
// known.
func (r *run) judgeSome(everyone []asking, until int64) bool {
	j := r.v.judgements
	for _, a := range everyone {
		if a.class == nil {
			continue
		}
		t := j.of(a.placed)
		for _, e := range r.v.matchingOf(a) {
			if j.work >= until {
				return false
			}
			j.judge(t, e)
		}
	}
	return true
}

// try looks for servers once more, in another way than before. It says whether that was the last; found is nil where some member has
// none.
func (r *run) try(ctx context.Context, q *search) (found []*attempt, over bool) {
	if !q.matched {
		return r.tryMatching(ctx, q)
	}
	found, short, missing := r.findInOrder(ctx, q.everyone, q.order)
	if short == nil {
		return found, true
	}
	q.best.improve(found)
	r.release(q.everyone, found)
	q.order = slices.DeleteFunc(q.order, func(i int) bool { return slices.Contains(missing, i) })
	q.order = append(missing, q.order...)
	q.tried++
	return nil, q.tried >= min(maxOrders, len(q.everyone))
}

// tryMatching has the members choose one after the other, and where one is left without, matches them to all that each may have.
func (r *run) tryMatching(ctx context.Context, q *search) (found []*attempt, over bool) {
	q.matched, q.order = true, make([]int, len(q.everyone))
	for i := range q.order {
		q.order[i] = i
	}
	found, short, _ := r.findInOrder(ctx, q.everyone, q.order)
	if short == nil {
		return found, true
	}
	q.best = short
	r.release(q.everyone, found)
	m := r.matchNow(ctx, q.everyone)
	q.best.failed, q.best.unknown = m.failed, m.unknown
	if found = r.takeMatched(ctx, m, q.everyone); len(found) == len(q.everyone) {
		return found, true
	}
	q.best.improve(found)
	r.release(q.everyone, found)
	slices.SortStableFunc(q.order, func(a, b int) int { return cmp.Compare(m.choices(a), m.choices(b)) })
	return nil, m.isExact() || !m.couldBe()
}
