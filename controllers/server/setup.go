// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/hardware"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/controllers/server/gates"
	"github.com/metalaw/metalaw/controllers/server/identity"
	"github.com/metalaw/metalaw/controllers/server/seen"
	"github.com/metalaw/metalaw/controllers/server/status"
	"github.com/metalaw/metalaw/controllers/server/storage"
	"github.com/metalaw/metalaw/controllers/trigger"
	"github.com/metalaw/metalaw/internal/fieldindex"
	"github.com/metalaw/metalaw/internal/uuids"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/redfish"
)

// newCache makes the cache that reads servers' systems.
func newCache(clients hardware.Clients, woken func(name string)) *Cache {
	return hardware.NewCache(hardware.Options[redfish.SystemSnapshot]{Clients: clients, Read: read, Same: same, Wake: woken,
		TakenAt: func(s redfish.SystemSnapshot) time.Time { return s.TakenAt }})
}

// read asks for the network interfaces as well until they were seen once; afterwards one request does.
func read(ctx context.Context, bmc redfish.BMC, target hardware.Target) (redfish.SystemSnapshot, error) {
	if target.Detail {
		return bmc.SystemDetail(ctx, target.URI)
	}
	return bmc.System(ctx, target.URI)
}

// same says that two snapshots are equal in everything that a reconcile acts on or shows.
func same(a, b redfish.SystemSnapshot) bool {
	return a.Power == b.Power && a.Health == b.Health && slices.Equal(a.Critical, b.Critical) && a.LED == b.LED && a.Identity == b.Identity &&
		a.BIOSVersion == b.BIOSVersion && a.MemoryBytes == b.MemoryBytes && a.Boot.Enabled == b.Boot.Enabled &&
		a.Boot.Missing == b.Boot.Missing && slices.Equal(a.NICs, b.NICs) && a.NICsIncomplete == b.NICsIncomplete
}

// Setup adds the controller to the manager. The field indexes must be registered.
func Setup(mgr ctrl.Manager, options Options) error {
	options.setDefaults(mgr)
	woken := &trigger.Source{}
	options.Cache = newCache(options.Clients, woken.Trigger)
	options.Identities = identity.NewCache(options.Clients, woken.Trigger)
	if err := errors.Join(mgr.Add(options.Cache), mgr.Add(options.Identities)); err != nil {
		return err
	}
	options.Storage = storage.New(storage.Options{Clients: options.Clients, Wake: woken.Trigger, Now: options.Now,
		Client: options.Client, Reader: options.Reader})
	if err := mgr.Add(options.Storage); err != nil {
		return err
	}
	s := newSubject(options)
	if err := mgr.Add(s.waking(woken)); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("server").
		For(&v1alpha1.Server{}, builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})).
		Watches(&v1alpha1.ServerClaim{}, handler.EnqueueRequestsFromMapFunc(s.ofClaim)).
		Watches(&v1alpha1.ServerMaintenance{}, handler.EnqueueRequestsFromMapFunc(ofMaintenance), builder.WithPredicates(maintenanceChanged())).
		Watches(&v1alpha1.ServerBootConfiguration{}, trigger.Ahead(ofBoot)).
		Watches(&policyv1alpha1.ServerInventory{}, trigger.Ahead(s.ofInventory)).
		Watches(&v1alpha1.BMC{}, handler.EnqueueRequestsFromMapFunc(s.ofBMC), builder.WithPredicates(bmcChanged())).
		Watches(&policyv1alpha1.FleetControl{}, handler.EnqueueRequestsFromMapFunc(s.ofFleet), builder.WithPredicates(holdChanged())).
		Watches(&policyv1alpha1.FleetControl{}, handler.EnqueueRequestsFromMapFunc(s.ofWithheld), builder.WithPredicates(budgetsChanged())).
		WatchesRawSource(woken).
		WithOptions(controller.Options{MaxConcurrentReconciles: options.Workers}).
		Complete(s.reconciler())
}

func (s *subject) reconciler() *loop.Reconciler[*v1alpha1.Server, *gates.Output] {
	return &loop.Reconciler[*v1alpha1.Server, *gates.Output]{
		Client:    s.Client,
		Subject:   s,
		New:       func() *v1alpha1.Server { return &v1alpha1.Server{} },
		Finalizer: v1alpha1.FinalizerServer,
		Tell:      s.tell,
		HandsOff:  func(o *v1alpha1.Server) bool { return v1alpha1.Ignored(o) },
		Withheld:  s.withheld,
		Gone: func(name types.NamespacedName) {
			s.memory.forget(name.Name)
			s.Cache.Forget(name.Name)
			s.Storage.Forget(name.Name)
			if s.Identities != nil {
				s.Identities.Forget(name.Name)
			}
			if s.Shadows != nil {
				s.Shadows.Forget(name.Name)
			}
		},
		Observed: observed,
		Defers:   s.defers,
	}
}

// defers is how long a status may wait for the next write, if nothing of it is worth a write of its own. The
// next reconcile finds and stores what is not stored by then.
func (s *subject) defers(before, after *v1alpha1.Server) time.Duration {
	if !status.Waits(before, after) {
		return 0
	}
	now, entry := s.Now(), int64(0)
	if l := after.Status.Lifecycle; l != nil {
		entry = l.Entry
	}
	id := fmt.Sprintf("%d/%d", entry, after.Generation)
	first := s.memory.of(after.Name).Seen.First(seen.Deferred, id, policies.Instant{Now: now})
	return max(0, status.WorthTelling-now.Sub(first))
}

// observed has a status speak of the generation that our own write made.
func observed(s *v1alpha1.Server, former, now int64) {
	if s.Status.ObservedGeneration == former {
		s.Status.ObservedGeneration = now
	}
	for i := range s.Status.Conditions {
		if s.Status.Conditions[i].ObservedGeneration == former {
			s.Status.Conditions[i].ObservedGeneration = now
		}
	}
}

// waking wakes the servers that are to come under another revision when what governs becomes another: those that are halted at once,
// because they may come under it at once, and the others one after the other, at the pace of a fleet. Whose turn it is not when
// it is looked at asks again by itself.
func (s *subject) waking(woken waker) manager.Runnable {
	changed := make(chan struct{}, 1)
	s.Bundles.Changed(func() {
		select {
		case changed <- struct{}{}:
		default: // it is to be done already
		}
	})
	return manager.RunnableFunc(func(ctx context.Context) error {
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-changed:
			}
			s.wakeAll(ctx, woken)
		}
	})
}

// waker has servers looked at; trigger.Source is one.
type waker interface {
	Add(request reconcile.Request)
	AddAfter(request reconcile.Request, after time.Duration)
}

// wakeAll wakes the servers that may come under another revision.
func (s *subject) wakeAll(ctx context.Context, woken waker) {
	for _, r := range s.serversThat(ctx, isHalted) {
		woken.Add(r)
	}
	for i, r := range s.serversThat(ctx, s.isBehind) {
		woken.AddAfter(r, time.Duration(i)*time.Second/time.Duration(s.AdoptionRate))
	}
}

// isBehind says that a server which is not halted is governed by another revision than the one that it is to come under. Whether it
// rests is seen when it is looked at.
func (s *subject) isBehind(o *v1alpha1.Server) bool {
	l := o.Status.Lifecycle
	return l != nil && l.Revision != "" && !isHalted(o) && l.Revision != s.Bundles.Governing(o).Revision.Name
}

func isHalted(o *v1alpha1.Server) bool {
	return meta.IsStatusConditionTrue(o.Status.Conditions, v1alpha1.ConditionPolicyHalted)
}

func request(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
}

// ofClaim wakes the server that a claim names, and the one on which the claim is written.
func (s *subject) ofClaim(ctx context.Context, o client.Object) []reconcile.Request {
	claim, ok := o.(*v1alpha1.ServerClaim)
	if !ok {
		return nil
	}
	requests := s.serversBy(ctx, fieldindex.ServerByClaim, fieldindex.ClaimKey(claim.Namespace, claim.Name))
	if ref := claim.Spec.ServerRef; ref != nil && !slices.Contains(requests, request(ref.Name)) {
		requests = append(requests, request(ref.Name))
	}
	return requests
}

func ofBoot(_ context.Context, o client.Object) []reconcile.Request {
	boot, ok := o.(*v1alpha1.ServerBootConfiguration)
	if !ok || boot.Spec.ServerRef.Name == "" {
		return nil
	}
	return []reconcile.Request{request(boot.Spec.ServerRef.Name)}
}

// ofMaintenance wakes the server that a maintenance is for.
func ofMaintenance(_ context.Context, o client.Object) []reconcile.Request {
	m, ok := o.(*v1alpha1.ServerMaintenance)
	if !ok || m.Spec.ServerRef.Name == "" {
		return nil
	}
	return []reconcile.Request{request(m.Spec.ServerRef.Name)}
}

// ofInventory wakes the server of the machine that reported.
func (s *subject) ofInventory(ctx context.Context, o client.Object) []reconcile.Request {
	var requests []reconcile.Request
	for _, uuid := range uuids.Spellings(o.GetName()) {
		requests = append(requests, s.serversBy(ctx, fieldindex.ServerBySystemUUID, uuid)...)
	}
	return requests
}

// ofBMC wakes the servers behind a BMC that changed, and lets their next read be made at once.
func (s *subject) ofBMC(ctx context.Context, o client.Object) []reconcile.Request {
	requests := s.serversBy(ctx, fieldindex.ServerByBMC, o.GetName())
	for _, r := range requests {
		s.Cache.Retry(r.Name)
	}
	return requests
}

func (s *subject) serversBy(ctx context.Context, field, value string) []reconcile.Request {
	return s.serversThat(ctx, always, client.MatchingFields{field: value})
}

func always(*v1alpha1.Server) bool { return true }

// ofFleet wakes every server: a freeze may concern any, and stops the clock of its deadline from when it is seen.
func (s *subject) ofFleet(ctx context.Context, _ client.Object) []reconcile.Request {
	return s.serversThat(ctx, always)
}

// ofWithheld wakes the servers from which something is withheld: no other waits for a budget.
func (s *subject) ofWithheld(ctx context.Context, _ client.Object) []reconcile.Request {
	return s.serversThat(ctx, func(o *v1alpha1.Server) bool {
		return meta.IsStatusConditionTrue(o.Status.Conditions, v1alpha1.ConditionWithheld)
	})
}

func (s *subject) serversThat(ctx context.Context, wanted func(*v1alpha1.Server) bool, among ...client.ListOption) []reconcile.Request {
	var servers v1alpha1.ServerList
	if err := s.Client.List(ctx, &servers, append(among, client.UnsafeDisableDeepCopy)...); err != nil {
		return nil // the cache answers from memory; it fails only while the manager stops
	}
	var requests []reconcile.Request
	for i := range servers.Items {
		if wanted(&servers.Items[i]) {
			requests = append(requests, request(servers.Items[i].Name))
		}
	}
	return requests
}

// onChange passes an update that makes a difference, and leaves other events as they are.
func onChange[T client.Object](differs func(was, now T) bool) predicate.Funcs {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		was, ok1 := e.ObjectOld.(T)
		now, ok2 := e.ObjectNew.(T)
		return ok1 && ok2 && differs(was, now)
	}}
}

// holdChanged passes changes of freezes and of the breaker.
func holdChanged() predicate.Predicate { return onChange(holdsOtherwise) }

// budgetsChanged passes changes of budgets alone, and not how far they are used: each server that waits asks again in its
// own time.
func budgetsChanged() predicate.Predicate {
	passes := predicate.NewPredicateFuncs(func(client.Object) bool { return false })
	passes.UpdateFunc = onChange(func(was, now *policyv1alpha1.FleetControl) bool {
		return !holdsOtherwise(was, now) && was.Generation != now.Generation
	}).UpdateFunc
	return passes
}

func holdsOtherwise(was, now *policyv1alpha1.FleetControl) bool {
	return !equality.Semantic.DeepEqual(was.Spec.Freezes, now.Spec.Freezes) ||
		!equality.Semantic.DeepEqual(was.Spec.Breaker, now.Spec.Breaker) ||
		!equality.Semantic.DeepEqual(was.Status.Trip, now.Status.Trip)
}

// bmcChanged passes changes of how a BMC is reached, of whether it can be, and of what its annotations say of its systems.
func bmcChanged() predicate.Predicate {
	return onChange(func(was, now *v1alpha1.BMC) bool {
		return was.Generation != now.Generation || was.Status.State != now.Status.State || was.Status.IP != now.Status.IP ||
			was.Annotations[v1alpha1.BootWaysAnnotation] != now.Annotations[v1alpha1.BootWaysAnnotation] ||
			was.Annotations[v1alpha1.HostMACsAnnotation] != now.Annotations[v1alpha1.HostMACsAnnotation] ||
			was.Annotations[v1alpha1.SystemUUIDsAnnotation] != now.Annotations[v1alpha1.SystemUUIDsAnnotation]
	})
}

// maintenanceChanged passes changes of what a maintenance asks for. What its status says of waiting is no news to the server.
func maintenanceChanged() predicate.Predicate {
	return onChange(func(was, now *v1alpha1.ServerMaintenance) bool {
		return was.Generation != now.Generation || was.DeletionTimestamp.IsZero() != now.DeletionTimestamp.IsZero() ||
			was.Status.State != now.Status.State || !maps.Equal(was.Annotations, now.Annotations)
	})
}
