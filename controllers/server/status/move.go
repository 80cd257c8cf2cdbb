// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/diag"
	"github.com/metalaw/metalaw/internal/restored"
	"github.com/metalaw/metalaw/policies"
)

// RuleStarted is the name of the move that begins a lifecycle; no bundle writes it.
const RuleStarted = "Started"

// historyLength is how many moves status.lifecycle.history keeps.
const historyLength = 10

// maxReason is what the API accepts as the reason of a move.
const maxReason = 1024

// recordMove carries a move into the status: the state, one more entry, the marks and the history.
func (r *record) recordMove() {
	s := r.s
	l := s.Status.Lifecycle
	first := l == nil
	if !enters(r.Decision, first) {
		if !first && r.Clock != nil {
			l.Clock = r.Clock
		}
		return
	}
	r.recordAdopted()
	if first {
		l = &v1alpha1.LifecycleStatus{Marks: policies.MarksOf(r.inherited()), Entry: policies.LastEntry(r.Inventory)}
		s.Status.Lifecycle = l
	}
	rule := cmp.Or(r.Decision.Rule, RuleStarted)
	now := metav1.NewMicroTime(r.Now)
	uncounted := !first && policies.HiddenAlone(r.Observation) // of the entry that it leaves
	from := s.Status.State
	s.Status.State = v1alpha1.ServerState(r.Decision.To)
	l.Entry++
	l.EnteredAt, l.SeenOnAt, l.BootedAt, l.Rule, l.Clock, l.Credential = now, nil, nil, rule, nil, nil
	l.EnteredCounted, l.SeenOnCounted = r.CountedNow.Stored(), metav1.Duration{}
	l.Revision = r.Governance.Bundle.Revision.Name
	l.Marks = r.Decision.MarksAfter(l.Marks)
	if doubt := restored.On(r.Inventory); rule == v1alpha1.RuleRestored && doubt != nil {
		l.RestoredInspection = doubt.InspectSince
	}
	l.Retries = retries(r.Decision, l.Retries)
	r.entered = true
	if rule == v1alpha1.RuleAdopted {
		from = ""
	}
	l.History = append(l.History, v1alpha1.LifecycleMove{From: from, To: s.Status.State, Rule: rule, Entry: l.Entry, At: now,
		Counted: l.EnteredCounted, Revision: l.Revision, Reason: diag.Shortened(r.Governance.Because, maxReason),
		Uncounted: s.Status.State == v1alpha1.StateError && uncounted})
	if n := len(l.History); n > historyLength {
		l.History = slices.Clone(l.History[n-historyLength:])
	}
}

// enters says that a decision makes a new entry: a move, a takeover, an inspection after a restore, or the first state.
func enters(d engine.Decision, first bool) bool {
	if first {
		return d.Halt == nil && d.To != ""
	}
	return d.Moves() || d.Rule == v1alpha1.RuleAdopted || d.Rule == v1alpha1.RuleRestored
}

// retries is how many retries there were since the last stable state.
func retries(d engine.Decision, before int32) int32 {
	switch {
	case d.ResetRetries || d.Stable:
		return 0
	case d.Retry:
		return before + 1
	}
	return before
}

// recordAdopted explains a lifecycle that begins anew on a machine with a past, before it does.
func (r *record) recordAdopted() {
	s := r.s
	inherited := r.inherited()
	switch {
	case s.Status.Lifecycle != nil && r.Decision.Rule != v1alpha1.RuleAdopted:
		r.drop(v1alpha1.ConditionAdopted)
		return
	case s.Status.Lifecycle != nil && !r.Governance.Lost:
		reason := v1alpha1.ReasonTakenFromHalt
		if r.Governance.Resting != nil {
			reason = v1alpha1.ReasonRestEnded
		}
		r.condition(v1alpha1.ConditionAdopted, metav1.ConditionTrue, reason, fmt.Sprintf(
			"it goes on in %s under policy revision %s, as entry %d: no report and no wipe of the former entry counts; %s",
			r.Decision.To, r.Governance.Bundle.Revision.Name, s.Status.Lifecycle.Entry+1, r.Governance.Because))
		return
	case s.Status.Lifecycle != nil:
		r.condition(v1alpha1.ConditionAdopted, metav1.ConditionTrue, v1alpha1.ReasonFoundInState, fmt.Sprintf(
			"the policy revision %q, under which the server came to state %s, is gone; it goes on under %q with the marks that it has",
			s.Status.Lifecycle.Revision, s.Status.State, r.Governance.Bundle.Revision.Name))
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
	if r.Proof.Clean {
		words += "; it is not Dirty: " + r.Proof.Why
	}
	r.condition(v1alpha1.ConditionAdopted, metav1.ConditionTrue, reason, words+"; nothing was done to the machine for that")
}

// recordStranger keeps in the status that a machine was seen running which is not ours, and forgets it once that is over.
// Somebody who forces a server elsewhere takes it upon himself, as far as the machine is off.
func (r *record) recordStranger() {
	l := r.s.Status.Lifecycle
	if l == nil {
		return
	}
	mark := []string{policies.MarkStranger}
	if slices.Contains(r.Facts.Lifecycle.Marks, policies.MarkStranger) && r.Decision.Rule != v1alpha1.RuleForced &&
		!slices.Contains(l.Marks, policies.MarkManaged) {
		l.Marks = engine.Decision{Marks: mark}.MarksAfter(l.Marks)
	} else {
		l.Marks = engine.Decision{Clears: mark}.MarksAfter(l.Marks)
	}
}

// recordRevision notes what governs the server: while it rests it comes under another revision by that alone.
func (r *record) recordRevision() {
	if l := r.s.Status.Lifecycle; l != nil && r.Governance.Bundle != nil {
		l.Revision = r.Governance.Bundle.Revision.Name
	}
}

// inherited are the marks with which a lifecycle of the server begins.
func (r *record) inherited() []policies.Inherited {
	return policies.Inheritance(r.s, r.Inventory, r.Proof)
}
