// SPDX-License-Identifier: Apache-2.0

package solve

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/metalaw/metalaw/engine/claims"
	"github.com/metalaw/metalaw/engine/claims/index"
	"github.com/metalaw/metalaw/engine/placement"
	"github.com/metalaw/metalaw/engine/selection"
)

// Stage is the step that turns a server away. Each is asked only about what the one before lets pass, when a server is chosen.
type Stage string

// The stages, in their order.
const (
	// Contract is what no policy can loosen: selection.Eligible.
	Contract Stage = "contract"
	// Placement is the claim's own placement.
	Placement Stage = "placement"
	// PolicyStage is the selection policy of the bundle.
	PolicyStage Stage = "policy"
	// Namespace is how many servers the bundle lets a namespace have; it is no matter of any server.
	Namespace Stage = "namespace"
	// ClaimStage is what the bundle forbids of the claim itself; it is no matter of any server either.
	ClaimStage Stage = "claim"
)

// Reason is why a claim cannot have a server.
type Reason struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Stage   Stage  `json:"stage"`
}

// Verdict is what is to be said of one server.
type Verdict struct {
	Name string `json:"name"`
	// Fits: the claim can have it now. Later: it fits, and is taken only once no server of an earlier alternative can be had.
	Fits  bool `json:"fits"`
	Later bool `json:"later,omitempty"`
	// Rank counts from 1 for the server that is taken; 0 where it does not fit.
	Rank int `json:"rank,omitempty"`
	// Alternative is the one of the claim's placement that it is, counted from 1; 0 where the placement has none.
	Alternative int `json:"alternative,omitempty"`
	// Score is the policy's and the placement's together; nil where the policy does not allow the server or was not asked.
	Score *float64 `json:"score,omitempty"`
	// Unknown: the policy failed, so that it is not known whether the server fits.
	Unknown bool `json:"unknown,omitempty"`
	// Reasons are the first of the hard contract, with a cordon and a taint that stay once it passes, that of the placement and all of
	// the policy. Also what would turn the server away next is told, once the first reason passes.
	Reasons []Reason `json:"reasons,omitempty"`

	alternative int
	// heldUp is the code of the contract that passes for this server only when an operator acts; empty where there is none.
	heldUp string
	// unplaced says that it has no place under the key of the claim's spread, so that there is none for another claim to leave.
	unplaced bool
	// momentary are the stages that may let the claim have it another time without an operator.
	momentary []Stage
	// fellow says that another member of the claim's gang would get it.
	fellow bool
}

// Answer is what is to be said of the whole fleet.
type Answer struct {
	// Total is the number of servers, Matching that of those which the claim asks for by name and labels.
	Total, Matching int
	// Unlabelled are those of the others that may come to match, once it is known what they are made of.
	Unlabelled int
	// Fits is the number of servers that fit.
	Fits int
	// Verdicts has the servers that fit, the first to be taken first, and then the others, the nearest misses first.
	Verdicts []Verdict
	// Counts are the servers that do not fit by code, as the condition Bound counts them: each under the reason of the stage
	// that turns it away, and where that is the policy under each of its codes. Those that the claim does not ask for are here as
	// well; the condition gives the number of the others.
	Counts map[string]int
	// Failed is why the policy could not be evaluated; nil where it could.
	Failed error
	// Refused is why the claim gets no server whichever fits, such as the quota of its namespace; nil where nothing is.
	Refused *Reason
	// Short says that there are too few servers for the claim's gang. Lacking is a member that finds none, where the claim and all that
	// ask for the same would; empty where they do not.
	Short   bool
	Lacking string
	// Has is the server that is written for the claim already; empty where there is none. Nothing else is said then.
	Has string
}

// Taken is the server that the claim has or would get now; false where it would get none.
func (a Answer) Taken() (Verdict, bool) {
	if a.Has != "" {
		return Verdict{Name: a.Has, Fits: true}, true
	}
	if a.Failed != nil || a.Refused != nil || a.Fits == 0 {
		return Verdict{}, false
	}
	return a.Verdicts[0], true
}

// reasoner says of every server why a claim does not get it.
type reasoner struct {
	*solver
	// all are the servers by name; assumed are those that count as claimed though that is not written.
	all     []*index.Entry
	assumed map[string]string
	c       *claims.Claim
	room    *room
}

// newReasoner is for any number of claims, one after the other.
func (s *solver) newReasoner() *reasoner {
	j := &reasoner{solver: s, all: s.Fleet.Matching(index.Everything), assumed: s.Fleet.Assumed()}
	slices.SortFunc(j.all, func(a, b *index.Entry) int { return strings.Compare(a.Name(), b.Name()) })
	return j
}

// answer judges every server for a claim.
func (j *reasoner) answer(c *claims.Claim) Answer {
	j.c, j.room = c, j.roomOf(c)
	a := Answer{Total: len(j.all), Verdicts: make([]Verdict, len(j.all)), Counts: map[string]int{}}
	// The policy is asked about each group of those that can be had, and about the others to know what else is in their way.
	groups := make([][]int, c.Placement.Alternatives())
	var rest []int
	extra := make([]float64, len(j.all))
	for i, e := range j.all {
		v := &a.Verdicts[i]
		if !j.hold(v, e) {
			if slices.Contains(v.momentary, Contract) {
				a.Unlabelled++
			}
			continue // the claim does not ask for it, so nothing else about it is of interest
		}
		a.Matching++
		judged := j.place(e)
		v.alternative = judged.Alternative
		if !judged.Accepted {
			v.Reasons = append(v.Reasons, Reason{judged.Code, judged.Message, Placement})
		} else if c.Placement.Alternatives() > 1 {
			v.Alternative = judged.Alternative + 1
		}
		extra[i] = float64(judged.Score)
		if len(v.Reasons) == 0 {
			groups[judged.Alternative] = append(groups[judged.Alternative], i)
		} else {
			rest = append(rest, i)
		}
	}
	found := false
	for _, group := range groups {
		// Behind an alternative that can be had, a failure changes nothing; before it, it is not known which would be taken.
		if err := j.askAll(a.Verdicts, group, extra); err != nil && !found && a.Failed == nil {
			a.Failed = err
		}
		found = found || slices.ContainsFunc(group, func(i int) bool { return a.Verdicts[i].Fits })
	}
	// What the policy says of servers that cannot be had is a help and no more: nothing follows from its failing there.
	_ = j.askAll(a.Verdicts, rest, extra)
	a.finish()
	return a
}

// state is what the hard contract looks at, with what is assumed.
func (j *reasoner) state(e *index.Entry) selection.ServerState {
	state := e.State
	if _, is := j.assumed[e.Name()]; is || j.given[e.Name()] != nil {
		state.Claimed = true
	}
	return state
}

// hold begins the verdict on a server with what the hard contract says. It says whether the claim asks for the server by name and labels.
func (j *reasoner) hold(v *Verdict, e *index.Entry) bool {
	v.Name, v.heldUp, v.momentary = e.Name(), e.HeldUp, j.momentary(e)
	if spread := j.c.Placement.Spread(); spread != nil {
		v.unplaced = spread.Place(e.Candidate().Facts()) == ""
	}
	state := j.state(e)
	ok, code, message := selection.Eligible(j.c.Spec, state)
	if ok {
		return true
	}
	if code == selection.CodeClaimed && e.HeldUp == code {
		message = "the claim that held it has ended, and its data is kept (reclaimPolicy Retain) until it is given up"
	}
	v.Reasons = append(v.Reasons, Reason{code, message, Contract})
	if code == selection.CodeSelector && j.mayBeLabelled(e) {
		v.momentary = append(v.momentary, Contract)
	}
	if code == selection.CodeServerRef || code == selection.CodeSelector {
		return false
	}
	for _, o := range selection.Behind(code, j.c.Spec.Tolerations, state) {
		v.Reasons = append(v.Reasons, Reason{o.Code, o.Message, Contract})
	}
	return true
}

// momentary are the stages of which it is known beforehand that they may let the claim have a server another time: the placement, where it
// asks for what passes, and each stage that judges by what a machine is made of, while that is not known yet.
func (j *reasoner) momentary(e *index.Entry) []Stage {
	var all []Stage
	if !e.Known {
		all = append(all, PolicyStage)
	}
	if !e.Known || j.c.Placement.JudgesPassing() {
		all = append(all, Placement)
	}
	return all
}

// mayBeLabelled says that a server which the claim's selector leaves out could bear the labels of the inventory that it asks for, once it
// is known what the machine is made of.
func (j *reasoner) mayBeLabelled(e *index.Entry) bool {
	if e.Known || j.c.Beside == nil {
		return false
	}
	ok, _, _ := selection.Feasible(*j.c.Beside, e.State)
	return ok
}

// place is what the placement says of a server, with its spread.
func (j *reasoner) place(e *index.Entry) placement.Judgement {
	facts := e.Candidate().Facts()
	judged := j.c.Placement.Judge(facts)
	if !judged.Accepted || j.room.allows(e) {
		return judged
	}
	_, message := j.room.spread.Allows(j.room.spread.Place(facts), j.room.counts)
	return placement.Judgement{Code: placement.CodeSpread, Message: message, Alternative: judged.Alternative}
}

// askAll asks the policy about some servers, and adds what it says to their verdicts.
func (j *reasoner) askAll(verdicts []Verdict, some []int, extra []float64) error {
	if len(some) == 0 {
		return nil
	}
	unknown := func(err error) error {
		for _, i := range some {
			verdicts[i].Unknown = len(verdicts[i].Reasons) == 0
		}
		return err
	}
	p, can := j.Policy.(explainer)
	if j.Policy == nil || !can {
		return unknown(nil)
	}
	candidates := make([]*selection.PreparedCandidate, len(some))
	for k, i := range some {
		candidates[k] = j.all[i].Candidate()
	}
	counts := j.counts(j.c.Namespace)
	result, err := p.Rank(j.ctx, j.c.Asked, candidates, counts, len(some))
	if err != nil {
		return unknown(err)
	}
	scores := make(map[string]float64, len(result.Ranked))
	for _, r := range result.Ranked {
		scores[r.Name] = r.Score
	}
	for k, i := range some {
		v := &verdicts[i]
		if score, allowed := scores[v.Name]; allowed {
			score += extra[i]
			v.Fits, v.Score = len(v.Reasons) == 0, &score
			continue
		}
		said, err := p.Judge(j.ctx, j.c.Asked, candidates[k], counts)
		var one selection.CandidateError
		switch {
		case errors.As(err, &one):
			said.Reasons = []selection.Reason{one.Reason()}
			v.Unknown = len(v.Reasons) == 0
		case err != nil:
			return unknown(err)
		case !said.Lasting:
			v.momentary = append(v.momentary, PolicyStage)
		}
		for _, r := range said.Reasons {
			v.Reasons = append(v.Reasons, Reason{r.Code, r.Message, PolicyStage})
		}
	}
	return nil
}

// finish counts, and puts the verdicts in order. The first alternative of which the policy allows any server is the claim's.
func (a *Answer) finish() {
	first, found := 0, false
	for i := range a.Verdicts {
		v := &a.Verdicts[i]
		if v.Fits {
			if !found || v.alternative < first {
				first, found = v.alternative, true
			}
			a.Fits++
			continue
		}
		counted := map[string]bool{}
		for _, r := range v.turning() {
			if !counted[r.Code] {
				counted[r.Code] = true
				a.Counts[r.Code]++
			}
		}
	}
	slices.SortFunc(a.Verdicts, compareVerdicts)
	for i := range a.Fits {
		a.Verdicts[i].Rank, a.Verdicts[i].Later = i+1, a.Verdicts[i].alternative != first
	}
}

// take puts the server first that the claim gets.
func (a *Answer) take(name string) {
	at := slices.IndexFunc(a.Verdicts[:a.Fits], func(v Verdict) bool { return v.Name == name })
	if at < 0 {
		return
	}
	taken := a.Verdicts[at]
	copy(a.Verdicts[1:at+1], a.Verdicts[:at])
	a.Verdicts[0] = taken
	for i := range a.Fits {
		a.Verdicts[i].Rank = i + 1
	}
	a.Verdicts[0].Later = false
}

// compareVerdicts puts what fits first: by alternative, then the highest score, then the name.
func compareVerdicts(a, b Verdict) int {
	if a.Fits && b.Fits {
		return cmp.Or(cmp.Compare(a.alternative, b.alternative), compareScores(a, b), cmp.Compare(a.Name, b.Name))
	}
	return cmp.Or(compareBools(b.Fits, a.Fits), nearer(a, b))
}

// compareScores puts the highest first; a score that is not known is last.
func compareScores(a, b Verdict) int {
	if a.Score == nil || b.Score == nil {
		return compareBools(a.Score == nil, b.Score == nil)
	}
	return cmp.Compare(*b.Score, *a.Score)
}

// compareBools puts what is false first.
func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
