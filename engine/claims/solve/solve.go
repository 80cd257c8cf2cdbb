// SPDX-License-Identifier: Apache-2.0

// Package solve says which server each pending claim gets, and why not the others. Solve is the one function that decides this: the
// scheduler binds by it, admission asks it whether a claim can ever be served, and the command line prints what it says.
//
// It does no I/O and changes nothing that others see: what it learns stays in the Snapshot. The files:
//
//   - solve.go, snapshot.go: the question and the answer;
//   - choose.go, rank.go, spread.go, cache.go: the servers of one claim, what its placement and the policy make of them;
//   - gang.go, match.go, short.go: the servers of claims that get them together or not at all;
//   - message.go: the words of the condition Bound;
//   - explain.go, reasons.go, near.go: for every server why not, and which come nearest;
//   - fit.go: whether a claim could ever be served.
package solve

import (
	"context"

	"github.com/metalaw/metalaw/engine/claims"
	"github.com/metalaw/metalaw/engine/claims/index"
)

// Mode says how much of an answer is wanted.
type Mode uint8

const (
	// Best finds the server that each claim gets now.
	Best Mode = iota
	// Reasons finds it, and says of every server why the claim does not get it. The Answer of each Result is set.
	Reasons
	// FirstFit finds whether any server could ever satisfy each claim by itself, in any state. The Fit of each Result
	// is set.
	FirstFit
)

// Want is what is asked of Solve beside the claims.
type Want struct {
	Mode Mode
	// Spent leaves out a server for a claim as long as there is any other: a write came to nothing. Nil is none.
	Spent func(c *claims.Claim, e *index.Entry) bool
	// Forbids says in the words of the condition Bound what the rules of the bundle forbid of a claim; empty is nothing. Nil is none.
	Forbids func(c *claims.Claim) (reason, message string)
	// Steps bounds the search for the servers of a gang; 0 is MaxSteps.
	Steps int64
}

// Action says what is to be done for a claim.
type Action uint8

const (
	// Settled: the claim has its server, in both directions.
	Settled Action = iota
	// Complete: a server is written for the claim's UID, and the claim does not name it yet.
	Complete
	// Adopt: a server is written for the claim's name and the claim names it; its UID has to be recorded.
	Adopt
	// Bind: the claim gets a server.
	Bind
	// Refuse: the claim gets none now.
	Refuse
	// Again: every server that the claim could have was spent. Clear what was spent and ask again.
	Again
)

// Result is what becomes of one claim.
type Result struct {
	Claim  *claims.Claim
	Action Action
	// Server is the server of Settled, Complete, Adopt and Bind. Entry is the version that Bind was decided on.
	Server string
	Entry  *index.Entry
	// Score is what the policy and the placement give the server. Rank is how many better ones could not be had. Others is how many
	// more servers the policy allows.
	Score        float64
	Rank, Others int
	// Refusal is why the claim gets no server.
	Refusal Refusal
	// Answer is set for Reasons, Fit for FirstFit.
	Answer *Answer
	Fit    *Fit
	// Err is why FirstFit or Reasons found out nothing.
	Err error
}

// Refusal is why a claim gets no server now. Snapshot.Message puts it into words.
type Refusal struct {
	// Reason and Message are those of the condition Bound, unless Count is set: then the counts of the fleet give them.
	Reason, Message string
	Count           bool
	// Rejected counts servers by the codes of the policy, Misplaced by those of the placement.
	Rejected, Misplaced map[string]int
	// Unjudged counts the servers that the policy fails for, and Unknown is why.
	Unjudged int
	Unknown  string
	// LeftOut is the code by which the server that the claim names would not be given even if it were free.
	LeftOut string
	// Gang begins the message for a claim of a gang that waits.
	Gang string
	// Limited: the search for the servers of a gang ended at its step limit.
	Limited bool
	// Follows says that the policy may choose otherwise though no server changes.
	Follows bool
}

// Solve says what becomes of some claims. Several claims are the members of one gang, which get servers together or not at all. The
// snapshot takes the servers of one call as given to its claims from then on; Snapshot.Assume or Snapshot.Bind makes that known to
// others. There is one Result for each claim, in their order.
func Solve(ctx context.Context, snapshot *Snapshot, some []*claims.Claim, want Want) []Result {
	snapshot.begin()
	s := &solver{snapshot, ctx, want}
	switch want.Mode {
	case FirstFit:
		all := make([]Result, len(some))
		for i, c := range some {
			all[i] = s.fit(c)
		}
		return all
	case Reasons:
		return s.explain(some)
	case Best:
	}
	if len(some) == 1 && (some[0].Gang() == nil || some[0].ServerRef != "") {
		return []Result{s.one(some[0])}
	}
	return s.gang(some)
}

// solver is one call of Solve.
type solver struct {
	*Snapshot
	ctx  context.Context //nolint:containedctx // it is the context of the one call that this serves
	want Want
}
