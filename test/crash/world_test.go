// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/redfish/emulator"
	"github.com/metalaw/metalaw/test/bootprovider"
	"github.com/metalaw/metalaw/test/emulated"
	"github.com/metalaw/metalaw/test/env"
	"github.com/metalaw/metalaw/test/guest"
)

const (
	managerNamespace = "metalaw-system"
	certificateName  = "metalaw-webhook-certs"
	// bmcPort is the port of every emulated BMC; the MAC prefix database of the default bundle says the same.
	bmcPort = 8000
	// powerDelay is how long a machine takes to switch, and grace after which time a BMC is asked again.
	powerDelay, grace = 300 * time.Millisecond, 3 * time.Second
)

// world is a control plane with a manager that can be killed at any write, and everything around it.
type world struct {
	plane   *env.Env
	admin   client.Client
	fleet   *emulator.Fleet
	ledger  *ledger
	killer  *killer
	manager *env.Operator
	// standby is the second manager, where two are asked for.
	standby *env.Operator
	// leader leads at present, as far as the lease tells, and led are all that ever did.
	leader  atomic.Pointer[env.Operator]
	led     sync.Map
	proxies []*httptest.Server
	metrics string // where the manager's metrics are; empty where nobody asks for them
	guard   *bindings

	dir      string
	life     context.Context
	end      context.CancelFunc
	helpers  sync.WaitGroup
	provider string
	machines int
	mu       sync.Mutex
}

// newWorld starts everything but the manager.
func newWorld(ctx context.Context) *world {
	GinkgoHelper()
	return newWorldFor(ctx, env.Options{}, (*world).prepareManager)
}

// newWorldFor starts everything but the managers, which it has prepared.
func newWorldFor(ctx context.Context, o env.Options, prepare func(*world, context.Context)) *world {
	GinkgoHelper()
	w := &world{ledger: newLedger(grace), dir: GinkgoT().TempDir()}
	w.life, w.end = context.WithCancel(context.WithoutCancel(ctx))
	DeferCleanup(w.close)
	var err error
	o.Kustomize, o.StartTimeout = []string{"config/default"}, 2*time.Minute
	w.plane, err = env.Start(w.life, o)
	Expect(err).NotTo(HaveOccurred())
	w.admin, err = client.New(w.plane.Config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	w.guard = watchBindings(w.life, &w.helpers, w.plane.Config)
	w.startBootProvider()
	prepare(w, ctx)
	w.startFleet()
	return w
}

func (w *world) close() {
	for _, m := range []*env.Operator{w.standby, w.manager} {
		if m != nil {
			m.Stop(stopGrace)
		}
	}
	if w.fleet != nil {
		w.fleet.Close()
	}
	w.end()
	w.helpers.Wait()
	for _, proxy := range w.proxies {
		proxy.CloseClientConnections()
		proxy.Close()
	}
	if w.plane != nil {
		w.plane.KeepLogs = CurrentSpecReport().Failed()
		if w.plane.KeepLogs {
			GinkgoWriter.Println("the logs are in", w.plane.LogDir())
		}
		Expect(w.plane.Stop()).To(Succeed())
	}
}

func (w *world) startBootProvider() {
	GinkgoHelper()
	listening := make(chan string, 1)
	w.helpers.Go(func() {
		defer GinkgoRecover()
		Expect(bootprovider.Run(w.life, w.plane.Config, bootprovider.Options{ListenAddress: "127.0.0.1:0",
			Listening: func(address string) { listening <- address }})).To(Succeed())
	})
	Eventually(listening).WithTimeout(30 * time.Second).Should(Receive(&w.provider))
}

func (w *world) startFleet() {
	GinkgoHelper()
	guests, err := emulated.NewGuest(guest.Options{ProviderURL: "http://" + w.provider, Interval: time.Second, OnBoot: w.ledger.booted,
		Retry: guest.Retry{First: 50 * time.Millisecond, Max: time.Second}})
	Expect(err).NotTo(HaveOccurred())
	for range 20 { // somebody else may use the network
		w.fleet = emulator.New(emulator.Options{Network: fmt.Sprintf("127.%d.%d.0/24", 100+rand.IntN(100), rand.IntN(256)), Port: bmcPort,
			Guest: guests, Delays: emulator.Delays{Power: powerDelay}, JournalLimit: 1_000_000,
			Interfere: func(write emulator.Write, done bool) bool {
				when := beforehand
				if done {
					when = afterwards
				}
				return w.killer.passes(bmcKind(write), when)
			}})
		if err = w.fleet.Start(w.life); err == nil {
			break
		}
	}
	Expect(err).NotTo(HaveOccurred())
}

// prepareManager makes everything that the manager needs to start: ports, rights, certificates.
func (w *world) prepareManager(ctx context.Context) {
	GinkgoHelper()
	at := freeAddresses(ctx)
	w.manager = w.newManager(ctx, "manager", at, at)
	w.killer = newKiller(w.manager.Kill)
	w.mountCertificates(ctx, at.webhook)
}

// addresses are where a manager serves, each as a port of this machine.
type addresses struct{ webhook, registry, health int }

func freeAddresses(ctx context.Context) addresses {
	GinkgoHelper()
	var ports [3]int
	for i := range ports {
		var err error
		ports[i], err = env.FreePort(ctx)
		Expect(err).NotTo(HaveOccurred())
	}
	return addresses{ports[0], ports[1], ports[2]}
}

// newManager makes a manager that serves at some addresses, and is known to others by public ones.
func (w *world) newManager(ctx context.Context, name string, at, public addresses, flags ...string) *env.Operator {
	GinkgoHelper()
	root, err := env.RepoRoot()
	Expect(err).NotTo(HaveOccurred())
	binary := filepath.Join(root, "bin", "metalaw")
	Expect(binary).To(BeAnExistingFile(), "run `make build`")
	Expect(os.MkdirAll(w.certificates(), 0o700)).To(Succeed())
	var m *env.Operator
	proxy, ca, err := startProxy(w.plane.Config, func(kind string, when moment) bool {
		if when == afterwards && strings.HasSuffix(kind, " leases metalaw-leader") {
			w.leader.Store(m)
			w.led.Store(m, true)
		}
		return w.killer.passes(kind, when)
	})
	Expect(err).NotTo(HaveOccurred())
	w.proxies = append(w.proxies, proxy)
	m = w.plane.OperatorWith(name, binary, local(at.health), append([]string{
		"manager", "--kubeconfig=" + w.kubeconfig(ctx, name, proxy.URL, ca), "--namespace=" + managerNamespace,
		"--webhook-host=127.0.0.1", "--webhook-port=" + strconv.Itoa(at.webhook), "--webhook-cert-dir=" + w.certificates(), "--extra-dns-names=localhost",
		"--registry-bind-address=" + local(at.registry), fmt.Sprintf("--registry-url=https://localhost:%d", public.registry),
		"--health-probe-bind-address=" + local(at.health), "--metrics-bind-address=0",
		"--power-grace=" + grace.String(), "--steady-poll=2s", "--no-release-grace", "--log-level=debug",
	}, flags...))
	return m
}

func (w *world) certificates() string { return filepath.Join(w.dir, "certs") }

// mountCertificates has the API server call the webhooks at a port, and the managers find their certificates.
func (w *world) mountCertificates(ctx context.Context, webhook int) {
	GinkgoHelper()
	Expect(w.plane.PointWebhooksAt(ctx, local(webhook), nil)).To(Succeed())
	w.helpers.Go(func() { w.mount(w.certificates()) })
}

// kubeconfig is a manager's: its own token, at its proxy.
func (w *world) kubeconfig(ctx context.Context, name, url string, ca []byte) string {
	GinkgoHelper()
	clients, err := kubernetes.NewForConfig(w.plane.Config)
	Expect(err).NotTo(HaveOccurred())
	token, err := clients.CoreV1().ServiceAccounts(managerNamespace).CreateToken(ctx, "metalaw-manager",
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(7200))}}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	path := filepath.Join(w.dir, name+".kubeconfig")
	Expect(clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: url, CertificateAuthorityData: ca}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"m": {Token: token.Status.Token}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "m"}},
		CurrentContext: "x",
	}, path)).To(Succeed())
	return path
}

// mount keeps the folder in step with the Secret, as the kubelet does.
func (w *world) mount(dir string) {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	shown := ""
	for {
		select {
		case <-w.life.Done():
			return
		case <-tick.C:
		}
		secret := &corev1.Secret{}
		err := w.admin.Get(w.life, types.NamespacedName{Namespace: managerNamespace, Name: certificateName}, secret)
		if err != nil || secret.ResourceVersion == shown || len(secret.Data) == 0 {
			continue
		}
		for name, content := range secret.Data {
			err = os.WriteFile(filepath.Join(dir, name+".new"), content, 0o600)
			if err == nil {
				err = os.Rename(filepath.Join(dir, name+".new"), filepath.Join(dir, name))
			}
		}
		if err == nil {
			shown = secret.ResourceVersion
		}
	}
}

// machine adds an emulated machine. Every second one has a BMC that ends an unused session soon.
func (w *world) machine() *emulator.Machine {
	GinkgoHelper()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.machines++
	spec := emulator.MachineSpec{Name: fmt.Sprintf("m%03d", w.machines), Profile: emulator.ProfileGeneric}
	if w.machines%2 == 0 {
		spec.Tweak = func(p *emulator.Profile) { p.SessionTimeout = 30 * time.Second }
	}
	m := w.fleet.Add(spec)
	Expect(m.Err()).NotTo(HaveOccurred())
	w.ledger.add(m)
	return m
}

func local(port int) string { return "127.0.0.1:" + strconv.Itoa(port) }
