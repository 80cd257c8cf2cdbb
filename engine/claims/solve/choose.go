// SPDX-License-Identifier: Apache-2.0

package solve

import (
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

// pick is the Result for a claim before it is handed out.
type pick struct {
	Result
	// from is the ranking that the server, or its absence, follows from.
	from *ranking
}

// has says that the claim has a server, by what is written or by what is chosen.
func (p pick) has() bool { return p.Action != Refuse && p.Action != Again }

// following has the policy be asked again though no server changes.
func (p pick) following() pick {
	p.Refusal.Follows = true
	return p
}

func refused(c *claims.Claim, reason, message string) pick {
	return pick{Result: Result{Claim: c, Action: Refuse, Refusal: Refusal{Reason: reason, Message: message}}}
}

// Written is the server that is written for a claim, with Settled, Complete or Adopt; false where there is none.
func (s *Snapshot) Written(c *claims.Claim) (Result, bool) {
	holding := ""
	for _, e := range s.Fleet.HeldBy(c.Key) {
		switch e.Holder.RelationOf(e.Name(), c) {
		case claims.Holds:
			if c.ServerRef == e.Name() {
				return Result{Claim: c, Action: Settled, Server: e.Name()}, true
			}
			if !e.Holder.Ended && (holding == "" || e.Name() < holding) {
				holding = e.Name()
			}
		case claims.Adoptable:
			return Result{Claim: c, Action: Adopt, Server: e.Name()}, true
		case claims.Unrelated, claims.Another:
		}
	}
	if c.ServerRef == "" && holding != "" {
		return Result{Claim: c, Action: Complete, Server: holding}, true
	}
	return Result{}, false
}

// one decides on a claim by itself.
func (s *solver) one(c *claims.Claim) Result {
	if r, done := s.Written(c); done && (r.Action != Complete || c.Unplaced == "") {
		return r
	}
	p := s.choose(c)
	if p.Action == Bind && c.Gang() != nil && !c.HadServer {
		p = refused(c, ReasonInvalidPlacement, "a claim of a gang cannot name its server in spec.serverRef; "+
			"serverRef cannot be changed, so claim anew without it")
	}
	return p.Result
}

// choose finds the best server that a claim can have for which none is written. Where none of a ranking can be had, the policy is asked
// once more.
func (s *solver) choose(c *claims.Claim) pick {
	if p, is := s.barred(c); is {
		return p
	}
	var last *ranking
	for _, afresh := range []bool{false, true} {
		from, p := s.rankingOf(c, afresh)
		if from == nil {
			return p
		}
		if p, found := s.next(c, from); found {
			return p
		}
		last = from
	}
	return pick{from: last, Result: Result{Claim: c, Action: Again,
		Refusal: Refusal{Count: true, Rejected: last.rejected, Misplaced: last.misplaced}}}
}

// barred refuses a claim for which no server would do.
func (s *solver) barred(c *claims.Claim) (pick, bool) {
	switch {
	case c.Unplaced != "":
		return refused(c, ReasonInvalidPlacement, c.Unplaced), true
	case c.Invalid != "":
		return refused(c, ReasonInvalidSelector, c.Invalid), true
	}
	if s.want.Forbids != nil {
		if reason, message := s.want.Forbids(c); message != "" {
			return refused(c, reason, message).following(), true
		}
	}
	if c.ServerRef != "" && s.Fleet.Get(c.ServerRef) == nil {
		return refused(c, ReasonServerNotFound,
			"the server that spec.serverRef names does not exist; the claim gets it once it does. "+
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
	return refused(c, ReasonQuotaExceeded, words).following(), words != ""
}

// AskKey is equal for claims that ask for the same, as far as a policy can tell them apart.
func AskKey(policy Policy, c *claims.Claim) string {
	if t, ok := policy.(telling); ok {
		return c.Class() + "\x00" + t.Asks(c.Asked)
	}
	return c.Class()
}

// rankingOf ranks the servers that a claim can have, or takes what was ranked for one that asks for the same. Where there is nothing it
// says why.
func (s *solver) rankingOf(c *claims.Claim, afresh bool) (*ranking, pick) {
	if s.exhausted[c.Class()] {
		return nil, s.none(c)
	}
	key, follows := "\x00"+c.UID, true
	t, tells := s.Policy.(telling)
	if tells {
		key, follows = AskKey(s.Policy, c), t.FollowsFleet()
	}
	known := s.rankings[key]
	if afresh || known == nil || (tells && known.follows || known.spread) && known.counted != s.version() {
		return s.rankAnew(c, key, follows)
	}
	return s.usable(c, known)
}

// rankAnew asks the policy, and keeps its ranking under a key.
func (s *solver) rankAnew(c *claims.Claim, key string, follows bool) (*ranking, pick) {
	r := &ranking{sequence: s.Fleet.Sequence(), counted: s.version(), follows: follows, spread: c.Placement.Spread() != nil}
	can := s.feasibleFor(c)
	if len(can.entries) == 0 {
		s.exhausted[c.Class()] = true
		return nil, s.none(c)
	}
	if s.Policy == nil {
		return nil, refused(c, ReasonPending, "no policy is in force, or this version of the manager refuses the one that is").following()
	}
	if some := s.unspent(c, can); some != nil {
		own := *r // the others of its class did not try these
		s.rank(c, some, &own)
		if len(own.ranked) > 0 {
			return s.usable(c, &own)
		}
	}
	s.rank(c, can, r)
	s.rankings[key] = r
	return s.usable(c, r)
}

// feasibleFor finds the servers that a claim can have. As long as none came up since they were found for one that asks for the same,
// those that were given away meanwhile are left out of them.
func (s *solver) feasibleFor(c *claims.Claim) *feasible {
	offered := s.Fleet.Offered()
	f := s.feasible[c.Contract()]
	if f == nil || f.offered != offered {
		f = s.Cache.room()
		f.entries, f.offered = s.Fleet.AppendEligible(f.entries, c.Spec), offered
		if len(s.given) > 0 {
			f.entries = slices.DeleteFunc(f.entries, func(e *index.Entry) bool { return s.given[e.Name()] != nil })
		}
		f.prepare()
		s.feasible[c.Contract()] = f
	} else if gone := s.taken[f.seen:]; len(gone) > 0 {
		f.leaveOut(gone)
	}
	f.seen = len(s.taken)
	return f
}

func feasibleOf(entries []*index.Entry) *feasible {
	f := &feasible{entries: entries}
	f.prepare()
	return f
}

// prepare makes the candidates of the entries.
func (f *feasible) prepare() {
	f.candidates = slices.Grow(f.candidates[:0], len(f.entries))
	for _, e := range f.entries {
		f.candidates = append(f.candidates, e.Candidate())
	}
}

// leaveOut takes servers out. Most often it is one, for which a set costs more than it saves.
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

// unspent are those servers that were not tried for a claim in vain; nil where these are all, or none. They are left out before the
// policy ranks them, because a ranking ends after the best.
func (s *solver) unspent(c *claims.Claim, all *feasible) *feasible {
	if s.want.Spent == nil {
		return nil
	}
	some := slices.DeleteFunc(slices.Clone(all.entries), func(e *index.Entry) bool { return s.isSpent(c, e) })
	if len(some) == 0 || len(some) == len(all.entries) {
		return nil
	}
	return feasibleOf(some)
}

func (s *solver) isSpent(c *claims.Claim, e *index.Entry) bool {
	return s.want.Spent != nil && s.want.Spent(c, e)
}

// none refuses a claim that no server is left for.
func (s *solver) none(c *claims.Claim) pick {
	return pick{Result: Result{Claim: c, Action: Refuse, Refusal: Refusal{Count: true, LeftOut: s.leaving(c)}}}
}

// leaving is the code by which a server that a claim names is none for it, also once no claim has it; empty where it
// may get it.
func (s *solver) leaving(c *claims.Claim) string {
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
	return judgementCodes[s.Cache.judge(s.Cache.of(c.Placement), e).code]
}

// usable is a ranking that has any server; else it says why there is none.
func (s *solver) usable(c *claims.Claim, r *ranking) (*ranking, pick) {
	if r.failed != "" {
		return nil, refused(c, ReasonGuardError, r.failed).following()
	}
	if len(r.ranked) == 0 {
		return nil, pick{from: r, Result: Result{Claim: c, Action: Refuse, Refusal: Refusal{Count: true, Rejected: r.rejected,
			Misplaced: r.misplaced, Unjudged: r.unjudged, Unknown: r.unknown, Follows: r.follows}}}
	}
	for r.head < len(r.ranked) && s.free(r.ranked[r.head].Name, c.Spec) == nil {
		r.head++
	}
	return r, pick{}
}

// free returns a server if the hard contract lets a claim have it and no other claim is to have it; else nil.
func (s *Snapshot) free(name string, spec selection.ClaimSpec) *index.Entry {
	if s.given[name] != nil {
		return nil
	}
	return s.Fleet.Free(name, spec)
}

// next is the best server of a ranking that can still be had. One that changed since the policy looked at it is left out, and so is one
// that was spent.
func (s *solver) next(c *claims.Claim, r *ranking) (pick, bool) {
	for at := r.head; at < len(r.ranked); at++ {
		e := s.free(r.ranked[at].Name, c.Spec)
		if e == nil || e.Since() > r.sequence || s.isSpent(c, e) {
			continue
		}
		return pick{from: r, Result: Result{Claim: c, Action: Bind, Server: e.Name(), Entry: e, Score: r.ranked[at].Score, Rank: at - r.head,
			Others: r.allowed - 1 - r.head}}, true
	}
	return pick{}, false
}
