// SPDX-License-Identifier: Apache-2.0

package power

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/policies"
)

// Note is what an event about the power of a machine says.
type Note struct {
	Fine            bool
	Reason, Message string
}

// Told is what events tell of a write that changed the power of a machine: the first of a row of refusals, and each step
// by which the manager switches a machine off that it did not switch on.
func Told(before, after *v1alpha1.Server, effects []engine.Effect) []Note {
	if after.Status.Lifecycle == nil {
		return nil
	}
	var was *v1alpha1.PowerRequest
	if before.Status.Lifecycle != nil {
		was = before.Status.Lifecycle.Request
	}
	var notes []Note
	if switchedOn(before, after, was) && slices.ContainsFunc(effects, isPowerOff) {
		notes = append(notes, Note{Reason: v1alpha1.ReasonSwitchedOnByHand,
			Message: "The machine was switched on, and the manager did not ask for it. The machine is to be off in this " +
				"state, so the manager switches it off. To use it by hand, park the server first"})
	}
	now := after.Status.Lifecycle.Request
	if now == nil {
		return notes
	}
	if note, ok := step(was, now); ok {
		notes = append(notes, note)
	}
	if refusedNewly(was, now) && !overrideIgnored(after) {
		notes = append(notes, Note{Reason: v1alpha1.ReasonPowerRefused,
			Message: fmt.Sprintf("The BMC refuses %s, which is asked for again: %s", Words(now.Action), now.Refusal)})
	}
	return notes
}

// unasked says that a machine runs without a power-on of the manager. The last request is was; off says that status shows
// the machine off. A power-on without attempts was seen off since. A shutdown and the cut after it are for one run.
func unasked(was *v1alpha1.PowerRequest, off bool) bool {
	switch {
	case was == nil:
		return off
	case was.Action == v1alpha1.PowerActionOn:
		return was.Attempts == 0 && was.ShownAt != nil
	}
	return was.Unasked || was.ShownAt != nil
}

// switchedOn says that the machine came on, that no request of the manager led there, and that no operation did.
func switchedOn(before, after *v1alpha1.Server, was *v1alpha1.PowerRequest) bool {
	return before.Status.PowerState == v1alpha1.PowerStateOff && after.Status.PowerState == v1alpha1.PowerStateOn &&
		unasked(was, true) && (was == nil || !restartedSince(after.Status.Operation, was))
}

// step is what became of a power-off of a machine that the manager had not switched on.
func step(was, now *v1alpha1.PowerRequest) (Note, bool) {
	repeats := was != nil && was.Action == now.Action && was.ShownAt == nil
	switch {
	case !now.Unasked:
	case repeats && was.AskedAt.Equal(&now.AskedAt) && now.ShownAt != nil:
		return Note{true, v1alpha1.ReasonSwitchedOff, "The machine that ran without a power-on of the manager is off"}, true
	case repeats, now.ShownAt != nil:
	case now.Action == v1alpha1.PowerActionGracefulShutdown:
		return Note{false, v1alpha1.ReasonShutdownAsked, "The machine runs, the manager did not switch it on, and it is to " +
			"be off. The manager asks its operating system to shut down"}, true
	default:
		return Note{false, v1alpha1.ReasonForcedOff, "The machine runs, the manager did not switch it on, and it is to be " +
			"off. The manager has its power cut"}, true
	}
	return Note{}, false
}

func isPowerOff(e engine.Effect) bool { return e.Name == policies.EffectPowerOff }

// refusedNewly says that the BMC refused a request for the first time in a row.
func refusedNewly(was, now *v1alpha1.PowerRequest) bool {
	return now.RefusedAt != nil && now.Refusals == 1 &&
		(was == nil || was.RefusedAt == nil || !was.AskedAt.Equal(&now.AskedAt))
}

// overrideIgnored says that Ready names an ignored boot override, which has an event of its own.
func overrideIgnored(s *v1alpha1.Server) bool {
	ready := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionReady)
	return ready != nil && ready.Reason == OverrideIgnored
}
