// SPDX-License-Identifier: Apache-2.0

// Package restored keeps the doubt about servers after a restore of the cluster's store, and notices a restore by itself
// where a manager ran on through it.
package restored

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/controllers/restored/doubt"
	"github.com/metalaw/metalaw/internal/fieldindex"
	"github.com/metalaw/metalaw/internal/mergepatch"
	"github.com/metalaw/metalaw/internal/restored"
	"github.com/metalaw/metalaw/internal/stored"
	"github.com/metalaw/metalaw/internal/uuids"
)

// Options is what the package needs from outside.
type Options struct {
	// Interval is the time between two looks at the store; default 30 s.
	Interval time.Duration
	// Metrics takes the metrics.
	Metrics prometheus.Registerer
	// Now is the clock; default time.Now.
	Now func() time.Time
}

// Setup adds to the manager the controller that keeps doubts, and the watch on the store. The watch runs on every replica: each
// remembers what it heard, and a restore does not reach its memory.
func Setup(mgr manager.Manager, o Options) error {
	if o.Interval == 0 {
		o.Interval = interval
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	c := client.WithFieldOwner(mgr.GetClient(), loop.FieldOwner)
	w := newWatch(c, mgr.GetAPIReader(), mgr.GetEventRecorder("metalaw-restored"), o.Interval)
	if err := o.Metrics.Register(w.frozen); err != nil {
		return err
	}
	if err := mgr.Add(w); err != nil {
		return err
	}
	r := &keeper{client: c, live: mgr.GetAPIReader(), now: o.Now}
	return builder.ControllerManagedBy(mgr).Named("restored").
		Watches(&v1alpha1.Server{}, handler.EnqueueRequestsFromMapFunc(r.ofServer)).
		Watches(&policyv1alpha1.ServerInventory{}, handler.EnqueueRequestsFromMapFunc(r.ofInventory)).
		Complete(reconcile.Func(r.keep))
}

// keeper brings the annotation of a server and its inventory together.
type keeper struct {
	client client.Client
	live   client.Reader
	now    func() time.Time
}

// ofServer asks for a server that bears a doubt, or whose machine does: a Server made anew bears none at first.
func (r *keeper) ofServer(ctx context.Context, o client.Object) []reconcile.Request {
	s, is := o.(*v1alpha1.Server)
	if !is {
		return nil
	}
	_, marked := s.Annotations[v1alpha1.RestoredDoubtAnnotation]
	for _, name := range uuids.Spellings(s.Spec.SystemUUID) {
		inventory := &policyv1alpha1.ServerInventory{}
		marked = marked || r.client.Get(ctx, types.NamespacedName{Name: name}, inventory) == nil && restored.On(inventory) != nil
	}
	if !marked {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: s.Name}}}
}

// ofInventory finds the servers of a machine in doubt.
func (r *keeper) ofInventory(ctx context.Context, o client.Object) []reconcile.Request {
	inventory, is := o.(*policyv1alpha1.ServerInventory)
	if !is || restored.On(inventory) == nil {
		return nil
	}
	var requests []reconcile.Request
	for _, name := range uuids.Spellings(inventory.Name) {
		var servers v1alpha1.ServerList
		if err := r.client.List(ctx, &servers, client.MatchingFields{fieldindex.ServerBySystemUUID: name}); err != nil {
			return nil // the cache answers from memory; it fails only while the manager stops
		}
		for i := range servers.Items {
			requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Name: servers.Items[i].Name}})
		}
	}
	return requests
}

// keep reads past the cache: a doubt that the cache shows may have ended.
func (r *keeper) keep(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	s := &v1alpha1.Server{}
	if err := r.live.Get(ctx, req.NamespacedName, s); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !s.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	inventory, err := stored.Inventory(ctx, r.live, s.Spec.SystemUUID)
	if err != nil {
		return ctrl.Result{}, err
	}
	step := doubt.Next(s, inventory, metav1.NewMicroTime(r.now()))
	if step.Inventory {
		err = r.writeInventory(ctx, s, inventory, step)
	}
	if err == nil && step.Server {
		err = r.writeServer(ctx, s, step.Annotation)
	}
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return ctrl.Result{RequeueAfter: conflictPause}, nil
	}
	return ctrl.Result{}, client.IgnoreNotFound(err)
}

// conflictPause is when to look again at what another writer changed.
const conflictPause = 200 * time.Millisecond

func (r *keeper) writeInventory(ctx context.Context, s *v1alpha1.Server, inventory *policyv1alpha1.ServerInventory, step doubt.Step) error {
	if inventory == nil {
		if step.Doubt == nil {
			return nil
		}
		return r.client.Create(ctx, &policyv1alpha1.ServerInventory{ObjectMeta: metav1.ObjectMeta{Name: s.Spec.SystemUUID},
			Spec:    policyv1alpha1.ServerInventorySpec{SystemUUID: s.Spec.SystemUUID},
			Custody: &policyv1alpha1.Custody{ServerName: s.Name, Doubt: step.Doubt}})
	}
	before := inventory.DeepCopy()
	if inventory.Custody == nil {
		inventory.Custody = &policyv1alpha1.Custody{ServerName: s.Name}
	}
	inventory.Custody.Doubt = step.Doubt
	if step.Forget {
		inventory.Custody.Clean = nil
	}
	if equality.Semantic.DeepEqual(before, inventory) {
		return nil
	}
	return r.client.Patch(ctx, inventory, mergepatch.Locked(before))
}

func (r *keeper) writeServer(ctx context.Context, s *v1alpha1.Server, value string) error {
	before := s.DeepCopy()
	if value == "" {
		for _, name := range []string{v1alpha1.RestoredDoubtAnnotation, v1alpha1.RestoredReasonAnnotation, v1alpha1.RestoredByAnnotation} {
			delete(s.Annotations, name)
		}
	} else {
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.RestoredDoubtAnnotation, value)
	}
	return r.client.Patch(ctx, s, mergepatch.Locked(before))
}
