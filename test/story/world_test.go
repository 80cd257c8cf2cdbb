// SPDX-License-Identifier: Apache-2.0

package story

import (
	"context"
	"fmt"
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
	"github.com/metalaw/metalaw/controllers/maintenance"
	"github.com/metalaw/metalaw/controllers/revision"
	"github.com/metalaw/metalaw/metalprobe/registry"
	"github.com/metalaw/metalaw/redfish/emulator"
	"github.com/metalaw/metalaw/test/bootprovider"
	"github.com/metalaw/metalaw/test/emulated"
	"github.com/metalaw/metalaw/test/env"
	"github.com/metalaw/metalaw/test/guest"
)

const managerNamespace = "metalaw-system"

// world is a running operator with everything around it.
type world struct {
	fleet *emulator.Fleet
	// bmcPort is where every BMC listens, each at an address of its own.
	bmcPort     int
	providerURL string
	registryURL string
	stopBoots   func()
	// guests are what runs on machines.
	guests emulator.Guest
	// stop ends the manager that runs; nil while none does.
	stop     func()
	machines atomic.Int32
	// erasing holds, by machine and drive, that somebody began to erase it.
	erasing sync.Map
	// booted is what machines booted, by UUID.
	booted boots
	// crash is where the manager is cut off from the API server.
	crash crash
	// options changes those of a manager that starts; nil leaves them.
	options func(*controllers.Options)
}

func newWorld(ctx context.Context) *world {
	GinkgoHelper()
	w := &world{}
	w.startBootProvider(ctx)
	guests, err := emulated.NewGuest(guest.Options{ProviderURL: w.providerURL, Interval: time.Second, OnBoot: w.booted.add})
	Expect(err).NotTo(HaveOccurred())
	w.guests = guests
	w.bmcPort, err = env.FreePort(ctx)
	Expect(err).NotTo(HaveOccurred())
	w.fleet = emulator.New(emulator.Options{Network: fmt.Sprintf("127.%d.0.0/16", 66+GinkgoParallelProcess()), Port: w.bmcPort, Guest: guests,
		Delays: emulator.Delays{Shutdown: -1}, Witness: w.saw})
	Expect(w.fleet.Start(context.WithoutCancel(ctx))).To(Succeed())
	w.startManager(ctx)
	return w
}

func (w *world) saw(h emulator.Happening) {
	if h.What == emulator.EraseBegun {
		w.erasing.Store(h.Machine+"/"+h.Drive, true)
	}
}

// begunToErase says whether somebody ever began to erase that drive, whatever is reported of it.
func (w *world) begunToErase(m *emulator.Machine, drive string) func() bool {
	return func() bool { _, begun := w.erasing.Load(m.Name() + "/" + drive); return begun }
}

func (w *world) close() {
	w.stopManager()
	w.fleet.Close()
	w.stopBoots()
}

func (w *world) startBootProvider(ctx context.Context) {
	GinkgoHelper()
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	listening := make(chan string, 1)
	ended := make(chan error, 1)
	go func() {
		ended <- bootprovider.Run(running, controlPlane.Config, bootprovider.Options{ListenAddress: "127.0.0.1:0",
			Listening: func(address string) { listening <- address }})
	}()
	select {
	case address := <-listening:
		w.providerURL = "http://" + address
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
		NewClient:  w.crash.client,
		Client:     client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}}}}})
	Expect(err).NotTo(HaveOccurred())
	store := revision.NewStore(mgr.GetClient(), shipped())
	store.Accept = believing(store.Accept)
	if w.registryURL == "" {
		port, err := env.FreePort(ctx)
		Expect(err).NotTo(HaveOccurred())
		w.registryURL = fmt.Sprintf("http://127.0.0.1:%d", port)
	}
	metrics := prometheus.NewRegistry()
	o := controllers.Options{Namespace: managerNamespace, ProbeImage: "probe:1", WipeImage: "wipe:1",
		RegistryURL: w.registryURL, SteadyPoll: 2 * time.Second, PowerGrace: 3 * time.Second, BootGrace: 6 * time.Second, NoReleaseGrace: true,
		RetryPause: time.Millisecond, Maintenance: maintenance.On, Metrics: metrics}
	if w.options != nil {
		w.options(&o)
	}
	Expect(controllers.Setup(ctx, mgr, store, o)).To(Succeed())
	agents, err := registry.New(registry.Options{Reader: mgr.GetClient(), Live: mgr.GetAPIReader(), Writer: mgr.GetClient(),
		Recorder: mgr.GetEventRecorder("registry"), Address: w.registryURL[len("http://"):], Plaintext: true, Metrics: metrics, UnauthorizedDelay: -1,
		HeldRetry: time.Second, AllowUnauthenticated: store.MayReport, AllowUnauthenticatedBootState: store.MayReportBootState,
		Demands: store.WipeDemands, IdentityRequired: store.IdentityRequired})
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

// stopManager ends the manager, if one runs. A spec that fails meanwhile leaves none behind; the next one finds one all the
// same.
func (w *world) stopManager() {
	GinkgoHelper()
	if stop := w.stop; stop != nil {
		w.stop = nil
		stop()
	}
}

// machine adds an emulated machine with its BMC, and the BMC and BMCSecret objects that let the operator find it. The
// Server that appears is named NAME-system-0. What is called before finds the machine unknown to the operator.
func (w *world) machine(ctx context.Context, change func(*emulator.MachineSpec), before ...func(*emulator.Machine)) *emulator.Machine {
	GinkgoHelper()
	n := w.machines.Add(1)
	spec := emulator.MachineSpec{Name: fmt.Sprintf("m%03d", n), Username: "admin", Password: "password"}
	if change != nil {
		change(&spec)
	}
	m := w.fleet.Add(spec)
	Expect(m.Err()).NotTo(HaveOccurred())
	for _, prepare := range before {
		prepare(m)
	}
	w.announce(ctx, m, nil)
	return m
}

// announce makes the objects by which the operator finds a machine.
func (w *world) announce(ctx context.Context, m *emulator.Machine, labels map[string]string) {
	GinkgoHelper()
	user, password := m.Credentials()
	secret := &v1alpha1.BMCSecret{ObjectMeta: metav1.ObjectMeta{Name: m.Name()}, Data: map[string][]byte{"username": []byte(user), "password": []byte(password)}}
	Expect(client.IgnoreAlreadyExists(admin.Create(ctx, secret))).To(Succeed())
	b := &v1alpha1.BMC{ObjectMeta: metav1.ObjectMeta{Name: m.Name(), Labels: map[string]string{"machine": m.Name()}}}
	for k, v := range labels {
		b.Labels[k] = v
	}
	b.Spec.Access = &v1alpha1.InlineEndpoint{IP: m.Address()}
	b.Spec.BMCSecretRef.Name = m.Name()
	b.Spec.Protocol = v1alpha1.Protocol{Name: v1alpha1.ProtocolRedfish, Port: int32(w.bmcPort), Scheme: v1alpha1.ProtocolSchemeHTTP}
	Expect(admin.Create(ctx, b)).To(Succeed())
}

// serverOf is the name of the Server that stands for a machine.
func serverOf(m *emulator.Machine) string { return m.Name() + "-system-0" }

// available adds a machine and waits until it is offered.
func (w *world) available(ctx context.Context) *emulator.Machine {
	GinkgoHelper()
	m := w.machine(ctx, nil)
	Eventually(state(ctx, serverOf(m))).Should(Equal("Available/Off"))
	return m
}

// bootedBy lists what a machine booted, oldest first.
func (w *world) bootedBy(m *emulator.Machine) func() []string {
	return func() []string { return w.booted.of(m.Identity().UUID) }
}
