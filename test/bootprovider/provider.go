// SPDX-License-Identifier: Apache-2.0

// Package bootprovider stands in for IronCore's boot-operator in tests and in the demo: it says when a boot configuration is
// ready, and serves what a machine boots. It is no part of the product, which never sets a boot configuration Ready.
//
// What it answers follows boot-operator's code of August 2026, and it fails where that fails: the Butane library that boot-operator
// uses translates an ignition, and a text that is none gives 500. Two things are invented: every image that is named resolves,
// and a script names its boot configuration in a comment. What machines download is served for images that Options name.
package bootprovider

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	metalv1alpha1 "github.com/metalaw/metalaw/api/v1alpha1"
)

// indexConfigSecret finds the boot configurations that name a Secret.
const indexConfigSecret = "spec.ignitionSecretRef.name"

// Options say how the provider serves.
type Options struct {
	// ListenAddress is where machines ask; "127.0.0.1:0" takes a free port.
	ListenAddress string
	// Listening is told the address once it is served; nil tells nobody.
	Listening func(address string)
	// PrepareDelay is how long the preparation of a boot takes.
	PrepareDelay time.Duration
	// Images are what virtual machines can download, by the name that a boot configuration gives, without tag or digest.
	Images map[string]Image
}

// Image is a kernel with its initramfs.
type Image struct {
	// Kernel is a file; so are the parts of the initramfs, which the kernel takes in this order.
	Kernel    string
	Initramfs []string
	// Arguments come after those of every command line.
	Arguments string
}

// Provider prepares and serves boots with a client that somebody else made; Run is for everybody with an API server.
type Provider struct {
	prepare *preparer
	serve   *server
}

// New makes a provider, which judges a boot configuration whenever Reconcile is called.
func New(c client.Client, delay time.Duration) *Provider {
	boots := newBoots()
	return &Provider{prepare: &preparer{client: c, boots: boots, delay: delay}, serve: &server{client: c, boots: boots}}
}

// Reconcile prepares one boot configuration.
func (p *Provider) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	return p.prepare.Reconcile(ctx, request)
}

// Handler answers machines.
func (p *Provider) Handler() http.Handler { return p.serve.handler() }

// Run prepares and serves boots until ctx ends, which is no error.
func Run(ctx context.Context, config *rest.Config, options Options) error {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, metalv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return fmt.Errorf("boot provider: %w", err)
		}
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                 scheme,
		Metrics:                metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0",
	})
	if err != nil {
		return fmt.Errorf("boot provider: %w", err)
	}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &metalv1alpha1.ServerBootConfiguration{}, indexConfigSecret, secretNamed); err != nil {
		return fmt.Errorf("boot provider: %w", err)
	}
	provider := New(mgr.GetClient(), options.PrepareDelay)
	provider.serve.images = options.Images
	if err := provider.prepare.setup(mgr); err != nil {
		return fmt.Errorf("boot provider: %w", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", options.ListenAddress)
	if err != nil {
		return fmt.Errorf("boot provider: %w", err)
	}
	if err := addServer(mgr, listener, provider, options.Listening); err != nil {
		_ = listener.Close()
		return fmt.Errorf("boot provider: %w", err)
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("boot provider: %w", err)
	}
	return nil
}

func addServer(m manager.Manager, listener net.Listener, provider *Provider, listening func(string)) error {
	return m.Add(manager.RunnableFunc(func(ctx context.Context) error {
		if listening != nil {
			listening(listener.Addr().String())
		}
		return serve(ctx, listener, provider.Handler())
	}))
}

// secretNamed is the Secret that a boot configuration names.
func secretNamed(o client.Object) []string {
	if ref := o.(*metalv1alpha1.ServerBootConfiguration).Spec.IgnitionSecretRef; ref != nil && ref.Name != "" {
		return []string{ref.Name}
	}
	return nil
}
