// SPDX-License-Identifier: Apache-2.0

package gates

import (
	"fmt"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/rollout"
	"github.com/metalaw/metalaw/controllers/server/operations"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/redfish"
)

// A server that is halted comes under the revision that it is to be governed by. It stays halted where the cause lies outside
// of the policy, until the halt is stored, and while the machine changes.

// stays says that no other revision may end the halt.
func (r *run) stays() bool {
	g := &r.Governance
	switch {
	case g.Successor == nil:
		return true
	case g.Lost:
		return false
	case g.Unloaded != nil && r.d.Halt.Cause != rollout.HaltRevisionHeld: // it cannot be read at the moment
		return true
	case r.d.Halt.Cause == engine.HaltSafety && r.facts.BMC.Identity == policies.IdentityOther:
		return true // whatever the policy, nothing may be done to another machine
	}
	return !r.Halted // it is stored first; that write has the server looked at again
}

// machineChanges says that something is under way with the machine.
func (r *run) machineChanges() bool {
	if r.Machine.Changing == "" {
		return false
	}
	r.wakeIn(r.Machine.ChangingFor)
	r.waits(r.Machine.Changing)
	return true
}

// powerUnknown says that the state boots an image of ours and that the power of the machine is not known. A reading that is
// under way is not worth telling.
func (r *run) powerUnknown() bool {
	if !r.needsPower(r.Governance.Successor) {
		return false
	}
	if silent := r.Reading.Silent(); silent != "" {
		r.waits("the power of the machine is known: it waits for " + silent)
	}
	return true
}

// needsPower says that a bundle begins the state with a boot of an image of ours, before the power of the machine is known.
func (r *run) needsPower(b *bundle.Bundle) bool {
	if _, migrates := b.Lifecycle.Migrates(r.d.From); migrates || !operations.BootsOurs(b, r.d.From) {
		return false
	}
	known := r.Reading.Shows(redfish.PowerOn) || r.Reading.Shows(redfish.PowerOff)
	if known && r.Reading.Fresh {
		return false
	}
	r.out.Wants.Reading = r.out.Wants.Reading || !r.Reading.Fresh
	r.out.Wants.Poll = r.out.Wants.Poll || r.Reading.Reachable() && !known
	return true
}

// noPlace says that the canary has no place for the server. What is in force takes it over instead, where that ends its halt
// as well: no server stays halted for want of a place.
func (r *run) noPlace() bool {
	place, asks := rollout.PlaceUnder(r.Governance.Successor, r.Active.Bundle, r.Reading.Reachable() && r.Reading.Same, r.Grants.Place)
	if place {
		return false
	}
	if asks.Any() {
		r.out.Wants.Asks = asks
		return true
	}
	state := r.d.From
	takes, _ := r.Active.Takes(state)
	if l := r.Observation.Server.Status.Lifecycle; takes == nil || l != nil && l.Revision == takes.Revision.Name {
		return true
	}
	r.out.Governance.Successor = takes
	return r.needsPower(takes)
}

// noTurn says that it is not the server's turn. To say so in status would cost the write that is put off.
func (r *run) noTurn() bool {
	if r.Governance.Lost || r.Grants.Turn == rollout.Granted {
		return false
	}
	if r.Grants.Turn == rollout.Unasked {
		r.out.Wants.Asks = rollout.Asks{Turn: rollout.HaltedTurn}
	}
	return true
}

// enterUnder begins a new entry under another revision. The server stays halted where that revision would halt it as well.
func (r *run) enterUnder(target *bundle.Bundle) {
	halted, former := r.d, r.Governance
	next := rollout.Governance{Bundle: target, Lost: former.Lost,
		Because: fmt.Sprintf("policy revision %s halted it: %s", r.Observation.Server.Status.Lifecycle.Revision, haltText(halted.Halt))}
	d := r.takeOver(&next, r.factsUnder(&next))
	switch {
	case d.Moves():
		r.d, r.out.Governance = d, next
	case d.Halt != nil:
		r.d = stillHalted(halted, fmt.Sprintf("; policy revision %s cannot take over: %s", target.Revision.Name, haltText(d.Halt)))
		r.out.Governance = former
	default: // it waits for the first word of its BMC
		r.out.Governance = former
	}
}

// takeOver is a move out of a state that the bundle has dropped, else a new entry in the state that the server is in. A state
// that boots an image of ours begins from Off: a machine that runs finds its place anew from the initial state.
func (r *run) takeOver(g *rollout.Governance, facts *policies.Facts) engine.Decision {
	l, state := g.Bundle.Lifecycle, engine.State(r.Observation.Server.Status.State)
	d := policies.Adopt(l, facts, r.Reading.Tried)
	if _, migrates := l.Migrates(state); migrates {
		d = l.Decide(facts)
	} else if operations.BootsOurs(g.Bundle, state) && !r.Reading.Shows(redfish.PowerOff) {
		d = l.Enter(facts, l.Initial())
		d.Rule = v1alpha1.RuleAdopted
	}
	d.Revision = g.Bundle.Revision
	return d
}

// waits adds to the halt what another revision waits for.
func (r *run) waits(why string) {
	r.d = stillHalted(r.d, fmt.Sprintf("; policy revision %s takes over once %s", r.Governance.Successor.Revision.Name, why))
}

// stillHalted is a halt that says more.
func stillHalted(d engine.Decision, more string) engine.Decision {
	halt := *d.Halt
	halt.Message += more
	d.Halt = &halt
	return d
}

func haltText(h *engine.Halt) string {
	if h.Rule == "" {
		return h.Message
	}
	return h.Rule + ": " + h.Message
}
