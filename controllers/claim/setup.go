// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/controllers/scheduler"
	"github.com/metalaw/metalaw/internal/counted"
	"github.com/metalaw/metalaw/internal/mergepatch"
	"github.com/metalaw/metalaw/internal/stored"
	"github.com/metalaw/metalaw/policies"
)

// Options is what the claim loop needs from outside.
type Options struct {
	// Scheduler is the one on the same manager.
	Scheduler *scheduler.Scheduler
	// MaxConcurrent is how many claims are reconciled side by side; 0 means 4.
	MaxConcurrent int
	// Now is the clock; time.Now where it is nil.
	Now func() time.Time
	// Counted tells counted time; nil knows none.
	Counted *counted.Clock
}

const defaultConcurrent = 4

// Setup adds the claim loop to the manager.
func Setup(mgr manager.Manager, o Options) error {
	if o.Scheduler == nil {
		return errors.New("claim: Options.Scheduler is missing; set up the scheduler first")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.MaxConcurrent == 0 {
		o.MaxConcurrent = defaultConcurrent
	}
	writer := client.WithFieldOwner(mgr.GetClient(), loop.FieldOwner)
	reconciler := newReconciler(&Subject{Client: writer, Live: mgr.GetAPIReader(), Scheduler: o.Scheduler,
		Recorder: mgr.GetEventRecorder("metalaw-claim"), Now: o.Now, Counted: o.Counted})
	return builder.ControllerManagedBy(mgr).Named("serverclaim").
		For(&v1alpha1.ServerClaim{}, builder.WithPredicates(claimChanges())).
		Watches(&v1alpha1.Server{}, serverEvents()).
		Owns(&v1alpha1.ServerBootConfiguration{}, builder.WithPredicates(bootChanges())).
		WatchesRawSource(o.Scheduler.Claims()).
		WithOptions(controller.Options{MaxConcurrentReconciles: o.MaxConcurrent}).
		Complete(reconciler)
}

func newReconciler(s *Subject) *loop.Reconciler[*v1alpha1.ServerClaim, standing] {
	return &loop.Reconciler[*v1alpha1.ServerClaim, standing]{
		Client:    s.Client,
		Subject:   s,
		New:       func() *v1alpha1.ServerClaim { return &v1alpha1.ServerClaim{} },
		Finalizer: v1alpha1.FinalizerServerClaim,
		HandsOff:  func(c *v1alpha1.ServerClaim) bool { return v1alpha1.Ignored(c) },
		Withheld:  s.withheld,
		Tell:      s.recordEvents,
		Gone:      s.turns.forget,
	}
}

// withheld warns whoever waits for a claim to go that nobody may let it go: in a condition for as long as that lasts, and once
// that is stored in an event.
func (s *Subject) withheld(ctx context.Context, c *v1alpha1.ServerClaim) error {
	message := fmt.Sprintf("The claim is being deleted, and keeps its server for as long as the annotation %s has the value %q; remove it",
		v1alpha1.OperationAnnotation, c.Annotations[v1alpha1.OperationAnnotation])
	before := c.DeepCopy()
	if meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue,
		Reason: v1alpha1.ReasonIgnored, Message: message, ObservedGeneration: c.Generation, LastTransitionTime: metav1.NewTime(s.Now())}) {
		if err := s.patchStatus(ctx, before, c); err != nil {
			return err
		}
	}
	s.Recorder.Eventf(c, nil, corev1.EventTypeWarning, v1alpha1.ReasonIgnored, "Release", "%s", message)
	return nil
}

// heeded takes back in memory what withheld said of a claim that is not left alone any more. It says whether there was
// anything to take back.
func heeded(c *v1alpha1.ServerClaim) bool {
	stalled := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionStalled)
	return stalled != nil && stalled.Reason == v1alpha1.ReasonIgnored &&
		meta.RemoveStatusCondition(&c.Status.Conditions, v1alpha1.ConditionStalled)
}

// patchStatus writes the status of a claim by itself. The list of conditions is replaced as a whole, so that the optimistic
// lock is what keeps the conditions of others.
func (s *Subject) patchStatus(ctx context.Context, before, c *v1alpha1.ServerClaim) error {
	return s.Client.Status().Patch(ctx, c, mergepatch.Locked(before))
}

// claimChanges leaves out writes of status, which are our own.
func claimChanges() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, after := e.ObjectOld, e.ObjectNew
			return before.GetGeneration() != after.GetGeneration() || before.GetUID() != after.GetUID() ||
				before.GetDeletionTimestamp().IsZero() != after.GetDeletionTimestamp().IsZero() ||
				!slices.Equal(before.GetFinalizers(), after.GetFinalizers()) ||
				!maps.Equal(before.GetAnnotations(), after.GetAnnotations())
		},
	}
}

// bootChanges leaves out what a claim's readiness does not follow from.
func bootChanges() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, okBefore := e.ObjectOld.(*v1alpha1.ServerBootConfiguration)
			after, okAfter := e.ObjectNew.(*v1alpha1.ServerBootConfiguration)
			if !okBefore || !okAfter {
				return true
			}
			return before.Generation != after.Generation || before.UID != after.UID ||
				policies.BootFactsOf(before) != policies.BootFactsOf(after) ||
				after.Status.State == v1alpha1.ServerBootConfigurationStateError && bootErrorWords(before) != bootErrorWords(after)
		},
	}
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// serverEvents wakes the claim that a server names, before or after a change.
func serverEvents() handler.EventHandler {
	wake := func(o client.Object, q queue) {
		if s, ok := o.(*v1alpha1.Server); ok && s.Spec.ServerClaimRef != nil {
			ref := s.Spec.ServerClaimRef
			q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}})
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { wake(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			before, okBefore := e.ObjectOld.(*v1alpha1.Server)
			after, okAfter := e.ObjectNew.(*v1alpha1.Server)
			if okBefore && okAfter && concernOf(before) == concernOf(after) {
				return
			}
			wake(e.ObjectOld, q)
			wake(e.ObjectNew, q)
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { wake(e.Object, q) },
	}
}

// concern is the part of a server that its claim's standing follows from.
type concern struct {
	claim, boot         v1alpha1.ObjectReference
	uid, released       string
	state               v1alpha1.ServerState
	power               v1alpha1.PowerState
	operation, progress string
	trouble, hindrance  string
	refusal             string
	unreachable, waits  string
	booted              bool
	bootedAt            int64
}

func concernOf(s *v1alpha1.Server) concern {
	c := concern{
		uid: s.Annotations[v1alpha1.ClaimUIDAnnotation], released: s.Annotations[v1alpha1.ReleasedClaimAnnotation],
		state: s.Status.State, power: s.Status.PowerState, operation: s.Annotations[v1alpha1.OperationAnnotation],
		trouble: troubleOf(s), hindrance: hindrance(s), unreachable: unreachable(s), waits: waitsFor(s), booted: policies.BootedForClaim(s),
		refusal: refusal(s),
	}
	if s.Spec.ServerClaimRef != nil {
		c.claim = *s.Spec.ServerClaimRef
	}
	if l := s.Status.Lifecycle; l != nil && l.BootedAt != nil {
		c.bootedAt = l.BootedAt.UnixMicro()
	}
	if s.Spec.BootConfigurationRef != nil {
		c.boot = *s.Spec.BootConfigurationRef
	}
	if s.Status.Operation != nil {
		c.progress = string(s.Status.Operation.State)
	}
	return c
}

// troubleOf names the condition of a server under which nothing that was observed of it counts for its claim; empty where
// there is none.
func troubleOf(s *v1alpha1.Server) string {
	for _, kind := range []string{v1alpha1.ConditionIdentityMismatch, v1alpha1.ConditionPolicyHalted} {
		if c := meta.FindStatusCondition(s.Status.Conditions, kind); c != nil && c.Status == metav1.ConditionTrue {
			return fmt.Sprintf("%s (%s)", kind, c.Reason)
		}
	}
	return ""
}

// recordEvents reports that a claim became Bound, on the claim and on its server. It is called after the write has succeeded, so that the Event
// never says what the condition does not: a server that is reserved on paper may be held back for as long as a freeze lasts.
func (s *Subject) recordEvents(ctx context.Context, before, after *v1alpha1.ServerClaim, _ standing) {
	if before.Status.Phase == v1alpha1.PhaseBound || after.Status.Phase != v1alpha1.PhaseBound || after.Spec.ServerRef == nil {
		return
	}
	s.Recorder.Eventf(after, nil, corev1.EventTypeNormal, v1alpha1.ReasonBound, "Bind", "Bound to server %s", after.Spec.ServerRef.Name)
	if server, err := stored.One[v1alpha1.Server](ctx, s.Client, "", after.Spec.ServerRef.Name); err == nil && server != nil {
		// It lies in namespace default, which more people read than may know the names of other tenants' claims.
		s.Recorder.Eventf(server, nil, corev1.EventTypeNormal, v1alpha1.ReasonBound, "Bind", "Bound to the claim that spec.serverClaimRef names")
	}
}
