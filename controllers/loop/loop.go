// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/metalaw/metalaw/controllers/trigger"
	"github.com/metalaw/metalaw/internal/mergepatch"
	"github.com/metalaw/metalaw/internal/stored"
)

// Reconciler runs one kind.
type Reconciler[T client.Object, D any] struct {
	Client  client.Client
	Subject Subject[T, D]
	// New makes an empty object of the kind.
	New func() T
	// Finalizer is taken away once Finalize is done; empty for a kind without one.
	Finalizer string
	// Tell reports the difference between the object before and after a patch that succeeded: events, metrics, the log.
	Tell func(ctx context.Context, before, after T, decision D)
	// HandsOff says that the object is to be left alone: nothing is decided or done about it, and nothing is written to it but
	// what Withheld has to say.
	HandsOff func(T) bool
	// Withheld reports an object that is being deleted and is kept by our finalizer because HandsOff says so. It is called
	// until it succeeds, and then not again in the life of this process. May be nil.
	Withheld func(ctx context.Context, object T) error
	// Gone forgets what is remembered of an object that does not exist any more. May be nil.
	Gone func(name types.NamespacedName)
	// Observed carries a new generation into a status that spoke of the former one, when our own change of the spec made
	// it. May be nil for a kind whose spec we do not change.
	Observed func(object T, former, now int64)
	// Defers is how long what differs in the status may wait for another write; 0 where it is worth one now. It is asked
	// after the write of metadata and spec, where Outcome.MayWait says so and nothing is requested. May be nil.
	Defers func(before, after T) time.Duration

	withheld sync.Map // the UID that was reported, by name
	ended    sync.Map // the UID of what we let go, by name, until the cache shows that it is gone
	written  sync.Map // the resourceVersion of our last write, by name, until the cache shows it
}

// Reconcile implements reconcile.Reconciler. It reads the object from the cache; a stale read is caught by the
// optimistic lock of the patch. What is cut off because the manager stops is no error: the next one looks at everything.
func (r *Reconciler[T, D]) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	result, err := r.look(ctx, req)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return ctrl.Result{}, nil
	}
	return result, err
}

// look is one reconcile of the object.
func (r *Reconciler[T, D]) look(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	object := r.New()
	if err := r.Client.Get(ctx, req.NamespacedName, object); err != nil {
		if apierrors.IsNotFound(err) {
			r.withheld.Delete(req.NamespacedName)
			r.written.Delete(req.NamespacedName)
			r.ended.Delete(req.NamespacedName)
			if r.Gone != nil {
				r.Gone(req.NamespacedName)
			}
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if r.behind(req.NamespacedName, object) {
		return ctrl.Result{RequeueAfter: cacheLag}, nil // the cache's own event comes first, as a rule
	}
	if r.HandsOff != nil && r.HandsOff(object) {
		return retry(r.withhold(ctx, req, object))
	}
	r.withheld.Delete(req.NamespacedName)
	before := copyOf(object)
	scope, err := r.Subject.Observe(ctx, object)
	if err != nil {
		return retry(fmt.Errorf("observe: %w", err))
	}
	if !object.GetDeletionTimestamp().IsZero() {
		return r.finalize(ctx, scope, before, object)
	}
	decision := scope.Decide()
	outcome := scope.Apply(ctx, decision)
	deferred, err := r.write(ctx, outcome.MayWait && len(outcome.Requests) == 0, before, object)
	if err != nil {
		return retry(client.IgnoreNotFound(err)) // the object is gone, and so is everything that it waited for
	}
	for _, request := range outcome.Requests { // order 1: the record of each is stored now, and was not before
		request()
	}
	if r.Tell != nil {
		r.Tell(ctx, before, object, decision)
	}
	for _, report := range outcome.Reports {
		report(ctx)
	}
	outcome.Again = trigger.Earlier(outcome.Again, deferred)
	return next(outcome)
}

// cacheLag is when to look again at an object of which the cache does not show our last write yet.
const cacheLag = time.Second

// behind says that the cache does not show our last write yet. What would be decided on that would be refused by the
// optimistic lock, or find nothing any more.
func (r *Reconciler[T, D]) behind(name types.NamespacedName, object T) bool {
	if uid, ok := r.ended.Load(name); ok && uid == object.GetUID() {
		return true
	}
	last, _ := r.written.Load(name)
	if written, ok := last.(string); ok && stored.Older(object, written) {
		return true
	}
	r.written.Delete(name)
	return false
}

// withhold reports an object that cannot go while nobody may touch it.
func (r *Reconciler[T, D]) withhold(ctx context.Context, req ctrl.Request, object T) error {
	if r.Withheld == nil || object.GetDeletionTimestamp().IsZero() || r.Finalizer == "" ||
		!controllerutil.ContainsFinalizer(object, r.Finalizer) {
		return nil
	}
	uid := object.GetUID()
	if told, _ := r.withheld.Load(req.NamespacedName); told == uid {
		return nil
	}
	if err := r.Withheld(ctx, object); err != nil {
		return client.IgnoreNotFound(err)
	}
	r.withheld.Store(req.NamespacedName, uid)
	return nil
}

func (r *Reconciler[T, D]) finalize(ctx context.Context, scope Scope[D], before, object T) (ctrl.Result, error) {
	if r.Finalizer == "" || !controllerutil.ContainsFinalizer(object, r.Finalizer) {
		return ctrl.Result{}, nil
	}
	progress := scope.Finalize(ctx)
	if progress.Err != nil {
		return retry(progress.Err)
	}
	if progress.Phase == Done {
		controllerutil.RemoveFinalizer(object, r.Finalizer)
	}
	if _, err := r.write(ctx, false, before, object); err != nil {
		return retry(client.IgnoreNotFound(err))
	}
	return again(progress.Again), nil
}

// write patches what changed: metadata and spec first, then status (order 7), each at most once and under the optimistic lock.
// A status that mayWait and is deferred is left for the next time; deferred is how long it may wait.
func (r *Reconciler[T, D]) write(ctx context.Context, mayWait bool, before, object T) (deferred time.Duration, err error) {
	wanted := copyOf(object)
	base := copyOf(before)
	if mainChanged(before, wanted) {
		if err := r.Client.Patch(ctx, object, mergepatch.Locked(base)); err != nil {
			return 0, err
		}
		version, generation := object.GetResourceVersion(), object.GetGeneration()
		if len(object.GetFinalizers()) == 0 && !object.GetDeletionTimestamp().IsZero() {
			r.ended.Store(client.ObjectKeyFromObject(object), object.GetUID())
			return 0, nil // the object is gone
		}
		base.SetResourceVersion(version)
		wanted.SetResourceVersion(version)
		if former := wanted.GetGeneration(); former != generation && r.Observed != nil {
			r.Observed(wanted, former, generation)
		}
		wanted.SetGeneration(generation)
	}
	changed := statusChanged(before, wanted)
	if changed && mayWait && r.Defers != nil {
		deferred = r.Defers(before, wanted)
	}
	if changed && deferred == 0 {
		if err := r.Client.Status().Patch(ctx, wanted, mergepatch.Locked(base)); err != nil {
			return 0, err
		}
	}
	assign(object, wanted)
	if version := object.GetResourceVersion(); version != before.GetResourceVersion() {
		r.written.Store(client.ObjectKeyFromObject(object), version)
	}
	return deferred, nil
}

// retry turns a lost race into a prompt second look; it is no error. That something was not found is one: only the caller
// knows whether it was the object itself. The queue comes back to an error, so that no deadline is lost with it.
func retry(err error) (ctrl.Result, error) {
	if err == nil {
		return ctrl.Result{}, nil
	}
	if apierrors.IsConflict(err) {
		return again(50 * time.Millisecond), nil
	}
	priority := ordinary // the queue keeps the one that it had otherwise
	return ctrl.Result{Priority: &priority}, err
}

// next is the earliest of the moments at which the object is to be looked at again.
func next(outcome Outcome) (ctrl.Result, error) {
	if outcome.Progress.Err != nil {
		return retry(outcome.Progress.Err)
	}
	return again(trigger.Earlier(outcome.Again, outcome.Progress.Again)), nil
}

// again has an object looked at again. Where that is at once, because what was done was one step of several, it goes ahead of those
// that wait for their first: what is begun is ended before more is begun, so that under load many are done early instead of all
// late, and fewer have to be told meanwhile how far they are.
func again(after time.Duration) ctrl.Result {
	if after == 0 {
		return ctrl.Result{} // something else wakes it
	}
	priority := ordinary
	if after <= atOnce {
		priority = underWay
	}
	return ctrl.Result{RequeueAfter: jittered(after), Priority: &priority}
}

const (
	// atOnce is the longest wait of who only has to be looked at again.
	atOnce = 10 * time.Millisecond
	// ordinary is the priority in the queue of what a watch wakes, underWay that of what is in the middle of something.
	ordinary, underWay = 0, trigger.UnderWay
)

// jittered adds up to a tenth, so that servers that were woken together do not stay together.
func jittered(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return d + rand.N(d/10+time.Nanosecond)
}

func copyOf[T client.Object](object T) T {
	copied, ok := object.DeepCopyObject().(T)
	if !ok {
		return object // cannot happen: DeepCopyObject returns its own type
	}
	return copied
}
