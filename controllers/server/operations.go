// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/fleet"
	"github.com/metalaw/metalaw/controllers/hardware"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/internal/fieldindex"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/redfish"
)

// An operation asked for by annotation goes through these steps, each one write, so that it happens at most once:
//
//  1. it is recorded in status.operation as Pending, while the annotation still stands;
//  2. the annotation is taken away;
//  3. only now do the facts show it: a rule moves on it, or an effect records it as InProgress and carries it out;
//  4. it ends as Succeeded, Failed or Refused.

// Reasons of events about operations.
const (
	reasonOperationRefused = v1alpha1.ReasonOperationRefused
	reasonOperationUnknown = v1alpha1.ReasonUnknownOperation
)

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

// recordOperation takes in what is asked for, and ends what is done.
func (v *scope) recordOperation(d engine.Decision) {
	if v.server.Status.Lifecycle == nil || v.bundle == nil {
		return
	}
	v.endOperation(d)
	v.recordForce(d)
	asked := v.asked()
	if asked == "" {
		if _, written := v.server.Annotations[v1alpha1.OperationAnnotation]; written {
			v.note(reasonOperationUnknown, "the operation annotation names no operation")
			v.dropRequest()
		}
		return
	}
	op := v.server.Status.Operation
	if op.Active() {
		if op.State == v1alpha1.OperationPending && op.Name == asked {
			v.dropRequest()
			v.wakeIn(time.Millisecond)
			return
		}
		if op.State == v1alpha1.OperationInProgress || op.Name == asked {
			return // a second request waits until the first has ended
		}
	}
	if v.unconfirmed {
		return
	}
	if op.Active() {
		v.admitInstead(asked)
		return
	}
	v.admitOperation(asked)
}

// admitInstead takes in what is asked for while another operation could not be begun yet. The later wish takes the place of
// the earlier one, if it can be granted; one that is refused changes nothing.
func (v *scope) admitInstead(asked string) {
	former, conditions := v.server.Status.Operation, slices.Clone(v.server.Status.Conditions)
	v.admitOperation(asked)
	switch op := v.server.Status.Operation; {
	case op.ID == former.ID:
	case op.State == v1alpha1.OperationRefused:
		v.note(reasonOperationRefused, fmt.Sprintf("%s: %s; %s, which was asked for before, goes on", op.Name, op.Message, former.Name))
		v.server.Status.Operation, v.server.Status.Conditions = former, conditions // OperationDone tells of the one that goes on
	default:
		v.note(reasonOperationRefused, fmt.Sprintf("%s is not done: %s was asked for before it could be begun", former.Name, asked))
	}
}

func (v *scope) admitOperation(asked string) {
	s := v.server
	switch {
	case asked == v1alpha1.OperationRelease && v.bundle.Lifecycle.Accepts(engine.State(s.Status.State), asked):
		v.releaseByHand()
		return
	case asked == v1alpha1.OperationForce:
		v.admitForce()
		return
	case asked == v1alpha1.OperationDeclareClean:
		v.admitDeclareClean()
		return
	case v.bundle.Lifecycle.Accepts(engine.State(s.Status.State), asked):
		v.beginOperation(asked)
		return
	case otherKinds[asked] != "":
		v.note(reasonOperationRefused, asked+" is no operation of a Server: "+otherKinds[asked])
	case knownOperations[asked]:
		v.note(reasonOperationRefused, fmt.Sprintf("%s cannot be used in state %s", asked, s.Status.State)+v.insteadOf(asked))
	default:
		v.note(reasonOperationUnknown, fmt.Sprintf("there is no operation %q", asked))
	}
	v.dropRequest()
}

// insteadOf says where a release can be recorded, and how a server that cannot be released where it is gets there.
func (v *scope) insteadOf(asked string) string {
	if asked != v1alpha1.OperationRelease {
		return ""
	}
	var states []engine.State
	for _, s := range v.bundle.Lifecycle.States() {
		if v.bundle.Lifecycle.Accepts(s, asked) {
			states = append(states, s)
		}
	}
	words := "; it can in " + joined(states)
	if v.server.Status.State == v1alpha1.StateObserving {
		words += fmt.Sprintf("; a machine that was found running is taken over first, by annotation %s=%s, which may switch it off",
			v1alpha1.ConsentAnnotation, v1alpha1.ConsentTakeOver)
	}
	return words
}

// asked is the operation that the annotation asks for; empty where it asks for none.
func (v *scope) asked() string { return canonical(v.server.Annotations[v1alpha1.OperationAnnotation]) }

// beginOperation records an operation before anything is done about it.
func (v *scope) beginOperation(name string) {
	s := v.server
	s.Status.Operation = &v1alpha1.OperationStatus{ID: string(uuid.NewUUID()), Name: name, State: v1alpha1.OperationPending,
		StartedAt: metav1.NewMicroTime(v.now), Entry: s.Status.Lifecycle.Entry,
		By: s.Annotations[v1alpha1.OperationByAnnotation], Reason: s.Annotations[v1alpha1.OperationReasonAnnotation]}
	v.wakeIn(time.Millisecond)
}

// dropRequest takes the annotations of a request away.
func (v *scope) dropRequest() {
	for _, name := range []string{v1alpha1.OperationAnnotation, v1alpha1.OperationReasonAnnotation, v1alpha1.OperationByAnnotation,
		v1alpha1.ForceToAnnotation, v1alpha1.ForceOverrideAnnotation} {
		delete(v.server.Annotations, name)
	}
}

// knownOperations are the words that the wire contract knows, so that a word which cannot be used here is told from a
// word that is misspelt.
var knownOperations = map[string]bool{
	v1alpha1.OperationPark: true, v1alpha1.OperationUnpark: true, v1alpha1.OperationRetry: true, v1alpha1.OperationRelease: true,
	v1alpha1.OperationGracefulRestartServer: true, v1alpha1.OperationHardRestartServer: true,
	v1alpha1.OperationPowerCycleServer: true, v1alpha1.OperationForceOffServer: true, v1alpha1.OperationForceOnServer: true,
}

// otherKinds are the words of the wire contract that mean nothing on a Server, each with where it belongs.
var otherKinds = map[string]string{
	v1alpha1.OperationGracefulRestartBMC: "set it on the BMC that spec.bmcRef names",
	v1alpha1.OperationRotateCredentials: "it belongs on a BMC, and is not available in this version; " +
		"change the password at the BMC and in its BMCSecret",
	v1alpha1.OperationAllowInProgressDelete: inProgress,
	v1alpha1.OperationAllowInProgressUpdate: inProgress,
}

const inProgress = "it belongs on an object that applies firmware or settings to a machine, and this version does nothing about those"

// endOperation closes an operation that a move has served, or that the state entered cannot use any more.
func (v *scope) endOperation(d engine.Decision) {
	op := v.server.Status.Operation
	if !op.Active() || !d.Moves() || d.Rule == v1alpha1.RuleForced { // recordForce ends what it forces
		return
	}
	switch {
	case d.Rule == ruleAdopted:
		v.withdraw(fmt.Sprintf("policy revision %s took the server over before that; see where it is now, and ask again", v.bundle.Revision.Name))
	case v.servedBy(d):
		v.finish(v1alpha1.OperationSucceeded, fmt.Sprintf("%s moved the server to %s", d.Rule, d.To))
	case op.State == v1alpha1.OperationPending && policies.IsReset(op.Name): // it was meant for the machine as it stood then
		v.withdraw(fmt.Sprintf("%s moved the server to %s before it could be done; ask again if it is still wanted", d.Rule, d.To))
	case !v.bundle.Lifecycle.Accepts(d.To, op.Name):
		v.finish(v1alpha1.OperationFailed, fmt.Sprintf("%s moved the server to %s, where %s cannot be used", d.Rule, d.To, op.Name))
	}
}

// withdraw ends an operation that was not done, with its request where that still stands: it is not taken for a new one.
func (v *scope) withdraw(why string) {
	if v.asked() == v.server.Status.Operation.Name {
		v.dropRequest()
	}
	v.finish(v1alpha1.OperationFailed, why)
}

// servedBy says that the move was made because of the operation: without it something else would have been decided.
func (v *scope) servedBy(d engine.Decision) bool {
	without := *v.facts
	without.Operation.Name, without.Operation.Entry, without.Operation.Reset = "None", -1, false
	return v.bundle.Lifecycle.Decide(&without).Rule != d.Rule
}

func (v *scope) finish(state v1alpha1.OperationState, message string) {
	op := v.server.Status.Operation
	now := metav1.NewMicroTime(v.now)
	op.State, op.FinishedAt, op.Message = state, &now, message
	status := metav1.ConditionTrue
	if state != v1alpha1.OperationSucceeded {
		status = metav1.ConditionFalse
		op.Overrides = nil // nothing was set aside
	}
	v.condition(v1alpha1.ConditionOperationDone, status, string(state), fmt.Sprintf("%s: %s", op.Name, message))
}

// releaseByHand records the release of a claim that is gone. It is refused while the claim exists, and where nobody is
// known to have held the server.
func (v *scope) releaseByHand() {
	s := v.server
	v.beginOperation(v1alpha1.OperationRelease)
	v.dropRequest()
	op := s.Status.Operation
	switch {
	case v.holder != "":
		v.finish(v1alpha1.OperationRefused, v.holdsWords())
	case !v.hasHolder():
		v.finish(v1alpha1.OperationRefused, "nobody is known to have held this server")
	default:
		ref := s.Spec.ServerClaimRef
		letGo(s, v.now)
		s.Spec.ServerClaimRef = ref // the state that wipes clears it
		what := "the release of holder " + s.Annotations[v1alpha1.ClaimUIDAnnotation] + " was recorded by hand"
		v.finish(v1alpha1.OperationSucceeded, said(what, op.By, op.Reason))
	}
}

// holdsWords says why a claim that exists stands in the way of a release by hand. One that holds another server is not to
// be deleted for the sake of this one.
func (v *scope) holdsWords() string {
	if c := v.claim; c != nil && c.Namespace+"/"+c.Name == v.holder && c.Spec.ServerRef != nil && c.Spec.ServerRef.Name != v.server.Name {
		return fmt.Sprintf("the server names the claim %s, which names server %q and holds nothing here; "+
			"clear spec.serverClaimRef of this server instead", v.holder, c.Spec.ServerRef.Name)
	}
	return "the claim " + v.holder + " exists and holds this server; delete the claim instead"
}

// said adds to what was done who asked for it and why.
func said(what, by, reason string) string {
	if by != "" {
		what += " by " + by
	}
	if reason != "" {
		what += ": " + reason
	}
	return what
}

// readHolder asks past the cache, where a release by hand or a declaration is asked for: a claim that the cache does not show may exist.
// The holder is the claim whose UID is recorded, on the server or in the inventory; where none is recorded, any claim that
// names the server or that the server names.
func (v *scope) readHolder(ctx context.Context) error {
	if v.asked() != v1alpha1.OperationRelease && !v.declaresClean() {
		return nil
	}
	s := v.server
	recorded := s.Annotations[v1alpha1.ClaimUIDAnnotation]
	if recorded == "" && v.inventory != nil && v.inventory.Custody != nil && v.inventory.Custody.LastHolder != nil {
		recorded = string(v.inventory.Custody.LastHolder.UID)
	}
	holds := func(c *v1alpha1.ServerClaim) bool { return recorded == "" || string(c.UID) == recorded }
	var claims v1alpha1.ServerClaimList
	if err := v.Reader.List(ctx, &claims, client.MatchingFields{fieldindex.ClaimByServer: s.Name}); err != nil {
		return err
	}
	if ref := s.Spec.ServerClaimRef; ref != nil {
		claim := &v1alpha1.ServerClaim{}
		err := v.Reader.Get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, claim)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		if err == nil {
			claims.Items = append(claims.Items, *claim)
		}
	}
	for i := range claims.Items {
		if c := &claims.Items[i]; holds(c) {
			v.holder = c.Namespace + "/" + c.Name
		}
	}
	return nil
}

// resetAsAsked carries out the one reset or power change that an operation asks for. It is recorded as begun before the
// BMC is asked; one that was begun by a manager that has ended since is not repeated. One that came to be held back before
// the BMC was asked is to be begun again, and waits for that as any other.
func (v *scope) resetAsAsked(ctx context.Context) loop.Progress {
	op := v.server.Status.Operation
	if op.State == v1alpha1.OperationPending {
		return v.beginReset(ctx, op)
	}
	job, known := v.Cache.Known(v.server.Name, op.ID)
	if !known {
		v.finish(v1alpha1.OperationFailed, "interrupted; whether it was carried out cannot be told, and it is not repeated")
		return loop.Holds()
	}
	if job.State == hardware.JobFailed && postponed(job.Err) {
		op.State, op.BegunAt = v1alpha1.OperationPending, nil
		return v.beginReset(ctx, op)
	}
	return v.endReset(op, job)
}

var resetActions = map[string]redfish.PowerAction{
	v1alpha1.OperationGracefulRestartServer: redfish.ActionGracefulRestart,
	v1alpha1.OperationHardRestartServer:     redfish.ActionForceRestart,
	v1alpha1.OperationPowerCycleServer:      redfish.ActionPowerCycle,
	v1alpha1.OperationForceOffServer:        redfish.ActionForceOff,
	v1alpha1.OperationForceOnServer:         redfish.ActionOn,
}

func (v *scope) beginReset(ctx context.Context, op *v1alpha1.OperationStatus) loop.Progress {
	action, ok := resetActions[op.Name]
	if !ok {
		v.finish(v1alpha1.OperationFailed, "it asks for no reset")
		return loop.Holds()
	}
	if op.Entry != v.server.Status.Lifecycle.Entry { // it was held back until the server had moved on
		v.finish(v1alpha1.OperationFailed, "the server has moved on before it could be done; ask again if it is still wanted")
		return loop.Holds()
	}
	if v.Cache.Busy(v.server.Name) {
		return loop.Waiting("OperationWaits", "another request to the BMC to end", 0)
	}
	amountsTo := fleet.OfOperation(op.Name)
	if p, ok := v.permitted(ctx, amountsTo); !ok {
		return p
	}
	at := metav1.NewMicroTime(v.now)
	op.State, op.BegunAt = v1alpha1.OperationInProgress, &at
	fleet.Begin(v.server.Status.Lifecycle, amountsTo, at)
	return loop.Waiting("OperationRunning", op.Name+" to be accepted", 0).Then(v.afterwards(op.ID, v.reset(action), amountsTo))
}

func (v *scope) endReset(op *v1alpha1.OperationStatus, job hardware.Job) loop.Progress {
	switch job.State {
	case hardware.JobRunning:
		return loop.Waiting("OperationRunning", op.Name+" to be accepted", 0)
	case hardware.JobFailed:
		v.finish(v1alpha1.OperationFailed, loop.Shortened(words(job.Err), loop.MaxMessage))
	default:
		v.finish(v1alpha1.OperationSucceeded, "accepted by the BMC")
	}
	return loop.Holds()
}
