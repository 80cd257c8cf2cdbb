// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/fleet"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/controllers/server/call"
	"github.com/metalaw/metalaw/controllers/server/operations"
	"github.com/metalaw/metalaw/engine"
)

// resetAsAsked carries out the one reset or power change that an operation asks for.
func resetAsAsked(d *draft, _ engine.Effect) loop.Progress {
	op := d.Server.Status.Operation
	out := operations.Reset(operations.ResetInput{Server: d.Server, Job: d.BMC.Jobs[op.ID], Busy: d.BMC.Busy(), Now: d.Now})
	d.set(func(s *v1alpha1.Server) {
		s.Status.Operation = out.Server.Status.Operation.DeepCopy()
		if done := meta.FindStatusCondition(out.Server.Status.Conditions, v1alpha1.ConditionOperationDone); done != nil {
			meta.SetStatusCondition(&s.Status.Conditions, *done)
		}
	})
	if out.Ask == "" {
		return out.Progress
	}
	d.permit(out.Action) // order 5: budgets count from when permission is given
	at := metav1.NewMicroTime(d.Now)
	d.set(func(s *v1alpha1.Server) {
		s.Status.Operation.State, s.Status.Operation.BegunAt = v1alpha1.OperationInProgress, &at
		fleet.Begin(s.Status.Lifecycle, out.Action, at, d.CountedNow.Stored())
	})
	// A call that was postponed is known, and forgotten only once it is recorded anew.
	d.ask(Ask{ID: op.ID, Call: call.Reset{Action: out.Ask}, Actions: []fleet.Action{out.Action}, Stored: true})
	return out.Progress
}
