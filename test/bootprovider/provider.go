// SPDX-License-Identifier: Apache-2.0

// Package bootprovider stands in for boot-operator in tests and in the demo: it says when a boot configuration is
// ready, and serves what a machine boots. It is no part of the product, which never sets a boot configuration Ready.
package bootprovider

import (
	"context"
	"fmt"
	"net"
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

// Field indexes of the provider's cache.
const (
	indexServerUUID   = "spec.systemUUID"
	indexConfigServer = "spec.serverRef.name"
	indexConfigSecret = "spec.ignitionSecretRef.name"
)

// Options say how the provider serves.
type Options struct {
	// ListenAddress is where GET /boot/{systemUUID} is served; "127.0.0.1:0" takes a free port.
	ListenAddress string
	// Listening is told the address once it is served; nil tells nobody.
	Listening func(address string)
	// PrepareDelay is how long the preparation of a boot takes.
	PrepareDelay time.Duration
}

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
	if err := addIndexes(ctx, mgr.GetFieldIndexer()); err != nil {
		return fmt.Errorf("boot provider: %w", err)
	}
	preparer := &preparer{client: mgr.GetClient(), delay: options.PrepareDelay}
	if err := preparer.setup(mgr); err != nil {
		return fmt.Errorf("boot provider: %w", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", options.ListenAddress)
	if err != nil {
		return fmt.Errorf("boot provider: %w", err)
	}
	if err := addServer(mgr, listener, options.Listening); err != nil {
		_ = listener.Close()
		return fmt.Errorf("boot provider: %w", err)
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("boot provider: %w", err)
	}
	return nil
}

func addServer(m manager.Manager, listener net.Listener, listening func(string)) error {
	return m.Add(manager.RunnableFunc(func(ctx context.Context) error {
		if listening != nil {
			listening(listener.Addr().String())
		}
		return serve(ctx, listener, Handler(m.GetClient()))
	}))
}

func addIndexes(ctx context.Context, indexer client.FieldIndexer) error {
	for _, index := range Indexes() {
		if err := indexer.IndexField(ctx, index.Object, index.Field, index.Extract); err != nil {
			return err
		}
	}
	return nil
}

// Index is a field index that the provider's client must serve.
type Index struct {
	Object  client.Object
	Field   string
	Extract client.IndexerFunc
}

// Indexes lists the field indexes that Handler and the controller use.
func Indexes() []Index {
	return []Index{
		{&metalv1alpha1.Server{}, indexServerUUID, func(o client.Object) []string {
			return one(o.(*metalv1alpha1.Server).Spec.SystemUUID)
		}},
		{&metalv1alpha1.ServerBootConfiguration{}, indexConfigServer, func(o client.Object) []string {
			return one(o.(*metalv1alpha1.ServerBootConfiguration).Spec.ServerRef.Name)
		}},
		{&metalv1alpha1.ServerBootConfiguration{}, indexConfigSecret, func(o client.Object) []string {
			if ref := o.(*metalv1alpha1.ServerBootConfiguration).Spec.IgnitionSecretRef; ref != nil {
				return one(ref.Name)
			}
			return nil
		}},
	}
}

func one(value string) []string {
	if value == "" {
		return nil
	}
	return []string{value}
}
