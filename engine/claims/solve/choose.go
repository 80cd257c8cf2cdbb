// SPDX-License-Identifier: Apache-2.0

package solve

import (
	"context"
	"slices"

	"github.com/metalaw/metalaw/engine/claims"
	"github.com/metalaw/metalaw/engine/claims/index"
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
	return Result{Claim: p.claim, Action: p.action, Server: p.server, Entry: p.entry,
		Score: p.score, Rank: p.rank, Others: p.others, Refusal: p.refusal}
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
