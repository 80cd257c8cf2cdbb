// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/bundle"
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
	case d.endPark():
	case move.Rule == v1alpha1.RuleAdopted:
		d.withdraw(fmt.Sprintf("policy revision %s took the server over before that; see where it is now, and ask again", d.Bundle.Revision.Name))
	case move.Rule == v1alpha1.RuleEntryVoided:
		d.withdraw("two agents with different keys reported for the entry, which ended it; see where the server is now, and ask again")
	case d.served():
		d.finish(v1alpha1.OperationSucceeded, fmt.Sprintf("%s moved the server to %s", move.Rule, move.To)+d.recommissioned()+d.undone())
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
	rule := d.Decision.Rule
	if rule == v1alpha1.RuleRestored { // it takes the place of the move that a rule made
		rule = d.Bundle.Lifecycle.Decide(d.Facts).Rule
	}
	return d.Bundle.Lifecycle.Decide(&without).Rule != rule
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

// canonical maps the old spelling of an operation to the present one.
func canonical(operation string) string {
	switch operation {
	case v1alpha1.OperationRetryFailedStateResource:
		return v1alpha1.OperationRetry
	case v1alpha1.OperationIgnoreReconciliation:
		return v1alpha1.OperationIgnore
	}
	return operation
}

// Asked is the operation that the annotation asks for; empty where it asks for none.
func Asked(s *v1alpha1.Server) string { return canonical(s.Annotations[v1alpha1.OperationAnnotation]) }

// pastRules says that an operation goes past the rules of the policy: the manager asks about its state itself.
func pastRules(operation string) bool {
	return operation == v1alpha1.OperationForce || operation == v1alpha1.OperationDeclareClean
}

// ByHand says that what is asked for is recorded past the rules: a forced move or a release.
func ByHand(s *v1alpha1.Server) bool {
	op := s.Status.Operation
	switch Asked(s) {
	case v1alpha1.OperationRelease, v1alpha1.OperationUndoRelease, v1alpha1.OperationSanitize, v1alpha1.OperationDecommission,
		v1alpha1.OperationRecommission, v1alpha1.OperationAttestDisk, v1alpha1.OperationProve:
		return true
	}
	return pastRules(Asked(s)) || (op.Active() && pastRules(op.Name))
}

// DeclaresClean says that the server is declared clean, asked for or recorded.
func DeclaresClean(s *v1alpha1.Server) bool {
	op := s.Status.Operation
	return Asked(s) == v1alpha1.OperationDeclareClean || (op.Active() && op.Name == v1alpha1.OperationDeclareClean)
}

// knownOperations are the words that the wire contract knows, so that a word which cannot be used here is told from a
// word that is misspelt.
var knownOperations = map[string]bool{
	v1alpha1.OperationPark: true, v1alpha1.OperationUndoRelease: true, v1alpha1.OperationSanitize: true, v1alpha1.OperationRecommission: true,
	v1alpha1.OperationUnpark: true, v1alpha1.OperationRetry: true, v1alpha1.OperationRelease: true,
	v1alpha1.OperationGracefulRestartServer: true, v1alpha1.OperationHardRestartServer: true,
	v1alpha1.OperationPowerCycleServer: true, v1alpha1.OperationForceOffServer: true, v1alpha1.OperationForceOnServer: true,
}

// otherKinds are the words of the wire contract that mean nothing on a Server, each with where it belongs.
var otherKinds = map[string]string{
	v1alpha1.OperationGracefulRestartBMC: "set it on the BMC that spec.bmcRef names",
	v1alpha1.OperationRotateCredentials: "it belongs on a BMC, and is not available in this version; " +
		"change the password at the BMC and in its BMCSecret",
	v1alpha1.OperationAllowInProgressDelete: "it allows to delete a server in maintenance, and this one is in none",
	v1alpha1.OperationAllowInProgressUpdate: "it belongs on a ServerMaintenance, whose server it allows to change",
}

// allowsDeletion says that what is asked for is nothing to do: admission reads it when a server is deleted that a maintenance has.
func allowsDeletion(s *v1alpha1.Server, asked string) bool {
	return asked == v1alpha1.OperationAllowInProgressDelete &&
		(s.Status.State == v1alpha1.StateMaintenance || s.Spec.ServerMaintenanceRef != nil)
}

// Instead says where a release can be recorded or undone, and how a server that cannot be released where it is gets there.
func Instead(b *bundle.Bundle, server *v1alpha1.Server, asked string) string {
	if asked != v1alpha1.OperationRelease && asked != v1alpha1.OperationUndoRelease {
		return ""
	}
	var states []engine.State
	for _, s := range b.Lifecycle.States() {
		if b.Lifecycle.Accepts(s, asked) {
			states = append(states, s)
		}
	}
	words := "; it can in " + joined(states)
	if asked == v1alpha1.OperationUndoRelease {
		return words + ", until a wipe is prepared: what was erased does not come back"
	}
	if server.Status.State == v1alpha1.StateObserving {
		words += fmt.Sprintf("; a machine that was found running is taken over first, by annotation %s=%s, which may switch it off",
			v1alpha1.ConsentAnnotation, v1alpha1.ConsentTakeOver)
	}
	return words
}

func joined(states []engine.State) string {
	words := make([]string, len(states))
	for i, s := range states {
		words[i] = string(s)
	}
	return strings.Join(words, ", ")
}
