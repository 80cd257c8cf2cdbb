// SPDX-License-Identifier: Apache-2.0

package solve

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/metalaw/metalaw/engine/claims"
	"github.com/metalaw/metalaw/engine/placement"
)

// explain decides on claims as Best does, and adds what is to be said of every server. Each claim sees the servers of those that chose
// before it as taken; where not every member of a gang has a server, as free, and those that fit are turned away under CodeGang.
func (s *solver) explain(some []*claims.Claim) []Result {
	all, open, at := s.asWritten(some)
	if len(open) == 0 {
		return all
	}
	var barred *Reason
	if words := s.overQuota(open); words != "" {
		barred = &Reason{ReasonQuotaExceeded, words, Namespace}
	}
	forbids := s.want.Forbids
	s.want.Forbids = nil // what it forbids comes beside the answers
	picks, answers := s.answers(open, barred != nil || s.Policy == nil)
	complete := true
	for k, i := range at {
		answers[k].Refused = refusedBy(open[k], barred, forbids)
		complete = complete && picks[k].has() && answers[k].Refused == nil
		all[i] = picks[k].Result
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
func (s *solver) asWritten(some []*claims.Claim) (all []Result, open []*claims.Claim, at []int) {
	all, open = make([]Result, len(some)), []*claims.Claim{}
	for i, c := range some {
		if problem := cmp.Or(c.Invalid, c.Unplaced); problem != "" {
			return []Result{{Claim: c, Action: Refuse, Err: errors.New(problem)}}, nil, nil
		}
		if r, has := s.Written(c); has {
			all[i] = r
			all[i].Answer = &Answer{Total: s.Fleet.Len(), Has: r.Server}
			continue
		}
		open, at = append(open, c), append(at, i)
	}
	return all, open, at
}

// refusedBy is why a claim gets no server whichever fits: what bars all claims of the question, or what the reader's policy forbids.
func refusedBy(c *claims.Claim, barred *Reason, forbids func(*claims.Claim) (reason, message string)) *Reason {
	if forbids == nil {
		return barred
	}
	if reason, message := forbids(c); message != "" {
		return &Reason{reason, message, ClaimStage}
	}
	return barred
}

// overQuota says in words that the quota of the namespace has no room for so many claims more, or never has any for all members of their
// gang; empty where it has.
func (s *solver) overQuota(some []*claims.Claim) string {
	c := some[0]
	if gang := c.Gang(); gang != nil && c.ServerRef == "" {
		if words := s.Quota.TooSmall(c.Namespace, gang.Size); words != "" {
			return fmt.Sprintf("gang %q: %s", gang.Name, words)
		}
	}
	p, _ := s.exceeds(c, len(some))
	return p.Refusal.Message
}

// answers are those of claims that have no server yet. Where idle, none of them chooses, and each sees the fleet as it is.
func (s *solver) answers(open []*claims.Claim, idle bool) ([]pick, []Answer) {
	j, picks, answers := s.newReasoner(), make([]pick, len(open)), make([]Answer, len(open))
	if idle {
		for i, c := range open {
			picks[i], answers[i] = pick{Result: Result{Claim: c, Action: Refuse}}, j.answer(c)
		}
		return picks, answers
	}
	if len(open) == 1 {
		picks[0] = s.choose(open[0])
		answers[0] = j.answer(open[0])
		answers[0].take(picks[0].Server)
		return picks, answers
	}
	found, short := s.search(open)
	s.takeBack()
	if short == nil {
		copy(picks, found)
	} else {
		copy(picks, short.picks)
	}
	for i, c := range open { // in the order in which they chose
		picks[i].Claim = c
		answers[i] = j.answer(c)
		if e := picks[i].Entry; e != nil {
			answers[i].take(e.Name())
			s.give(e, c)
		}
	}
	s.takeBack()
	if short != nil {
		for i := range picks {
			picks[i].Action = Refuse
		}
		answers = j.shortAnswers(open, picks, answers)
	}
	return picks, answers
}

// lackingOf is the first member that finds no server.
func lackingOf(picks []pick) string {
	for _, p := range picks {
		if p.Entry == nil {
			return p.Claim.Name
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
// get one answer: what the first of them that is left without finds.
func (j *reasoner) shortAnswers(open []*claims.Claim, picks []pick, first []Answer) []Answer {
	all, known := make([]Answer, len(open)), map[int]Answer{}
	for i, at := range j.modelsOf(open, picks) {
		if _, done := known[at]; !done {
			isShort := picks[at].Entry == nil
			a := j.shared(open, picks, first[at], at, isShort)
			if a.Short = true; !isShort {
				a.Lacking = lackingOf(picks)
			}
			known[at] = a
		}
		all[i] = known[at]
		all[i].Verdicts, all[i].Counts = slices.Clone(known[at].Verdicts), maps.Clone(known[at].Counts)
	}
	return all
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
		if p.Entry != nil {
			taken[p.Entry.Name()] = true
		}
	}
	a.Verdicts, a.Counts, a.Fits = slices.Clone(a.Verdicts), map[string]int{}, 0
	for i := range a.Verdicts {
		v := &a.Verdicts[i]
		switch {
		case taken[v.Name]:
			*v = unshared[v.Name]
			if v.Fits {
				v.withhold(wordsFellow)
				v.fellow = true
			}
		case v.Fits && !isShort:
			v.withhold(wordsUnmet)
		}
	}
	a.finish()
	return a
}

// withhold turns a server away that fits, for the sake of the gang.
func (v *Verdict) withhold(words string) {
	v.Fits, v.Later, v.Rank = false, false, 0
	v.Reasons = []Reason{{placement.CodeGang, words, Placement}}
}
