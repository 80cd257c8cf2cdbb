// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"
	"reflect"
	"slices"

	"github.com/metalaw/metalaw/engine/placement"
	"github.com/metalaw/metalaw/engine/selection"
	"github.com/metalaw/metalaw/policies"
)

// Members of a gang for which there are too few servers are told what the scheduler counts for them, from how they chose one after the
// other. Nothing of that came to be: a server that one of them would take is free, and what keeps the gang waiting is what turns the
// others away.

// The words of CodeGang.
const (
	wordsFellow = "another member of its gang would get it"
	wordsUnmet  = "it would do, and not every member of its gang finds a server"
)

// short puts the answers of members right that chose in turn, of which some are left without a server. All that ask for the same are
// told the same: what the first of them that is left without finds.
func (s *search) short(ctx context.Context, first Served, missing []int) (Served, error) {
	asks := make(map[int]asked, len(s.wanting))
	for _, i := range s.wanting {
		asks[i] = s.asks(i)
	}
	told := Served{Answers: slices.Clone(first.Answers), After: first.After}
	lacking := s.members[missing[0]].Claim.Name
	for i := range told.Answers { // those that have a server
		told.Answers[i].Short, told.Answers[i].Lacking = true, lacking
	}
	known := map[int]Answer{}
	for _, i := range s.wanting {
		alike := func(k int) bool { return reflect.DeepEqual(asks[k], asks[i]) }
		at, isShort := slices.IndexFunc(missing, alike), true
		if at >= 0 {
			at = missing[at]
		} else {
			at, isShort = s.wanting[slices.IndexFunc(s.wanting, alike)], false
		}
		if _, done := known[at]; !done {
			a, err := s.shared(ctx, first, at, isShort)
			if err != nil {
				return Served{}, err
			}
			if a.Short = true; !isShort {
				a.Lacking = lacking
			}
			known[at] = a
		}
		told.Answers[i] = known[at]
	}
	return told, nil
}

// shared is the answer of a member in which the servers of those that chose before it are free, and count under CodeGang if it could
// have them. Where it is not short itself, so do all others that it could have.
func (s *search) shared(ctx context.Context, first Served, member int, isShort bool) (Answer, error) {
	m := s.members[member]
	before, err := Judge(ctx, s.policy, m.Claim, m.Priority, s.fleet)
	if err != nil {
		return Answer{}, err
	}
	unshared := make(map[string]Verdict, len(before.Verdicts))
	for _, v := range before.Verdicts {
		unshared[v.Name] = v
	}
	taken := map[string]bool{}
	for _, i := range s.wanting[:slices.Index(s.wanting, member)] {
		if v, ok := first.Answers[i].Taken(); ok {
			taken[v.Name] = true
		}
	}
	a := first.Answers[member]
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
	return a, nil
}

// heldBack is a server that fits, and is not to be had for the sake of the gang.
func (v *Verdict) heldBack(words string) {
	v.Fits, v.Later, v.Rank = false, false, 0
	v.Reasons = []Reason{{placement.CodeGang, words, Placement}}
}

// asked is what a claim asks for; it is equal for claims that get the same servers.
type asked struct {
	spec              selection.ClaimSpec
	placement, policy string
}

// asks is what a member asks for that was judged before.
func (s *search) asks(member int) asked {
	m := s.members[member]
	spec, _ := policies.ClaimSpecOf(m.Claim) // Judge has seen that both can be read
	p, _ := policies.PlacementOf(m.Claim)
	a := asked{spec: spec, placement: p.Asks()}
	if s.policy != nil {
		claim := policies.SelectionClaimOf(m.Claim)
		claim.Priority = m.Priority
		a.policy = s.policy.Asks(claim)
	}
	return a
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
