// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"time"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/fleet"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/controllers/server/power"
	"github.com/metalaw/metalaw/redfish"
)

// resets are the operations that are one call to the BMC.
var resets = map[string]redfish.PowerAction{
	v1alpha1.OperationGracefulRestartServer: redfish.ActionGracefulRestart,
	v1alpha1.OperationHardRestartServer:     redfish.ActionForceRestart,
	v1alpha1.OperationPowerCycleServer:      redfish.ActionPowerCycle,
	v1alpha1.OperationForceOffServer:        redfish.ActionForceOff,
	v1alpha1.OperationForceOnServer:         redfish.ActionOn,
}

// EndedReset says that an operation was a reset, which has ended.
func EndedReset(op *v1alpha1.OperationStatus) bool {
	return op != nil && op.FinishedAt != nil && resets[op.Name] != ""
}

// ResetInput is everything that a decision about a reset depends on. Reset changes none of it.
type ResetInput struct {
	// Server has an active operation.
	Server *v1alpha1.Server
	// Job is the call to the BMC that the operation led to.
	Job power.Job
	// Busy says that the BMC works on a request.
	Busy bool
	Now  time.Time
}

// ResetOutput is what is due. Where Ask is set the shell asks the budget for Action first.
type ResetOutput struct {
	Progress loop.Progress
	// Server is the server with what is recorded, whether or not the reset is permitted.
	Server *v1alpha1.Server
	// Ask is the call that is made once the operation is stored as begun (order 1); empty where none is.
	Ask    redfish.PowerAction
	Action fleet.Action
}

// Reset says what becomes of the one reset or power change that an operation asks for. It is recorded as begun before the BMC
// is asked; one that was begun by a manager that has ended since is not repeated. One that came to be postponed before the BMC
// was asked is to be begun again, and waits for that as any other.
func Reset(in ResetInput) ResetOutput {
	s := in.Server.DeepCopy()
	op, out := s.Status.Operation, ResetOutput{Server: s}
	end := func(state v1alpha1.OperationState, message string) ResetOutput {
		finish(s, state, message, in.Now)
		out.Progress = loop.Holds()
		return out
	}
	if op.State != v1alpha1.OperationPending {
		switch {
		case !in.Job.Known:
			return end(v1alpha1.OperationFailed, "interrupted; whether it was carried out cannot be told, and it is not repeated")
		case in.Job.Running:
			out.Progress = loop.Waiting("OperationRunning", op.Name+" to be accepted", 0)
			return out
		case in.Job.Succeeded():
			return end(v1alpha1.OperationSucceeded, "accepted by the BMC")
		case !in.Job.Postponed():
			return end(v1alpha1.OperationFailed, loop.Shortened(in.Job.Words, loop.MaxMessage))
		}
		op.State, op.BegunAt = v1alpha1.OperationPending, nil
	}
	switch {
	case resets[op.Name] == "":
		return end(v1alpha1.OperationFailed, "it asks for no reset")
	case op.Entry != s.Status.Lifecycle.Entry: // it was postponed until the server had moved on
		return end(v1alpha1.OperationFailed, "the server has moved on before it could be done; ask again if it is still wanted")
	case in.Busy:
		out.Progress = loop.Waiting("OperationWaits", "another request to the BMC to end", 0)
		return out
	}
	out.Ask, out.Action = resets[op.Name], fleet.OfOperation(op.Name)
	out.Progress = loop.Waiting("OperationRunning", op.Name+" to be accepted", 0)
	return out
}
