// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/server/operations"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/redfish"
)

// Decide implements loop.Scope. A move that relies on what a BMC said needs a fresh reading; until there is one, nothing
// moves and nothing is done.
func (v *scope) Decide() engine.Decision {
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
func (v *scope) onFreshWord(d engine.Decision) engine.Decision {
	if !v.fresh() {
		v.held = true
		v.refresh()
		return engine.Decision{From: d.From, To: d.From, Stable: d.Stable, Revision: d.Revision,
			Message: fmt.Sprintf("%s waits for a fresh reading of the BMC", d.Rule)}
	}
	if left := v.requested().UnsettledFor(redfish.PowerOn); left > 0 && v.shows(redfish.PowerOff) {
		v.held = true
		v.wakeIn(min(left, v.pollInterval()))
		return engine.Decision{From: d.From, To: d.From, Stable: d.Stable, Revision: d.Revision,
			Message: fmt.Sprintf("%s waits for the power-on that was asked for to show or to lapse", d.Rule)}
	}
	return d
}

func (v *scope) decide() engine.Decision {
	l := v.bundle.Lifecycle
	if v.resting != nil {
		return v.beginAnew()
	}
	if v.server.Status.Lifecycle != nil {
		if v.force = operations.Force(operationShell{v}.input(engine.Decision{})); v.force.Made() {
			return v.force.Decision
		}
		if d := l.Decide(v.facts); !d.Moves() || d.From != l.Initial() || v.reading.Tried {
			v.compared = true
			return d
		}
		return v.awaitFirstWord()
	}
	return policies.Begin(l, v.facts, v.reading.Tried)
}

// awaitFirstWord keeps a server in the initial state, where it finds its place by what is known, until this process has heard
// from its BMC: before that nothing is known of the machine, and a rule that asks nothing of it would come before one that
// it is to be placed by.
func (v *scope) awaitFirstWord() engine.Decision {
	v.held = true
	d := policies.AwaitsFirstWord
	d.From, d.To = v.bundle.Lifecycle.Initial(), v.bundle.Lifecycle.Initial()
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
func (v *scope) fresh() bool {
	if !v.reading.Reachable() || v.facts.BMC.Identity != policies.IdentitySame {
		return false
	}
	begun := v.reading.Begun
	if begun.Before(v.Cache.LastJob(v.server.Name)) || begun.Before(v.requested().Lapsed()) {
		return false
	}
	return v.now.Sub(v.reading.At) <= moveFreshness || v.memory.waitedFor(v.server.Name, begun)
}

// refresh asks for a reading that a decision waits for. A BMC that has just answered for another machine, or did not say
// for which, is read again in its own time.
func (v *scope) refresh() {
	if v.reading.Reachable() && v.facts.BMC.Identity != policies.IdentitySame {
		v.wakeIn(v.pollInterval())
		return
	}
	v.memory.waitFor(v.server.Name, v.now)
	v.Cache.Refresh(v.server.Name, v.target, 0)
}
