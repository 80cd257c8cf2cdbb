// SPDX-License-Identifier: Apache-2.0

// Package bmc watches over BMCs: it reads them, says whether they can be used, and finds the servers behind them.
package bmc

import (
	"cmp"
	"context"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/fleet"
	"github.com/metalaw/metalaw/controllers/hardware"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/controllers/rivals"
	"github.com/metalaw/metalaw/controllers/trigger"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/internal/fieldindex"
)

// Bundles knows the policy in force.
type Bundles interface {
	// Active is never nil.
	Active() *bundle.Bundle
}

// Clients is the part of *redfish.Pool that is used here.
type Clients interface {
	hardware.Clients
	Forget(key string)
	Retry(key string) (done bool, again time.Time)
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
	// Gate is asked before a BMC is restarted; nil allows it.
	Gate *fleet.Gate
	// Rivals is told what each BMC shows; nil is told nothing.
	Rivals *rivals.Memory
	// CABundle is trusted instead of the system's certificates; PEM, may be empty.
	CABundle []byte
	// SteadyPoll is how old a reading may be while nothing is expected to change; default 3 min.
	SteadyPoll time.Duration
	// MetadataPoll is how old one may be while the one Server behind the BMC is read, and well; default 6 h. It is shorter
	// where there are more Servers.
	MetadataPoll time.Duration
	// TransitionPoll is how old one may be while a BMC restarts; default 2 s.
	TransitionPoll time.Duration
	// TakeOverAfter is how long a BMC must have been unreachable before another one may take its servers over; default
	// 10 min, which no BMC needs to restart.
	TakeOverAfter time.Duration
	// Absent is how much of the time between two instants no manager was running; default none of it.
	Absent func(from, until time.Time) time.Duration
	// ResetSettle is how long after a reset an answer is not yet taken for its end; default 10 s.
	ResetSettle time.Duration

	now func() time.Time
}

const (
	// readTimeout bounds one read of a BMC.
	readTimeout = 2 * time.Minute
	// concurrent is the number of reconciles side by side.
	concurrent = 8
)

func (o Options) withDefaults() Options {
	o.SteadyPoll = cmp.Or(o.SteadyPoll, 3*time.Minute)
	o.MetadataPoll = cmp.Or(o.MetadataPoll, 6*time.Hour)
	o.TransitionPoll = cmp.Or(o.TransitionPoll, 2*time.Second)
	o.TakeOverAfter = cmp.Or(o.TakeOverAfter, 10*time.Minute)
	o.ResetSettle = cmp.Or(o.ResetSettle, 10*time.Second)
	if o.now == nil {
		o.now = time.Now
	}
	if o.Absent == nil {
		o.Absent = func(time.Time, time.Time) time.Duration { return 0 }
	}
	return o
}

// subject implements loop.Subject for BMCs.
type subject struct {
	Options
	cache *hardware.Cache[Reading]
	// names are those by which the cache knows each BMC at present.
	names kept[string]
	// systemsRead are the identities of the systems of each BMC, by its key.
	systemsRead *reader
	resets      *resets
	// silent are the BMCs that gave this process no answer when it asked them last.
	silent    kept[bool]
	sightings *sightings
	newcomers *newcomers
	systems   *stripes
	servers   *serverIndex
	// acceptances are by the UID of the BMC.
	acceptances kept[acceptance]
}

func newSubject(o Options, requeue func(name string)) *subject {
	s := &subject{
		Options: o, systemsRead: newReader(o.now), resets: &resets{of: map[string]sentReset{}},
		sightings: &sightings{of: map[string][]string{}, by: index{}}, newcomers: &newcomers{waiting: index{}},
		systems: &stripes{}, servers: &serverIndex{names: index{}},
	}
	s.cache = hardware.NewCache(hardware.Options[Reading]{
		Clients: o.Clients, Read: s.systemsRead.read, Same: Same, Timeout: readTimeout, Now: o.now,
		TakenAt: func(r Reading) time.Time { return r.TakenAt },
		Wake: func(name string) {
			bmc, _, _ := strings.Cut(name, "/")
			requeue(bmc)
		},
	})
	return s
}

// Setup adds the controller to the manager. The field indexes must be registered.
func Setup(mgr ctrl.Manager, o Options) error {
	o = o.withDefaults()
	o.Client, o.Reader = client.WithFieldOwner(mgr.GetClient(), loop.FieldOwner), mgr.GetAPIReader()
	o.Recorder = mgr.GetEventRecorder("metalaw-bmc")
	requeued := &trigger.Source{}
	s := newSubject(o, requeued.Trigger)
	if err := mgr.Add(s.cache); err != nil {
		return err
	}
	if err := setupHold(mgr, s.Client); err != nil {
		return err
	}
	asked := predicate.Or(predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}, predicate.AnnotationChangedPredicate{})
	return ctrl.NewControllerManagedBy(mgr).
		Named("bmc").
		For(&v1alpha1.BMC{}, builder.WithPredicates(asked)).
		Watches(&v1alpha1.BMC{}, s.incumbentChanged(), builder.WithPredicates(reachabilityChanged)).
		Watches(&v1alpha1.Endpoint{}, handler.EnqueueRequestsFromMapFunc(s.naming(fieldindex.BMCByEndpoint)),
			builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.BMCSecret{}, handler.EnqueueRequestsFromMapFunc(s.naming(fieldindex.BMCBySecret)),
			builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})).
		Watches(&v1alpha1.Server{}, s.ofServer(), builder.WithPredicates(concerning)).
		WatchesRawSource(requeued).
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrent}).
		Complete(s.reconciler())
}

func (s *subject) reconciler() reconcile.Reconciler {
	return &loop.Reconciler[*v1alpha1.BMC, decision]{
		Client: s.Client, Subject: s, Finalizer: v1alpha1.FinalizerBMC, Tell: s.recordEvents, Withheld: s.withheld,
		HandsOff: func(b *v1alpha1.BMC) bool { return v1alpha1.Ignored(b) },
		New:      func() *v1alpha1.BMC { return &v1alpha1.BMC{} },
	}
}

// withheld records that a BMC which is being deleted stays while the manager may not touch it.
func (s *subject) withheld(_ context.Context, b *v1alpha1.BMC) error {
	s.Recorder.Eventf(b, nil, corev1.EventTypeWarning, v1alpha1.ReasonIgnored, "Finalize",
		"The BMC is being deleted, and stays for as long as the annotation %s has the value %q; remove it",
		v1alpha1.OperationAnnotation, b.Annotations[v1alpha1.OperationAnnotation])
	return nil
}

// release drops everything that is remembered of a BMC, and gives its session back. It may be called again.
func (s *subject) release(b *v1alpha1.BMC) {
	s.rename(b.Name, "")
	s.systemsRead.forget(string(b.UID))
	s.resets.forget(string(b.UID))
	s.acceptances.forget(string(b.UID))
	s.silent.forget(b.Name)
	s.sightings.forget(b.Name)
	s.Rivals.Forget(b.Name)
	s.Clients.Forget(string(b.UID))
}
