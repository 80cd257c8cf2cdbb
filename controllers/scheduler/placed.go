// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/metalaw/metalaw/engine/placement"
	"github.com/metalaw/metalaw/engine/selection"
)

// ranking is a Policy that gives a ranking of any length.
type ranking interface {
	Rank(ctx context.Context, claim selection.Claim, candidates []*selection.PreparedCandidate, fleet selection.Fleet,
		most int) (selection.Result, error)
}

// judged is what a placement says of servers, whatever stands where. It follows from the servers alone, and so it is found out once for
// the many claims of a class.
type judged struct {
	each []judgement
	// places are where the servers stand, by number; nil where that does not matter.
	places []string
	// scores are what the placement adds to those of the policy, by name; nil where it prefers nothing.
	scores map[string]float64
	// all says that every server is accepted.
	all bool
}

// judgement is what a placement says of one server.
type judgement struct {
	// code says why the server is not accepted; empty where it is, and then alternative is the group that it is of.
	code        string
	alternative int
	// place is the number of where it stands.
	place int
}

// judge asks a placement about the servers, once.
func (f *fits) judge(p *placement.Placement) *judged {
	if f.judged != nil {
		return f.judged
	}
	j := &judged{each: make([]judgement, len(f.candidates)), all: true}
	if p.Prefers() {
		j.scores = make(map[string]float64, len(f.candidates))
	}
	numbers := map[string]int{}
	for i, c := range f.candidates {
		of := p.Brief(c.Facts())
		one := &j.each[i]
		one.code, one.alternative, j.all = of.Code, of.Alternative, j.all && of.Accepted
		if j.scores != nil {
			j.scores[c.Name()] = float64(of.Score)
		}
		if spread := p.Spread(); spread != nil {
			place := spread.Place(c.Facts())
			n, known := numbers[place]
			if !known {
				n, numbers[place] = len(j.places), len(j.places)
				j.places = append(j.places, place)
			}
			one.place = n
		}
	}
	f.judged = j
	return j
}

// move puts what is said of the server at one position to another one.
func (j *judged) move(from, to int) {
	if j != nil {
		j.each[to] = j.each[from]
	}
}

// cut leaves out all but the first.
func (j *judged) cut(most int) {
	if j != nil {
		j.each = j.each[:most]
	}
}

// groupsOf are the servers that a claim's placement accepts as they stand now, by alternative; counts are those of its spread. They are
// valid until the next call. misplaced counts the others by code.
func (v *view) groupsOf(p *placement.Placement, fit *fits, counts map[string]int64) (
	groups [][]*selection.PreparedCandidate, misplaced map[string]int) {
	j, misplaced := fit.judge(p), map[string]int{}
	if j.all && p.Spread() == nil && p.Alternatives() == 1 {
		return [][]*selection.PreparedCandidate{fit.candidates}, misplaced
	}
	for len(v.groups) < p.Alternatives() {
		v.groups = append(v.groups, nil)
	}
	groups = v.groups[:p.Alternatives()]
	for i := range groups {
		groups[i] = groups[i][:0]
	}
	isFull := j.full(p.Spread(), counts)
	for i, one := range j.each {
		switch {
		case one.code != "":
			misplaced[one.code]++
		case isFull(one.place):
			misplaced[placement.CodeSpread]++
		default:
			groups[one.alternative] = append(groups[one.alternative], fit.candidates[i])
		}
	}
	return groups, misplaced
}

// full says of a place, by its number, that no more claims may go there; of none where the claim is not spread.
func (j *judged) full(spread *placement.Spread, counts map[string]int64) func(place int) bool {
	if spread == nil {
		return func(int) bool { return false }
	}
	full, room := make([]bool, len(j.places)), spread.Room(counts)
	for n, place := range j.places {
		full[n] = !room(place)
	}
	return func(place int) bool { return full[place] }
}

// rank asks the policy about the servers that the claim's placement accepts: about one alternative after the other, until it
// allows any of one.
func (v *view) rank(ctx context.Context, a asking, claim selection.Claim, fit *fits, c *choice) {
	c.rejected = map[string]int{}
	if a.placed == nil {
		v.ask(ctx, claim, fit.candidates, c, false)
		return
	}
	var groups [][]*selection.PreparedCandidate
	groups, c.misplaced = v.groupsOf(a.placed, fit, v.counts(a))
	for _, group := range groups {
		if len(group) == 0 {
			continue
		}
		v.ask(ctx, claim, group, c, a.placed.Prefers())
		if scores := fit.judged.scores; scores != nil {
			prefer(c.ranked, scores)
		}
		if c.allowed > 0 || c.failed != "" {
			return
		}
	}
}

// ask adds to a choice what the policy says of some servers.
func (v *view) ask(ctx context.Context, claim selection.Claim, some []*selection.PreparedCandidate, c *choice, whole bool) {
	evaluations.Inc()
	ask := v.policy.Select
	if p, ok := v.policy.(ranking); ok && whole {
		ask = func(ctx context.Context, claim selection.Claim, some []*selection.PreparedCandidate, f selection.Fleet) (selection.Result, error) {
			return p.Rank(ctx, claim, some, f, len(some))
		}
	}
	result, err := ask(ctx, claim, some, v.fleet.CountsFor(claim.Namespace, v.now))
	if err != nil {
		c.failed = withoutNames(err)
	}
	c.ranked, c.allowed = result.Ranked, max(result.Allowed, len(result.Ranked))
	for code, r := range result.Rejections {
		c.rejected[code] += r.Count
	}
}

// withoutNames is the text of an error for a claim's author, who may not know which servers there are.
func withoutNames(err error) string {
	var candidate selection.CandidateError
	if errors.As(err, &candidate) {
		return candidate.Anonymous()
	}
	return err.Error()
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

var _ ranking = &selection.Policy{}
