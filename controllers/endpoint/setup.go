// SPDX-License-Identifier: Apache-2.0

// Package endpoint recognises devices on the management network by their MAC addresses, makes sure that those which
// should be BMCs are, and makes BMC objects of them.
package endpoint

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/controllers/trigger"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/redfish"
)

// Bundles knows the policy in force.
type Bundles interface {
	// Active is never nil.
	Active() *bundle.Bundle
}

// Options is what the controller needs from outside. A zero field takes its default where one is named.
type Options struct {
	// Client reads from the cache, Reader past it, and Recorder takes events; Setup takes those of the manager.
	Client   client.Client
	Reader   client.Reader
	Recorder events.EventRecorder
	// Bundles is required.
	Bundles Bundles
	// Clients is the pool of BMC clients; required.
	Clients Clients
	// Namespace is the manager's: Secrets with default credentials live there.
	Namespace string
	// CABundle is trusted instead of the system's certificates; PEM, may be empty.
	CABundle []byte

	probe func(ctx context.Context, endpoint redfish.Endpoint) error
	now   func() time.Time
}

const (
	// coolDown is how long refused default credentials are not tried again.
	coolDown = 12 * time.Hour
	// timeout bounds asking one device.
	timeout = 2 * time.Minute
	// concurrent is the number of reconciles side by side.
	concurrent = 4
)

func (o Options) withDefaults() Options {
	if o.probe == nil && o.Clients != nil {
		o.probe = o.Clients.Probe
	}
	if o.now == nil {
		o.now = time.Now
	}
	return o
}

// Setup adds the controller to the manager. The field indexes must be registered.
func Setup(mgr ctrl.Manager, o Options) error {
	o = o.withDefaults()
	o.Client, o.Reader = client.WithFieldOwner(mgr.GetClient(), loop.FieldOwner), mgr.GetAPIReader()
	o.Recorder = mgr.GetEventRecorder("metalaw-endpoint")
	requeued := &trigger.Source{}
	s := &subject{Options: o, prober: newProber(o, requeued.Trigger)}
	if err := mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		<-ctx.Done()
		s.prober.Close()
		return nil
	})); err != nil {
		return err
	}
	if policy, ok := o.Bundles.(interface{ Changed(call func()) }); ok { // the watch below may come before the policy is in force here
		policy.Changed(func() {
			for _, request := range s.unsettled(context.Background(), nil) {
				requeued.Add(request)
			}
		})
	}
	asked := predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{})
	return ctrl.NewControllerManagedBy(mgr).
		Named("endpoint").
		For(&v1alpha1.Endpoint{}, builder.WithPredicates(asked)).
		Watches(&v1alpha1.BMC{}, handler.EnqueueRequestsFromMapFunc(ofBMC), builder.WithPredicates(comesOrGoes)).
		Watches(&v1alpha1.BMCSecret{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(comesOrGoes)).
		Watches(&policyv1alpha1.PolicyRevision{}, handler.EnqueueRequestsFromMapFunc(s.unsettled), builder.WithPredicates(activated)).
		WatchesRawSource(requeued).
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrent}).
		Complete(s.reconciler())
}

func (s *subject) reconciler() reconcile.Reconciler {
	return &loop.Reconciler[*v1alpha1.Endpoint, verdict]{
		Client: s.Client, Subject: s, Finalizer: v1alpha1.FinalizerEndpoint, Tell: s.recordEvents, Withheld: s.withheld,
		HandsOff: func(e *v1alpha1.Endpoint) bool { return v1alpha1.Ignored(e) },
		New:      func() *v1alpha1.Endpoint { return &v1alpha1.Endpoint{} },
	}
}

// withheld warns whoever waits for an endpoint to go that nobody may let it go.
func (s *subject) withheld(_ context.Context, e *v1alpha1.Endpoint) error {
	s.Recorder.Eventf(e, nil, corev1.EventTypeWarning, v1alpha1.ReasonIgnored, "Finalize",
		"The endpoint is being deleted, and stays with its BMC for as long as the annotation %s has the value %q; remove it",
		v1alpha1.OperationAnnotation, e.Annotations[v1alpha1.OperationAnnotation])
	return nil
}

// comesOrGoes lets through what exists or no longer exists; how it changes is of no concern here.
var comesOrGoes = predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }}

// activated lets a policy through when it begins to govern: its prefixes may know devices that the former did not.
var activated = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	DeleteFunc: func(event.DeleteEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool { return !governs(e.ObjectOld) && governs(e.ObjectNew) },
}

func governs(o client.Object) bool {
	r, ok := o.(*policyv1alpha1.PolicyRevision)
	return ok && meta.IsStatusConditionTrue(r.Status.Conditions, policyv1alpha1.ConditionActive)
}

// ofBMC wakes the endpoint that the BMC is reached by, and the one of its name, which may wait for the name.
func ofBMC(_ context.Context, o client.Object) []reconcile.Request {
	requests := []reconcile.Request{request(o.GetName())}
	if b, ok := o.(*v1alpha1.BMC); ok && b.Spec.EndpointRef != nil && b.Spec.EndpointRef.Name != b.Name {
		requests = append(requests, request(b.Spec.EndpointRef.Name))
	}
	return requests
}

func request(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
}

// unsettled lists the endpoints that became no BMC: those may do so under another policy.
func (s *subject) unsettled(ctx context.Context, _ client.Object) []reconcile.Request {
	var list v1alpha1.EndpointList
	if err := s.Client.List(ctx, &list); err != nil {
		log.FromContext(ctx).Error(err, "cannot list the endpoints that another policy may know")
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		if !meta.IsStatusConditionTrue(list.Items[i].Status.Conditions, v1alpha1.ConditionReady) {
			requests = append(requests, request(list.Items[i].Name))
		}
	}
	return requests
}

// recordEvents reports what became of an endpoint, once for each change.
func (s *subject) recordEvents(ctx context.Context, before, after *v1alpha1.Endpoint, _ verdict) {
	was := meta.FindStatusCondition(before.Status.Conditions, v1alpha1.ConditionReady)
	is := meta.FindStatusCondition(after.Status.Conditions, v1alpha1.ConditionReady)
	if is == nil || was != nil && was.Reason == is.Reason && was.Status == is.Status {
		return
	}
	kind := "Warning"
	if is.Status == metav1.ConditionTrue || is.Reason == v1alpha1.ReasonUnknownPrefix || is.Reason == v1alpha1.ReasonNotABMC {
		kind = "Normal"
	}
	s.Recorder.Eventf(after, nil, kind, is.Reason, EffectEnsureBMC, "%s", loop.Shortened(is.Message, loop.MaxNote))
	log.FromContext(ctx).Info("endpoint decided", "endpoint", after.Name, "mac", after.Spec.MACAddress, "reason", is.Reason, "message", is.Message)
}
