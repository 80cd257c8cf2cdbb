// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers"
	"github.com/metalaw/metalaw/controllers/revision"
	"github.com/metalaw/metalaw/controllers/scheduler/informer"
	"github.com/metalaw/metalaw/internal/testkit"
	"github.com/metalaw/metalaw/metalprobe/registry"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/redfish/emulator"
	"github.com/metalaw/metalaw/test/bootprovider"
	"github.com/metalaw/metalaw/test/emulated"
	"github.com/metalaw/metalaw/test/env"
	"github.com/metalaw/metalaw/test/guest"
	"github.com/metalaw/metalaw/webhooks"
)

const (
	namespace = "metalaw-system"
	tenants   = "default"
	// bmcPort is the port of every emulated BMC; the row that testkit adds to the MAC prefix database says the same.
	bmcPort = 8000
	// startLimit is the time that the control plane has to come up.
	startLimit = 3 * time.Minute
)

// world is a control plane, the whole operator under its shipped rights with the recorder around it, and emulated machines.
type world struct {
	*recorder
	plane *env.Env
	admin client.Client
	fleet *emulator.Fleet

	dir     string
	scheme  *runtime.Scheme
	life    context.Context
	end     context.CancelFunc
	running sync.WaitGroup
	trouble chan error
}

// newWorld starts everything. Close ends it, also after an error.
func newWorld(ctx context.Context, withWebhooks bool) (*world, error) {
	w := &world{recorder: newRecorder(), scheme: runtime.NewScheme(), trouble: make(chan error, 8)}
	w.life, w.end = context.WithCancel(context.WithoutCancel(ctx))
	if err := w.start(ctx, withWebhooks); err != nil {
		return nil, errors.Join(err, w.close())
	}
	return w, nil
}

func (w *world) start(ctx context.Context, withWebhooks bool) error {
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme, policyv1alpha1.AddToScheme} {
		if err := add(w.scheme); err != nil {
			return err
		}
	}
	var err error
	if w.dir, err = os.MkdirTemp("", "metalaw-requests-"); err != nil {
		return err
	}
	w.plane, err = env.Start(ctx, env.Options{Dir: filepath.Join(w.dir, "plane"), Kustomize: []string{"config/default"}, StartTimeout: startLimit})
	if err != nil {
		return err
	}
	if w.admin, err = client.New(w.plane.Config, client.Options{Scheme: w.scheme}); err != nil {
		return err
	}
	if err := w.startFleet(ctx); err != nil {
		return err
	}
	if err := w.startManager(ctx, withWebhooks); err != nil {
		return err
	}
	return w.govern(ctx)
}

// govern promotes a bundle that knows emulated BMCs: the shipped bundles know none. It tries until the manager's admission answers.
func (w *world) govern(ctx context.Context) error {
	cm, err := testkit.EmulatorConfigMap(namespace)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := w.admin.Create(ctx, cm.DeepCopy())
		if err == nil {
			return nil
		}
		if w.pause(ctx) != nil {
			return fmt.Errorf("the bundle of the emulated BMCs is not taken: %w", err)
		}
	}
}

// startFleet starts the boot provider and the machines that boot from it.
func (w *world) startFleet(ctx context.Context) error {
	listening := make(chan string, 1)
	w.run("the boot provider", func() error {
		return bootprovider.Run(w.life, w.plane.Config, bootprovider.Options{ListenAddress: "127.0.0.1:0",
			Listening: func(address string) { listening <- address }})
	})
	var provider string
	select {
	case provider = <-listening:
	case err := <-w.trouble:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
	guests, err := emulated.NewGuest(guest.Options{ProviderURL: "http://" + provider})
	if err != nil {
		return err
	}
	network, err := env.FreeNetwork(ctx, mostServers+1, bmcPort)
	if err != nil {
		return err
	}
	w.fleet = emulator.New(emulator.Options{Seed: 1, Network: network.String(), Port: bmcPort, Guest: guests, Interfere: w.sent})
	return w.fleet.Start(w.life)
}

// startManager runs the operator as the program does, but for the election of a leader.
func (w *world) startManager(ctx context.Context, withWebhooks bool) error {
	rights, err := w.plane.ConfigFor(env.Manager)
	if err != nil {
		return err
	}
	rights = rest.CopyConfig(rights)
	rights.Wrap(w.through)
	webhookPort, err := env.FreePort(ctx)
	if err != nil {
		return err
	}
	registryPort, err := env.FreePort(ctx)
	if err != nil {
		return err
	}
	logger := logr.New(&sink{recorder: w.recorder, fails: func(text string) { fmt.Fprintln(os.Stderr, "manager:", text) }})
	ctrl.SetLogger(logger)
	mgr, err := ctrl.NewManager(rights, ctrl.Options{Scheme: w.scheme, Logger: logger, Metrics: metricsserver.Options{BindAddress: "0"},
		WebhookServer: webhook.NewServer(webhook.Options{Host: "127.0.0.1", Port: webhookPort, CertDir: w.dir}),
		Client:        client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}}}}})
	if err != nil {
		return err
	}
	if err := w.setup(ctx, mgr, local(registryPort), withWebhooks); err != nil {
		return err
	}
	if withWebhooks {
		err = w.openWebhooks(ctx, local(webhookPort))
	} else {
		err = w.plane.RemoveWebhooks(ctx)
	}
	if err != nil {
		return err
	}
	w.run("the manager", func() error { return mgr.Start(w.life) })
	return nil
}

// setup adds everything that the manager consists of.
func (w *world) setup(ctx context.Context, mgr ctrl.Manager, agents string, withWebhooks bool) error {
	embedded, err := policies.Default()
	if err != nil {
		return err
	}
	store := revision.NewStore(mgr.GetClient(), embedded)
	metrics := prometheus.NewRegistry()
	fleet, err := informer.Setup(ctx, mgr.GetCache())
	if err != nil {
		return err
	}
	options := controllers.Options{Namespace: namespace, ProbeImage: "probe:1", WipeImage: "wipe:1", RegistryURL: "http://" + agents,
		BootTarget: "Pxe", SteadyPoll: steadyPoll, Workers: 16, NoReleaseGrace: true, Metrics: metrics, Fleet: fleet, Unadmitted: !withWebhooks}
	if withWebhooks {
		options.Admission, err = webhooks.Setup(mgr, webhooks.Options{Bundles: store, Fleet: fleet, Namespace: namespace,
			NoReleaseGrace: true, Registry: metrics})
		if err != nil {
			return err
		}
	}
	if err := controllers.Setup(ctx, mgr, store, options); err != nil {
		return err
	}
	reports, err := registry.New(registry.Options{Reader: mgr.GetClient(), Live: mgr.GetAPIReader(), Writer: mgr.GetClient(),
		Recorder: mgr.GetEventRecorder("metalaw-registry"), Address: agents, Plaintext: true, Metrics: metrics,
		AllowUnauthenticated: store.MayReport, AllowUnauthenticatedBootState: store.MayReportBootState,
		Demands: store.WipeDemands, IdentityRequired: store.IdentityRequired})
	if err != nil {
		return err
	}
	return mgr.Add(reports)
}

// openWebhooks points the API server at the webhooks of this process.
func (w *world) openWebhooks(ctx context.Context, address string) error {
	certificate, key, authority, err := w.plane.ServingCert(namespace, "metalaw-webhook")
	if err != nil {
		return err
	}
	for name, pem := range map[string][]byte{"tls.crt": certificate, "tls.key": key} {
		if err := os.WriteFile(filepath.Join(w.dir, name), pem, 0o600); err != nil {
			return err
		}
	}
	return w.plane.PointWebhooksAt(ctx, address, authority)
}

// run does something in the background until the world ends.
func (w *world) run(what string, do func() error) {
	w.running.Go(func() {
		if err := do(); err != nil && w.life.Err() == nil {
			w.trouble <- fmt.Errorf("%s ended: %w", what, err)
		}
	})
}

func (w *world) close() error {
	w.end()
	w.running.Wait()
	if w.fleet != nil {
		w.fleet.Close()
	}
	var err error
	if w.plane != nil {
		err = w.plane.Stop()
	}
	return errors.Join(err, os.RemoveAll(w.dir))
}

// local is an address of this host.
func local(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
