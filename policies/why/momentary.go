// SPDX-License-Identifier: Apache-2.0

package why

import (
	"maps"
	"slices"

	"github.com/metalaw/metalaw/engine/selection"
	"github.com/metalaw/metalaw/policies"
)

// momentary are the stages of which it is known beforehand that they may let the claim have a server another time: the placement, where it
// asks for what passes, and whatever judges by what a machine is made of, while nobody knows that yet.
func (j *judge) momentary(s *server) []Stage {
	var all []Stage
	if !s.known {
		all = append(all, Policy)
	}
	if !s.known || j.placement.JudgesPassing() {
		all = append(all, Placement)
	}
	return all
}

// mayBeLabelled says that a server which the claim's selector leaves out could bear the labels of the inventory that it asks for, once it
// is known what the machine is made of.
func (j *judge) mayBeLabelled(s *server) bool {
	if s.known || j.others == nil {
		return false
	}
	ok, _, _ := selection.Feasible(*j.others, s.state)
	return ok
}

// weigh finds out which of the servers that the policy turns away it may allow another time. One of which that cannot be found out is taken for
// such a one; what the rules fail for is not.
func (j *judge) weigh(verdicts []Verdict, reasons map[int][]Reason, counts selection.Fleet) {
	if j.brief || len(reasons) == 0 || !j.policy.JudgesPassing() {
		return
	}
	turned := slices.Sorted(maps.Keys(reasons))
	candidates := make([]*selection.PreparedCandidate, len(turned))
	for k, i := range turned {
		candidates[k] = j.fleet.servers[i].prepared
	}
	for k, is := range policies.Attain(j.ctx, j.policy, j.claim, candidates, counts) {
		i := turned[k]
		fails := slices.ContainsFunc(reasons[i], func(r Reason) bool { return r.Code == selection.CodePolicyError })
		if is != selection.TurnedAway && !fails {
			verdicts[i].momentary = append(verdicts[i].momentary, Policy)
		}
	}
}
