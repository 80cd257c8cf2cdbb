// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
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
	"github.com/metalaw/metalaw/redfish/emulator/vm"
	"github.com/metalaw/metalaw/test/bootprovider"
	"github.com/metalaw/metalaw/test/env"
	"github.com/metalaw/metalaw/test/vm/images"
)

const managerNamespace = "metalaw-system"

// world is a running operator with machines around it.
type world struct {
	dir         string
	fleet       *emulator.Fleet
	backend     *vm.Backend
	bmcPort     int
	providerURL string
	// registry is where the registry listens on this host.
	registry  string
	stopBoots func()
	// stop ends the manager that runs; nil while none does.
	stop func()
	// probeImage and wipeImage are what the next manager that starts boots to inspect and to erase.
	probeImage, wipeImage string
	vms                   []*vm.VM
}

func newWorld(ctx context.Context, dir string) *world {
	GinkgoHelper()
	w := &world{dir: dir, probeImage: images.Probe + ":1", wipeImage: images.Probe + ":1"}
	root, err := env.RepoRoot()
	Expect(err).NotTo(HaveOccurred())
	known, err := images.Load(root, dir)
	Expect(err).NotTo(HaveOccurred())
	w.startBootProvider(ctx, known)
	w.backend, err = vm.New(vm.Options{ProviderURL: w.providerURL, Directory: dir, Accelerator: os.Getenv("VM_ACCELERATOR"),
		Log: slog.New(slog.NewTextHandler(GinkgoWriter, nil))})
	Expect(err).NotTo(HaveOccurred())
	w.bmcPort, err = env.FreePort(ctx)
	Expect(err).NotTo(HaveOccurred())
	w.fleet = emulator.New(emulator.Options{Network: "127.64.0.0/16", Port: w.bmcPort})
	Expect(w.fleet.Start(context.WithoutCancel(ctx))).To(Succeed())
	w.startManager(ctx)
	return w
}

func (w *world) close() {
	w.stopManager()
	w.fleet.Close()
	w.stopBoots()
	Expect(os.RemoveAll(w.dir)).To(Succeed())
}

func (w *world) startBootProvider(ctx context.Context, known map[string]bootprovider.Image) {
	GinkgoHelper()
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	listening := make(chan string, 1)
	ended := make(chan error, 1)
	go func() {
		ended <- bootprovider.Run(running, controlPlane.Config, bootprovider.Options{ListenAddress: "127.0.0.1:0", Images: known,
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
		Client:     client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}}}}})
	Expect(err).NotTo(HaveOccurred())
	embedded, err := policies.Default()
	Expect(err).NotTo(HaveOccurred())
	store := revision.NewStore(mgr.GetClient(), embedded)
	store.Accept = believing(store.Accept)
	if w.registry == "" {
		port, err := env.FreePort(ctx)
		Expect(err).NotTo(HaveOccurred())
		w.registry = fmt.Sprintf("127.0.0.1:%d", port)
	}
	metrics := prometheus.NewRegistry()
	Expect(controllers.Setup(ctx, mgr, store, controllers.Options{Namespace: managerNamespace, ProbeImage: w.probeImage, WipeImage: w.wipeImage,
		RegistryURL: "http://" + strings.Replace(w.registry, "127.0.0.1", vm.GuestHost, 1), SteadyPoll: time.Second, PowerGrace: 5 * time.Second,
		RetryPause: time.Millisecond, NoReleaseGrace: true, Metrics: metrics})).To(Succeed())
	agents, err := registry.New(registry.Options{Reader: mgr.GetClient(), Live: mgr.GetAPIReader(), Writer: mgr.GetClient(),
		Recorder: mgr.GetEventRecorder("registry"), Address: w.registry, Plaintext: true, Metrics: metrics,
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

// restartWith lets the rest of a container boot other images to inspect and to erase.
func (w *world) restartWith(ctx context.Context, probe, wipe string) {
	GinkgoHelper()
	DeferCleanup(func(ctx SpecContext) { w.restart(ctx, images.Probe, images.Probe) })
	w.restart(ctx, probe, wipe)
}

func (w *world) restart(ctx context.Context, probe, wipe string) {
	GinkgoHelper()
	w.stopManager()
	w.probeImage, w.wipeImage = probe+":1", wipe+":1"
	w.startManager(ctx)
}

// stopManager ends the manager, if one runs.
func (w *world) stopManager() {
	GinkgoHelper()
	if stop := w.stop; stop != nil {
		w.stop = nil
		stop()
	}
}

// disk makes an empty disk of that size.
func (w *world) disk(name string, bus vm.Bus, size int64, change ...func(*vm.Disk)) vm.Disk {
	GinkgoHelper()
	disk := vm.Disk{Bus: bus, Serial: name, SizeBytes: size, Path: filepath.Join(w.dir, name+".img")}
	Expect(vm.CreateDisk(disk.Path, size)).To(Succeed())
	for _, f := range change {
		f(&disk)
	}
	return disk
}

// broken makes an empty disk behind an NBD server.
func (w *world) broken(name string, bus vm.Bus, size int64) (vm.Disk, *vm.Server) {
	GinkgoHelper()
	disk := w.disk(name, bus, size)
	disk.NBD = filepath.Join(w.dir, name+".nbd")
	server, err := vm.Serve(disk.Path, disk.NBD)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(server.Close()).To(Succeed()) })
	return disk, server
}

// showConsoles prints the end of what each machine's serial port said.
func (w *world) showConsoles() {
	for _, machine := range w.vms {
		if machine.PID() == 0 {
			continue
		}
		lines := strings.Split(machine.Console(), "\n")
		AddReportEntry("console of "+machine.Description().Name, strings.Join(lines[max(0, len(lines)-40):], "\n"))
	}
}

// showServers prints what each server says of itself.
func (w *world) showServers(ctx context.Context) {
	var list v1alpha1.ServerList
	if err := admin.List(ctx, &list); err != nil {
		return
	}
	for i := range list.Items {
		if ready := meta.FindStatusCondition(list.Items[i].Status.Conditions, v1alpha1.ConditionReady); ready != nil {
			AddReportEntry(list.Items[i].Name+" is "+string(list.Items[i].Status.State), ready.Message)
		}
	}
}
