// SPDX-License-Identifier: Apache-2.0

package gates

import (
	"slices"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/server/operations"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/internal/restored"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/redfish"
)

// DoubtEnded is what MarkFirst names where the inventory is to forget the doubt before the server moves on.
const DoubtEnded = "RestoredDoubtEnded"

const (
	inspectedOff = "A user confirmed it, and no claim holds it. Its disks are read once its machine is off. It is not powered off for " +
		"that: switch it off if what runs there may stop"
	inspectedLater = "A user confirmed it, and no claim holds it. Its disks are read when it leaves this state"
	inspectedFirst = "the doubt is ended in its inventory first"
	notInspected   = "It is not offered before its disks were read since the restore, and hold no data"
)

// restoredDoubt leaves a server as it is while what is stored of it may be older than its disks. Once a user has confirmed a
// server that no claim holds, its disks are read anew, and only what is read then counts.
func (r *run) restoredDoubt() bool {
	o := &r.Observation
	switch restored.Of(o.Server, o.Inventory) {
	case restored.None:
		return false
	case restored.Stands:
		r.stay(restored.Words(o.Server.Name))
		return true
	case restored.Inspection:
	}
	if !restored.Begun(o.Server, o.Inventory) {
		return r.inspects()
	}
	return r.inspected()
}

// doubtHalts has no other revision take over a halted server in doubt: that would begin a new entry.
func (r *run) doubtHalts() bool {
	return restored.Of(r.Observation.Server, r.Observation.Inventory) == restored.Stands
}

// inspects begins the inspection. A server that rests elsewhere than in Available is left there until it would move by itself.
func (r *run) inspects() bool {
	if offered := r.d.To == engine.State(v1alpha1.StateAvailable); r.d.Stable && !r.d.Moves() && !offered {
		r.stay(inspectedLater)
		return true
	}
	if !r.Reading.Shows(redfish.PowerOff) {
		r.stay(inspectedOff)
		return true
	}
	if !r.Reading.Fresh {
		r.stay("the inspection waits for a fresh reading of the BMC")
		r.out.Postponed, r.out.Wants.Reading = true, true
		return true
	}
	l := r.Governance.Bundle.Lifecycle
	d := l.Enter(r.facts, l.Initial())
	if d.Halt != nil {
		r.stay(d.Halt.Message)
		return true
	}
	// That the machine was ours is as old as the rest. It becomes ours again by a boot of ours from off.
	d.From, d.Rule, d.Clears, d.Revision = r.d.From, v1alpha1.RuleRestored, []string{policies.MarkManaged}, r.d.Revision
	r.d = d
	return true
}

// inspected ends the doubt before a server is offered whose disks were read, or erased, in this entry. It offers no other.
func (r *run) inspected() bool {
	f := r.facts
	if r.d.To != engine.State(v1alpha1.StateAvailable) || f.Probe.DataFound && !slices.Contains(f.Lifecycle.Marks, policies.MarkDirty) {
		return false // data is marked first
	}
	read := f.Probe.Entry == f.Lifecycle.Entry && f.Probe.Complete && !f.Probe.DataFound
	switch {
	case read || f.Wipe.Verified && f.Wipe.Entry == f.Lifecycle.Entry:
		r.stay(inspectedFirst)
		r.d.Effects = []engine.Effect{engine.MarkFirst(DoubtEnded)}
		return true
	case operations.BootsOurs(r.Governance.Bundle, r.d.From):
		r.stay(notInspected)
		return true
	}
	return r.inspects()
}
