// SPDX-License-Identifier: Apache-2.0

package placement

import "github.com/metalaw/metalaw/engine/selection"

// Sorted is what a placement says about a fleet.
type Sorted struct {
	// Groups holds the positions of the servers that are accepted, by alternative, each in the order in which they were given.
	Groups [][]int32
	// Scores holds the score of each server by its position; nil where the placement prefers nothing.
	Scores []int32
	// Rejections counts the others by code.
	Rejections map[string]selection.Rejection
}

// Sort looks at n servers. counts are those of Spread and may be nil where there is none. A server counts under one code; of
// the messages of a code that of the first name is kept.
func (p *Placement) Sort(n int, at func(i int) *selection.Candidate, counts map[string]int64) Sorted {
	s := Sorted{Groups: make([][]int32, p.Alternatives()), Rejections: map[string]selection.Rejection{}}
	if len(s.Groups) == 1 {
		s.Groups[0] = make([]int32, 0, n)
	}
	if p.Prefers() {
		s.Scores = make([]int32, n)
	}
	first := map[string]int{} // by code, the position of the server whose message is kept
	spread, emptiest := p.Spread(), Emptiest(counts)
	for i := range n {
		c := at(i)
		j, _ := p.judge(c)
		if j.Accepted && spread != nil && !spread.Fits(spread.Place(c), counts, emptiest) {
			j = Judgement{Code: CodeSpread}
		}
		if j.Accepted {
			s.Groups[j.Alternative] = append(s.Groups[j.Alternative], int32(i))
			if s.Scores != nil {
				s.Scores[i] = int32(j.Score)
			}
			continue
		}
		r := s.Rejections[j.Code]
		if k, seen := first[j.Code]; !seen || c.Name < at(k).Name {
			first[j.Code] = i
		}
		r.Count++
		s.Rejections[j.Code] = r
	}
	for code, i := range first {
		r := s.Rejections[code]
		if r.Message = p.Judge(at(i)).Message; code == CodeSpread {
			_, r.Message = spread.Allows(spread.Place(at(i)), counts)
		}
		s.Rejections[code] = r
	}
	return s
}

// Taken is the first group that has any server; -1 where none has.
func (s Sorted) Taken() int {
	for i, group := range s.Groups {
		if len(group) > 0 {
			return i
		}
	}
	return -1
}
