// SPDX-License-Identifier: Apache-2.0

package solve

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/metalaw/metalaw/engine/placement"
	"github.com/metalaw/metalaw/engine/selection"
)

// Passing is how a reason passes, the soonest first.
type Passing int

// How reasons pass.
const (
	// ByItself: the machine is on its way, and no user has to act.
	ByItself Passing = iota
	// ByOthers: another claim or a maintenance has to end first.
	ByOthers
	// PerhapsElseByOperator: the policy turns the server away only by what changes or does not, such as counts, time or health, or by
	// what is not known yet of the machine.
	PerhapsElseByOperator
	// ByOperator: an operator of the fleet or keeps its policy has to act.
	ByOperator
	// Perhaps: the same of the claim's placement, and of the labels of the inventory that it selects.
	Perhaps
	// ByClaim: the claim itself would have to ask for something else.
	ByClaim
)

// passing is how the reasons with a code pass, and where servers with the code pass in another way than most, and in which. A code that
// is not here is one of the bundle's policy.
var passing = map[string]struct {
	most      Passing
	where     string
	otherwise Passing
}{
	selection.CodePower:       {most: ByItself},
	selection.CodeDirty:       {most: ByItself},
	selection.CodeState:       {ByItself, "where the server rests, as in Parked or Error", ByOperator},
	selection.CodeClaimed:     {ByOthers, "where the claim has ended and its data is kept", ByOperator},
	selection.CodeMaintenance: {most: ByOthers},
	placement.CodeSpread:      {ByOthers, "where the server has no value for the key of `spread`", ByClaim},
	placement.CodeGang:        {most: ByOthers},
	selection.CodeUnclaimable: {most: ByOperator},
	selection.CodeTaint:       {most: ByOperator},
	selection.CodeNotAllowed: {ByOperator, "where `allow` reads counts, time or how a server is at the moment, or " + unknownMachine,
		PerhapsElseByOperator},
	selection.CodePolicyError: {ByOperator, "where " + unknownMachine, PerhapsElseByOperator},
	placement.CodePlacement:   {ByClaim, "where the placement asks for `health` or `timesClaimed`, or " + unknownMachine, Perhaps},
	placement.CodeError:       {ByClaim, "where the placement asks for `health` or `timesClaimed`, or " + unknownMachine, Perhaps},
	selection.CodeSelector:    {ByClaim, "where the claim selects labels of the inventory and " + unknownMachine, Perhaps},
	selection.CodeServerRef:   {most: ByClaim},
	selection.CodeDeleting:    {most: ByClaim},
}

const unknownMachine = "it is not known yet what the machine is made of"

// PassingOf is how a reason with a code passes; those of a bundle's policy pass ByOperator.
func PassingOf(code string) Passing {
	if p, known := passing[code]; known {
		return p.most
	}
	return ByOperator
}

// WaysOf says in words in which ways reasons with a code pass.
func WaysOf(code string) string {
	words := PassingOf(code).Words()
	if p := passing[code]; p.where != "" {
		words += "; " + p.where + ", " + p.otherwise.Words()
	}
	return words
}

// Passing is how a reason of this server passes, which is not the same for each server with that code.
func (v Verdict) Passing(r Reason) Passing {
	if v.heldUp != "" && r.Stage == Contract && r.Code == v.heldUp {
		return ByOperator
	}
	passing := PassingOf(r.Code)
	if v.unplaced && r.Code == placement.CodeSpread {
		passing = ByClaim
	}
	if !slices.Contains(v.momentary, r.Stage) {
		return passing
	}
	switch passing {
	case ByClaim:
		return Perhaps
	case ByOperator:
		return PerhapsElseByOperator
	default:
		return passing
	}
}

// turning are the reasons under which a server that does not fit is counted: the first, and where that is the policy's all of them.
func (v Verdict) turning() []Reason {
	if len(v.Reasons) > 0 && v.Reasons[0].Stage != PolicyStage {
		return v.Reasons[:1]
	}
	return v.Reasons
}

// Passes says in words how the servers that are counted under a code pass.
func (a Answer) Passes(code string) string {
	servers := map[Passing]int{}
	for _, v := range a.Verdicts {
		turning := v.turning()
		if at := slices.IndexFunc(turning, func(r Reason) bool { return r.Code == code }); at >= 0 {
			servers[v.Passing(turning[at])]++
		}
	}
	if len(servers) == 0 {
		return PassingOf(code).Words()
	}
	var parts []string
	for _, p := range slices.Sorted(maps.Keys(servers)) {
		words := p.Words()
		if len(servers) > 1 {
			words = fmt.Sprintf("%d %s", servers[p], words)
		}
		parts = append(parts, words)
	}
	return strings.Join(parts, "; ")
}

// Words says it for people.
func (p Passing) Words() string {
	return [...]string{"by itself", "when another claim or a maintenance ends",
		"perhaps by itself, else when an operator of the fleet acts", "when an operator of the fleet acts",
		"perhaps by itself, else not, as the claim is", "not, as the claim is"}[p]
}

// nearer orders servers that do not fit. The one that the claim names is before all others; else the one is nearer
// whose reasons all pass sooner, by the last of them to pass, and one that a fellow member would get is behind those
// for which a user has to act; then that with fewer reasons; then the one of an earlier alternative; then that with the
// higher score, were it to be had; then by name. A server of which it is not known whether it fits is before them all.
func nearer(a, b Verdict) int {
	return cmp.Or(compareBools(a.isUnnamed(), b.isUnnamed()), cmp.Compare(a.last(), b.last()), compareBools(a.fellow, b.fellow),
		cmp.Compare(len(a.Reasons), len(b.Reasons)), cmp.Compare(a.alternative, b.alternative), compareScores(a, b),
		cmp.Compare(a.Name, b.Name))
}

// Last is the first of the reasons that pass last, and how it passes; before all where there is none.
func (v Verdict) Last() (Reason, Passing) {
	reason, last := Reason{}, Passing(-1)
	for _, r := range v.Reasons {
		if passing := v.Passing(r); passing > last {
			reason, last = r, passing
		}
	}
	return reason, last
}

// last is how the last of the reasons passes.
func (v Verdict) last() Passing {
	_, last := v.Last()
	if v.fellow { // by whose end the gang gets no further
		last = max(last, ByOperator)
	}
	return last
}

// isUnnamed says that a server is none of the claim's because it names another.
func (v Verdict) isUnnamed() bool {
	return slices.ContainsFunc(v.Reasons, func(r Reason) bool { return r.Code == selection.CodeServerRef })
}
