// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"cmp"
	"context"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

// Options is what the rollout needs from outside. A zero field takes its default where one is named.
type Options struct {
	// Store, Shadows and Probation are required.
	Store     *Store
	Shadows   *Shadows
	Probation *Probation
	// Namespace is the manager's own; only its ConfigMaps count.
	Namespace string
	// Identity names this manager among those that run; default the host's name and something random.
	Identity string
	// Flags tells, in the Lease of this manager, how it runs: internal/running.Flags.
	Flags string
	// Client reads from the cache, Live past it; Setup takes those of the manager.
	Client client.Client
	Live   client.Reader
	// Metrics takes the metrics.
	Metrics prometheus.Registerer
	// Interval is how often servers are counted and what shadows have shown is stored; default 30 s.
	Interval time.Duration
	// Now is the clock; default time.Now.
	Now func() time.Time
}

func (o *Options) setDefaults() {
	if o.Identity == "" {
		host, err := os.Hostname()
		if err != nil || host == "" {
			host = "metalaw"
		}
		o.Identity = strings.ToLower(host) + "-" + string(uuid.NewUUID())[:8]
	}
	o.Interval = cmp.Or(o.Interval, countInterval)
	if o.Now == nil {
		o.Now = time.Now
	}
}

// Setup reads what governs, and adds to the manager what keeps it so: on every replica what follows the stored revisions,
// on the leader the controller that stores them. It fails where the stored revisions cannot be read.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	o.setDefaults()
	o.Client, o.Live = mgr.GetClient(), mgr.GetAPIReader()
	if err := o.Store.Load(ctx, o.Live); err != nil {
		return err
	}
	bundles, err := cacheOf(mgr, o.Namespace, policyv1alpha1.BundleLabel)
	if err != nil {
		return err
	}
	parts, err := cacheOf(mgr, o.Namespace, policyv1alpha1.BundlePartLabel)
	if err != nil {
		return err
	}
	follows := &replica{client: o.Client, live: o.Live, cache: mgr.GetCache(), store: o.Store, namespace: o.Namespace,
		identity: o.Identity, flags: o.Flags, now: o.Now}
	for _, runnable := range []interface{ Start(context.Context) error }{bundles, parts, follows} {
		if err := mgr.Add(runnable); err != nil {
			return err
		}
	}
	c := &reconciler{Options: o, bundles: bundles, parts: parts, recorder: mgr.GetEventRecorder("metalaw-policy")}
	if err := o.Metrics.Register(&collector{reconciler: c, reader: mgr.GetCache()}); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("policy").
		WatchesRawSource(source.Kind(bundles, &corev1.ConfigMap{}, look[*corev1.ConfigMap]())).
		WatchesRawSource(source.Kind(parts, &corev1.ConfigMap{}, look[*corev1.ConfigMap]())).
		WatchesRawSource(source.Kind(bundles, &coordinationv1.Lease{}, look[*coordinationv1.Lease](), saysOtherwise())).
		WatchesRawSource(source.Kind(mgr.GetCache(), &policyv1alpha1.PolicyRevision{}, look[*policyv1alpha1.PolicyRevision](), notOurStatus())).
		WithOptions(controller.Options{MaxConcurrentReconciles: 1}).
		Complete(c)
}

// cacheOf watches the ConfigMaps of one namespace that have a label, and the leases in which managers say what they have
// compiled; no other object is read.
func cacheOf(mgr ctrl.Manager, namespace, label string) (cache.Cache, error) {
	has := func(key string) cache.ByObject {
		var o client.ListOptions
		client.HasLabels{key}.ApplyToList(&o)
		return cache.ByObject{Namespaces: map[string]cache.Config{namespace: {LabelSelector: o.LabelSelector}}}
	}
	objects := map[client.Object]cache.ByObject{&corev1.ConfigMap{}: has(label), &coordinationv1.Lease{}: has(policyv1alpha1.ReplicaLabel)}
	return cache.New(mgr.GetConfig(), cache.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		ByObject: objects, DefaultTransform: cache.TransformStripManagedFields()})
}

// look asks for one look at everything, whatever has changed.
func look[T client.Object]() handler.TypedEventHandler[T, reconcile.Request] {
	return handler.TypedEnqueueRequestsFromMapFunc(func(context.Context, T) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: "policy"}}}
	})
}

// saysOtherwise passes leases that come, go or say something new; that they are renewed is no news.
func saysOtherwise() predicate.TypedPredicate[*coordinationv1.Lease] {
	return predicate.TypedFuncs[*coordinationv1.Lease]{UpdateFunc: func(e event.TypedUpdateEvent[*coordinationv1.Lease]) bool {
		return e.ObjectOld.Annotations[policyv1alpha1.LoadedAnnotation] != e.ObjectNew.Annotations[policyv1alpha1.LoadedAnnotation]
	}}
}

// notOurStatus passes revisions that come, go or have another promotion; their status is ours.
func notOurStatus() predicate.TypedPredicate[*policyv1alpha1.PolicyRevision] {
	return predicate.TypedFuncs[*policyv1alpha1.PolicyRevision]{UpdateFunc: func(e event.TypedUpdateEvent[*policyv1alpha1.PolicyRevision]) bool {
		return e.ObjectOld.Promotion() != e.ObjectNew.Promotion() || (e.ObjectNew.Status.Stage == "" && e.ObjectOld.Status.Stage != "")
	}}
}
