// SPDX-License-Identifier: Apache-2.0

package solve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/metalaw/metalaw/engine/claims"
	"github.com/metalaw/metalaw/engine/placement"
)

// explain decides on claims as Best does, and adds what is to be said of every server. Each claim sees the servers of those that chose
// before it as taken; where not every member of a gang has a server, as free, and those that fit are turned away under CodeGang.
func (s *Snapshot) explain(ctx context.Context, some []*claims.Claim, w Want) []Result {
	all, open, at := s.asWritten(some)
	if len(open) == 0 {
		return all
	}
	var barred *Reason
	if words := s.overQuota(open); words != "" {
		barred = &Reason{ReasonQuotaExceeded, words, Namespace}
	}
	picks, answers := s.answers(ctx, open, w, barred != nil || s.Policy == nil)
	complete := true
	for k, i := range at {
		answers[k].Refused = refusedBy(open[k], barred, w)
		complete = complete && picks[k].has() && answers[k].Refused == nil
		all[i] = picks[k].result()
		all[i].Answer = &answers[k]
	}
	for i := range all {
		if !complete && all[i].Action == Bind {
			all[i].Action = Refuse
		}
		if all[i].Answer.Has != "" && len(answers) > 0 && answers[0].Short {
			all[i].Answer.Short, all[i].Answer.Lacking = true, lackingOf(picks)
		}
	}
	return all
}

// asWritten answers for the claims whose objects say what they have, or that they have no meaning: of these the answer is the only one. It
// returns the others as well, with their places in the answers.
func (s *Snapshot) asWritten(some []*claims.Claim) (all []Result, open []*claims.Claim, at []int) {
	all, open = make([]Result, len(some)), []*claims.Claim{}
	for i, c := range some {
		if problem := cmp.Or(c.Invalid, c.Unplaced); problem != "" {
			return []Result{{Claim: c, Action: Refuse, Err: errors.New(problem)}}, nil, nil
		}
		if p, has := s.written(c); has {
			all[i] = p.result()
			all[i].Answer = &Answer{Total: s.Fleet.Len(), Has: p.server}
			continue
		}
		open, at = append(open, c), append(at, i)
	}
	return all, open, at
}

// refusedBy is why a claim gets no server whichever fits: what bars all claims of the question, or what the reader's policy forbids.
func refusedBy(c *claims.Claim, barred *Reason, w Want) *Reason {
	if w.Forbids == nil {
		return barred
	}
	if reason, message := w.Forbids(c); message != "" {
		return &Reason{reason, message, ClaimStage}
	}
	return barred
}

// overQuota says in words that the quota of the namespace has no room for so many claims more, or never has any for all members of their
// gang; empty where it has.
func (s *Snapshot) overQuota(some []*claims.Claim) string {
	c := some[0]
	if gang := c.Gang(); gang != nil && c.ServerRef == "" {
		if words := s.Quota.TooSmall(c.Namespace, gang.Size); words != "" {
			return fmt.Sprintf("gang %q: %s", gang.Name, words)
		}
	}
	p, _ := s.exceeds(c, len(some))
	return p.refusal.Message
}

// answers are those of claims that have no server yet. Where nobody chooses, each is told of the fleet as it is.
func (s *Snapshot) answers(ctx context.Context, open []*claims.Claim, w Want, idle bool) ([]pick, []Answer) {
	j, picks, answers := s.newReasoner(ctx), make([]pick, len(open)), make([]Answer, len(open))
	if idle {
		for i, c := range open {
			picks[i], answers[i] = pick{claim: c, action: Refuse}, j.answer(c)
		}
		return picks, answers
	}
	want := Want{Spent: w.Spent, Steps: w.Steps}
	if len(open) == 1 {
		picks[0] = s.choose(ctx, open[0], want)
		answers[0] = j.answer(open[0])
		answers[0].take(picks[0].server)
		return picks, answers
	}
	found, short := s.search(ctx, open, want)
	s.takeBack()
	if short != nil {
		found = make([]pick, len(open))
		copy(found, short.picks)
	}
	order := make([]int, len(open))
	for i := range order {
		order[i] = i
	}
	if short == nil { // as they were given out: where members keep apart, one makes room for another
		slices.SortStableFunc(order, func(a, b int) int { return found[a].turn - found[b].turn })
	}
	for _, i := range order {
		picks[i] = found[i]
		picks[i].claim = open[i]
		answers[i] = j.answer(open[i])
		if e := found[i].entry; e != nil {
			answers[i].take(e.Name())
			s.give(e, open[i])
		}
	}
	s.takeBack()
	if short != nil {
		answers = j.shortAnswers(open, picks, answers)
		for i := range picks {
			picks[i].action = Refuse
		}
	}
	return picks, answers
}

// lackingOf is the first member that finds no server.
func lackingOf(picks []pick) string {
	for _, p := range picks {
		if p.entry == nil {
			return p.claim.Name
		}
	}
	return ""
}

// The words of CodeGang.
const (
	wordsFellow = "another member of its gang would get it"
	wordsUnmet  = "it would do, and not every member of its gang finds a server"
)

// shortAnswers puts the answers of members right that chose in turn, of which some are left without a server. Nothing of that came to be:
// a server that one of them would take is free, and what keeps the gang waiting is what turns the others away. All that ask for the same
// are told the same: what the first of them that is left without finds.
func (j *reasoner) shortAnswers(open []*claims.Claim, picks []pick, first []Answer) []Answer {
	told, known, lacking := make([]Answer, len(open)), map[int]Answer{}, lackingOf(picks)
	for i, c := range open {
		at := slices.IndexFunc(open, func(o *claims.Claim) bool { return j.asks(o) == j.asks(c) })
		isShort := false
		for k, o := range open {
			if picks[k].entry == nil && j.asks(o) == j.asks(c) {
				at, isShort = k, true
				break
			}
		}
		if _, done := known[at]; !done {
			a := j.shared(open, picks, first[at], at, isShort)
			if a.Short = true; !isShort {
				a.Lacking = lacking
			}
			known[at] = a
		}
		told[i] = known[at]
		told[i].Verdicts, told[i].Counts = slices.Clone(known[at].Verdicts), maps.Clone(known[at].Counts)
	}
	return told
}

// shared is the answer of a member in which the servers of those that chose before it are free, and count under CodeGang if it could
// have them. Where it is not short itself, so do all others that it could have.
func (j *reasoner) shared(open []*claims.Claim, picks []pick, a Answer, member int, isShort bool) Answer {
	before := j.answer(open[member])
	unshared := make(map[string]Verdict, len(before.Verdicts))
	for _, v := range before.Verdicts {
		unshared[v.Name] = v
	}
	taken := map[string]bool{}
	for _, p := range picks[:member] {
		if p.entry != nil {
			taken[p.entry.Name()] = true
		}
	}
	a.Verdicts, a.Counts, a.Fits = slices.Clone(a.Verdicts), map[string]int{}, 0
	for i := range a.Verdicts {
		v := &a.Verdicts[i]
		switch {
		case taken[v.Name]:
			*v = unshared[v.Name]
			if v.Fits {
				v.heldBack(wordsFellow)
				v.fellow = true
			}
		case v.Fits && !isShort:
			v.heldBack(wordsUnmet)
		}
	}
	a.finish()
	return a
}

// heldBack is a server that fits, and is not to be had for the sake of the gang.
func (v *Verdict) heldBack(words string) {
	v.Fits, v.Later, v.Rank = false, false, 0
	v.Reasons = []Reason{{placement.CodeGang, words, Placement}}
}

// compareFellow puts what no fellow member would get first.
func (v Verdict) compareFellow(o Verdict) int {
	switch {
	case v.fellow == o.fellow:
		return 0
	case v.fellow:
		return 1
	}
	return -1
}
