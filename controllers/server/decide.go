// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/redfish"
)

// Decide implements loop.Visit. A move that relies on what a BMC said needs a fresh reading; until there is one, nothing
// moves and nothing is done.
func (v *visit) Decide() engine.Decision {
	if v.bundle == nil {
		return v.decideUnloaded()
	}
	began := v.Now()
	d := v.decide()
	v.Metrics.observe(v.Now().Sub(began))
	d.Revision = v.bundle.Revision
	if v.compared {
		v.compare(d)
	}
	if d.Halt != nil {
		return v.leaveHalt(d)
	}
	if v.inheritsUnstored() && d.To != "" {
		return keepInherited()
	}
	if d.From != "" && d.Rule != v1alpha1.RuleForced && v.strangerUnstored() {
		return keepStranger(d)
	}
	if d.Moves() && d.Reads("bmc") {
		d = v.onFreshWord(d)
	}
	if d.Rule == v1alpha1.RuleForced && policies.KeptStranger(v.inventory) {
		return keepStranger(d)
	}
	return d
}

// onFreshWord holds a move that relies on what the BMC said back until that is fresh, and no power-on is on its way.
func (v *visit) onFreshWord(d engine.Decision) engine.Decision {
	if !v.fresh() {
		v.held = true
		v.refresh()
		return engine.Decision{From: d.From, To: d.From, Stable: d.Stable, Revision: d.Revision,
			Message: fmt.Sprintf("%s waits for a fresh reading of the BMC", d.Rule)}
	}
	if left := v.unsettledFor(redfish.PowerOn); left > 0 && v.shows(redfish.PowerOff) {
		v.held = true
		v.wakeIn(min(left, v.pollInterval()))
		return engine.Decision{From: d.From, To: d.From, Stable: d.Stable, Revision: d.Revision,
			Message: fmt.Sprintf("%s waits for the power-on that was asked for to show or to lapse", d.Rule)}
	}
	return d
}

func (v *visit) decide() engine.Decision {
	l := v.bundle.Lifecycle
	if v.resting != nil {
		return v.beginAnew()
	}
	if v.server.Status.Lifecycle != nil {
		if d, ok := v.decideForce(); ok {
			return d
		}
		if d := l.Decide(v.facts); !d.Moves() || d.From != l.Initial() || v.reading.Tried {
			v.compared = true
			return d
		}
		return v.awaitFirstWord()
	}
	if v.server.Status.State == "" {
		return v.start()
	}
	return v.adopt()
}

// start begins the lifecycle of a server that has no state. It waits for the first word of the BMC, so that the first
// state is the right one; a BMC that cannot be reached gives that word too.
func (v *visit) start() engine.Decision {
	if !v.reading.Tried {
		return awaitsFirstWord
	}
	return v.bundle.Lifecycle.Start(v.facts)
}

var awaitsFirstWord = engine.Decision{Message: "waits for the first word of its BMC"}

// awaitFirstWord keeps a server in the initial state, where it finds its place by what is known, until this process has heard
// from its BMC: before that nothing is known of the machine, and a rule that asks nothing of it would come before one that
// it is to be placed by.
func (v *visit) awaitFirstWord() engine.Decision {
	v.held = true
	d := awaitsFirstWord
	d.From, d.To = v.bundle.Lifecycle.Initial(), v.bundle.Lifecycle.Initial()
	return d
}

// adopt takes over a server that has a state and no lifecycle of ours: another operator of this API left it there. The
// state is kept where it may be; what its marks must be is read from it.
func (v *visit) adopt() engine.Decision {
	state := engine.State(v.server.Status.State)
	l := v.bundle.Lifecycle
	if target, ok := l.Migrates(state); ok {
		state = target
	}
	if !l.Defines(state) {
		return engine.Decision{From: state, To: state, Halt: &engine.Halt{Cause: engine.HaltUnknownState,
			Message: fmt.Sprintf("the policy defines no state %q and does not migrate it", state)}}
	}
	d := l.Enter(v.facts, state)
	if d.Halt != nil && d.Halt.Cause == engine.HaltSafety && l.HasEdge(engine.State(v.server.Status.State), l.Initial()) {
		// It may not be in the state in which servers are offered: it was given to a claim and had no time to leave it, or its
		// disks may hold data. It finds its place from the initial state, where the lifecycle leads there from the state that is
		// stored: admission accepts no other move.
		if !v.reading.Tried {
			return awaitsFirstWord
		}
		d = l.Enter(v.facts, l.Initial())
	}
	d.Rule = ruleAdopted
	return d
}

// The names of moves that no bundle writes.
const (
	ruleStarted = "Started"
	ruleAdopted = v1alpha1.RuleAdopted
)

// fresh says whether the reading is of this machine, was begun after the last request and after its time to show, and is
// recent. One of the entry before serves this one as well while it is recent: a move by itself changes nothing about the
// machine. A reading that a decision waited for is recent enough however long the queue was.
func (v *visit) fresh() bool {
	if !v.reading.Reachable() || v.facts.BMC.Identity != policies.IdentitySame {
		return false
	}
	begun := v.reading.Begun
	if begun.Before(v.Desk.LastJob(v.server.Name)) || begun.Before(v.lapsed()) {
		return false
	}
	return v.now.Sub(v.reading.At) <= moveFreshness || v.memory.waitedFor(v.server.Name, begun)
}

// refresh asks for a reading that a decision waits for. A BMC that has just answered for another machine, or did not say
// for which, is read again in its own time.
func (v *visit) refresh() {
	if v.reading.Reachable() && v.facts.BMC.Identity != policies.IdentitySame {
		v.wakeIn(v.pollInterval())
		return
	}
	v.memory.waitFor(v.server.Name, v.now)
	v.Desk.Refresh(v.server.Name, v.target, 0)
}
