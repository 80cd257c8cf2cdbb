// SPDX-License-Identifier: Apache-2.0

// Package trees takes captured Redfish trees of real BMCs through the whole operator: onboarding, inspection, a claim, its
// release and the wipe, against a real API server.
package trees

import (
	"context"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/log"
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
	managerNamespace = "metalaw-system"
	// tenants is the namespace in which the trees are claimed.
	tenants = "default"
)

// world is a running operator with a boot provider and emulated BMCs, shared by all trees.
type world struct {
	plane   *env.Env
	admin   client.Client
	scheme  *runtime.Scheme
	fleet   *emulator.Fleet
	bmcPort int
}

func newWorld(t *testing.T) *world {
	t.Helper()
	g := NewWithT(t)
	log.SetLogger(ctrl.Log.WithSink(nil))
	w := &world{scheme: runtime.NewScheme()}
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme, policyv1alpha1.AddToScheme} {
		g.Expect(add(w.scheme)).To(Succeed())
	}
	w.plane = env.ForTest(t.Context(), t, env.Options{Kustomize: []string{"config/default"}})
	var err error
	w.admin, err = client.New(w.plane.Config, client.Options{Scheme: w.scheme})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(w.plane.RemoveWebhooks(t.Context())).To(Succeed()) // admission has specs of its own
	provider := w.startBootProvider(t)
	guests, err := emulated.NewGuest(guest.Options{ProviderURL: provider, Interval: time.Second})
	g.Expect(err).NotTo(HaveOccurred())
	w.bmcPort, err = env.FreePort(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	w.fleet = emulator.New(emulator.Options{Network: "127.90.0.0/24", Port: w.bmcPort, Guest: guests,
		Username: "admin", Password: "password", Delays: emulator.Delays{Shutdown: -1}})
	g.Expect(w.fleet.Start(context.WithoutCancel(t.Context()))).To(Succeed())
	t.Cleanup(w.fleet.Close)
	w.startManager(t)
	return w
}

// inBackground runs until the test ends, and fails it where run returns an error.
func inBackground(t *testing.T, run func(context.Context) error) {
	t.Helper()
	running, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- run(running) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func (w *world) startBootProvider(t *testing.T) string {
	t.Helper()
	listening := make(chan string, 1)
	inBackground(t, func(ctx context.Context) error {
		return bootprovider.Run(ctx, w.plane.Config, bootprovider.Options{ListenAddress: "127.0.0.1:0",
			Listening: func(address string) { listening <- address }})
	})
	select {
	case address := <-listening:
		return "http://" + address
	case <-time.After(time.Minute):
		t.Fatal("the boot provider does not listen")
		return ""
	}
}

// startManager runs the whole operator in this process, with the rights of the shipped service account.
func (w *world) startManager(t *testing.T) {
	t.Helper()
	g := NewWithT(t)
	rights, err := w.plane.ConfigFor(env.Manager)
	g.Expect(err).NotTo(HaveOccurred())
	mgr, err := ctrl.NewManager(rights, ctrl.Options{Scheme: w.scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
		Client:     client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}}}}})
	g.Expect(err).NotTo(HaveOccurred())
	embedded, err := policies.Default()
	g.Expect(err).NotTo(HaveOccurred())
	store := revision.NewStore(mgr.GetClient(), embedded)
	port, err := env.FreePort(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	address, metrics := fmt.Sprintf("127.0.0.1:%d", port), prometheus.NewRegistry()
	g.Expect(controllers.Setup(t.Context(), mgr, store, controllers.Options{Namespace: managerNamespace, ProbeImage: "probe:1", WipeImage: "wipe:1",
		RegistryURL: "http://" + address, SteadyPoll: 2 * time.Second, PowerGrace: 3 * time.Second, BootGrace: 6 * time.Second, NoReleaseGrace: true,
		RetryPause: time.Millisecond, Metrics: metrics})).To(Succeed())
	agents, err := registry.New(registry.Options{Reader: mgr.GetClient(), Live: mgr.GetAPIReader(), Writer: mgr.GetClient(),
		Recorder: mgr.GetEventRecorder("registry"), Address: address, Plaintext: true, Metrics: metrics, UnauthorizedDelay: -1, HeldRetry: time.Second,
		Demands: store.WipeDemands})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(mgr.Add(agents)).To(Succeed())
	inBackground(t, mgr.Start)
}

// announce makes the objects by which the operator finds a BMC.
func (w *world) announce(t *testing.T, m *emulator.Machine, annotations map[string]string) {
	t.Helper()
	g := NewWithT(t)
	user, password := m.Credentials()
	secret := &v1alpha1.BMCSecret{ObjectMeta: metav1.ObjectMeta{Name: m.Name()}, Data: map[string][]byte{"username": []byte(user), "password": []byte(password)}}
	g.Expect(w.admin.Create(t.Context(), secret)).To(Succeed())
	b := &v1alpha1.BMC{ObjectMeta: metav1.ObjectMeta{Name: m.Name(), Annotations: annotations}}
	b.Spec.Access = &v1alpha1.InlineEndpoint{IP: m.Address()}
	b.Spec.BMCSecretRef.Name = m.Name()
	b.Spec.Protocol = v1alpha1.Protocol{Name: v1alpha1.ProtocolRedfish, Port: int32(w.bmcPort), Scheme: v1alpha1.ProtocolSchemeHTTP}
	g.Expect(w.admin.Create(t.Context(), b)).To(Succeed())
}
