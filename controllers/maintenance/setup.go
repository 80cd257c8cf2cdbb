// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/fleet"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/controllers/maintenance/hold"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/maintenance"
	"github.com/metalaw/metalaw/internal/counted"
)

// Mode is what the manager does with maintenances.
type Mode string

// The modes.
const (
	// Off answers a maintenance that nothing grants it.
	Off Mode = "off"
	// Plan says of each maintenance what On would do, and does nothing.
	Plan Mode = "plan"
	// On grants maintenances.
	On Mode = "on"
)

// Modes are all modes, the mildest first.
func Modes() []Mode { return []Mode{Off, Plan, On} }

// Bundles knows the bundle in force, whether it is held, and tells when it has become another.
type Bundles interface {
	Active() *bundle.Bundle
	Held(name string) (why string, held bool)
	Changed(call func())
}

// Options are what the controller needs from outside.
type Options struct {
	// Mode is Off where it is empty.
	Mode    Mode
	Bundles Bundles
	Gate    *fleet.Gate
	// Namespace is the manager's own.
	Namespace string
	// Unadmitted says that no admission webhook is served, so that whoever writes a maintenance names any maker that he likes.
	Unadmitted bool
	// Metrics takes the metrics.
	Metrics prometheus.Registerer
	// Now is the clock; time.Now where it is nil.
	Now func() time.Time
	// Counted tells counted time; nil knows none, and then a notice goes by the times of the records.
	Counted *counted.Clock
}

// Setup adds the controller to the manager.
func Setup(mgr manager.Manager, o Options) error {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Mode == "" || o.Mode == Off {
		return setupAnswers(mgr)
	}
	if o.Bundles == nil || o.Gate == nil {
		return errors.New("maintenance: Options.Bundles or Options.Gate is missing")
	}
	s := newScheduler(client.WithFieldOwner(mgr.GetClient(), loop.FieldOwner), mgr.GetAPIReader(), o)
	s.recorder = mgr.GetEventRecorder("metalaw-maintenance")
	if o.Metrics != nil {
		if err := o.Metrics.Register(&figures{reader: mgr.GetCache(), policy: s.policy, now: o.Now}); err != nil {
			return err
		}
	}
	o.Bundles.Changed(func() { s.passes.AddAfter(pass{}, gather) })
	b := builder.TypedControllerManagedBy[pass](mgr).Named("maintenance-scheduler").WatchesRawSource(&s.passes).WatchesRawSource(begin)
	for _, from := range s.sources(mgr) {
		b = b.WatchesRawSource(from)
	}
	return b.WithOptions(controller.TypedOptions[pass]{MaxConcurrentReconciles: 1,
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[pass](gather, time.Minute)}).Complete(s)
}

// begin asks for one pass when the manager begins, whatever there is: it writes down since when maintenances are granted, so that the first
// one is not older than that.
var begin = source.TypedFunc[pass](func(_ context.Context, q queue) error {
	q.Add(pass{})
	return nil
})

func newScheduler(c client.Client, live client.Reader, o Options) *scheduler {
	return &scheduler{client: c, live: live, gate: o.Gate, policy: policyOf(o.Bundles, o.Gate), planOnly: o.Mode == Plan, namespace: o.Namespace,
		now: o.Now, counts: o.Counted, makers: makers{client: c, now: o.Now, unknown: o.Unadmitted},
		handed: map[types.UID]time.Time{}, answered: map[types.UID]time.Time{}}
}

// policyOf reads out of the bundle in force what it says of maintenance, and why nothing may be granted under it.
func policyOf(bundles Bundles, gate *fleet.Gate) func() (*maintenance.Policy, string) {
	return func() (*maintenance.Policy, string) {
		b := bundles.Active()
		switch {
		case b == nil:
			return maintenance.Default(), "the policy, which is not known yet"
		case gate.ObserveOnly:
			return b.Settings.Maintenance, "the manager, which runs with --observe-only"
		}
		if _, held := bundles.Held(b.Revision.Name); held || b.StandsIn {
			return b.Settings.Maintenance, "the policy: its revision " + b.Revision.Name + " is held"
		}
		return b.Settings.Maintenance, ""
	}
}

type queue = workqueue.TypedRateLimitingInterface[pass]

// sources ask for a pass whenever something changes that an answer depends on. While there is no maintenance, little does.
func (s *scheduler) sources(mgr manager.Manager) []source.TypedSource[pass] {
	return []source.TypedSource[pass]{
		source.TypedKind(mgr.GetCache(), &v1alpha1.ServerMaintenance{}, changes(s, always[*v1alpha1.ServerMaintenance],
			func(a, b *v1alpha1.ServerMaintenance) bool { return a.ResourceVersion == b.ResourceVersion })),
		source.TypedKind(mgr.GetCache(), &v1alpha1.Server{}, changes(s, concerns, sameServer)),
		source.TypedKind(mgr.GetCache(), &v1alpha1.ServerClaim{}, changes(s, hold.Asked, sameClaim)),
		source.TypedKind(mgr.GetCache(), &v1alpha1.ServerBootConfiguration{}, changes(s, never[*v1alpha1.ServerBootConfiguration], sameBoot)),
		source.TypedKind(mgr.GetCache(), &policyv1alpha1.FleetControl{}, changes(s, never[*policyv1alpha1.FleetControl], sameControl)),
	}
}

func always[T any](T) bool { return true }
func never[T any](T) bool  { return false }

// concerns says that something is due for a server although no maintenance is there.
func concerns(s *v1alpha1.Server) bool {
	return hold.Granted(s) || s.Annotations[v1alpha1.DecommissionAnnotation] != ""
}

// changes asks for a pass for each change of a kind, but for those that leave an object the same, and while the scheduler is idle only
// for what matters by itself.
func changes[T client.Object](s *scheduler, matters func(T) bool, same func(before, after T) bool) handler.TypedEventHandler[T, pass] {
	ask := func(o T, q queue) {
		if !s.idle.Load() || matters(o) {
			q.AddAfter(pass{}, gather)
		}
	}
	return handler.TypedFuncs[T, pass]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[T], q queue) { ask(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[T], q queue) {
			if !same(e.ObjectOld, e.ObjectNew) {
				ask(e.ObjectNew, q)
			}
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[T], q queue) { ask(e.Object, q) },
	}
}

func sameClaim(a, b *v1alpha1.ServerClaim) bool {
	return a.UID == b.UID && a.Status.Phase == b.Status.Phase && a.DeletionTimestamp.IsZero() == b.DeletionTimestamp.IsZero() &&
		a.Generation == b.Generation && maps.Equal(a.Labels, b.Labels) && maps.Equal(a.Annotations, b.Annotations)
}

// sameServer leaves out what no answer depends on, which is most of what changes of a server.
func sameServer(a, b *v1alpha1.Server) bool {
	return a.UID == b.UID && a.Generation == b.Generation && a.DeletionTimestamp.IsZero() == b.DeletionTimestamp.IsZero() &&
		a.Status.State == b.Status.State && a.Status.PowerState == b.Status.PowerState && a.Status.IndicatorLED == b.Status.IndicatorLED &&
		maps.Equal(a.Labels, b.Labels) && maps.Equal(a.Annotations, b.Annotations) && sameLifecycle(a.Status.Lifecycle, b.Status.Lifecycle) &&
		maps.Equal(statusOf(a), statusOf(b))
}

func sameLifecycle(a, b *v1alpha1.LifecycleStatus) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Entry == b.Entry && hold.Settled(a) == hold.Settled(b) && (a.Credential == nil) == (b.Credential == nil)
}

// statusOf is the status and the reason of each condition of a server.
func statusOf(s *v1alpha1.Server) map[string]string {
	all := make(map[string]string, len(s.Status.Conditions))
	for _, c := range s.Status.Conditions {
		all[c.Type] = string(c.Status) + " " + c.Reason
	}
	return all
}

func sameBoot(a, b *v1alpha1.ServerBootConfiguration) bool {
	return a.UID == b.UID && a.Status.State == b.Status.State && slices.EqualFunc(a.OwnerReferences, b.OwnerReferences,
		func(x, y metav1.OwnerReference) bool { return x.UID == y.UID })
}

func sameControl(a, b *policyv1alpha1.FleetControl) bool {
	return a.UID == b.UID && a.Generation == b.Generation && (a.Status.Trip == nil) == (b.Status.Trip == nil)
}
