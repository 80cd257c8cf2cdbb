// SPDX-License-Identifier: Apache-2.0

// Package gates decides what holds a server back now: one ordered list of named gates over the decision of its lifecycle.
// It is pure: what a decision wants from outside is an output, which the reconcile scope carries out.
package gates

import (
	"time"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/rollout"
	"github.com/metalaw/metalaw/controllers/server/power"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/policies"
)

// Input is everything that one decision about a server is made on. Nothing in it is changed.
type Input struct {
	// Observation is what the facts are made of. Its settings and its counted time depend on who governs, and are set here.
	Observation policies.Observation
	// Facts are those under Governance; nil has them made.
	Facts *policies.Facts
	// Governance is what governs the server, and Active what governs where no canary does.
	Governance rollout.Governance
	Active     rollout.Candidate
	Clock      Clock
	// Reading is how far the last reading of the BMC can be relied on.
	Reading power.Reading
	Machine Machine
	// Forced is the move that an operation forces, planned under Governance; nil where none does.
	Forced *engine.Decision
	// Halted says that the stored status shows a halt.
	Halted bool
	Grants rollout.Grants
}

// Clock is what tells whether the time in a state counts against its deadline.
type Clock struct {
	Outage policies.Outage
	// HeldBack says that a freeze or a budget holds the server back.
	HeldBack bool
	// NoGrace says that a release takes effect at once, whatever the policy says.
	NoGrace bool
}

// Machine is what is under way with the machine.
type Machine struct {
	// Changing says what must be over before another revision takes over; empty where nothing is under way.
	Changing string
	// ChangingFor is how long at most that takes.
	ChangingFor time.Duration
	// PowerOnFor is how long a power-on that was asked for may still come true.
	PowerOnFor time.Duration
}

// Wants is what a decision wants from outside once it stands.
type Wants struct {
	// Asks come first: the decision is made anew with their answers.
	Asks rollout.Asks
	// Reading says that the decision waits for a fresh reading, and Poll that it waits for the BMC to show something.
	Reading, Poll bool
	// Wake is when to look again at the latest; 0 for no particular time.
	Wake time.Duration
}

// Output is the decision that stands, and what holds the server back.
type Output struct {
	Decision engine.Decision
	// Gate is the name of the gate that holds the server; empty where none does. Message says what it waits for.
	Gate, Message string
	// Postponed says that a move was put off until something is known of the machine.
	Postponed bool
	// Own is the decision that the lifecycle made itself on the facts of the input; nil where it was not asked.
	Own *engine.Decision
	// Governance is what governs the server from here on.
	Governance rollout.Governance
	Wants      Wants
	// Instead is what the server is to be decided about under instead, because the new entry may not be made; nil else.
	Instead *rollout.Governance
}

// Facts are the facts under what governs the server, the observation that they are made of, and the clock to be stored; nil
// where the stored one still serves. tried says that the BMC was asked.
func Facts(o policies.Observation, g *rollout.Governance, settings bundle.Settings, c Clock, tried bool) (
	policies.Observation, *policies.Facts, *v1alpha1.DeadlineClock) {
	var clock *v1alpha1.DeadlineClock
	if o.Settings = settings; c.NoGrace {
		o.Settings.ReleaseGrace = 0
	}
	if l := o.Server.Status.Lifecycle; l != nil && hasDeadline(g, engine.State(o.Server.Status.State)) {
		held, reason := c.HeldBack, v1alpha1.ConditionWithheld
		switch {
		case g.Bundle == nil:
			held, reason = true, v1alpha1.ReasonRevisionHeld
		case tried && !o.System.Reachable:
			held, reason = true, "BMCUnreachable"
		case o.System.Identity == policies.IdentityUnknown: // the BMC answers and does not say for which machine
			held, reason = true, "IdentityUnknown"
		}
		at := policies.Instant{Now: o.Now, Counted: o.CountedNow}
		o.Counted, clock = policies.CountedTime(l, at, c.Outage, held, reason)
	} else if l != nil {
		o.Counted = o.Now.Sub(l.EnteredAt.Time)
	}
	return o, o.Facts(), clock
}

// hasDeadline says that the server may not rest in its state. The deadlines of a revision that cannot be loaded are not
// known, and find that the time did not count.
func hasDeadline(g *rollout.Governance, state engine.State) bool {
	switch {
	case g.Bundle != nil:
		return !g.Bundle.Lifecycle.Stable(state)
	case g.Observing != nil:
		return !g.Observing.Lifecycle.Stable(state)
	}
	return true
}

// Settings are those under which a server is looked at.
func Settings(g *rollout.Governance, active *bundle.Bundle) bundle.Settings {
	switch {
	case g.Bundle != nil:
		return g.Bundle.Settings
	case g.Observing != nil:
		return g.Observing.Settings
	}
	return active.Settings
}
