// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/controllers/server/gates"
	"github.com/metalaw/metalaw/controllers/server/power"
	"github.com/metalaw/metalaw/engine"
)

// tell reports what a write changed: one event and one log line for a move, a halt, or the end of an operation. It is
// called after the write has succeeded, so that nothing is told that did not happen.
func (s *subject) tell(ctx context.Context, before, after *v1alpha1.Server, gated *gates.Output) {
	s.tellMove(ctx, before, after)
	s.tellHalt(ctx, before, after, gated.Decision)
	s.tellOperation(ctx, before, after)
	s.tellConditions(before, after)
	s.tellPower(before, after, gated.Decision)
	s.tellConsent(before, after)
}

// consentUsed: the annotation that consented to manage a machine was removed.
const consentUsed = "ConsentUsed"

// tellConsent reports that a consent has served and was taken away.
func (s *subject) tellConsent(before, after *v1alpha1.Server) {
	if before.Annotations[v1alpha1.ConsentAnnotation] == "" || after.Annotations[v1alpha1.ConsentAnnotation] != "" {
		return
	}
	s.event(after, true, consentUsed, "Record", fmt.Sprintf(
		"The machine is ours to stop from now on; annotation %s=%s was used for that and removed",
		v1alpha1.ConsentAnnotation, before.Annotations[v1alpha1.ConsentAnnotation]))
}

// event records an event about a server: a warning where it is not as it should be.
func (o *Options) event(on *v1alpha1.Server, fine bool, reason, action, note string) {
	kind := corev1.EventTypeNormal
	if !fine {
		kind = corev1.EventTypeWarning
	}
	o.Recorder.Eventf(on, nil, kind, reason, action, "%s", loop.Shortened(note, loop.MaxNote))
}

// withheld warns those who wait for a server to go that it is kept.
func (s *subject) withheld(_ context.Context, server *v1alpha1.Server) error {
	s.event(server, false, v1alpha1.ReasonIgnored, "Finalize",
		fmt.Sprintf("The server is being deleted. It stays until the annotation %s is removed", v1alpha1.IgnoredBy(server)))
	return nil
}

func (s *subject) tellMove(ctx context.Context, before, after *v1alpha1.Server) {
	l := after.Status.Lifecycle
	s.tellRevision(ctx, before, after)
	if l == nil || (before.Status.Lifecycle != nil && before.Status.Lifecycle.Entry == l.Entry) {
		return
	}
	from, to := string(before.Status.State), string(after.Status.State)
	s.Metrics.transitions.WithLabelValues(l.Rule, from, to).Inc()
	note := fmt.Sprintf("moved from %s to %s (entry %d, revision %s)", cmp.Or(from, "no state"), to, l.Entry, l.Revision)
	if from == to {
		note = fmt.Sprintf("goes on in %s (entry %d, revision %s): %s", to, l.Entry, l.Revision, l.History[len(l.History)-1].Reason)
	}
	s.event(after, after.Status.State != v1alpha1.StateError, l.Rule, "Move", note)
	logf.FromContext(ctx).Info("moved", "from", before.Status.State, "to", after.Status.State,
		"rule", l.Rule, "entry", l.Entry, "revision", l.Revision)
}

// tellRevision counts a server that came under another revision. There is no event for it: a fleet that changes over would
// write as many again.
func (s *subject) tellRevision(ctx context.Context, before, after *v1alpha1.Server) {
	was, l := before.Status.Lifecycle, after.Status.Lifecycle
	if was == nil || l == nil || was.Revision == "" || was.Revision == l.Revision {
		return
	}
	from := "rest"
	if isHalted(before) {
		from = "halt"
	}
	s.Metrics.adoptions.WithLabelValues(from).Inc()
	logf.FromContext(ctx).Info("came under another revision", "from", from, "state", after.Status.State, "entry", l.Entry,
		"former", was.Revision, "revision", l.Revision)
}

func (s *subject) tellHalt(ctx context.Context, before, after *v1alpha1.Server, d engine.Decision) {
	if d.Halt == nil {
		return
	}
	was := meta.FindStatusCondition(before.Status.Conditions, v1alpha1.ConditionPolicyHalted)
	now := meta.FindStatusCondition(after.Status.Conditions, v1alpha1.ConditionPolicyHalted)
	if now == nil || (was != nil && was.Message == now.Message) {
		return
	}
	s.Metrics.halts.WithLabelValues(string(d.Halt.Cause), d.Halt.Rule).Inc()
	s.event(after, false, v1alpha1.ConditionPolicyHalted, "Decide", now.Message)
	logf.FromContext(ctx).Info("halted", "state", after.Status.State, "cause", d.Halt.Cause, "rule", d.Halt.Rule, "message", d.Halt.Message)
}

func (s *subject) tellOperation(ctx context.Context, before, after *v1alpha1.Server) {
	op, was := after.Status.Operation, before.Status.Operation
	if op == nil || op.FinishedAt == nil {
		return
	}
	if was != nil && was.ID == op.ID && was.FinishedAt != nil {
		return // it was told when it ended
	}
	s.event(after, op.State == v1alpha1.OperationSucceeded, "Operation"+string(op.State), "Operate", op.Name+": "+op.Message)
	logf.FromContext(ctx).Info("operation ended", "operation", op.Name, "id", op.ID, "state", op.State, "message", op.Message)
}

// tellConditions reports the conditions that a person has to act on, when they come and when they go.
func (s *subject) tellConditions(before, after *v1alpha1.Server) {
	for _, kind := range []string{v1alpha1.ConditionClaimMissing, v1alpha1.ConditionIdentityMismatch} {
		was := meta.IsStatusConditionTrue(before.Status.Conditions, kind)
		now := meta.FindStatusCondition(after.Status.Conditions, kind)
		if now != nil && !was {
			s.event(after, false, kind, "Observe", now.Message)
		}
	}
	s.tellUnbooted(before, after)
	was := meta.FindStatusCondition(before.Status.Conditions, v1alpha1.ConditionBMCReachable)
	now := meta.FindStatusCondition(after.Status.Conditions, v1alpha1.ConditionBMCReachable)
	if now == nil || was == nil || was.Status == now.Status {
		return
	}
	answers, reason := now.Status == "True", "BMCAnswers"
	if !answers {
		reason = "BMCUnreachable"
	}
	s.event(after, answers, reason, "Observe", now.Reason+": "+now.Message)
}

// tellUnbooted reports why a machine is not booted: its BMC ignores the boot override, or the API server refuses an object.
func (s *subject) tellUnbooted(before, after *v1alpha1.Server) {
	was := meta.FindStatusCondition(before.Status.Conditions, v1alpha1.ConditionReady)
	now := meta.FindStatusCondition(after.Status.Conditions, v1alpha1.ConditionReady)
	if now == nil || was != nil && was.Reason == now.Reason {
		return
	}
	switch now.Reason {
	case power.OverrideIgnored:
		s.event(after, false, now.Reason, "PowerOn", now.Message)
	case v1alpha1.ReasonBootConfigurationRefused, v1alpha1.ReasonWriteRefused:
		s.event(after, false, now.Reason, "Write", now.Message)
	}
}

// report tells what was refused in a reconcile, and how the server fares.
func (v *scope) report(context.Context) {
	if v.Probation != nil {
		v.Probation.Saw(v.server, v.recorded.Rested)
	}
	for _, n := range slices.Concat(v.x.notes, v.recorded.Notes) {
		v.event(v.server, n.Fine, n.Reason, "Operate", n.Message)
	}
}

// tellPower reports what an event tells of the power of a machine.
func (s *subject) tellPower(before, after *v1alpha1.Server, d engine.Decision) {
	for _, n := range power.Told(before, after, d.Effects) {
		s.event(after, n.Fine, n.Reason, "Power", n.Message)
	}
}
