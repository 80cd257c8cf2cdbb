// SPDX-License-Identifier: Apache-2.0

package gates

import (
	"fmt"
	"slices"
	"time"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/rollout"
	"github.com/metalaw/metalaw/controllers/trigger"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/redfish"
)

// run is one decision on its way through the list.
type run struct {
	*Input
	facts *policies.Facts
	// d is the decision that stands so far.
	d   engine.Decision
	out Output
}

// Decide runs the decision of what governs the server through the list. The same input always gives the same output.
func Decide(in Input) Output {
	r := &run{Input: &in, out: Output{Governance: in.Governance}}
	if r.facts = in.Facts; r.facts == nil {
		r.facts = r.factsUnder(&in.Governance)
	}
	if in.Governance.WaitsForMachine {
		r.wakeIn(in.Machine.ChangingFor)
	}
	if !r.decide() {
		return r.out
	}
	r.out.Wants.Asks = in.Governance.Asks
	kind := OnDecision
	if r.d.Halt != nil {
		kind = OnHalt
	}
	for i := range list {
		if g := &list[i]; g.holds != nil && g.When == kind && g.holds(r) {
			r.out.Gate, r.out.Message = g.Name, r.d.Message
			r.out.Decision = r.d
			return r.out
		}
	}
	if kind == OnHalt {
		r.enterUnder(r.out.Governance.Successor)
	}
	r.out.Decision = r.d
	return r.out
}

func (r *run) factsUnder(g *rollout.Governance) *policies.Facts {
	_, facts, _ := Facts(r.Observation, g, Settings(g, r.Active.Bundle), r.Clock, r.Reading.Tried)
	return facts
}

// decide finds the decision of what governs the server. It returns false where another revision is to decide instead.
func (r *run) decide() bool {
	g, server := &r.Governance, r.Observation.Server
	switch {
	case g.Bundle == nil:
		state := engine.State(server.Status.State)
		r.d = engine.Decision{From: state, To: state, Message: g.Unloaded.Message, Halt: g.Unloaded}
		return true
	case g.Resting != nil:
		if r.d = r.takeOver(g, r.facts); !r.d.Moves() { // it rests there as before
			r.out.Instead = &rollout.Governance{Bundle: g.Resting}
			return false
		}
	case server.Status.Lifecycle == nil:
		r.d = policies.Begin(g.Bundle.Lifecycle, r.facts, r.Reading.Tried)
	case r.Forced != nil:
		r.d = *r.Forced
	default:
		r.d = g.Bundle.Lifecycle.Decide(r.facts)
		if !r.firstWord() {
			own := r.d
			own.Revision = g.Bundle.Revision
			r.out.Own = &own
		}
	}
	r.d.Revision = g.Bundle.Revision
	return true
}

// firstWord says that the lifecycle would move the server from its initial state before its BMC was heard.
func (r *run) firstWord() bool {
	return r.d.Moves() && r.d.From == r.Governance.Bundle.Lifecycle.Initial() && !r.Reading.Tried
}

// awaitsFirstWord keeps a server in the initial state, where it finds its place by what is known. A rule that asks nothing of
// the machine would come before one that the server is to be placed by.
func (r *run) awaitsFirstWord() bool {
	if r.Observation.Server.Status.Lifecycle == nil || r.Governance.Resting != nil || r.Forced != nil || !r.firstWord() {
		return false
	}
	d := policies.AwaitsFirstWord
	d.From, d.To, d.Revision = r.d.From, r.d.From, r.d.Revision
	r.d, r.out.Postponed = d, true
	return true
}

// inheritsUnstored begins no lifecycle with the fear of data of which only the status would tell: the status can be lost.
// Custody is written before the mark in status, and both before the first boot.
func (r *run) inheritsUnstored() bool {
	o := r.Observation
	if o.Server.Status.Lifecycle != nil || r.d.To == "" || policies.KeptDirty(o.Inventory) ||
		!slices.Contains(policies.MarksOf(policies.Inheritance(o.Server, o.Inventory, o.Proof)), policies.MarkDirty) {
		return false
	}
	r.d = engine.Decision{Message: "what it may hold is kept in its inventory first",
		Effects: []engine.Effect{engine.MarkFirst(policies.MarkDirty)}}
	return true
}

// strangerUnstored has the inventory tell of MarkStranger what the facts do. A machine that went off by itself shows nothing
// of it any more, and its status may be lost.
func (r *run) strangerUnstored() bool {
	o := r.Observation
	if r.d.From == "" || r.d.Rule == v1alpha1.RuleForced || o.Server.Status.Lifecycle == nil ||
		slices.Contains(r.facts.Lifecycle.Marks, policies.MarkStranger) == policies.KeptStranger(o.Inventory) {
		return false
	}
	r.keepStranger()
	return true
}

// dataUnstored marks a machine Dirty before anything is made of a report that shows data: Available is never entered with the mark,
// whatever the rules of a policy say.
func (r *run) dataUnstored() bool {
	if r.d.From == "" || !r.facts.Probe.DataFound || slices.Contains(r.facts.Lifecycle.Marks, policies.MarkDirty) {
		return false
	}
	r.stay("that its disks hold data is kept in its inventory first")
	r.d.Effects = []engine.Effect{engine.MarkFirst(policies.MarkDirty)}
	return true
}

// strangerForced takes the mark away first: the person who forces the move takes the machine upon himself.
func (r *run) strangerForced() bool {
	if r.d.Rule != v1alpha1.RuleForced || !policies.KeptStranger(r.Observation.Inventory) {
		return false
	}
	r.keepStranger()
	return true
}

func (r *run) keepStranger() {
	r.stay("whether it was found running is kept in its inventory first")
	r.d.Effects = []engine.Effect{engine.MarkFirst(policies.MarkStranger)}
}

// staleReading holds a move that relies on what the BMC said until that is fresh.
func (r *run) staleReading() bool {
	if !r.d.Moves() || !r.d.Reads("bmc") || r.Reading.Fresh {
		return false
	}
	r.stay(fmt.Sprintf("%s waits for a fresh reading of the BMC", r.d.Rule))
	r.out.Postponed, r.out.Wants.Reading = true, true
	return true
}

// powerOnUnderWay holds a move that finds the machine off while a power-on may still come true.
func (r *run) powerOnUnderWay() bool {
	if !r.d.Moves() || !r.d.Reads("bmc") || r.Machine.PowerOnFor <= 0 || !r.Reading.Shows(redfish.PowerOff) {
		return false
	}
	r.stay(fmt.Sprintf("%s waits for the power-on that was asked for to show or to lapse", r.d.Rule))
	r.out.Postponed, r.out.Wants.Poll = true, true
	r.wakeIn(r.Machine.PowerOnFor)
	return true
}

// stay keeps the server in its state, and does nothing there.
func (r *run) stay(message string) {
	r.d = engine.Decision{From: r.d.From, To: r.d.From, Stable: r.d.Stable, Revision: r.d.Revision, Message: message}
}

func (r *run) wakeIn(d time.Duration) {
	r.out.Wants.Wake = trigger.Earlier(r.out.Wants.Wake, d)
}
