// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/fleet"
	"github.com/metalaw/metalaw/controllers/hardware"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/controllers/server/gates"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/internal/fieldindex"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/redfish"
)

const (
	testPowerGrace = time.Minute
	testBootGrace  = 10 * time.Minute
	// storeTakes is how long the API server takes to store something.
	storeTakes = 5 * time.Millisecond
)

// world is an API server with one server on it, named a, and its machine. It outlives the managers that run in it.
type world struct {
	t       *testing.T
	api     client.WithWatch
	machine *machine
	// refuses says what a write of the server's status is answered with; nil stores everything.
	refuses func(*v1alpha1.Server) error
	manager *process
	// events are the reasons of those that were recorded, and said their texts.
	events, said []string
}

// inWorld makes a world in which a server and what belongs to it were written already, and starts a manager.
func inWorld(t *testing.T, m *machine, objects ...client.Object) *world {
	t.Helper()
	w := &world{t: t, machine: m}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, policyv1alpha1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	// stored wakes the manager, as its watches do.
	stored := func(err error) error {
		if err == nil {
			w.manager.wake("a")
		}
		return err
	}
	w.api = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithStatusSubresource(&v1alpha1.Server{}, &v1alpha1.ServerClaim{}, &v1alpha1.ServerBootConfiguration{}).
		WithIndex(&v1alpha1.ServerClaim{}, fieldindex.ClaimByServer, claimedServer).
		WithIndex(&v1alpha1.ServerBootConfiguration{}, fieldindex.BootConfigurationByServer, bootedServer).
		WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				if o.GetUID() == "" { // as the API server gives one
					o.SetUID(uuid.NewUUID())
				}
				return c.Create(ctx, o, opts...)
			},
			Delete: deleteAsTheAPIServerDoes,
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
				time.Sleep(storeTakes)
				return stored(c.Patch(ctx, o, p, opts...))
			},
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
				time.Sleep(storeTakes)
				if s, ok := o.(*v1alpha1.Server); ok && w.refuses != nil {
					if err := w.refuses(s); err != nil {
						return err
					}
				}
				return stored(c.SubResource(sub).Patch(ctx, o, p, opts...))
			},
		}).Build()
	t.Cleanup(func() { w.manager.cache.Close() })
	w.start()
	return w
}

// deleteAsTheAPIServerDoes heeds the UID that a deletion is meant for; the fake does not.
func deleteAsTheAPIServerDoes(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
	var options client.DeleteOptions
	if p := options.ApplyOptions(opts).Preconditions; p != nil && p.UID != nil {
		now := o.DeepCopyObject().(client.Object)
		if err := c.Get(ctx, client.ObjectKeyFromObject(o), now); err != nil {
			return err
		}
		if now.GetUID() != *p.UID {
			return errConflict
		}
	}
	return c.Delete(ctx, o, opts...)
}

func bootedServer(o client.Object) []string {
	return []string{o.(*v1alpha1.ServerBootConfiguration).Spec.ServerRef.Name}
}

func claimedServer(o client.Object) []string {
	if c, ok := o.(*v1alpha1.ServerClaim); ok && c.Spec.ServerRef != nil {
		return []string{c.Spec.ServerRef.Name}
	}
	return nil
}

// defaultBundle is compiled once for all tests.
var defaultBundle = sync.OnceValues(policies.Default)

// start begins a new process in place of the one that ran: nothing is left of what that one remembered.
func (w *world) start() *process {
	w.t.Helper()
	b, err := defaultBundle()
	if err != nil {
		w.t.Fatal(err)
	}
	metrics, err := NewMetrics(prometheus.NewRegistry())
	if err != nil {
		w.t.Fatal(err)
	}
	if w.manager != nil {
		w.manager.cache.Close()
	}
	p := &process{world: w, woken: make(chan struct{}, 1)}
	p.cache = newCache(clientsOf{w.machine}, p.wake)
	p.subject = newSubject(Options{Client: w.api, Reader: w.api, Bundles: governed{b}, Cache: p.cache, Access: p.access,
		Gate:     &fleet.Gate{Client: w.api, Reader: w.api, Now: time.Now},
		Recorder: w, Metrics: metrics, Now: time.Now, Outage: func() policies.Outage { return policies.Outage{} },
		RegistryURL: "https://registry", RegistryCA: func() []byte { return nil }, Namespace: "metalaw-system", ProbeImage: "probe", WipeImage: "wipe", BootTarget: "Pxe",
		SteadyPoll: 3 * time.Minute, PowerGrace: testPowerGrace, BootGrace: testBootGrace, NoReleaseGrace: true, AdoptionRate: 10})
	p.reconciler = p.subject.reconciler()
	p.reconciler.Subject = p
	w.manager = p
	return p
}

// Eventf implements events.EventRecorder.
func (w *world) Eventf(_, _ runtime.Object, _, reason, _, note string, args ...any) {
	w.events = append(w.events, reason)
	w.said = append(w.said, fmt.Sprintf(note, args...))
}

// server is the server as it is stored.
func (w *world) server() *v1alpha1.Server {
	w.t.Helper()
	s := &v1alpha1.Server{}
	if err := w.api.Get(w.t.Context(), types.NamespacedName{Name: "a"}, s); err != nil {
		w.t.Fatal(err)
	}
	return s
}

// request is the power change that is recorded: its action, and whether it was seen to come true.
func (w *world) request() string {
	w.t.Helper()
	r := w.server().Status.Lifecycle.Request
	switch {
	case r == nil:
		return "none"
	case r.ShownAt != nil:
		return string(r.Action) + " shown"
	}
	return string(r.Action)
}

// edit changes something that is stored, as a user or another controller does.
func edit[T client.Object](w *world, key string, object T, change func(T)) {
	w.t.Helper()
	name := types.NamespacedName{Name: key}
	if _, global := any(object).(*v1alpha1.Server); !global {
		if _, global := any(object).(*policyv1alpha1.ServerInventory); !global {
			name.Namespace = "shop"
		}
	}
	if err := w.api.Get(w.t.Context(), name, object); err != nil {
		w.t.Fatal(err)
	}
	change(object)
	if err := w.api.Update(w.t.Context(), object); err != nil {
		w.t.Fatal(err)
	}
	w.manager.wake("a")
}

// claims changes the power that the claim asks for.
func (w *world) claims(power v1alpha1.Power) {
	w.t.Helper()
	edit(w, "web", &v1alpha1.ServerClaim{}, func(c *v1alpha1.ServerClaim) { c.Spec.Power = power })
}

// process is one run of the manager: its cache, what it remembers, and its queue.
type process struct {
	*subject
	world      *world
	cache      *Cache
	reconciler *loop.Reconciler[*v1alpha1.Server, *gates.Output]
	woken      chan struct{}
	// dies says that the process ends once a request is recorded, before the BMC is asked; dead, that it did.
	dies, dead bool
	// between is called between the decision and the effects.
	between func()
	// decision and outcome are those of the last reconcile.
	decision engine.Decision
	outcome  loop.Outcome
	// relied is how old the reading was on which each request was decided.
	relied []time.Duration
}

// Observe implements loop.Subject.
func (p *process) Observe(ctx context.Context, s *v1alpha1.Server) (loop.Scope[*gates.Output], error) {
	v, err := p.subject.Observe(ctx, s)
	if err != nil {
		return nil, err
	}
	return watched{v.(*scope), p}, nil
}

// watched is a scope in which the test has a part.
type watched struct {
	*scope
	manager *process
}

func (w watched) Decide() *gates.Output {
	d := w.scope.Decide()
	if w.manager.between != nil {
		w.manager.between()
	}
	return d
}

func (w watched) Apply(ctx context.Context, d *gates.Output) loop.Outcome {
	o := w.scope.Apply(ctx, d)
	w.manager.decision, w.manager.outcome = d.Decision, o
	for i, request := range o.Requests {
		w.manager.relied = append(w.manager.relied, w.seen.Now.Sub(w.seen.BMC.At))
		o.Requests[i] = func() {
			w.manager.dead = w.manager.dead || w.manager.dies
			if !w.manager.dead {
				request()
			}
		}
	}
	return o
}

func (p *process) wake(string) {
	select {
	case p.woken <- struct{}{}:
	default:
	}
}

// access reaches the BMC where the server says it is.
func (p *process) access(_ context.Context, bmc *v1alpha1.BMC, _ bundle.Settings) (hardware.Target, error) {
	return hardware.Target{Key: string(bmc.UID), Endpoint: redfish.Endpoint{Address: bmc.Spec.Access.IP}}, nil
}

// look is one reconcile.
func (p *process) look() (ctrl.Result, error) {
	return p.reconciler.Reconcile(p.world.t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: "a"}})
}

// run reconciles for a while, as the queue does: at once when woken, and when a reconcile wanted to look again. A process
// that dies returns early.
func (p *process) run(d time.Duration) {
	p.world.t.Helper()
	end := time.Now().Add(d)
	for looks := 0; ; looks++ {
		if looks > 5000 {
			p.world.t.Fatalf("%d reconciles in %s", looks, d)
		}
		result, err := p.look()
		wait := time.Until(end)
		if wait <= 0 || p.dead {
			return
		}
		if err != nil {
			wait = min(wait, time.Second)
		} else if result.RequeueAfter > 0 {
			wait = min(wait, result.RequeueAfter)
		}
		select {
		case <-p.woken:
		case <-time.After(wait):
		}
	}
}

type governed struct{ b *bundle.Bundle }

func (g governed) Active() *bundle.Bundle                    { return g.b }
func (g governed) Revision(string) (*bundle.Bundle, bool)    { return nil, false }
func (g governed) Lost(string) bool                          { return false }
func (g governed) Governing(*v1alpha1.Server) *bundle.Bundle { return g.b }
func (g governed) Held(string) (string, bool)                { return "", false }
func (g governed) Shadows() []*bundle.Bundle                 { return nil }
func (g governed) Changed(func())                            {}

type clientsOf struct{ bmc redfish.BMC }

func (c clientsOf) Get(string, redfish.Endpoint, redfish.Credentials) redfish.BMC { return c.bmc }

// serverIn is the server a in a state, in entry 7, an hour after it was entered.
func serverIn(state v1alpha1.ServerState, change ...func(*v1alpha1.Server)) *v1alpha1.Server {
	s := &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "uid-a", Generation: 1, Finalizers: []string{v1alpha1.FinalizerServer},
		Annotations: map[string]string{}}}
	s.Spec.SystemUUID, s.Spec.SystemURI = machineUUID, "/redfish/v1/Systems/1"
	s.Spec.BMC = &v1alpha1.BMCAccess{Address: "10.0.0.1"}
	s.Status.State = state
	s.Status.NetworkInterfaces = []v1alpha1.NetworkInterface{{Name: "eth0", MACAddress: "02:00:00:00:00:01"}}
	s.Status.Lifecycle = &v1alpha1.LifecycleStatus{Entry: 7, EnteredAt: metav1.NewMicroTime(time.Now().Add(-time.Hour)), Marks: []string{"Managed"}}
	for _, c := range change {
		c(s)
	}
	return s
}

// reserved is the server a, bound to the claim shop/web whose boot is prepared.
func reserved(power v1alpha1.Power, change ...func(*v1alpha1.Server)) []client.Object {
	claim := &v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "uid-web"}}
	claim.Spec.Power, claim.Spec.Image = power, "os"
	claim.Spec.ServerRef = &corev1.LocalObjectReference{Name: "a"}
	boot := &v1alpha1.ServerBootConfiguration{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "uid-boot", Generation: 1,
		Annotations:     map[string]string{v1alpha1.BootPurposeAnnotation: v1alpha1.BootPurposeClaim},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(claim, v1alpha1.GroupVersion.WithKind("ServerClaim"))}}}
	boot.Spec.ServerRef.Name, boot.Spec.Image = "a", "os"
	boot.Status.State = v1alpha1.ServerBootConfigurationStateReady
	s := serverIn(v1alpha1.StateReserved, append([]func(*v1alpha1.Server){holdsWeb, func(s *v1alpha1.Server) {
		s.Spec.BootConfigurationRef = &v1alpha1.ObjectReference{Namespace: "shop", Name: "web"}
		s.Status.Lifecycle.Marks = []string{"Dirty", "Managed"}
	}}, change...)...)
	return []client.Object{s, claim, boot}
}

func holdsWeb(s *v1alpha1.Server) {
	s.Spec.ServerClaimRef = &v1alpha1.ObjectReference{Namespace: "shop", Name: "web"}
	s.Annotations[v1alpha1.ClaimUIDAnnotation] = "uid-web"
}

// released is what the claim loop wrote when a claim was deleted an hour ago.
func released(s *v1alpha1.Server) {
	s.Annotations[v1alpha1.ReleasedClaimAnnotation] = s.Annotations[v1alpha1.ClaimUIDAnnotation]
	s.Annotations[v1alpha1.ReleasedAtAnnotation] = time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)
}

var (
	errDown     = errors.New("the API server is down")
	errConflict = apierrors.NewConflict(schema.GroupResource{Resource: "servers"}, "a", errors.New("changed"))
)
