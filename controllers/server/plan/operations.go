// SPDX-License-Identifier: Apache-2.0

package plan

import (
	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/fleet"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/controllers/server/identity"
	"github.com/metalaw/metalaw/controllers/server/operations"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/redfish"
)

// Operations is what a decision about operations depends on. What an older reading says of the power counts for nothing:
// a forced move waits for a fresh one, on which it is judged again.
func (s *Seen) Operations() operations.Input {
	in := operations.Input{Observation: s.Observation, Facts: s.Facts, Bundle: s.Bundle, Holder: s.Holder, NewID: s.NewID,
		Unconfirmed: s.Unconfirmed, Move: s.Forced}
	if operations.Stands(s.Server) {
		in.NotOff = s.Fresh() && !s.Shows(redfish.PowerOff) || s.BMC.Tried && !s.same()
	}
	return in
}

// Besides are the steps beside the effects: the inventory keeps what a person answers for, before the operation ends, and
// the rivals, which outlive this process there. No step waits for another.
func Besides(s Seen) []Steps {
	var all []Steps
	if s.asks(v1alpha1.OperationAttestDisk) {
		if answer, why := operations.Attestation(s.Operations()); why == "" {
			all = append(all, Steps{Acts: []Act{Attest{answer}}})
		}
	}
	if s.asks(v1alpha1.OperationProve) {
		if settled, why := operations.Proof(s.Operations()); why == "" {
			all = append(all, Steps{Acts: []Act{Prove{settled}}})
		}
	}
	if s.Inventory != nil && s.Bundle != nil && identity.RivalsDiffer(s.Inventory, s.Rivals) {
		rivals := s.Rivals
		all = append(all, drafted(s, func(d *draft) loop.Progress {
			d.do(Confirm{Action: fleet.Record}, Keep{To: func(i *policyv1alpha1.ServerInventory) { identity.Of(i).Rivals = rivals }})
			return loop.Holds()
		}))
	}
	return all
}

// asks says that a person asks for an operation by which something is kept, and that it may be begun.
func (s *Seen) asks(operation string) bool {
	return operations.Asked(s.Server) == operation && !s.Server.Status.Operation.Active() && !s.Unconfirmed &&
		s.Server.Status.Lifecycle != nil && s.Bundle != nil
}

// Await are the steps while a safety rule holds an effect back, on word of the machine.
func Await(s Seen, a engine.Awaited) Steps {
	if a.Rule == policies.RuleNoRebootWithoutConsent {
		return Steps{Then: loop.Waiting(a.Rule, a.Message, 0)} // no word of the machine ends that
	}
	return drafted(s, func(d *draft) loop.Progress {
		if p, ok := d.powerKnown(); !ok {
			return p
		}
		return loop.Waiting(a.Rule, a.Message, d.poll())
	})
}
