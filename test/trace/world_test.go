// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers"
	"github.com/metalaw/metalaw/controllers/revision"
	"github.com/metalaw/metalaw/metalprobe/registry"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/redfish/emulator"
	"github.com/metalaw/metalaw/test/bootprovider"
	"github.com/metalaw/metalaw/test/emulated"
	"github.com/metalaw/metalaw/test/env"
	"github.com/metalaw/metalaw/test/guest"
)

const (
	tenants   = "default"
	namespace = "metalaw-system"
	// patience is how long anything is waited for.
	patience = 2 * time.Minute
)

// world is a control plane, the whole operator under its shipped rights with the recorder around it, and emulated machines.
type world struct {
	*recorder
	plane    *env.Env
	admin    client.Client
	scheme   *runtime.Scheme
	fleet    *emulator.Fleet
	port     int
	registry string
	stop     func() error
}

func newWorld(t *testing.T) *world {
	t.Helper()
	ctrllog.SetLogger(logr.Discard())
	w := &world{recorder: newRecorder(), scheme: runtime.NewScheme(),
		plane: env.ForTest(t.Context(), t, env.Options{Kustomize: []string{"config/default"}, StartTimeout: 2 * time.Minute})}
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme, policyv1alpha1.AddToScheme} {
		must(t, add(w.scheme))
	}
	var err error
	w.admin, err = client.New(w.plane.Config, client.Options{Scheme: w.scheme})
	must(t, err)
	must(t, w.plane.RemoveWebhooks(t.Context())) // admission is tested elsewhere
	guests, err := emulated.NewGuest(guest.Options{ProviderURL: w.bootProvider(t), Interval: 500 * time.Millisecond})
	must(t, err)
	w.port, err = env.FreePort(t.Context())
	must(t, err)
	free, err := env.FreePort(t.Context())
	must(t, err)
	w.registry = fmt.Sprintf("127.0.0.1:%d", free)
	w.fleet = emulator.New(emulator.Options{Seed: 1, Network: "127.93.0.0/16", Port: w.port, Guest: guests, Delays: emulator.Delays{Shutdown: -1},
		Interfere: func(write emulator.Write, done bool) bool {
			if !done {
				w.asked(write)
			}
			return true
		}})
	must(t, w.fleet.Start(context.WithoutCancel(t.Context())))
	t.Cleanup(w.fleet.Close)
	w.startManager(t)
	t.Cleanup(func() { w.stopManager(t) })
	return w
}

func (w *world) bootProvider(t *testing.T) string {
	t.Helper()
	running, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	listening, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		ended <- bootprovider.Run(running, w.plane.Config, bootprovider.Options{ListenAddress: "127.0.0.1:0",
			Listening: func(address string) { listening <- address }})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the boot provider: %v", err)
		}
	})
	select {
	case address := <-listening:
		return "http://" + address
	case <-time.After(patience):
		t.Fatal("the boot provider does not listen")
		return ""
	}
}

// startManager runs the operator as the program does. The registry has a client of its own, of which nothing is recorded.
func (w *world) startManager(t *testing.T) {
	t.Helper()
	rights, err := w.plane.ConfigFor(env.Manager)
	must(t, err)
	unrecorded, err := client.New(rights, client.Options{Scheme: w.scheme})
	must(t, err)
	recorded := *rights
	recorded.Wrap(w.through)
	mgr, err := ctrl.NewManager(&recorded, ctrl.Options{Scheme: w.scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
		Client:     client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}}}}})
	must(t, err)
	embedded, err := policies.Default()
	must(t, err)
	store := revision.NewStore(mgr.GetClient(), embedded)
	metrics := prometheus.NewRegistry()
	must(t, controllers.Setup(t.Context(), mgr, store, controllers.Options{Namespace: namespace, ProbeImage: "probe:1", WipeImage: "wipe:1",
		RegistryURL: "http://" + w.registry, SteadyPoll: 2 * time.Second, PowerGrace: 3 * time.Second, BootGrace: 6 * time.Second, NoReleaseGrace: true,
		RetryPause: time.Millisecond, Metrics: metrics}))
	agents, err := registry.New(registry.Options{Reader: mgr.GetClient(), Live: unrecorded, Writer: unrecorded,
		Address: w.registry, Plaintext: true, Metrics: metrics, UnauthorizedDelay: -1, HeldRetry: time.Second,
		AllowUnauthenticated: store.MayReport, AllowUnauthenticatedBootState: store.MayReportBootState,
		Demands: store.WipeDemands, IdentityRequired: store.IdentityRequired})
	must(t, err)
	must(t, mgr.Add(agents))
	running, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(running) }()
	w.stop = func() error {
		cancel()
		return <-ended
	}
}

func (w *world) stopManager(t *testing.T) {
	t.Helper()
	must(t, w.stop())
}

// add adds a machine, and the objects by which the operator finds it.
func (w *world) add(t *testing.T, name string, power emulator.PowerState) *emulator.Machine {
	t.Helper()
	m := w.fleet.Add(emulator.MachineSpec{Name: name, Username: "admin", Password: "password", Power: power})
	must(t, m.Err())
	must(t, w.admin.Create(t.Context(), &v1alpha1.BMCSecret{ObjectMeta: metav1.ObjectMeta{Name: name},
		Data: map[string][]byte{"username": []byte("admin"), "password": []byte("password")}}))
	b := &v1alpha1.BMC{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"machine": name}}}
	b.Spec.Access = &v1alpha1.InlineEndpoint{IP: m.Address()}
	b.Spec.BMCSecretRef.Name = name
	b.Spec.Protocol = v1alpha1.Protocol{Name: v1alpha1.ProtocolRedfish, Port: int32(w.port), Scheme: v1alpha1.ProtocolSchemeHTTP}
	must(t, w.admin.Create(t.Context(), b))
	return m
}

// claim makes a claim that one machine alone can serve.
func (w *world) claim(t *testing.T, name string) {
	t.Helper()
	c := &v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: tenants, Name: name}}
	c.Spec.Power, c.Spec.Image = v1alpha1.PowerOn, "os:1"
	c.Spec.ServerSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"machine": name}}
	if err := w.admin.Create(t.Context(), c); !apierrors.IsAlreadyExists(err) {
		must(t, err)
	}
}

func (w *world) unclaim(t *testing.T, name string) {
	t.Helper()
	must(t, client.IgnoreNotFound(w.admin.Delete(t.Context(), &v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: tenants, Name: name}})))
}

// power changes what a claim asks for.
func (w *world) power(t *testing.T, name string, power v1alpha1.Power) {
	t.Helper()
	change(t, w, &v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: tenants, Name: name}},
		func(c *v1alpha1.ServerClaim) { c.Spec.Power = power })
}

// annotate changes an annotation of a Server.
func (w *world) annotate(t *testing.T, machine, annotation, value string) {
	t.Helper()
	change(t, w, &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: serverOf(machine)}},
		func(s *v1alpha1.Server) { metav1.SetMetaDataAnnotation(&s.ObjectMeta, annotation, value) })
}

// change changes an object, if it exists.
func change[T client.Object](t *testing.T, w *world, object T, by func(T)) {
	t.Helper()
	for {
		err := w.admin.Get(t.Context(), client.ObjectKeyFromObject(object), object)
		if err == nil {
			by(object)
			err = w.admin.Update(t.Context(), object)
		}
		if !apierrors.IsConflict(err) {
			must(t, client.IgnoreNotFound(err))
			return
		}
	}
}

func serverOf(machine string) string { return machine + "-system-0" }

func (w *world) read(t *testing.T, machine string) *v1alpha1.Server {
	t.Helper()
	s := &v1alpha1.Server{}
	must(t, client.IgnoreNotFound(w.admin.Get(t.Context(), types.NamespacedName{Name: serverOf(machine)}, s)))
	return s
}

// becomes waits for the state and power of a server at rest.
func (w *world) becomes(t *testing.T, machine, want string) {
	t.Helper()
	w.until(t, machine+" to be "+want, func() (string, bool) {
		s := w.read(t, machine)
		got := fmt.Sprintf("%s/%s", s.Status.State, s.Status.PowerState)
		return got, got == want && (s.Status.Operation == nil || s.Status.Operation.FinishedAt != nil) &&
			meta.IsStatusConditionTrue(s.Status.Conditions, v1alpha1.ConditionReady)
	})
}

func (w *world) until(t *testing.T, what string, done func() (string, bool)) {
	t.Helper()
	for end := time.Now().Add(patience); ; {
		got, ok := done()
		if ok {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("waited for %s: it is %s", what, got)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
