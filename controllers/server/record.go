// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"maps"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/access"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/controllers/server/power"
	"github.com/metalaw/metalaw/controllers/server/status"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/redfish"
)

// worthTelling is how long what passes by itself may take before it is worth a write.
const worthTelling = status.WorthTelling

// statusShell takes over what status says.
type statusShell struct{ *scope }

// Record brings the server up to date with what was decided and done: requests, the move, operations, then the conditions.
func (v *scope) Record(d engine.Decision, outcome loop.Outcome) {
	s := v.server
	stored := s.Status.Lifecycle != nil
	if v.fresh() {
		v.remembered().waits = time.Time{} // the next decision needs a reading of its own
	}
	powerShell{scope: v}.record()
	statusShell{v}.recordMove(d)
	operationShell{v}.record(d)
	statusShell{v}.recordStatus(d, outcome)
	alongside := v.out.unbooted
	if stored { // order 3: the finalizer without a lifecycle must mean that a status was lost
		alongside = controllerutil.AddFinalizer(s, v1alpha1.FinalizerServer) || alongside
	}
	r := v.remembered()
	r.unsettled, r.awaitsBMC = !v.recorded.Settled, v.out.awaitsBMC
	if v.recorded.Settled {
		r.waits = time.Time{}
	}
	statusShell{v}.recordLabels(alongside)
}

// recordMove takes over the hardware as it is known, and the move.
func (v statusShell) recordMove(d engine.Decision) {
	out := status.Moved(v.statusInput(d, loop.Outcome{}))
	*v.server = *out.Server
	if out.Entered {
		v.remembered().enter(v.server, v.now)
	}
}

// recordStatus takes over the conditions.
func (v statusShell) recordStatus(d engine.Decision, outcome loop.Outcome) {
	reads := outcome.Progress.Reason == power.WaitsForReading && v.reading.Reachable()
	in := v.statusInput(d, outcome)
	in.Since.LastJob = v.Cache.LastJob(v.server.Name)
	r := v.remembered()
	r.reads, r.held = since(r.reads, reads, v.now), since(r.held, v.gated.Postponed, v.now)
	in.Since.Reading, in.Since.Postponed = r.reads, r.held
	v.recorded = status.Decide(in)
	*v.server = *v.recorded.Server
	v.wakeIn(v.recorded.Wake)
}

// statusInput is everything that the status is made of.
func (v statusShell) statusInput(d engine.Decision, outcome loop.Outcome) status.Input {
	in := status.Input{Observation: v.observation(), Facts: v.facts, Decision: d, Gated: v.gated, Outcome: outcome, Governance: v.governs,
		Clock: v.clock, Stated: v.stated.Stated, Reading: v.statusReading(), Withheld: v.verdict, LetThrough: v.letThrough, BootTarget: v.BootTarget}
	in.Governance.Bundle = v.bundle
	if l := v.server.Status.Lifecycle; l != nil && l.Request != nil {
		asked := v.requested()
		in.Power = status.Power{Unsolved: asked.Unsolved(), Since: asked.Since()}
	}
	return in
}

// statusReading is what the BMC said last.
func (v statusShell) statusReading() status.Reading {
	r := status.Reading{Tried: v.reading.Tried, Reachable: v.reading.Reachable(), Never: v.reading.At.IsZero(), NoTarget: v.targetErr != nil,
		Crowded: redfish.Crowded(v.reading.Err), Snapshot: v.reading.Value}
	if v.reading.Err == nil {
		return r
	}
	r.Reason = redfish.Reason(v.reading.Err)
	var missing *access.Error
	if errors.As(v.reading.Err, &missing) {
		r.Reason = missing.Reason
	}
	r.Message, r.News = access.Describe(v.reading.Err)
	if ref := v.server.Spec.BMCRef; ref != nil {
		r.Message += access.Retry(v.reading.Err, ref.Name)
	}
	return r
}

// recordLabels shows the hardware in labels, by which a plain selector asks for it: alongside another write of the metadata,
// or else while the server rests, at the pace at which a fleet changes over.
func (v statusShell) recordLabels(alongside bool) {
	s := v.server
	if s.Status.Lifecycle == nil || !alongside && !v.recorded.Settled {
		return
	}
	labels := policies.LabelsFor(s.Labels, policies.CandidateOf(s, policies.HardwareOf(v.inventory)), v.settings())
	switch {
	case maps.Equal(labels, s.Labels):
	case alongside, v.pace.resting.AllowN(v.now, 1):
		s.Labels = labels
	default:
		v.wakeIn(nextTurn())
	}
}

func (v *scope) condition(kind string, is metav1.ConditionStatus, reason, message string) {
	status.SetCondition(v.server, v.now, kind, is, reason, message)
}

func entryText(entry int64) string { return strconv.FormatInt(entry, 10) }
