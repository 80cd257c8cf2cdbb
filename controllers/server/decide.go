// SPDX-License-Identifier: Apache-2.0

package server

import (
	"github.com/metalaw/metalaw/controllers/hardware"
	"github.com/metalaw/metalaw/controllers/rollout"
	"github.com/metalaw/metalaw/controllers/server/gates"
	"github.com/metalaw/metalaw/controllers/server/operations"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/redfish"
)

// gateShell runs the decision through the gates, and gets what it wants from outside.
type gateShell struct{ *scope }

// Decide implements loop.Scope. It is pure: settle gets what the decision wants from outside, before anything is applied.
func (v *scope) Decide() *gates.Output {
	began := v.Now()
	for v.gated = gates.Decide((gateShell{v}).gatesInput()); v.gated.Instead != nil; v.gated = gates.Decide((gateShell{v}).gatesInput()) {
		v.governBy(*v.gated.Instead)
	}
	if v.bundle != nil {
		v.Metrics.decisions.Observe(v.Now().Sub(began).Seconds())
	}
	return &v.gated
}

// gatesInput is everything that the decision is made on.
func (v gateShell) gatesInput() gates.Input {
	changing, left := governShell(v).changing()
	in := gates.Input{Observation: v.observed, Facts: v.facts, Governance: v.governs, Active: governShell(v).candidate(v.Bundles.Active()),
		Clock: v.deadlines(), Reading: v.powerReading(), Halted: isHalted(v.server), Grants: v.grants,
		Machine: gates.Machine{Changing: changing, ChangingFor: left, PowerOnFor: v.requested().UnsettledFor(redfish.PowerOn)}}
	if v.bundle != nil && v.governs.Resting == nil && v.server.Status.Lifecycle != nil {
		if v.force = operations.Force(operationShell(v).input(engine.Decision{})); v.force.Made() {
			in.Forced = &v.force.Decision
		}
	}
	return in
}

// settle gets what the decision wants from outside, and returns the decision that stands then.
func (v gateShell) settle() engine.Decision {
	for asks := v.gated.Wants.Asks; asks.Any(); asks = v.gated.Wants.Asks {
		governShell(v).get(asks)
		v.governBy(rollout.Governs(governShell(v).question()))
		v.Decide()
	}
	if own := v.gated.Own; own != nil {
		shadowShell(v).compare(*own)
	}
	if v.gated.Governance.Bundle != v.bundle {
		v.governBy(v.gated.Governance)
	}
	wants := v.gated.Wants
	v.wakeIn(wants.Wake)
	if wants.Poll {
		v.wakeIn(v.pollInterval())
	}
	if wants.Reading && v.targetErr == nil {
		v.refresh()
	}
	return v.gated.Decision
}

// fresh says whether the reading is of this machine, was begun after the last request and after its time to show, and is
// recent. One of the entry before serves this one as well while it is recent: a move by itself changes nothing about the
// machine. A reading that a decision waited for is recent enough however long the queue was.
func (v *scope) fresh() bool {
	return v.facts.BMC.Identity == policies.IdentitySame && v.recent(v.reading)
}

// recent is fresh without a look at whose reading it is.
func (v *scope) recent(r hardware.Reading[redfish.SystemSnapshot]) bool {
	if !r.Reachable() || r.Begun.Before(v.Cache.LastJob(v.server.Name)) || r.Begun.Before(v.requested().Lapsed()) {
		return false
	}
	return v.now.Sub(r.At) <= moveFreshness || v.remembered().waitedFor(r.Begun)
}

// refresh asks for a reading that a decision waits for. A BMC that has just answered for another machine, or did not say
// for which, is read again in its own time. A reading that has ended since this reconcile looked is not taken again: its end
// woke the server, and the next reconcile sees whether it may rely on it.
func (v *scope) refresh() {
	if v.reading.Reachable() && v.facts.BMC.Identity != policies.IdentitySame {
		v.wakeIn(v.pollInterval())
		return
	}
	if r := v.remembered(); r.waits.IsZero() {
		r.waits = v.now
	}
	if known := v.Cache.Reading(v.server.Name); known.Begun.After(v.reading.Begun) && v.recent(known) {
		return
	}
	v.Cache.Refresh(v.server.Name, v.target, 0)
}
