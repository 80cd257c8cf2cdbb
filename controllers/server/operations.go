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

	"github.com/metalaw/metalaw/api/fieldindex"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/policies"
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
func (v *visit) recordOperation(d engine.Decision) {
	if v.server.Status.Lifecycle == nil || v.bundle == nil {
		return
	}
	v.endOperation(d)
	asked := canonical(v.server.Annotations[v1alpha1.OperationAnnotation])
	if asked == "" {
		return
	}
	op := v.server.Status.Operation
	if operationActive(op) {
		if op.State == v1alpha1.OperationPending && op.Name == asked {
			delete(v.server.Annotations, v1alpha1.OperationAnnotation)
			v.wakeIn(time.Millisecond)
		}
		return // a second request waits until the first has ended
	}
	v.admitOperation(asked)
}

func (v *visit) admitOperation(asked string) {
	s := v.server
	switch {
	case asked == v1alpha1.OperationRelease && v.bundle.Lifecycle.Accepts(engine.State(s.Status.State), asked):
		v.releaseByHand()
		return
	case v.bundle.Lifecycle.Accepts(engine.State(s.Status.State), asked):
		now := metav1.NewMicroTime(v.now)
		s.Status.Operation = &v1alpha1.OperationStatus{ID: string(uuid.NewUUID()), Name: asked, State: v1alpha1.OperationPending,
			StartedAt: now, Entry: s.Status.Lifecycle.Entry}
		v.wakeIn(time.Millisecond)
		return
	case knownOperations[asked]:
		v.note(true, reasonOperationRefused, fmt.Sprintf("%s cannot be used in state %s", asked, s.Status.State))
	default:
		v.note(true, reasonOperationUnknown, fmt.Sprintf("there is no operation %q", asked))
	}
	delete(s.Annotations, v1alpha1.OperationAnnotation)
}

// knownOperations are the words that the wire contract knows, so that a word which cannot be used here is told from a
// word that is misspelt.
var knownOperations = map[string]bool{
	v1alpha1.OperationPark: true, v1alpha1.OperationUnpark: true, v1alpha1.OperationRetry: true, v1alpha1.OperationRelease: true,
	v1alpha1.OperationRotateCredentials: true, v1alpha1.OperationGracefulRestartServer: true, v1alpha1.OperationHardRestartServer: true,
	v1alpha1.OperationPowerCycleServer: true, v1alpha1.OperationForceOffServer: true, v1alpha1.OperationForceOnServer: true,
	v1alpha1.OperationGracefulRestartBMC: true, v1alpha1.OperationAllowInProgressDelete: true, v1alpha1.OperationAllowInProgressUpdate: true,
}

// endOperation closes an operation that a move has served, or that the state entered cannot use any more.
func (v *visit) endOperation(d engine.Decision) {
	op := v.server.Status.Operation
	if !operationActive(op) || !d.Moves() {
		return
	}
	switch {
	case v.servedBy(d):
		v.finish(v1alpha1.OperationSucceeded, fmt.Sprintf("%s moved the server to %s", d.Rule, d.To))
	case !v.bundle.Lifecycle.Accepts(d.To, op.Name):
		v.finish(v1alpha1.OperationFailed, fmt.Sprintf("%s moved the server to %s, where %s cannot be used", d.Rule, d.To, op.Name))
	}
}

// servedBy says that the move was made because of the operation: without it something else would have been decided.
func (v *visit) servedBy(d engine.Decision) bool {
	without := *v.facts
	without.Operation.Name, without.Operation.Entry, without.Operation.Reset = "None", -1, false
	return v.bundle.Lifecycle.Decide(&without).Rule != d.Rule
}

func (v *visit) finish(state v1alpha1.OperationState, message string) {
	op := v.server.Status.Operation
	now := metav1.NewMicroTime(v.now)
	op.State, op.FinishedAt, op.Message = state, &now, message
	status := metav1.ConditionTrue
	if state != v1alpha1.OperationSucceeded {
		status = metav1.ConditionFalse
	}
	v.condition(v1alpha1.ConditionOperationDone, status, string(state), fmt.Sprintf("%s: %s", op.Name, message))
}

// releaseByHand records the release of a claim that is gone. It is refused while the claim exists, and where nobody is
// known to have held the server.
func (v *visit) releaseByHand() {
	s := v.server
	delete(s.Annotations, v1alpha1.OperationAnnotation)
	holder := s.Annotations[v1alpha1.ClaimUIDAnnotation]
	switch {
	case v.holderExists:
		v.note(true, reasonOperationRefused, "release: the claim exists; delete the claim instead")
	case holder == "" && !v.facts.Server.ClaimRefSet && !slices.Contains(s.Status.Lifecycle.Marks, policies.MarkDirty):
		v.note(true, reasonOperationRefused, "release: nobody is known to have held this server")
	default:
		if holder == "" {
			holder = "by-hand-" + string(uuid.NewUUID())
			metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.ClaimUIDAnnotation, holder)
		}
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.ReleasedClaimAnnotation, holder)
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.ReleasedAtAnnotation, v.now.UTC().Format(time.RFC3339))
		v.note(false, "ReleasedByHand", "the release of holder "+holder+" was recorded by hand")
	}
}

// readHolder asks past the cache, where a release by hand is asked for: a claim that the cache does not show may exist.
// The holder is whoever the reference names, or, where somebody has cleared that, a claim that still names the server.
func (v *visit) readHolder(ctx context.Context) error {
	if canonical(v.server.Annotations[v1alpha1.OperationAnnotation]) != v1alpha1.OperationRelease {
		return nil
	}
	holder := v.server.Annotations[v1alpha1.ClaimUIDAnnotation]
	holds := func(c *v1alpha1.ServerClaim) bool { return holder == "" || string(c.UID) == holder }
	var claims v1alpha1.ServerClaimList
	if err := v.Reader.List(ctx, &claims, client.MatchingFields{fieldindex.ClaimByServer: v.server.Name}); err != nil {
		return err
	}
	for i := range claims.Items {
		v.holderExists = v.holderExists || holds(&claims.Items[i])
	}
	ref := v.server.Spec.ServerClaimRef
	if ref == nil {
		return nil
	}
	claim := &v1alpha1.ServerClaim{}
	err := v.Reader.Get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, claim)
	v.holderExists = v.holderExists || (err == nil && holds(claim))
	return client.IgnoreNotFound(err)
}

// resetAsAsked carries out the one reset or power change that an operation asks for.
func (v *visit) resetAsAsked(ctx context.Context) loop.Progress {
	op := v.server.Status.Operation
	if op.State == v1alpha1.OperationPending {
		v.memory.begin(op.ID)
		op.State = v1alpha1.OperationInProgress
		return loop.Waiting("OperationRecorded", op.Name+" is recorded as begun", time.Millisecond)
	}
	job, known := v.Desk.Known(v.server.Name, op.ID)
	switch {
	case known:
		return v.endReset(op, job)
	case v.Desk.Busy(v.server.Name):
		return loop.Waiting("OperationWaits", "another request to the BMC to end", 0)
	}
	if p, ok := v.confirm(ctx); !ok {
		return p
	}
	if !v.memory.send(op.ID) {
		v.finish(v1alpha1.OperationFailed, "interrupted; whether it was carried out cannot be told, and it is not repeated")
		return loop.Holds()
	}
	return v.beginReset(op)
}
