// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/metalaw/metalaw/test/env"
)

const (
	// bmcPort is the port of every emulated BMC; macPrefixes says the same.
	bmcPort = 8000
	// tenant is the namespace of the claims.
	tenant = "load"
	// startLimit is the time that each program has to come up.
	startLimit = 3 * time.Minute
	// stopGrace is the time that each program has to end by itself.
	stopGrace = 10 * time.Second
	// webhookService is the name that the API server checks the webhooks' certificate for.
	webhookService = "metalaw-webhook"
)

// bootProviderUser is who the boot provider is at the API server, so that its writes are told from others.
var bootProviderUser = env.User{Name: "load:boot-provider", Groups: []string{"system:masters"}}

// adminManager is who a manager is that is given all rights.
var adminManager = env.User{Name: "load:manager", Groups: []string{"system:masters"}}

// world is everything that runs for one measurement.
type world struct {
	options   *options
	root, dir string
	progress  *progress

	life context.Context
	end  context.CancelFunc
	// follows waits for what runs in this process.
	follows sync.WaitGroup

	plane    *env.Env
	api      *api
	fleet    *fleet
	bmcs     bmcs
	manager  *env.Child
	children []*env.Child
	trouble  chan error

	network                                     netip.Prefix
	webhook, registry, health, metrics, control int
}

func newWorld(o *options) (*world, error) {
	root, err := env.RepoRoot()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "metalaw-load-")
	if err != nil {
		return nil, err
	}
	w := &world{options: o, root: root, dir: dir, fleet: newFleet(), trouble: make(chan error, 1), progress: newProgress(os.Stderr)}
	w.life, w.end = context.WithCancel(context.Background())
	return w, nil
}

// start brings everything up. The measurement begins after it.
func (w *world) start(ctx context.Context) error {
	for _, step := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"control plane", w.startControlPlane},
		{"emulated BMCs", w.startBMCs},
		{"manager", w.startManager},
	} {
		w.progress.say("starting: %s", step.name)
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("start the %s: %w", step.name, err)
		}
	}
	if governed, err := w.api.serves(ctx, policyRevisions); err != nil {
		return err
	} else if governed { // another manager reads its own MAC database
		if err := w.promote(ctx); err != nil {
			return fmt.Errorf("put a bundle in force: %w", err)
		}
	}
	return w.follow(ctx)
}

func (w *world) startControlPlane(ctx context.Context) error {
	for _, port := range []*int{&w.webhook, &w.registry, &w.health, &w.metrics, &w.control} {
		var err error
		if *port, err = env.FreePort(ctx); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(w.logDir(), 0o755); err != nil {
		return err
	}
	policy := filepath.Join(w.dir, "audit-policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy(w.managerUser().Name)), 0o600); err != nil {
		return err
	}
	var err error
	w.plane, err = env.Start(ctx, env.Options{Dir: w.planeDir(), Kustomize: w.options.manifests, StartTimeout: startLimit, Tolerates: harmless,
		APIServerArgs: []string{"--audit-policy-file=" + policy, "--audit-log-path=" + w.auditLog(), "--audit-log-maxsize=100000"}})
	if err != nil {
		return err
	}
	if w.api, err = newAPI(w.plane.Config); err != nil {
		return err
	}
	if err := w.prepareNamespaces(ctx); err != nil {
		return err
	}
	return w.prepareCertificates(ctx)
}

// harmless says of a warning about another manager's definitions that nothing follows from it: the API server does not check a
// format that it does not know, such as metal-operator's "ip".
func harmless(warning string) bool { return strings.HasPrefix(warning, "unrecognized format ") }

// planeDir is where the control plane keeps its data and its logs.
func (w *world) planeDir() string { return filepath.Join(w.dir, "plane") }

func (w *world) logDir() string { return filepath.Join(w.planeDir(), "logs") }

func (w *world) auditLog() string { return filepath.Join(w.logDir(), "audit.log") }

func (w *world) prepareNamespaces(ctx context.Context) error {
	clients, err := kubernetes.NewForConfig(w.plane.Config)
	if err != nil {
		return err
	}
	for _, name := range []string{w.options.namespace, tenant} {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		_, err := clients.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: ignitionName}}
	secret.Data = map[string][]byte{"ignition": []byte(`{"ignition":{"version":"3.3.0"}}`)}
	_, err = clients.CoreV1().Secrets(tenant).Create(ctx, secret, metav1.CreateOptions{})
	return err
}

// prepareCertificates does what cert-manager does in a cluster, and points the webhooks at the manager to come.
func (w *world) prepareCertificates(ctx context.Context) error {
	cert, key, ca, err := w.plane.ServingCert(w.options.namespace, webhookService)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(w.certDir(), 0o700); err != nil {
		return err
	}
	for name, content := range map[string][]byte{"tls.crt": cert, "tls.key": key, "ca.crt": ca} {
		if err := os.WriteFile(filepath.Join(w.certDir(), name), content, 0o600); err != nil {
			return err
		}
	}
	if !w.options.webhooks {
		return w.plane.RemoveWebhooks(ctx)
	}
	return w.plane.PointWebhooksAt(ctx, local(w.webhook), ca)
}

func (w *world) certDir() string { return filepath.Join(w.dir, "certs") }

func (w *world) startBMCs(ctx context.Context) error {
	var err error
	if w.network, err = env.FreeNetwork(ctx, w.options.servers, bmcPort); err != nil {
		return err
	}
	rights, err := w.plane.KubeconfigFor(bootProviderUser)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	w.bmcs = bmcs{url: "http://" + local(w.control)}
	settings := bmcSettings{Kubeconfig: rights, Servers: w.options.servers, Network: w.network.String(), Control: local(w.control),
		PowerDelay: w.options.powerDelay, BootDelay: w.options.bootDelay, Latency: w.options.latency, NoToken: !w.options.agentToken}
	child, err := w.plane.StartChild("bmcs", self, append([]string{bmcsCommand}, settings.args()...)...)
	if err != nil {
		return err
	}
	w.watchChild(child)
	return child.AwaitReady(ctx, startLimit, func(ctx context.Context) error {
		machines, err := w.bmcs.machines(ctx)
		if err == nil && len(machines) != w.options.servers {
			err = fmt.Errorf("%d machines, want %d", len(machines), w.options.servers)
		}
		return err
	})
}

// follow begins to watch what the API server shows.
func (w *world) follow(ctx context.Context) error {
	kinds := []kind{kindServer, kindClaim}
	if w.options.maintenances > 0 {
		kinds = append(kinds, kindMaintenance)
	}
	for _, kind := range kinds {
		version, err := w.api.list(ctx, kind, w.fleet)
		if err != nil {
			return err
		}
		w.follows.Go(func() {
			if err := w.api.watch(w.life, kind, version, w.fleet); err != nil && w.life.Err() == nil {
				w.report(err)
			}
		})
	}
	return nil
}

// watchChild makes the end of a child the end of the measurement.
func (w *world) watchChild(child *env.Child) {
	w.children = append(w.children, child)
	go func() {
		<-child.Done()
		if w.life.Err() == nil {
			w.report(child.Failure())
		}
	}()
}

// report ends the measurement with an error that no phase asked for; the first one counts.
func (w *world) report(err error) {
	select {
	case w.trouble <- err:
	default:
	}
}

// close ends everything. Logs stay where somebody wants to read them.
func (w *world) close(failed bool) error {
	w.end()
	w.follows.Wait()
	for i := len(w.children) - 1; i >= 0; i-- {
		w.children[i].Stop(stopGrace)
	}
	var errs []error
	if w.plane != nil {
		errs = append(errs, w.plane.Stop())
	}
	if !failed && !w.options.keep {
		return errors.Join(append(errs, os.RemoveAll(w.dir))...)
	}
	errs = append(errs, os.RemoveAll(filepath.Join(w.planeDir(), "etcd")), os.RemoveAll(w.certDir()))
	w.progress.say("logs: %s", w.logDir())
	return errors.Join(errs...)
}

// local is an address of this host.
func local(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
