// SPDX-License-Identifier: Apache-2.0

package restored

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

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

const managerNamespace = "metalaw-system"

// world is an operator with everything around it. No restore of the store reaches its machines.
type world struct {
	fleet                                     *emulator.Fleet
	bmcPort                                   int
	providerAddress, providerURL, registryURL string
	stopBoots                                 func()
	// stop ends the manager that runs; nil while none does.
	stop     func()
	machines atomic.Int32
	// erasing holds the machines that an agent began to erase.
	erasing sync.Map
}

func newWorld(ctx context.Context) *world {
	GinkgoHelper()
	w := &world{providerAddress: fmt.Sprintf("127.0.0.1:%d", freePort(ctx)), registryURL: fmt.Sprintf("http://127.0.0.1:%d", freePort(ctx)),
		bmcPort: freePort(ctx)}
	w.providerURL = "http://" + w.providerAddress
	w.startBootProvider(ctx)
	guests, err := emulated.NewGuest(guest.Options{ProviderURL: w.providerURL, Interval: time.Second})
	Expect(err).NotTo(HaveOccurred())
	w.fleet = emulator.New(emulator.Options{Network: fmt.Sprintf("127.%d.0.0/16", 166+GinkgoParallelProcess()), Port: w.bmcPort, Guest: guests,
		Delays: emulator.Delays{Shutdown: -1}, Witness: func(h emulator.Happening) {
			if h.What == emulator.EraseBegun {
				w.erasing.Store(h.Machine, true)
			}
		}})
	Expect(w.fleet.Start(context.WithoutCancel(ctx))).To(Succeed())
	w.startManager(ctx)
	return w
}

func freePort(ctx context.Context) int {
	GinkgoHelper()
	port, err := env.FreePort(ctx)
	Expect(err).NotTo(HaveOccurred())
	return port
}

func (w *world) close() {
	w.stopManager()
	w.fleet.Close()
	w.stopBoots()
}

func (w *world) startBootProvider(ctx context.Context) {
	GinkgoHelper()
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	listening, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		ended <- bootprovider.Run(running, controlPlane.Config, bootprovider.Options{ListenAddress: w.providerAddress,
			Listening: func(address string) { listening <- address }})
	}()
	select {
	case <-listening:
	case err := <-ended:
		Fail(fmt.Sprintf("the boot provider ended: %v", err))
	}
	w.stopBoots = func() {
		cancel()
		Expect(<-ended).To(Succeed())
	}
}

// startManager runs the whole operator in this process, with the rights of the shipped service account.
func (w *world) startManager(ctx context.Context) {
	GinkgoHelper()
	rights, err := controlPlane.ConfigFor(env.Manager)
	Expect(err).NotTo(HaveOccurred())
	mgr, err := ctrl.NewManager(rights, ctrl.Options{Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
		Client:     client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}}}}})
	Expect(err).NotTo(HaveOccurred())
	shipped, err := policies.Default()
	Expect(err).NotTo(HaveOccurred())
	store, metrics := revision.NewStore(mgr.GetClient(), shipped), prometheus.NewRegistry()
	Expect(controllers.Setup(ctx, mgr, store, controllers.Options{Namespace: managerNamespace, ProbeImage: "probe:1", WipeImage: "wipe:1",
		RegistryURL: w.registryURL, SteadyPoll: time.Second, PowerGrace: 3 * time.Second, BootGrace: 6 * time.Second, NoReleaseGrace: true,
		RetryPause: time.Millisecond, StoreLook: 250 * time.Millisecond, Metrics: metrics})).To(Succeed())
	agents, err := registry.New(registry.Options{Reader: mgr.GetClient(), Live: mgr.GetAPIReader(), Writer: mgr.GetClient(),
		Recorder: mgr.GetEventRecorder("registry"), Address: strings.TrimPrefix(w.registryURL, "http://"), Plaintext: true, Metrics: metrics,
		UnauthorizedDelay: -1, HeldRetry: time.Second, AllowUnauthenticated: store.MayReport,
		AllowUnauthenticatedBootState: store.MayReportBootState})
	Expect(err).NotTo(HaveOccurred())
	Expect(mgr.Add(agents)).To(Succeed())
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(running) }()
	w.stop = func() {
		cancel()
		Expect(<-ended).To(Succeed())
	}
}

func (w *world) stopManager() {
	GinkgoHelper()
	if stop := w.stop; stop != nil {
		w.stop = nil
		stop()
	}
}

// available adds a machine with its BMC, and waits until its server is offered.
func (w *world) available(ctx context.Context) *emulator.Machine {
	GinkgoHelper()
	m := w.fleet.Add(emulator.MachineSpec{Name: fmt.Sprintf("m%03d", w.machines.Add(1)), Username: "admin", Password: "password"})
	Expect(m.Err()).NotTo(HaveOccurred())
	user, password := m.Credentials()
	create(ctx, &v1alpha1.BMCSecret{ObjectMeta: metav1.ObjectMeta{Name: m.Name()},
		Data: map[string][]byte{"username": []byte(user), "password": []byte(password)}})
	b := &v1alpha1.BMC{ObjectMeta: metav1.ObjectMeta{Name: m.Name(), Labels: map[string]string{"machine": m.Name()}}}
	b.Spec.Access = &v1alpha1.InlineEndpoint{IP: m.Address()}
	b.Spec.BMCSecretRef.Name = m.Name()
	b.Spec.Protocol = v1alpha1.Protocol{Name: v1alpha1.ProtocolRedfish, Port: int32(w.bmcPort), Scheme: v1alpha1.ProtocolSchemeHTTP}
	create(ctx, b)
	Eventually(state(ctx, m)).Should(Equal("Available/Off"))
	return m
}

// touched lists what a BMC was asked to change since a mark, sessions left out.
func (w *world) touched(m *emulator.Machine, since int) func() []string {
	return func() []string {
		var all []string
		for _, one := range w.fleet.Writes(emulator.Filter{Machine: m.Name(), Since: since}) {
			if !strings.Contains(one.Path, "/Sessions") {
				all = append(all, one.Method+" "+one.Path+" "+one.Body)
			}
		}
		return all
	}
}
