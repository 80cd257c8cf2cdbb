// SPDX-License-Identifier: Apache-2.0

package solve

import (
	"cmp"
	"context"
	"slices"

	"github.com/metalaw/metalaw/engine/claims"
	"github.com/metalaw/metalaw/engine/claims/index"
	"github.com/metalaw/metalaw/engine/placement"
	"github.com/metalaw/metalaw/engine/selection"
)

// feasible are the servers that claims can have by the hard contract, as candidates too.
type feasible struct {
	entries    []*index.Entry
	candidates []*selection.PreparedCandidate
	// offered is what the index said then; seen is how many of the taken are left out.
	offered uint64
	seen    int
}

// ranking is what a policy made of the servers that an equivalence class of claims can have.
type ranking struct {
	ranked []selection.Ranked
	// allowed is how many servers the policy allows; ranked may be fewer.
	allowed int
	// rejected counts by the codes of the policy, misplaced by those of the claim's placement.
	rejected, misplaced map[string]int
	// failed is why nothing is known of them; empty where something is. unjudged counts those of which nothing is known, and unknown
	// is why.
	failed, unknown string
	unjudged        int
	// head is how many of the first are known to be taken.
	head int
	// sequence is what was known of the servers; counted what was known of the fleet's counts, which matter where follows is set.
	sequence, counted uint64
	follows           bool
	// spread says that the counts of the claim's spread matter as well.
	spread bool
}

// pick is the server that was chosen for a claim, or why there is none.
type pick struct {
	claim  *claims.Claim
	action Action
	server string
	entry  *index.Entry
	// from is the ranking that the server, or its absence, follows from.
	from         *ranking
	score        float64
	rank, others int
	refusal      Refusal
	// turn is when it was chosen among the members of its gang.
	turn int
}

func (p pick) result() Result {
	return Result{Claim: p.claim, Action: p.action, Server: p.server, Entry: p.entry, Score: p.score, Rank: p.rank, Others: p.others, Refusal: p.refusal}
}

// has says that the claim has a server, by what is written or by what is chosen.
func (p pick) has() bool { return p.action != Refuse && p.action != Again }

func refused(c *claims.Claim, reason, message string) pick {
	return pick{claim: c, action: Refuse, refusal: Refusal{Reason: reason, Message: message}}
}

// written looks at the servers that a claim's name is already written on.
func (s *Snapshot) written(c *claims.Claim) (pick, bool) {
	holding := ""
	for _, e := range s.Fleet.HeldBy(c.Key) {
		switch e.Holder.RelationOf(e.Name(), c) {
		case claims.Holds:
			if c.ServerRef == e.Name() {
				return pick{claim: c, action: Settled, server: e.Name()}, true
			}
			if !e.Holder.Ended && (holding == "" || e.Name() < holding) {
				holding = e.Name()
			}
		case claims.Adoptable:
			return pick{claim: c, action: Adopt, server: e.Name()}, true
		case claims.Unrelated, claims.Another:
		}
	}
	if c.ServerRef == "" && holding != "" {
		return pick{claim: c, action: Complete, server: holding}, true
	}
	return pick{}, false
}

// Written is the server that is written for a claim, with Settled, Complete or Adopt; false where there is none.
func (s *Snapshot) Written(c *claims.Claim) (Result, bool) {
	p, is := s.written(c)
	return p.result(), is
}

// one decides on a claim by itself.
func (s *Snapshot) one(ctx context.Context, c *claims.Claim, w Want) Result {
	if p, done := s.written(c); done && (p.action != Complete || c.Unplaced == "") {
		return p.result()
	}
	p := s.choose(ctx, c, w)
	if p.action == Bind && c.Gang() != nil && !c.HadServer {
		p = refused(c, ReasonInvalidPlacement, "a claim of a gang cannot name its server in spec.serverRef; "+
			"serverRef cannot be changed, so claim anew without it")
	}
	return p.result()
}

// choose finds the best server that a claim can have for which none is written. Where none of a ranking can be had, the policy is asked
// once more.
func (s *Snapshot) choose(ctx context.Context, c *claims.Claim, w Want) pick {
	if p, is := s.barred(c, w); is {
		return p
	}
	var last *ranking
	for _, afresh := range []bool{false, true} {
		from, p := s.rankingOf(ctx, c, w, afresh)
		if from == nil {
			return p
		}
		if p, found := s.next(c, from, w); found {
			return p
		}
		last = from
	}
	return pick{claim: c, action: Again, from: last, refusal: Refusal{Count: true, Rejected: last.rejected, Misplaced: last.misplaced}}
}

// barred refuses a claim whatever servers there are.
func (s *Snapshot) barred(c *claims.Claim, w Want) (pick, bool) {
	switch {
	case c.Unplaced != "":
		return refused(c, ReasonInvalidPlacement, c.Unplaced), true
	case c.Invalid != "":
		return refused(c, ReasonInvalidSelector, c.Invalid), true
	}
	if w.Forbids != nil {
		if reason, message := w.Forbids(c); message != "" {
			p := refused(c, reason, message)
			p.refusal.Follows = true
			return p, true
		}
	}
	if c.ServerRef != "" && s.Fleet.Get(c.ServerRef) == nil {
		return refused(c, ReasonServerNotFound,
			"the server that spec.serverRef names does not exist; the claim gets it once it does; "+
				"serverRef cannot be changed: if the name is wrong, delete the claim and create another"), true
	}
	if c.Gang() == nil || c.ServerRef != "" { // a gang is counted as a whole
		return s.exceeds(c, 1)
	}
	return pick{}, false
}

// exceeds refuses claims whose namespace has no room for so many servers more.
func (s *Snapshot) exceeds(c *claims.Claim, more int) (pick, bool) {
	if _, bounded := s.Quota.Limit(c.Namespace); !bounded {
		return pick{}, false
	}
	held := s.Fleet.HeldIn(c.Namespace)
	held.Servers += s.Fleet.Underway(c.Namespace)
	words := claims.QuotaExceeded(s.Quota, c.Namespace, held, more)
	if words == "" {
		return pick{}, false
	}
	p := refused(c, ReasonQuotaExceeded, words)
	p.refusal.Follows = true
	return p, true
}

// rankingOf ranks the servers that a claim can have, or takes what was ranked for one that asks for the same. Where there is nothing it
// says why.
func (s *Snapshot) rankingOf(ctx context.Context, c *claims.Claim, w Want, afresh bool) (*ranking, pick) {
	if s.exhausted[c.Class()] {
		return nil, s.none(c)
	}
	key, follows := "\x00"+c.UID, true
	t, tells := s.Policy.(telling)
	if tells {
		key, follows = c.Class()+"\x00"+t.Asks(c.Asked), t.FollowsFleet()
	}
	known := s.choices[key]
	if afresh || known == nil || (tells && known.follows || known.spread) && known.counted != s.version() {
		return s.rankAnew(ctx, c, w, key, follows)
	}
	return s.usable(c, known)
}

// rankAnew asks the policy, and keeps what it chose under a key.
func (s *Snapshot) rankAnew(ctx context.Context, c *claims.Claim, w Want, key string, follows bool) (*ranking, pick) {
	r := &ranking{sequence: s.Fleet.Sequence(), counted: s.version(), follows: follows, spread: c.Placement.Spread() != nil}
	can := s.feasibleFor(c)
	if len(can.entries) == 0 {
		s.markExhausted(c.Class())
		return nil, s.none(c)
	}
	if s.Policy == nil {
		p := refused(c, ReasonPending, "no policy is in force, or this version of the manager refuses the one that is")
		p.refusal.Follows = true
		return nil, p
	}
	if some := unspent(c, can, w); some != nil {
		own := *r // the others of its class did not try these
		s.rank(ctx, c, some, &own)
		if len(own.ranked) > 0 {
			return s.usable(c, &own)
		}
	}
	s.rank(ctx, c, can, r)
	if s.choices == nil {
		s.choices = map[string]*ranking{}
	}
	s.choices[key] = r
	return s.usable(c, r)
}

func (s *Snapshot) markExhausted(class string) {
	if s.exhausted == nil {
		s.exhausted = map[string]bool{}
	}
	s.exhausted[class] = true
}

// feasibleFor finds the servers that a claim can have. As long as none came up since they were found for one that asks for the same,
// those that were given away meanwhile are left out of them.
func (s *Snapshot) feasibleFor(c *claims.Claim) *feasible {
	offered := s.Fleet.Offered()
	f := s.feasible[c.Contract()]
	if f == nil || f.offered != offered {
		f = &feasible{entries: s.Fleet.Eligible(c.Spec), offered: offered}
		if len(s.given) > 0 {
			f.entries = slices.DeleteFunc(f.entries, func(e *index.Entry) bool { return s.given[e.Name()] != nil })
		}
		f.candidates = make([]*selection.PreparedCandidate, len(f.entries))
		for i, e := range f.entries {
			f.candidates[i] = e.Candidate()
		}
		if s.feasible == nil {
			s.feasible = map[string]*feasible{}
		}
		s.feasible[c.Contract()] = f
	} else if gone := s.taken[f.seen:]; len(gone) > 0 {
		f.leaveOut(gone)
	}
	f.seen = len(s.taken)
	return f
}

// unspent are those servers that were not tried for a claim in vain; nil where these are all, or none. They are left out before the
// policy ranks them, because a ranking ends after the best.
func unspent(c *claims.Claim, all *feasible, w Want) *feasible {
	if w.Spent == nil {
		return nil
	}
	some := &feasible{}
	for i, e := range all.entries {
		if !w.Spent(c, e) {
			some.entries, some.candidates = append(some.entries, e), append(some.candidates, all.candidates[i])
		}
	}
	if len(some.entries) == 0 || len(some.entries) == len(all.entries) {
		return nil
	}
	return some
}

// leaveOut takes servers out of the candidates.
func (f *feasible) leaveOut(numbers []uint32) {
	isGone := func(n uint32) bool { return slices.Contains(numbers, n) }
	if len(numbers) > 8 {
		set := make(map[uint32]bool, len(numbers))
		for _, n := range numbers {
			set[n] = true
		}
		isGone = func(n uint32) bool { return set[n] }
	}
	kept := 0
	for i, e := range f.entries {
		if !isGone(e.Number()) {
			f.entries[kept], f.candidates[kept] = e, f.candidates[i]
			kept++
		}
	}
	f.entries, f.candidates = f.entries[:kept], f.candidates[:kept]
}

// none refuses a claim that no server is left for.
func (s *Snapshot) none(c *claims.Claim) pick {
	return pick{claim: c, action: Refuse, refusal: Refusal{Count: true, LeftOut: s.leaving(c)}}
}

// leaving is the code by which a server that a claim names is none for it, whatever claim has it; empty where it may get it.
func (s *Snapshot) leaving(c *claims.Claim) string {
	if c.ServerRef == "" {
		return ""
	}
	e := s.Fleet.Get(c.ServerRef)
	if e == nil {
		return ""
	}
	if ok, code, _ := selection.Feasible(c.Spec, e.State); !ok {
		return code
	}
	if c.Placement == nil {
		return ""
	}
	return judgementCodes[s.cache().judge(s.cache().of(c.Placement), e).code]
}

// usable is a ranking that has any server; else it says why there is none.
func (s *Snapshot) usable(c *claims.Claim, r *ranking) (*ranking, pick) {
	if r.failed != "" {
		p := refused(c, ReasonGuardError, r.failed)
		p.refusal.Follows = true
		return nil, p
	}
	if len(r.ranked) == 0 {
		return nil, pick{claim: c, action: Refuse, from: r, refusal: Refusal{Count: true, Rejected: r.rejected, Misplaced: r.misplaced,
			Unjudged: r.unjudged, Unknown: r.unknown, Follows: r.follows}}
	}
	for r.head < len(r.ranked) && s.free(r.ranked[r.head].Name, c.Spec) == nil {
		r.head++
	}
	return r, pick{}
}

// free returns a server if the hard contract lets a claim have it and no other claim is to have it; else nil.
func (s *Snapshot) free(name string, spec selection.ClaimSpec) *index.Entry {
	if len(s.given) > 0 && s.given[name] != nil {
		return nil
	}
	return s.Fleet.Free(name, spec)
}

// next is the best server of a ranking that can still be had. One that changed since the policy looked at it is left out, and so is one
// that was spent.
func (s *Snapshot) next(c *claims.Claim, r *ranking, w Want) (pick, bool) {
	for at := r.head; at < len(r.ranked); at++ {
		e := s.free(r.ranked[at].Name, c.Spec)
		if e == nil || e.Since() > r.sequence || w.Spent != nil && w.Spent(c, e) {
			continue
		}
		return pick{claim: c, action: Bind, server: e.Name(), entry: e, from: r, score: r.ranked[at].Score, rank: at - r.head,
			others: r.allowed - 1 - r.head}, true
	}
	return pick{}, false
}

// rank asks the policy about the servers that the claim's placement accepts: about one alternative after the other, until it
// allows any of one.
func (s *Snapshot) rank(ctx context.Context, c *claims.Claim, can *feasible, r *ranking) {
	r.rejected = map[string]int{}
	if c.Placement == nil {
		s.ask(ctx, c.Asked, can.candidates, r, false)
		return
	}
	for _, group := range s.groupsOf(ctx, c, can, r) {
		if len(group) == 0 {
			continue
		}
		s.ask(ctx, c.Asked, group, r, c.Placement.Prefers())
		if c.Placement.Prefers() {
			prefer(r.ranked, s.scoresOf(c.Placement, can))
		}
		if r.allowed > 0 || r.failed != "" {
			return
		}
	}
}

// groupsOf are the servers that a claim's placement accepts as they stand now, by alternative. They are valid until the next call. The
// others are counted in the ranking by code.
func (s *Snapshot) groupsOf(ctx context.Context, c *claims.Claim, can *feasible, r *ranking) (groups [][]*selection.PreparedCandidate) {
	p := c.Placement
	room, t, counts, spread := s.roomOf(c), s.cache().of(p), make([]int, len(judgementCodes)), 0
	for len(s.groups) < p.Alternatives() {
		s.groups = append(s.groups, nil)
	}
	groups = s.groups[:p.Alternatives()]
	for i := range groups {
		groups[i] = groups[i][:0]
	}
	for i, e := range can.entries {
		if i%1024 == 0 && ctx.Err() != nil {
			r.failed = "the search was ended"
			return nil
		}
		one := s.cache().judge(t, e)
		switch {
		case !one.accepted():
			counts[one.code]++
		case room.allows(e):
			groups[one.alternative] = append(groups[one.alternative], can.candidates[i])
		default:
			spread++
		}
	}
	r.misplaced = map[string]int{}
	for code, n := range counts {
		if n > 0 {
			r.misplaced[judgementCodes[code]] = n
		}
	}
	if spread > 0 {
		r.misplaced[placement.CodeSpread] = spread
	}
	return groups
}

// lookCost is what it costs to ask a policy about one server, in the units of a placement's cost.
const lookCost = 20

// ask adds to a ranking what the policy says of some servers.
func (s *Snapshot) ask(ctx context.Context, claim selection.Claim, some []*selection.PreparedCandidate, r *ranking, whole bool) {
	s.Spent.Evaluations++
	s.cache().work += lookCost * int64(len(some))
	result, err := s.selected(ctx, claim, some, whole)
	if err != nil {
		r.failed = selection.Anonymous(err)
	}
	r.ranked, r.allowed = result.Ranked, max(result.Allowed, len(result.Ranked))
	for code, one := range result.Rejections {
		r.rejected[code] += one.Count
	}
	if n := result.Unjudged.Count; n > 0 {
		s.Spent.Unjudged += n
		s.Spent.Failures = append(s.Spent.Failures, Failures{result.Failures, n == result.Evaluated})
		r.unjudged, r.unknown = r.unjudged+n, cmp.Or(r.unknown, result.Unjudged.Message)
	}
}

func (s *Snapshot) selected(ctx context.Context, claim selection.Claim, some []*selection.PreparedCandidate, whole bool) (selection.Result, error) {
	if p, ok := s.Policy.(ranker); ok && whole {
		return p.Rank(ctx, claim, some, s.counts(claim.Namespace), len(some))
	}
	return s.Policy.Select(ctx, claim, some, s.counts(claim.Namespace))
}

// scoresOf are what a placement adds to the scores of servers, by name.
func (s *Snapshot) scoresOf(p *placement.Placement, can *feasible) map[string]float64 {
	t, scores := s.cache().of(p), make(map[string]float64, len(can.entries))
	for _, e := range can.entries {
		scores[e.Name()] = float64(s.cache().judge(t, e).score)
	}
	return scores
}

// prefer adds the scores of a placement to a ranking.
func prefer(ranked []selection.Ranked, scores map[string]float64) {
	for i := range ranked {
		ranked[i].Score += scores[ranked[i].Name]
	}
	slices.SortFunc(ranked, func(a, b selection.Ranked) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Name, b.Name))
	})
}
