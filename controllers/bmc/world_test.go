// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/hardware"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/internal/fieldindex"
	"github.com/metalaw/metalaw/redfish"
)

// device is a BMC as the port shows it. Whatever a test does not expect to be called is the nil of the embedded interface.
type device struct {
	redfish.BMC
	mu      sync.Mutex
	manager redfish.ManagerSnapshot
	systems map[string]redfish.Identity
	// macs are those of the interfaces of each system.
	macs map[string][]string
	// fails is what every read ends with; nil for a BMC that answers.
	fails error
	// resets are what was expected of each reset, and answers how long one takes and how it ends.
	resets  []redfish.ManagerIdentity
	answers func() error
	reads   []string
}

func newDevice(uuid string) *device {
	return &device{
		manager: redfish.ManagerSnapshot{UUID: uuid2, SystemURIs: []string{uri1}},
		systems: map[string]redfish.Identity{uri1: {UUID: uuid, SerialNumber: "S1"}},
	}
}

func (d *device) change(change func(*device)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change(d)
}

func (d *device) read(what string) error {
	d.reads = append(d.reads, what)
	return d.fails
}

func (d *device) Manager(context.Context) (redfish.ManagerSnapshot, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.manager, d.read("manager")
}

func (d *device) System(_ context.Context, uri string) (redfish.SystemSnapshot, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return redfish.SystemSnapshot{URI: uri, Identity: d.systems[uri]}, d.read(uri)
}

// SystemDetail shows the MAC addresses besides.
func (d *device) SystemDetail(_ context.Context, uri string) (redfish.SystemSnapshot, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := redfish.SystemSnapshot{URI: uri, Identity: d.systems[uri]}
	for _, mac := range d.macs[uri] {
		s.NICs = append(s.NICs, redfish.NIC{MACAddress: mac})
	}
	return s, d.read(uri)
}

func (d *device) ResetManager(_ context.Context, want redfish.ManagerIdentity, _ bool) error {
	d.mu.Lock()
	d.resets = append(d.resets, want)
	answer := d.answers
	d.mu.Unlock()
	if answer != nil {
		return answer()
	}
	return nil
}

func (d *device) seen() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	reads := d.reads
	d.reads = nil
	return reads
}

// world is an API server with the BMCs given and their devices; it outlives the managers that run in it. It lives in a
// bubble of synctest.
type world struct {
	t       *testing.T
	api     client.WithWatch
	devices map[string]*device // by the name of the BMC, which is its UID as well
	subject *subject
	loop    reconcile.Reconciler
	// refuses says what a write of a status is answered with; nil stores everything.
	refuses func() error
	// retried are the BMCs whose refused credentials were to be tried again, and again is what that is answered with.
	retried []string
	again   time.Time

	mu    sync.Mutex
	woken map[string]bool
}

type policyOf struct{ bundle *bundle.Bundle }

func (p policyOf) Active() *bundle.Bundle { return p.bundle }

// clients hands out the device of a BMC.
type clients struct{ *world }

func (c clients) Get(key string, _ redfish.Endpoint, _ redfish.Credentials) redfish.BMC {
	return c.devices[key]
}
func (clients) Forget(string) {}
func (c clients) Retry(key string) (bool, time.Time) {
	c.retried = append(c.retried, key)
	return c.again.IsZero(), c.again
}

// inWorld runs a test in a world with one BMC, b, behind which is the Server b-system-0.
func inWorld(t *testing.T, test func(*world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, devices: map[string]*device{"b": newDevice(uuid1)}, woken: map[string]bool{}}
		scheme := runtime.NewScheme()
		if err := errors.Join(v1alpha1.AddToScheme(scheme), policyv1alpha1.AddToScheme(scheme)); err != nil {
			t.Fatal(err)
		}
		w.api = fake.NewClientBuilder().WithScheme(scheme).
			WithStatusSubresource(&v1alpha1.BMC{}, &v1alpha1.Server{}).
			WithIndex(&v1alpha1.Server{}, fieldindex.ServerByBMC, func(o client.Object) []string { return []string{bmcOf(o)} }).
			WithIndex(&v1alpha1.BMC{}, fieldindex.BMCBySecret, func(o client.Object) []string {
				return []string{o.(*v1alpha1.BMC).Spec.BMCSecretRef.Name}
			}).
			WithIndex(&v1alpha1.Server{}, fieldindex.ServerBySystemUUID, func(o client.Object) []string {
				return []string{o.(*v1alpha1.Server).Spec.SystemUUID}
			}).
			WithInterceptorFuncs(interceptor.Funcs{
				SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
					if w.refuses != nil {
						if err := w.refuses(); err != nil {
							return err
						}
					}
					return c.SubResource(sub).Patch(ctx, o, p, opts...)
				},
			}).Build()
		w.addBMC("b")
		w.create(&v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: "b-system-0", UID: "b-system-0"},
			Spec: v1alpha1.ServerSpec{SystemUUID: uuid1, SystemURI: uri1, BMCRef: reference("b")}})
		w.start()
		defer func() { w.subject.cache.Close() }()
		test(w)
	})
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) create(o client.Object) {
	w.t.Helper()
	w.must(w.api.Create(w.t.Context(), o))
}

func (w *world) addBMC(name string) {
	w.t.Helper()
	w.create(&v1alpha1.BMCSecret{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string][]byte{"username": []byte("u"), "password": []byte("p")}})
	w.create(&v1alpha1.BMC{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}, Spec: v1alpha1.BMCSpec{
		Access: &v1alpha1.InlineEndpoint{IP: "10.0.0.1"}, BMCSecretRef: *reference(name), Protocol: v1alpha1.Protocol{Name: v1alpha1.ProtocolRedfish}}})
}

// start begins a new process in place of the one that ran: nothing is left of what that one remembered.
func (w *world) start() {
	if w.subject != nil {
		w.subject.cache.Close()
	}
	w.subject = newSubject(Options{Client: w.api, Reader: w.api, Clients: clients{w}, Recorder: events.NewFakeRecorder(99),
		Bundles: policyOf{&bundle.Bundle{}}}.withDefaults(), w.wake)
	w.loop = w.subject.reconciler()
}

func (w *world) wake(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.woken[name] = true
}

// look is one reconcile.
func (w *world) look(name string) (ctrl.Result, error) {
	w.mu.Lock()
	delete(w.woken, name)
	w.mu.Unlock()
	return w.loop.Reconcile(w.t.Context(), request(name))
}

// rest reconciles a BMC until nothing is left to do for now, and returns when it wants to be looked at again.
func (w *world) rest(name string) time.Duration {
	w.t.Helper()
	for range 50 {
		result, err := w.look(name)
		w.must(err)
		synctest.Wait()
		w.mu.Lock()
		again := w.woken[name]
		w.mu.Unlock()
		if !again && (result.RequeueAfter == 0 || result.RequeueAfter > time.Second) {
			return result.RequeueAfter
		}
		if !again {
			time.Sleep(result.RequeueAfter)
		}
	}
	w.t.Fatalf("BMC %s never comes to rest", name)
	return 0
}

// pass reconciles a BMC whenever it wants to be, for a while.
func (w *world) pass(name string, during time.Duration) {
	w.t.Helper()
	for end := time.Now().Add(during); time.Now().Before(end); {
		again := w.rest(name)
		if again == 0 {
			again = during
		}
		time.Sleep(min(again, time.Until(end)))
	}
	w.rest(name)
}

func (w *world) bmc(name string) *v1alpha1.BMC {
	w.t.Helper()
	b := &v1alpha1.BMC{}
	w.must(w.api.Get(w.t.Context(), types.NamespacedName{Name: name}, b))
	return b
}

func (w *world) change(name string, change func(*v1alpha1.BMC)) {
	w.t.Helper()
	b := w.bmc(name)
	change(b)
	w.must(w.api.Update(w.t.Context(), b))
}

func (w *world) changeServer(name string, change func(*v1alpha1.Server)) {
	w.t.Helper()
	s := &v1alpha1.Server{}
	w.must(w.api.Get(w.t.Context(), types.NamespacedName{Name: name}, s))
	change(s)
	w.must(w.api.Status().Update(w.t.Context(), s))
}

func (w *world) annotate(name, operation string) {
	w.t.Helper()
	w.change(name, func(b *v1alpha1.BMC) { b.Annotations = map[string]string{v1alpha1.OperationAnnotation: operation} })
}

// says is a condition as "True Reason"; empty where there is none.
func (w *world) says(name, kind string) string {
	w.t.Helper()
	c := meta.FindStatusCondition(w.bmc(name).Status.Conditions, kind)
	if c == nil {
		return ""
	}
	return string(c.Status) + " " + c.Reason
}

func (w *world) since(name, kind string) time.Time {
	w.t.Helper()
	c := meta.FindStatusCondition(w.bmc(name).Status.Conditions, kind)
	if c == nil {
		w.t.Fatalf("BMC %s has no condition %s", name, kind)
	}
	return c.LastTransitionTime.Time
}

func (w *world) expect(name, kind, want string) {
	w.t.Helper()
	if got := w.says(name, kind); got != want {
		w.t.Errorf("BMC %s says %s %q, want %q", name, kind, got, want)
	}
}

func reference(name string) *corev1.LocalObjectReference {
	return &corev1.LocalObjectReference{Name: name}
}

func targetOf(name string) hardware.Target { return hardware.Target{Key: name} }
