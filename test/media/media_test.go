// SPDX-License-Identifier: Apache-2.0

// Package media holds the spec of the whole way by virtual media: the operator and the boot service, each with its shipped rights,
// against a real API server, a registry, and an emulated BMC that reads its ISO images.
package media

import (
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers"
	"github.com/metalaw/metalaw/controllers/bootservice"
	"github.com/metalaw/metalaw/controllers/revision"
	"github.com/metalaw/metalaw/internal/bootserver"
	"github.com/metalaw/metalaw/internal/bootserver/images"
	"github.com/metalaw/metalaw/internal/tools/metalaw-image/oci"
	agents "github.com/metalaw/metalaw/metalprobe/registry"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/redfish/emulator"
	"github.com/metalaw/metalaw/test/emulated"
	"github.com/metalaw/metalaw/test/env"
	"github.com/metalaw/metalaw/test/guest"
)

const system = "metalaw-system"

// world is an operator, a boot service and a fleet.
type world struct {
	*env.Env
	scheme   *runtime.Scheme
	admin    client.Client
	image    string
	mediaURL string
	fleet    *emulator.Fleet
	port     int
	// registryHost is the address at which machines reach this host.
	registryHost string
	// anySource serves an ISO to every address: virtual machines read it from here.
	anySource bool
}

// newWorld serves a boot image with that UKI. Machines of the fleet run the stand-in agent; virtual ones bring their own guests.
func newWorld(t *testing.T, uki []byte, change ...func(*world)) *world {
	t.Helper()
	g := NewWithT(t)
	w := &world{scheme: runtime.NewScheme(), registryHost: "127.0.0.1"}
	for _, f := range change {
		f(w)
	}
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme, policyv1alpha1.AddToScheme} {
		g.Expect(add(w.scheme)).To(Succeed())
	}
	w.Env = env.ForTest(t.Context(), t, env.Options{Kustomize: []string{"config/default", "config/boot"}})
	g.Expect(w.RemoveWebhooks(t.Context())).To(Succeed())
	var err error
	w.admin, err = client.New(w.Config, client.Options{Scheme: w.scheme})
	g.Expect(err).NotTo(HaveOccurred())
	host := w.pushImage(t, g, uki)
	w.startBootService(t, g, host)
	w.startFleet(t, g)
	w.startManager(t, g)
	return w
}

// pushImage pushes a boot image to a registry of the test.
func (w *world) pushImage(t *testing.T, g *WithT, uki []byte) (host string) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	host = strings.TrimPrefix(server.URL, "http://")
	w.image = host + "/boot:v1"
	image, err := oci.BootImage(oci.Boot{Arch: "amd64", UKI: uki})
	g.Expect(err).NotTo(HaveOccurred())
	ref, err := name.ParseReference(w.image)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(remote.WriteIndex(ref, oci.Index(map[string]v1.Image{"amd64": image}))).To(Succeed())
	return host
}

// start runs a manager until the test ends.
func start(t *testing.T, mgr manager.Manager) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func (w *world) newManager(g *WithT, account string) manager.Manager {
	rights, err := w.ConfigFor(env.ServiceAccount(system, account))
	g.Expect(err).NotTo(HaveOccurred())
	mgr, err := ctrl.NewManager(rights, ctrl.Options{Scheme: w.scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)},
		Client:     client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}}}}})
	g.Expect(err).NotTo(HaveOccurred())
	return mgr
}

// startBootService runs the boot service with the rights of its own account.
func (w *world) startBootService(t *testing.T, g *WithT, host string) {
	mgr := w.newManager(g, "metalaw-boot")
	store, err := images.New(images.Options{Folder: t.TempDir(), Limit: 1 << 28, Allowed: []string{host}, Arch: "amd64"})
	g.Expect(err).NotTo(HaveOccurred())
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	w.mediaURL = "http://" + listener.Addr().String()
	source := &bootservice.Source{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Images: store}
	reconciler := &bootservice.Reconciler{Source: source, MediaURL: w.mediaURL}
	g.Expect(reconciler.Setup(t.Context(), mgr, 4)).To(Succeed())
	quiet := slog.New(slog.DiscardHandler)
	handler := bootserver.Media(bootserver.Options{Source: source, Images: store, Arch: "amd64", AnySource: w.anySource, Log: quiet})
	g.Expect(mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		return bootserver.Serve(ctx, listener, handler, nil, quiet)
	}))).To(Succeed())
	start(t, mgr)
}

func (w *world) startFleet(t *testing.T, g *WithT) {
	guests, err := emulated.NewGuest(guest.Options{ProviderURL: "http://127.0.0.1:1", Interval: time.Second}) // no machine asks it
	g.Expect(err).NotTo(HaveOccurred())
	w.port, err = env.FreePort(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	w.fleet = emulator.New(emulator.Options{Network: "127.93.0.0/16", Port: w.port, Guest: guests, Delays: emulator.Delays{Shutdown: -1}})
	g.Expect(w.fleet.Start(context.WithoutCancel(t.Context()))).To(Succeed())
	t.Cleanup(w.fleet.Close)
}

func (w *world) startManager(t *testing.T, g *WithT) {
	mgr := w.newManager(g, "metalaw-manager")
	embedded, err := policies.Default()
	g.Expect(err).NotTo(HaveOccurred())
	store := revision.NewStore(mgr.GetClient(), embedded)
	port, err := env.FreePort(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	url, metrics := "http://"+net.JoinHostPort(w.registryHost, strconv.Itoa(port)), prometheus.NewRegistry()
	g.Expect(controllers.Setup(t.Context(), mgr, store, controllers.Options{Namespace: system, ProbeImage: w.image, WipeImage: w.image, RegistryURL: url,
		MediaURL: w.mediaURL, SteadyPoll: 2 * time.Second, PowerGrace: 3 * time.Second, BootGrace: 6 * time.Second, RetryPause: time.Millisecond, NoReleaseGrace: true,
		Metrics: metrics})).To(Succeed())
	reports, err := agents.New(agents.Options{Reader: mgr.GetClient(), Live: mgr.GetAPIReader(), Writer: mgr.GetClient(),
		Recorder: mgr.GetEventRecorder("registry"), Address: fmt.Sprintf("127.0.0.1:%d", port), Plaintext: true, Metrics: metrics, UnauthorizedDelay: -1,
		HeldRetry: time.Second, IdentityRequired: store.IdentityRequired, AllowUnauthenticated: store.MayReport, AllowUnauthenticatedBootState: store.MayReportBootState})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(mgr.Add(reports)).To(Succeed())
	start(t, mgr)
}

// announce makes the objects by which the operator finds a machine, which boots from virtual media alone.
func (w *world) announce(t *testing.T, g *WithT, m *emulator.Machine) {
	user, password := m.Credentials()
	secret := &v1alpha1.BMCSecret{ObjectMeta: metav1.ObjectMeta{Name: m.Name()}, Data: map[string][]byte{"username": []byte(user), "password": []byte(password)}}
	g.Expect(w.admin.Create(t.Context(), secret)).To(Succeed())
	b := &v1alpha1.BMC{ObjectMeta: metav1.ObjectMeta{Name: m.Name(), Annotations: map[string]string{v1alpha1.BootWaysAnnotation: "VirtualMedia"}}}
	b.Spec.Access = &v1alpha1.InlineEndpoint{IP: m.Address()}
	b.Spec.BMCSecretRef.Name = m.Name()
	b.Spec.Protocol = v1alpha1.Protocol{Name: v1alpha1.ProtocolRedfish, Port: int32(w.port), Scheme: v1alpha1.ProtocolSchemeHTTP}
	g.Expect(w.admin.Create(t.Context(), b)).To(Succeed())
}

func (w *world) server(ctx context.Context, name string) func() string {
	return func() string {
		s := &v1alpha1.Server{}
		if err := w.admin.Get(ctx, client.ObjectKey{Name: name}, s); err != nil {
			return err.Error()
		}
		return fmt.Sprintf("%s/%s", s.Status.State, s.Status.PowerState)
	}
}

// status is what the boot service answers an address with.
func status(ctx context.Context, url, from string) int {
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	request, err := http.NewRequestWithContext(ctx, http.MethodHead, url, http.NoBody)
	if err != nil {
		return 0
	}
	response, err := (&http.Client{Transport: &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true}}).Do(request)
	if err != nil {
		return 0
	}
	_ = response.Body.Close()
	return response.StatusCode
}

func TestTheWholeWayByVirtualMedia(t *testing.T) {
	w := newWorld(t, append([]byte("MZ"), make([]byte, 100_000)...))
	for _, profile := range []string{emulator.ProfileHPE, emulator.ProfileLenovo} {
		t.Run(profile, func(t *testing.T) {
			g, ctx := NewWithT(t), t.Context()
			m := w.fleet.Add(emulator.MachineSpec{Name: profile, Profile: profile})
			g.Expect(m.Err()).NotTo(HaveOccurred())
			w.announce(t, g, m)
			var server string
			g.Eventually(func() int {
				list := &v1alpha1.ServerList{}
				if err := w.admin.List(ctx, list); err != nil {
					return 0
				}
				found := 0
				for i := range list.Items {
					if strings.HasPrefix(list.Items[i].Name, m.Name()+"-system") {
						server, found = list.Items[i].Name, found+1
					}
				}
				return found
			}, time.Minute).Should(Equal(1))

			var probe string // the URL of the probe's ISO
			g.Eventually(func() string {
				boot := &v1alpha1.ServerBootConfiguration{}
				_ = w.admin.Get(ctx, client.ObjectKey{Namespace: system, Name: server}, boot)
				probe = boot.Annotations[v1alpha1.MediaURLAnnotation]
				return probe
			}, time.Minute, "20ms").ShouldNot(BeEmpty())
			g.Expect(status(ctx, probe, "127.0.0.9")).To(Equal(http.StatusNotFound), "another address")
			g.Eventually(w.server(ctx, server), 2*time.Minute).Should(Equal("Available/Off"))
			g.Eventually(m.Media, time.Minute).Should(BeEmpty(), "the image is ejected")
			g.Expect(status(ctx, probe, m.Address())).To(Equal(http.StatusNotFound), "after its entry")
			g.Eventually(func() string { // the mark goes once the eject was read back
				s := &v1alpha1.Server{}
				_ = w.admin.Get(ctx, client.ObjectKey{Name: server}, s)
				return s.Annotations[v1alpha1.MediaInsertedAnnotation]
			}, time.Minute).Should(BeEmpty())

			boots := m.Boots()
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: profile}, Data: map[string][]byte{"ignition": []byte(`{"ignition":{"version":"3.4.0"}}`)}}
			g.Expect(w.admin.Create(ctx, secret)).To(Succeed())
			claim := &v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: profile}}
			claim.Spec.Power, claim.Spec.Image = v1alpha1.PowerOn, w.image
			claim.Spec.ServerRef = &corev1.LocalObjectReference{Name: server}
			claim.Spec.IgnitionSecretRef = &corev1.LocalObjectReference{Name: profile}
			g.Expect(w.admin.Create(ctx, claim)).To(Succeed())
			g.Eventually(w.server(ctx, server), 2*time.Minute).Should(Equal("Reserved/On"))
			running, err := m.WaitRunning(ctx)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(running.Target).To(Equal("Cd"))
			g.Expect(running.MediaURL).To(HavePrefix(w.mediaURL + "/media/"))
			g.Expect(running.MediaURL).NotTo(Equal(probe))
			g.Expect(m.Boots()).To(Equal(boots + 1))
			g.Eventually(func() bool { return m.Drives()[0].Erased() }, time.Minute).Should(BeFalse(), "the claim's system writes")

			g.Expect(w.admin.Delete(ctx, claim)).To(Succeed())
			g.Eventually(w.server(ctx, server), 3*time.Minute).Should(Equal("Available/Off"))
			g.Expect(m.Drives()[0].Erased()).To(BeTrue())
			g.Eventually(m.Media, time.Minute).Should(BeEmpty())
		})
	}
}
