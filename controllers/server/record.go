// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/controllers/server/power"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/policies"
)

// historyLength is how many moves status.lifecycle.history keeps.
const historyLength = 10

// maxReason is what the API accepts as the reason of a move.
const maxReason = 1024

// Record implements loop.Scope.
func (v *scope) Record(d engine.Decision, outcome loop.Outcome) {
	s := v.server
	stored := s.Status.Lifecycle != nil
	if v.fresh() {
		v.memory.answered(s.Name)
	}
	v.recordHardware()
	powerShell{scope: v}.record()
	v.recordMove(d)
	v.recordStranger(d)
	v.recordRevision()
	operationShell{v}.record(d)
	reads := outcome.Progress.Reason == power.WaitsForReading && v.reading.Reachable()
	v.readsSince, v.heldSince = v.memory.waiting(s.Name, reads, v.held, v.now)
	v.recordConditions(d, outcome)
	if s.Status.Lifecycle != nil {
		s.Status.ObservedGeneration = s.Generation
	}
	alongside := v.out.unbooted
	if stored { // the finalizer without a lifecycle must mean that a status was lost
		alongside = controllerutil.AddFinalizer(s, v1alpha1.FinalizerServer) || alongside
	}
	v.recordParked()
	v.consumeConsent()
	s.Spec.Power = ""
	v.settled = outcome.Settled() && d.Halt == nil && !v.held && !d.Moves()
	v.rested = v.rests() && d.Halt == nil && !v.held && !d.Moves() && v.facts.BMC.Identity == policies.IdentitySame
	v.memory.settle(s.Name, v.settled, v.out.awaitsBMC)
	v.recordLabels(alongside)
}

// recordMove carries a move into the status: the state, one more entry, the marks and the history.
func (v *scope) recordMove(d engine.Decision) {
	s := v.server
	l := s.Status.Lifecycle
	first := l == nil
	if first && (d.Halt != nil || d.To == "") {
		return
	}
	if !first && !d.Moves() && d.Rule != ruleAdopted {
		if v.clock != nil {
			l.Clock = v.clock
		}
		return
	}
	v.recordAdopted(d)
	if first {
		l = &v1alpha1.LifecycleStatus{Marks: policies.MarksOf(v.inherited()), Entry: policies.LastEntry(v.inventory)}
		s.Status.Lifecycle = l
	}
	rule := d.Rule
	if rule == "" {
		rule = ruleStarted
	}
	now := metav1.NewMicroTime(v.now)
	from := s.Status.State
	s.Status.State = v1alpha1.ServerState(d.To)
	l.Entry++
	l.EnteredAt, l.SeenOnAt, l.BootedAt, l.Rule, l.Clock, l.Credential = now, nil, nil, rule, nil, nil
	l.Revision = v.bundle.Revision.Name
	l.Marks = d.MarksAfter(l.Marks)
	switch {
	case d.ResetRetries || d.Stable:
		l.Retries = 0
	case d.Retry:
		l.Retries++
	}
	v.memory.enter(s, v.now)
	if rule == ruleAdopted {
		from = ""
	}
	l.History = append(l.History, v1alpha1.LifecycleMove{From: from, To: s.Status.State, Rule: rule, Entry: l.Entry, At: now,
		Revision: l.Revision, Reason: loop.Shortened(v.because, maxReason)})
	if n := len(l.History); n > historyLength {
		l.History = slices.Clone(l.History[n-historyLength:])
	}
}

// recordAdopted explains a lifecycle that begins anew on a machine with a past, before it does.
func (v *scope) recordAdopted(d engine.Decision) {
	s := v.server
	inherited := v.inherited()
	switch {
	case s.Status.Lifecycle != nil && d.Rule != ruleAdopted:
		v.drop(v1alpha1.ConditionAdopted)
		return
	case s.Status.Lifecycle != nil && !v.lost:
		reason := v1alpha1.ReasonTakenFromHalt
		if v.resting != nil {
			reason = v1alpha1.ReasonRestEnded
		}
		v.condition(v1alpha1.ConditionAdopted, metav1.ConditionTrue, reason, loop.Shortened(fmt.Sprintf(
			"it goes on in %s under policy revision %s, as entry %d: no report and no wipe of the former entry counts; %s",
			d.To, v.bundle.Revision.Name, s.Status.Lifecycle.Entry+1, v.because), loop.MaxMessage))
		return
	case s.Status.Lifecycle != nil:
		v.condition(v1alpha1.ConditionAdopted, metav1.ConditionTrue, v1alpha1.ReasonFoundInState, fmt.Sprintf(
			"the policy revision %q, under which the server came to state %s, is gone; it goes on under %q with the marks that it has",
			s.Status.Lifecycle.Revision, s.Status.State, v.bundle.Revision.Name))
		return
	case s.Status.State == "" && len(inherited) == 0:
		return // seen for the first time
	}
	reason, words := v1alpha1.ReasonStatusLost, "the server has a past and no status"
	if s.Status.State != "" {
		reason, words = v1alpha1.ReasonFoundInState, fmt.Sprintf("the server was found in state %s without a record of ours", s.Status.State)
	}
	for _, i := range inherited {
		words += fmt.Sprintf("; it is taken for %s, because %s", i.Mark, i.Why)
	}
	if v.proof.Clean {
		words += "; it is not Dirty: " + v.proof.Why
	}
	v.condition(v1alpha1.ConditionAdopted, metav1.ConditionTrue, reason, words+"; nothing was done to the machine for that")
}

// recordStranger keeps in the status that a machine was seen running which is not ours, and forgets it once that is over.
// Somebody who forces a server elsewhere takes it upon himself, as far as the machine is off.
func (v *scope) recordStranger(d engine.Decision) {
	l := v.server.Status.Lifecycle
	if l == nil {
		return
	}
	mark := []string{policies.MarkStranger}
	if slices.Contains(v.facts.Lifecycle.Marks, policies.MarkStranger) && d.Rule != v1alpha1.RuleForced &&
		!slices.Contains(l.Marks, policies.MarkManaged) {
		l.Marks = engine.Decision{Marks: mark}.MarksAfter(l.Marks)
	} else {
		l.Marks = engine.Decision{Clears: mark}.MarksAfter(l.Marks)
	}
}

// recordRevision notes what governs the server: while it rests it comes under another revision by that alone.
func (v *scope) recordRevision() {
	if l := v.server.Status.Lifecycle; l != nil && v.bundle != nil {
		l.Revision = v.bundle.Revision.Name
	}
}

// consumeConsent takes the consent to manage a machine away once it has served: from when the mark Managed is stored, the
// mark lets the machine be stopped. A consent that stayed would hold as well for whoever runs the machine later.
func (v *scope) consumeConsent() {
	if v.server.Status.Lifecycle != nil && slices.Contains(v.facts.Lifecycle.Marks, policies.MarkManaged) {
		delete(v.server.Annotations, v1alpha1.ConsentAnnotation)
	}
}

// recordParked keeps the durable marker in step with the state, so that a lost status does not unpark a server.
func (v *scope) recordParked() {
	s := v.server
	if s.Status.Lifecycle == nil {
		return
	}
	_, marked := s.Annotations[v1alpha1.ParkedAnnotation]
	parked := s.Status.State == v1alpha1.StateParked
	switch {
	case parked && !marked:
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.ParkedAnnotation, "true")
	case !parked && marked:
		delete(s.Annotations, v1alpha1.ParkedAnnotation)
	}
}

func (v *scope) condition(kind string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&v.server.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: reason,
		Message: message, ObservedGeneration: v.server.Generation, LastTransitionTime: metav1.NewTime(v.now)})
}

func entryText(entry int64) string { return strconv.FormatInt(entry, 10) }
