// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"cmp"
	"math/bits"
	"slices"
	"strings"
)

// tally adds up what is said of candidates.
type tally struct {
	most    int
	allowed int
	// lasting counts those that a rule turns away which reads only what lasts.
	lasting int
	// head holds the best so far, in no order. Once it was cut, nothing at or behind last matters.
	head []Ranked
	cut  bool
	last Ranked
	// byBit counts native verdicts by the bit of their code, byCode what has its words already.
	byBit  [mostCodes]rejected
	byCode map[string]rejected
	// unjudged are the candidates for which the rules fail.
	unjudged rejected
	failures []CandidateError
}

// rejected counts candidates; first is the one whose name comes first.
type rejected struct {
	Rejection
	first *PreparedCandidate
}

func newTally(most, candidates int) *tally {
	t := &tally{most: max(most, 0), byCode: map[string]rejected{}}
	t.head = make([]Ranked, 0, min(t.room()+1, candidates))
	return t
}

// room is how many are kept before those are dropped that cannot be among the best.
func (t *tally) room() int { return 2*t.most + 16 }

func compareRanked(a, b Ranked) int {
	if order := cmp.Compare(b.Score, a.Score); order != 0 { // most often, and names lie elsewhere in memory
		return order
	}
	return strings.Compare(a.Name, b.Name)
}

// rank takes in an allowed candidate.
func (t *tally) rank(candidate *PreparedCandidate, score float64) {
	t.allowed++
	if t.most == 0 || (t.cut && (score < t.last.Score || score == t.last.Score && candidate.Name() >= t.last.Name)) {
		return
	}
	one := Ranked{candidate.Name(), score}
	if t.head = append(t.head, one); len(t.head) > t.room() {
		t.shorten()
	}
}

func (t *tally) shorten() {
	slices.SortFunc(t.head, compareRanked)
	if len(t.head) > t.most {
		t.head = t.head[:t.most]
		t.cut, t.last = true, t.head[t.most-1]
	}
}

func (t *tally) verdict(v *verdict, candidate *PreparedCandidate) {
	if v.allowed {
		t.rank(candidate, v.score)
		return
	}
	if v.lasting {
		t.lasting++
	}
	for codes := v.codes; codes != 0; codes &= codes - 1 {
		r := &t.byBit[bits.TrailingZeros64(codes)]
		r.Count++
		if r.first == nil || candidate.Name() < r.first.Name() {
			r.first = candidate
		}
	}
}

func (t *tally) judgement(j Judgement, candidate *PreparedCandidate) {
	if j.Allowed {
		t.rank(candidate, j.Score)
		return
	}
	if j.Lasting {
		t.lasting++
	}
	for i, reason := range j.Reasons {
		if i == 0 || j.Reasons[i-1].Code != reason.Code {
			t.add(reason, candidate, 1)
		}
	}
}

// fail counts a candidate of which the rules say nothing.
func (t *tally) fail(err CandidateError, candidate *PreparedCandidate) {
	r := &t.unjudged
	if r.first == nil || candidate.Name() < r.first.Name() {
		r.first, r.Message = candidate, Anonymous(err)
	}
	if len(t.failures) < MaxTold {
		t.failures = append(t.failures, err)
	}
	r.Count++
}

// add counts candidates under a code, of which one is the first.
func (t *tally) add(reason Reason, first *PreparedCandidate, n int) {
	r := t.byCode[reason.Code]
	if r.first == nil || first.Name() < r.first.Name() {
		r.first, r.Message = first, reason.Message
	}
	r.Count += n
	t.byCode[reason.Code] = r
}

func (t *tally) result(evaluated int) Result {
	t.shorten()
	result := Result{Allowed: t.allowed, Lasting: t.lasting, Rejections: make(map[string]Rejection, len(t.byCode)),
		Evaluated: evaluated, Unjudged: t.unjudged.Rejection,
		Failures: t.failures}
	if len(t.head) > 0 {
		result.Ranked = t.head
	}
	for code, r := range t.byCode {
		result.Rejections[code] = r.Rejection
	}
	return result
}
