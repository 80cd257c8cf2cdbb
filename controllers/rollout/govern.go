// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"fmt"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/diag"
)

// A server is governed by the revision that it is pinned to. It comes under another one in one of two ways:
//
//   - While it rests in a stable state, the revision changes and nothing else does. A fleet does so at a pace.
//   - While the revision halts it, it begins a new entry, so that no report and no wipe of the former one counts. A state
//     that the other revision has dropped is left as its migrate says.
//
// It does neither in the middle of an erase, nor while a power change that was asked for may still come true. Under a
// canary it comes only in its turn. A new server begins under what is in force where the canary has no place for it.

// Candidate is a bundle that may come to govern a server.
type Candidate struct {
	*bundle.Bundle
	// Refused says that this engine refuses the bundle, and Why.
	Refused bool
	Why     string
}

// IsNothing says that no revision governs at all: the stand-in for it has no name.
func (c Candidate) IsNothing() bool {
	return c.Bundle != nil && c.StandsIn && c.Revision.Name == ""
}

// Takes is the bundle that a server in a state can come under, or the one that it cannot, because that dropped the state.
func (c Candidate) Takes(state engine.State) (takes, dropping *bundle.Bundle) {
	switch {
	case c.Refused:
		return nil, nil
	case !c.Bundle.Takes(state):
		return nil, c.Bundle
	}
	return c.Bundle, nil
}

// Grant is the answer to something that a decision wants from outside.
type Grant uint8

// The answers.
const (
	Unasked Grant = iota
	Granted
	Denied
)

// Grants are the answers that a server got in one reconcile.
type Grants struct {
	// Place is a place under the canary, and Turn the turn of a server to come under another revision.
	Place, Turn Grant
}

// Turn is one of two paces: servers that are halted do not wait behind those that rest.
type Turn uint8

// The turns.
const (
	NoTurn Turn = iota
	RestingTurn
	HaltedTurn
)

// Asks is what a decision wants from outside before it can be made. The shell gets it and asks again with the answer.
type Asks struct {
	// Place is the canary that is to have a place for the server; nil where none is wanted.
	Place *bundle.Bundle
	Turn  Turn
}

// Any says that something is wanted.
func (a Asks) Any() bool { return a.Place != nil || a.Turn != NoTurn }

// Question is what is known of one server when it is asked which revision governs it.
type Question struct {
	State engine.State
	// Revision is the one that the server is pinned to; empty for a new server.
	Revision string
	// Target is to govern the server, and Active governs where no canary does.
	Target, Active Candidate
	// Pinned is the bundle of Revision. It is nil where that cannot be loaded; Lost says then that it is gone.
	Pinned Candidate
	Lost   bool
	// Halted says that the stored status shows a halt.
	Halted bool
	// Changing says that something is under way with the machine, so that no other revision takes over meanwhile.
	Changing bool
	// Boots is the effect that boots the image of ours which stands; empty where none does.
	Boots string
	// Answers says that the BMC answers for the server's own machine: nothing else shows how it fares under a canary.
	Answers bool
	Grants  Grants
}

// Governance is what governs a server in one reconcile.
type Governance struct {
	// Bundle decides. It is nil where nothing may be decided: Unloaded says why then.
	Bundle *bundle.Bundle
	// Unloaded is the halt of a server whose revision cannot be loaded, or is refused.
	Unloaded *engine.Halt
	// Observing is the bundle whose settings say how to look at the machine, where none decides; nil for the active one.
	Observing *bundle.Bundle
	// Successor is the bundle that the server comes under if it is halted; nil where there is none to come under.
	Successor *bundle.Bundle
	// Lost says that the revision which governed the server is gone.
	Lost bool
	// Resting is the bundle under which the server rested, where the one that takes over begins a new entry; nil else. The
	// server may not rest in the state under the new one, or that one boots no image of ours there.
	Resting *bundle.Bundle
	// Dropping is the bundle that the server cannot come under, because that has dropped the server's state; nil else.
	Dropping *bundle.Bundle
	// Because is why the server is taken over as a new entry; empty where it is not.
	Because string
	// Asks is what another revision waits for to govern.
	Asks Asks
	// WaitsForMachine says that another revision waits until nothing is under way with the machine.
	WaitsForMachine bool
}

// Governs says which revision governs a server, and what another one waits for. It is pure.
func Governs(q Question) Governance {
	if q.Active.IsNothing() {
		return Governance{Unloaded: &engine.Halt{Cause: HaltPromotionMissing, Rule: "Revision", Message: q.Active.Why},
			Observing: cmp.Or(q.Pinned.Bundle, q.Active.Bundle)}
	}
	target := q.Target
	var asks Asks
	if q.Revision == "" {
		place, ask := q.place(target)
		asks = ask
		if !place {
			target = q.Active
		}
	}
	if q.Revision == "" || q.Revision == target.Revision.Name {
		if target.Refused {
			return Governance{Unloaded: refusedHalt(target.Revision.Name, target.Why), Observing: target.Bundle, Asks: asks}
		}
		return Governance{Bundle: target.Bundle, Asks: asks}
	}
	g := Governance{Observing: q.Pinned.Bundle}
	g.Successor, g.Dropping = target.Takes(q.State)
	if q.Pinned.Bundle != nil && q.Pinned.Lifecycle.Stable(q.State) {
		var taken bool
		if g.Successor != nil {
			taken, g.Asks, g.WaitsForMachine = q.atRest(target)
		}
		if taken {
			return q.rested(target.Bundle)
		}
		g.Successor = nil // its turn comes
	}
	switch {
	case q.Pinned.Refused:
		g.Unloaded = refusedHalt(q.Revision, q.Pinned.Why)
	case q.Pinned.Bundle == nil:
		g.Unloaded, g.Lost = unloadedHalt(q.Revision), q.Lost
	default:
		g.Bundle, g.Observing = q.Pinned.Bundle, nil
	}
	return g
}

// place says whether the server may come under a bundle, and asks for a place where that governs as a canary.
func (q Question) place(c Candidate) (bool, Asks) {
	return PlaceUnder(c.Bundle, q.Active.Bundle, q.Answers, q.Grants.Place)
}

// PlaceUnder says whether a server may come under a bundle. A canary takes one only where its BMC answers for it, and in a
// place that is asked for.
func PlaceUnder(b, active *bundle.Bundle, answers bool, granted Grant) (bool, Asks) {
	switch {
	case b.Revision.Name == active.Revision.Name, answers && granted == Granted:
		return true, Asks{}
	case answers && granted == Unasked:
		return false, Asks{Place: b}
	}
	return false, Asks{} // the next word of its BMC wakes it, or its next turn
}

// atRest says whether a server that rests comes under another revision now.
func (q Question) atRest(target Candidate) (taken bool, asks Asks, waits bool) {
	if q.Changing {
		return false, Asks{}, true
	}
	place, asks := q.place(target)
	switch {
	case !place, q.Grants.Turn == Denied:
		return false, asks, false
	case q.Grants.Turn == Granted:
		return true, Asks{}, false
	case q.Halted:
		return false, Asks{Turn: HaltedTurn}, false
	}
	return false, Asks{Turn: RestingTurn}, false
}

// rested is what governs a server that rested and comes under another revision. The time that it rested counts against no
// deadline of a state in which it may not rest any more. A boot of ours that its state does not ask for counts for nothing.
func (q Question) rested(target *bundle.Bundle) Governance {
	g, pinned := Governance{Bundle: target}, q.Pinned.Bundle
	switch {
	case !target.Lifecycle.Defines(q.State):
	case !target.Lifecycle.Stable(q.State):
		g.Resting, g.Because = pinned, fmt.Sprintf("under policy revision %s it rested in %s", pinned.Revision.Name, q.State)
	case q.Boots != "" && !target.Lifecycle.Ensures(q.State, q.Boots):
		g.Resting, g.Because = pinned, fmt.Sprintf("under policy revision %s an image of ours was to boot in %s", pinned.Revision.Name, q.State)
	}
	return g
}

// HaltRevisionHeld is the cause of a halt under a revision that this engine refuses.
const HaltRevisionHeld = engine.HaltCause(v1alpha1.ReasonRevisionHeld)

// HaltPromotionMissing is the cause of a halt while nothing governs.
const HaltPromotionMissing = engine.HaltCause(v1alpha1.ReasonPromotionMissing)

// Missing says that nothing governs because of a restored revision, and what to do.
func Missing(revision string) string {
	return "no policy governs: " + revision + " was promoted in another cluster, and none was here. " +
		"No server moves. Promote one: metalaw policy rollback --to " + revision
}

// maxWhy bounds the words of what refuses a revision.
const maxWhy = 1024

func refusedHalt(revision, why string) *engine.Halt {
	return &engine.Halt{Cause: HaltRevisionHeld, Rule: "Revision", Message: fmt.Sprintf("this version of metalaw refuses the policy revision %q, "+
		"which governs this server, so nothing moves and nothing is done. Run a version of metalaw that accepts it, or promote a bundle "+
		"that this one accepts: %s", revision, diag.Shortened(why, maxWhy))}
}

func unloadedHalt(revision string) *engine.Halt {
	return &engine.Halt{Cause: engine.HaltUnknownState, Rule: "Revision",
		Message: fmt.Sprintf("the policy revision %q, which governs this server, cannot be loaded", revision)}
}
