// SPDX-License-Identifier: Apache-2.0

package why

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/placement"
	"github.com/metalaw/metalaw/engine/selection"
	"github.com/metalaw/metalaw/policies"
)

// Stage is who turns a server away. Each is asked only about what the one before lets pass, when a server is chosen.
type Stage string

// The stages, in their order.
const (
	// Contract is what no policy can loosen: selection.Eligible.
	Contract Stage = "contract"
	// Placement is the claim's own placement.
	Placement Stage = "placement"
	// Policy is the selection policy of the bundle.
	Policy Stage = "policy"
	// Namespace is how many servers the bundle lets a namespace have; it is no matter of any server.
	Namespace Stage = "namespace"
	// Claim is what the bundle forbids of the claim itself; it is no matter of any server either.
	Claim Stage = "claim"
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
	// Unknown: the policy failed, so that nobody knows whether it fits.
	Unknown bool `json:"unknown,omitempty"`
	// Reasons are the first of the hard contract, with a cordon and a taint that stay once it passes, that of the placement and all of
	// the policy. Also what would turn the server away next is told, once the first reason passes.
	Reasons []Reason `json:"reasons,omitempty"`

	alternative int
	// heldUp is the code of the contract that passes for this server only when whoever runs the fleet acts; empty where there is none.
	heldUp string
	// unplaced says that it has no place under the key of the claim's spread, so that there is none for another claim to leave.
	unplaced bool
	// momentary are the stages that may let the claim have it another time though nobody acts.
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

// Judge looks at every server for one claim. The priority is what the bundle grants of that which the claim asks for. Where
// policy is nil nobody knows what it would say: servers that reach it are Unknown. The error is for a claim that asks for
// what has no meaning.
func Judge(ctx context.Context, policy *selection.Policy, c *v1alpha1.ServerClaim, priority int64, f *Fleet) (Answer, error) {
	j, err := newJudge(ctx, policy, c, priority, f)
	if err != nil {
		return Answer{}, err
	}
	return j.answer(), nil
}

func newJudge(ctx context.Context, policy *selection.Policy, c *v1alpha1.ServerClaim, priority int64, f *Fleet) (*judge, error) {
	spec, err := policies.ClaimSpecOf(c)
	if err != nil {
		return nil, err
	}
	p, found := policies.PlacementOf(c)
	if err := found.Err(); err != nil {
		return nil, err
	}
	j := &judge{ctx: ctx, policy: policy, spec: spec, placement: p, fleet: f, claim: policies.SelectionClaimOf(c)}
	j.claim.Priority = priority
	if others, asks := policies.WithoutInventory(spec.Selector); asks && spec.ServerRef == "" {
		j.others = &spec
		j.others.Selector = others
	}
	j.counts = j.spread(c)
	return j, nil
}

// judge is the question about one claim.
type judge struct {
	ctx       context.Context //nolint:containedctx // it is the context of the one call that this serves
	policy    *selection.Policy
	spec      selection.ClaimSpec
	claim     selection.Claim
	placement *placement.Placement
	fleet     *Fleet
	// brief: nothing but what fits is of interest.
	brief bool
	// others is what the claim asks for beside labels of the inventory; nil where it asks for none of these.
	others *selection.ClaimSpec
	// counts are those of the spread; nil where it is no matter which server stands where, if only that is known.
	counts map[string]int64
}

// spread counts the claims that this one keeps away from.
func (j *judge) spread(c *v1alpha1.ServerClaim) map[string]int64 {
	spread := j.placement.Spread()
	if spread == nil {
		return nil
	}
	counts := j.places()
	facts := j.fleet.facts()
	for _, h := range j.fleet.holders {
		if h.namespace != c.Namespace || h.name == c.Name || !spread.Counts(h.labels, h.gang) {
			continue
		}
		if at := facts[h.server]; at != nil {
			if _, known := counts[spread.Place(at)]; known {
				counts[spread.Place(at)]++
			}
		}
	}
	return counts
}

// places are those of the servers that the claim could ever have, each with 0.
func (j *judge) places() map[string]int64 {
	var feasible []*server
	for i := range j.fleet.servers {
		s := &j.fleet.servers[i]
		if ok, _, _ := selection.Feasible(j.spec, s.state); ok {
			feasible = append(feasible, s)
		}
	}
	var could func(some []int) []int
	if j.policy != nil && j.policy.TurnsAwayForGood() {
		counts := j.fleet.census.FleetFor(j.claim.Namespace, j.fleet.now)
		could = func(some []int) []int {
			candidates := make([]*selection.PreparedCandidate, len(some))
			for k, i := range some {
				candidates[k] = feasible[i].prepared
			}
			each := policies.Attain(j.ctx, j.policy, j.claim, candidates, counts)
			var could []int
			for k, i := range some {
				if each[k] != selection.TurnedAway {
					could = append(could, i)
				}
			}
			return could
		}
	}
	return j.placement.Places(len(feasible), func(i int) *selection.Candidate { return feasible[i].facts }, could)
}

func (j *judge) answer() Answer {
	a := Answer{Total: len(j.fleet.servers), Verdicts: make([]Verdict, len(j.fleet.servers)), Counts: map[string]int{}}
	// The policy is asked about each group of those that can be had, and about the others to know what else is in their way.
	groups := make([][]int, j.placement.Alternatives())
	var rest []int
	extra := make([]float64, len(j.fleet.servers))
	for i := range j.fleet.servers {
		s, v := &j.fleet.servers[i], &a.Verdicts[i]
		if !j.hold(v, s) {
			if slices.Contains(v.momentary, Contract) {
				a.Unlabelled++
			}
			continue // nobody asked for it, so nothing else about it is of interest
		}
		a.Matching++
		judged := j.place(s)
		v.alternative = judged.Alternative
		if !judged.Accepted {
			v.Reasons = append(v.Reasons, Reason{judged.Code, judged.Message, Placement})
		} else if j.placement.Alternatives() > 1 {
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
		// Behind an alternative that can be had, a failure changes nothing; before it, nobody knows which would be taken.
		if err := j.ask(a.Verdicts, group, extra); err != nil && !found && a.Failed == nil {
			a.Failed = err
		}
		found = found || slices.ContainsFunc(group, func(i int) bool { return a.Verdicts[i].Fits })
	}
	if !j.brief { // what the policy says of servers that cannot be had is a help and no more: nothing follows from its failing there
		_ = j.ask(a.Verdicts, rest, extra)
	}
	a.finish()
	return a
}

// hold begins the verdict on a server with what the hard contract says. It says whether the claim asks for the server by name and labels.
func (j *judge) hold(v *Verdict, s *server) bool {
	v.Name, v.heldUp, v.momentary = s.state.Name, s.heldUp, j.momentary(s)
	if spread := j.placement.Spread(); spread != nil {
		v.unplaced = spread.Place(s.facts) == ""
	}
	ok, code, message := s.eligible(j.spec)
	if ok {
		return true
	}
	v.Reasons = append(v.Reasons, Reason{code, message, Contract})
	if code == selection.CodeSelector && j.mayBeLabelled(s) {
		v.momentary = append(v.momentary, Contract)
	}
	if code == selection.CodeServerRef || code == selection.CodeSelector {
		return false
	}
	for _, o := range selection.Behind(code, j.spec.Tolerations, s.state) {
		v.Reasons = append(v.Reasons, Reason{o.Code, o.Message, Contract})
	}
	return true
}

// place is what the placement says of a server, with its spread.
func (j *judge) place(s *server) placement.Judgement {
	judged := j.placement.Judge(s.facts)
	spread := j.placement.Spread()
	if !judged.Accepted || spread == nil {
		return judged
	}
	if ok, message := spread.Allows(spread.Place(s.facts), j.counts); !ok {
		return placement.Judgement{Code: placement.CodeSpread, Message: message, Alternative: judged.Alternative}
	}
	return judged
}

// ask asks the policy about some servers, and adds what it says to their verdicts.
func (j *judge) ask(verdicts []Verdict, some []int, extra []float64) error {
	if len(some) == 0 {
		return nil
	}
	unknown := func(err error) error {
		for _, i := range some {
			verdicts[i].Unknown = len(verdicts[i].Reasons) == 0
		}
		return err
	}
	if j.policy == nil {
		return unknown(nil)
	}
	candidates := make([]*selection.PreparedCandidate, len(some))
	for k, i := range some {
		candidates[k] = j.fleet.servers[i].prepared
	}
	counts := j.fleet.census.FleetFor(j.claim.Namespace, j.fleet.now)
	result, err := j.policy.Rank(j.ctx, j.claim, candidates, counts, len(some))
	if err != nil {
		return unknown(err)
	}
	scores := make(map[string]float64, len(result.Ranked))
	for _, r := range result.Ranked {
		scores[r.Name] = r.Score
	}
	reasons := make(map[int][]Reason, len(some))
	for k, i := range some {
		if _, allowed := scores[verdicts[i].Name]; allowed {
			continue
		}
		said, err := j.policy.Judge(j.ctx, j.claim, candidates[k], counts)
		var one selection.CandidateError
		switch {
		case errors.As(err, &one):
			said.Reasons = []selection.Reason{one.Reason()}
			verdicts[i].Unknown = len(verdicts[i].Reasons) == 0
		case err != nil:
			return unknown(err)
		}
		for _, r := range said.Reasons {
			reasons[i] = append(reasons[i], Reason{r.Code, r.Message, Policy})
		}
	}
	j.weigh(verdicts, reasons, counts)
	for _, i := range some {
		v := &verdicts[i]
		if score, allowed := scores[v.Name]; allowed {
			score += extra[i]
			v.Fits, v.Score = len(v.Reasons) == 0, &score
		}
		v.Reasons = append(v.Reasons, reasons[i]...)
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

// compareVerdicts puts what fits first: by alternative, then the highest score, then the name.
func compareVerdicts(a, b Verdict) int {
	switch {
	case a.Fits != b.Fits:
		if a.Fits {
			return -1
		}
		return 1
	case a.Fits:
		return cmp.Or(cmp.Compare(a.alternative, b.alternative), compareScores(a, b), compareNames(a.Name, b.Name))
	default:
		return nearer(a, b)
	}
}

// compareScores puts the highest first; a score that is not known is last.
func compareScores(a, b Verdict) int {
	switch {
	case a.Score == nil || b.Score == nil:
		if (a.Score == nil) == (b.Score == nil) {
			return 0
		}
		if a.Score == nil {
			return 1
		}
		return -1
	default:
		return cmp.Compare(*b.Score, *a.Score)
	}
}

func compareNames(a, b string) int { return strings.Compare(a, b) }
