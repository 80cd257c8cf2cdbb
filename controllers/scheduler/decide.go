// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"fmt"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/selection"
	"github.com/metalaw/metalaw/policies/index"
)

// Policy is the part of a bundle that chooses; *selection.Policy is one.
type Policy interface {
	// Select looks at all candidates. An error means that nothing is known, and never that no server fits.
	Select(ctx context.Context, claim selection.Claim, candidates []*selection.PreparedCandidate, fleet selection.Fleet) (selection.Result, error)
}

// telling is a Policy that says what its choice follows from. One that does not is asked for every claim.
type telling interface {
	// Asks is equal for claims that the policy cannot tell apart.
	Asks(claim selection.Claim) string
	// FollowsFleet says whether the counts of the fleet, or time, can change the choice.
	FollowsFleet() bool
}

// action says what is to be done for a claim.
type action uint8

const (
	// settled: the claim has its server, in both directions.
	settled action = iota
	// complete: a server is written for the claim's UID, and the claim does not name it yet.
	complete
	// adopt: a server is written for the claim's name and the claim names it; its UID has to be recorded.
	adopt
	// bind: the claim can have a server.
	bind
	// refuse: the claim can have none now.
	refuse
)

// step is what is to be done for one claim.
type step struct {
	action action
	// server is the one to complete or adopt.
	server string
	// choice is what the policy made of the servers that the claim can have. shared says that it was made for an earlier claim.
	choice   *choice
	shared   bool
	revision engine.Revision
	// verdict is why none; where count is set, the fleet's counts are still to be put in.
	verdict Verdict
	count   bool
	spec    selection.ClaimSpec
	// rejected counts by the codes of the policy, misplaced by those of the placement.
	rejected, misplaced map[string]int
	// unjudged counts the servers of which the policy could say nothing, and unknown is why.
	unjudged int
	unknown  string
	// leftOut is the code by which the server that the claim names would not be given even if it were free; empty where it would.
	leftOut string
	// gang begins the words for a claim of a gang that waits.
	gang string
	// follows says that the policy may choose otherwise though no server changes.
	follows bool
}

// written looks at the servers that a claim's name is already written on.
func (v *view) written(c *v1alpha1.ServerClaim) (step, bool) {
	wanted := ""
	if c.Spec.ServerRef != nil {
		wanted = c.Spec.ServerRef.Name
	}
	holding := ""
	for _, e := range v.fleet.HeldBy(index.ClaimKey{Namespace: c.Namespace, Name: c.Name}) {
		switch RelationOf(index.Server(e), c) {
		case Holds:
			if wanted == index.Server(e).Name {
				return step{action: settled, server: wanted}, true
			}
			if !v1alpha1.BindingEnded(index.Server(e)) && (holding == "" || index.Server(e).Name < holding) {
				holding = index.Server(e).Name
			}
		case Adoptable:
			return step{action: adopt, server: index.Server(e).Name}, true
		case Unrelated, Another:
		}
	}
	if wanted == "" && holding != "" {
		return step{action: complete, server: holding}, true
	}
	return step{}, false
}

func refusal(reason, message string) step {
	return step{action: refuse, verdict: Verdict{Reason: reason, Message: message}}
}

// finish puts the fleet's counts into a refusal. Claims that ask for the same share one count: memo is kept for a pass.
func (v *view) finish(s step, memo map[string]count) Verdict {
	if !s.count {
		return s.verdict
	}
	key := askedFor(s.spec)
	c, ok := memo[key]
	if !ok {
		c.total, c.matching, c.byCode = v.fleet.Tally(s.spec)
		memo[key] = c
	}
	verdict := noServer(s.spec.ServerRef != "", c, s)
	if verdict.Reason == v1alpha1.ReasonServerTaken {
		e := v.fleet.Get(s.spec.ServerRef)
		switch {
		case s.leftOut != "":
			verdict.Reason = v1alpha1.ReasonNoneClaimable
			verdict.Message = "the server that spec.serverRef names is not free, and would not be given to this claim if it were: " + s.leftOut
		case e != nil && v1alpha1.KeptAfterRelease(index.Server(e)):
			verdict.Message = keptWords(index.Server(e).Name)
		case v.kept != nil && v.kept(s.spec.ServerRef):
			verdict.Message = "the server that spec.serverRef names is kept free for a gang that has waited for long and is short of servers; " +
				"this claim gets it once that gang has others or is gone, or else after the gang"
		}
	}
	if s.gang != "" {
		verdict.Reason, verdict.Message = v1alpha1.ReasonGangWaiting, s.gang+verdict.Message
	}
	return verdict
}

// leaving is the code by which a server that a claim names is none for it, whoever holds it; empty where it may get it.
func (v *view) leaving(a asking) string {
	if a.spec.ServerRef == "" {
		return ""
	}
	e := v.fleet.Get(a.spec.ServerRef)
	if e == nil {
		return ""
	}
	if ok, code, _ := selection.Feasible(a.spec, e.State); !ok {
		return code
	}
	if a.placed == nil {
		return ""
	}
	return judgementCodes[v.judgements.judge(v.judgements.of(a.placed), e).code]
}

// keptWords says how a claim may get a server whose holder has ended and which keeps that one's data. The command that gives
// the data up is for whoever runs the fleet, and not for a claim's author.
func keptWords(server string) string {
	return fmt.Sprintf("the claim that held the server %q has ended, and its data is kept (reclaimPolicy Retain) until it is given up; "+
		"this claim may get the server once it is wiped; ask who runs the fleet", server)
}
