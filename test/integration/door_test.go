// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/revision"
	"github.com/metalaw/metalaw/controllers/scheduler/informer"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/internal/fieldindex"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/test/env"
	"github.com/metalaw/metalaw/webhooks"
)

// door is the admission of one manager, in front of the API server, and two users who knock.
type door struct {
	// user is an administrator and not the manager.
	user, manager client.Client
	// told are the warnings that the user got.
	told *told
	stop func()
}

// openDoor puts the shipped webhook configurations in place and serves them in this process, with the default bundle.
func openDoor(ctx context.Context, certificate func(mgr ctrl.Manager, dir, address string) <-chan struct{}) *door {
	GinkgoHelper()
	embedded, err := policies.Default()
	Expect(err).NotTo(HaveOccurred())
	return openDoorWith(ctx, embedded, certificate)
}

// openDoorWith does so with another bundle in force.
func openDoorWith(ctx context.Context, inForce *bundle.Bundle, certificate func(mgr ctrl.Manager, dir, address string) <-chan struct{},
	edit ...func(*webhooks.Options),
) *door {
	GinkgoHelper()
	Expect(controlPlane.ApplyKustomize(ctx, "config/webhook")).To(Succeed())
	d := &door{told: &told{}}
	rights, err := controlPlane.ConfigFor(env.Manager)
	Expect(err).NotTo(HaveOccurred())
	d.manager, err = client.New(rights, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	asUser := rest.CopyConfig(controlPlane.Config)
	asUser.WarningHandlerWithContext = d.told
	d.user, err = client.New(asUser, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	port := listener.Addr().(*net.TCPAddr).Port
	Expect(listener.Close()).To(Succeed())
	dir := GinkgoT().TempDir()
	mgr, err := ctrl.NewManager(rights, ctrl.Options{
		Scheme:        scheme,
		Metrics:       metricsserver.Options{BindAddress: "0"},
		Controller:    config.Controller{SkipNameValidation: ptr.To(true)},
		WebhookServer: webhook.NewServer(webhook.Options{Host: "127.0.0.1", Port: port, CertDir: dir}),
	})
	Expect(err).NotTo(HaveOccurred())
	Expect(fieldindex.Register(ctx, mgr.GetFieldIndexer())).To(Succeed())
	fleet, err := informer.Setup(ctx, mgr.GetCache())
	Expect(err).NotTo(HaveOccurred())
	options := webhooks.Options{
		Bundles:   revision.NewStore(mgr.GetClient(), inForce),
		Fleet:     fleet,
		Namespace: "metalaw-system",
		Ready:     certificate(mgr, dir, fmt.Sprintf("127.0.0.1:%d", port)),
		Registry:  prometheus.NewRegistry(),
	}
	for _, e := range edit {
		e(&options)
	}
	_, err = webhooks.Setup(mgr, options)
	Expect(err).NotTo(HaveOccurred())

	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(running) }()
	d.stop = sync.OnceFunc(func() {
		cancel()
		Expect(<-ended).To(Succeed())
	})
	DeferCleanup(func(ctx SpecContext) {
		d.stop()
		Expect(controlPlane.RemoveWebhooks(ctx)).To(Succeed())
	})
	Eventually(func(g Gomega) {
		err := d.user.Create(ctx, &v1alpha1.Endpoint{ObjectMeta: metav1.ObjectMeta{Name: "knock"},
			Spec: v1alpha1.EndpointSpec{MACAddress: "ff:ff:ff:ff:ff:ff", IP: "10.0.0.1"}}, client.DryRunAll)
		g.Expect(err).To(MatchError(ContainSubstring("broadcast")))
	}).WithTimeout(time.Minute).Should(Succeed())
	d.told.take()
	return d
}

// givenFiles is a certificate that somebody else brings, as cert-manager does.
func givenFiles(ctx context.Context) func(ctrl.Manager, string, string) <-chan struct{} {
	return func(_ ctrl.Manager, dir, address string) <-chan struct{} {
		certPEM, keyPEM, caPEM, err := controlPlane.ServingCert("metalaw-system", "metalaw-webhook")
		Expect(err).NotTo(HaveOccurred())
		Expect(os.WriteFile(filepath.Join(dir, "tls.crt"), certPEM, 0o600)).To(Succeed())
		Expect(os.WriteFile(filepath.Join(dir, "tls.key"), keyPEM, 0o600)).To(Succeed())
		Expect(controlPlane.PointWebhooksAt(ctx, address, caPEM)).To(Succeed())
		return nil
	}
}

// rotated is the manager's own certificate. The kubelet, which mounts the Secret, is played by a goroutine.
func rotated(ctx context.Context) func(ctrl.Manager, string, string) <-chan struct{} {
	return func(mgr ctrl.Manager, dir, address string) <-chan struct{} {
		Expect(controlPlane.PointWebhooksAt(ctx, address, nil)).To(Succeed())
		ready, err := webhooks.AddRotator(mgr, webhooks.RotatorOptions{Namespace: "metalaw-system", CertDir: dir})
		Expect(err).NotTo(HaveOccurred())
		Expect(mgr.Add(mounting(dir))).To(Succeed())
		return ready
	}
}

type mounting string

func (mounting) NeedLeaderElection() bool { return false }

func (dir mounting) Start(ctx context.Context) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		secret := &corev1.Secret{}
		err := admin.Get(ctx, types.NamespacedName{Namespace: "metalaw-system", Name: "metalaw-webhook-certs"}, secret)
		if err == nil && len(secret.Data["tls.crt"]) > 0 {
			for _, name := range []string{"tls.key", "tls.crt"} {
				if err := os.WriteFile(filepath.Join(string(dir), name), secret.Data[name], 0o600); err != nil {
					return err
				}
			}
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// told keeps the warnings of the API server.
type told struct {
	mu    sync.Mutex
	texts []string
}

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (w *told) HandleWarningHeaderWithContext(_ context.Context, _ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.texts = append(w.texts, text)
}

func (w *told) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	texts := w.texts
	w.texts = nil
	return texts
}

// refusal matches a refusal with one cause, at a field, that says something.
func refusal(at, says string) OmegaMatcher {
	return WithTransform(func(err error) string {
		status, ok := err.(apierrors.APIStatus)
		if !ok || status.Status().Details == nil {
			return fmt.Sprint(err)
		}
		var all []string
		for _, c := range status.Status().Details.Causes {
			all = append(all, c.Field+": "+c.Message)
		}
		return strings.Join(all, "\n")
	}, And(HavePrefix(at+": "), ContainSubstring(says)))
}

func machine(name, uuid string, edit ...func(*v1alpha1.Server)) *v1alpha1.Server {
	s := &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.ServerSpec{SystemUUID: uuid}}
	for _, e := range edit {
		e(s)
	}
	return s
}

func device(name, mac string) *v1alpha1.Endpoint {
	return &v1alpha1.Endpoint{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.EndpointSpec{MACAddress: mac, IP: "10.77.0.1"}}
}
