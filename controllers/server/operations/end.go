// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/policies"
)

// end closes an operation that a move has served, or that the state entered cannot use any more.
func (d *decision) end() {
	move := d.Decision
	op := d.server.Status.Operation
	if !op.Active() || !move.Moves() || move.Rule == v1alpha1.RuleForced { // recordForce ends what it forces
		return
	}
	switch {
	case move.Rule == v1alpha1.RuleAdopted:
		d.withdraw(fmt.Sprintf("policy revision %s took the server over before that; see where it is now, and ask again", d.Bundle.Revision.Name))
	case d.served():
		d.finish(v1alpha1.OperationSucceeded, fmt.Sprintf("%s moved the server to %s", move.Rule, move.To))
	case op.State == v1alpha1.OperationPending && policies.IsReset(op.Name): // it was meant for the machine as it stood then
		d.withdraw(fmt.Sprintf("%s moved the server to %s before it could be done; ask again if it is still wanted", move.Rule, move.To))
	case !d.Bundle.Lifecycle.Accepts(move.To, op.Name):
		d.finish(v1alpha1.OperationFailed, fmt.Sprintf("%s moved the server to %s, where %s cannot be used", move.Rule, move.To, op.Name))
	}
}

// withdraw ends an operation that was not done, with its request where that still stands: it is not taken for a new one.
func (d *decision) withdraw(why string) {
	if Asked(d.server) == d.server.Status.Operation.Name {
		d.dropRequest()
	}
	d.finish(v1alpha1.OperationFailed, why)
}

// served says that the move was made because of the operation: without it something else would have been decided.
func (d *decision) served() bool {
	without := *d.Facts
	without.Operation.Name, without.Operation.Entry, without.Operation.Reset = "None", -1, false
	return d.Bundle.Lifecycle.Decide(&without).Rule != d.Decision.Rule
}

func (d *decision) finish(state v1alpha1.OperationState, message string) {
	finish(d.server, state, message, d.Now)
}

// finish ends the operation of a server.
func finish(s *v1alpha1.Server, state v1alpha1.OperationState, message string, at time.Time) {
	op, now := s.Status.Operation, metav1.NewMicroTime(at)
	op.State, op.FinishedAt, op.Message = state, &now, message
	status := metav1.ConditionTrue
	if state != v1alpha1.OperationSucceeded {
		status = metav1.ConditionFalse
		op.Overrides = nil // nothing was set aside
	}
	meta.SetStatusCondition(&s.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionOperationDone, Status: status, Reason: string(state),
		Message: fmt.Sprintf("%s: %s", op.Name, message), ObservedGeneration: s.Generation, LastTransitionTime: metav1.NewTime(at)})
}

// releaseByHand records the release of a claim that is gone. It is refused while the claim exists, and where nobody is
// known to have held the server.
func (d *decision) releaseByHand() {
	s := d.server
	d.beginOperation(v1alpha1.OperationRelease)
	d.dropRequest()
	op := s.Status.Operation
	switch {
	case d.Holder != "":
		d.finish(v1alpha1.OperationRefused, d.holdsWords())
	case !hasHolder(d.server):
		d.finish(v1alpha1.OperationRefused, "nobody is known to have held this server")
	default:
		ref := s.Spec.ServerClaimRef
		letGo(s, d.Now, d.NewID)
		s.Spec.ServerClaimRef = ref // the state that wipes clears it
		what := "the release of holder " + s.Annotations[v1alpha1.ClaimUIDAnnotation] + " was recorded by hand"
		d.finish(v1alpha1.OperationSucceeded, said(what, op.By, op.Reason))
	}
}

// holdsWords says why a claim that exists stands in the way of a release by hand. One that holds another server is not to
// be deleted for the sake of this one.
func (d *decision) holdsWords() string {
	if c := d.Claim; c != nil && c.Namespace+"/"+c.Name == d.Holder && c.Spec.ServerRef != nil && c.Spec.ServerRef.Name != d.server.Name {
		return fmt.Sprintf("the server names the claim %s, which names server %q and holds nothing here; "+
			"clear spec.serverClaimRef of this server instead", d.Holder, c.Spec.ServerRef.Name)
	}
	return "the claim " + d.Holder + " exists and holds this server; delete the claim instead"
}
