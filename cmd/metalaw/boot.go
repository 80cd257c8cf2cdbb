// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"github.com/go-logr/logr"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/metalaw/metalaw/cmd/internal/usage"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/access"
	"github.com/metalaw/metalaw/controllers/bootservice"
	"github.com/metalaw/metalaw/internal/bootserver"
	"github.com/metalaw/metalaw/internal/bootserver/images"
)

func newBootCommand() *cobra.Command {
	o := &bootOptions{}
	cmd := &cobra.Command{
		Use:   "boot",
		Short: "Run the boot service: it prepares boot configurations and serves machines and BMCs what they boot.",
		Long: "It needs no right on BMCSecrets, and reads a Secret only while a boot configuration in force names it. Credentials for " +
			"registries come from config.json in $DOCKER_CONFIG.\n\n" +
			"Exit codes: 0 it was asked to stop. 1 it cannot start or go on. 2 flags cannot be used.",
		Args: usage.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.validate(); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	o.register(cmd.Flags())
	return cmd
}

func (o *bootOptions) run(ctx context.Context) error {
	logger, err := newLogger(o.logLevel, os.Stderr)
	if err != nil {
		return err
	}
	ctrl.SetLogger(logger)
	config, err := (&options{kubeconfig: o.kubeconfig}).restConfig()
	if err != nil {
		return err
	}
	config.UserAgent = "metalaw-boot"
	store, err := o.openStore()
	if err != nil {
		return err
	}
	scheme, err := access.Scheme()
	if err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                        scheme,
		Metrics:                       metricsserver.Options{BindAddress: o.metricsAddress},
		HealthProbeBindAddress:        o.healthAddress,
		LeaderElection:                o.leaderElect,
		LeaderElectionID:              "metalaw-boot-leader",
		LeaderElectionNamespace:       o.namespace,
		LeaderElectionReleaseOnCancel: true,
		Cache:                         cache.Options{DefaultTransform: cache.TransformStripManagedFields()},
		Client:                        client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}},
	})
	if err != nil {
		return fmt.Errorf("boot service: %w", err)
	}
	source := &bootservice.Source{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Images: store}
	reconciler := &bootservice.Reconciler{Source: source, BootURL: o.boots.url, MediaURL: o.medias.url}
	if err := reconciler.Setup(ctx, mgr, o.workers); err != nil {
		return fmt.Errorf("boot service: %w", err)
	}
	if err := o.addServers(ctx, mgr, source, store); err != nil {
		return err
	}
	if err := errors.Join(mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("ping", healthz.Ping)); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

func (o *bootOptions) openStore() (*images.Store, error) {
	size, err := resource.ParseQuantity(o.cacheSize)
	if err != nil {
		return nil, fmt.Errorf("--cache-size: %w", err)
	}
	return images.New(images.Options{Folder: o.cacheDir, Limit: size.Value(), Allowed: o.registries, Arch: o.arch, Keychain: authn.DefaultKeychain})
}

// addServers listens at once, so that an address in use is told before anything starts.
func (o *bootOptions) addServers(ctx context.Context, mgr ctrl.Manager, source bootserver.Source, store *images.Store) error {
	var config *tls.Config
	if o.needsCertificate() {
		watcher, err := certwatcher.New(filepath.Join(o.certDir, "tls.crt"), filepath.Join(o.certDir, "tls.key"))
		if err != nil {
			return fmt.Errorf("--cert-dir: %w; put a certificate there that machines and BMCs trust, "+
				"or add --boot-plaintext and --media-plaintext", err)
		}
		if err := mgr.Add(watcher); err != nil {
			return err
		}
		config = bootserver.TLSConfig(watcher.GetCertificate)
	}
	log := slog.New(logr.ToSlogHandler(ctrl.Log.WithName("boot")))
	options := bootserver.Options{Source: source, Images: store, URL: o.boots.url, AnySource: o.anySource, AnyMachine: o.anyMachine,
		Arch: o.arch, Log: log}
	for _, e := range []struct {
		bootEndpoint
		flag    string
		handler http.Handler
	}{{o.boots, "boot-bind-address", bootserver.Machines(options)}, {o.medias, "media-bind-address", bootserver.Media(options)}} {
		if e.url == "" {
			continue
		}
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", e.address)
		if err != nil {
			return fmt.Errorf("nothing was started: --%s: %w; end what listens there, or choose another port", e.flag, err)
		}
		server := bootHTTP{listener: listener, handler: e.handler, log: log}
		if !e.plaintext {
			server.config = config
		}
		if err := mgr.Add(server); err != nil {
			return err
		}
	}
	return nil
}

// bootHTTP serves on every replica: what is prepared is in the API objects.
type bootHTTP struct {
	listener net.Listener
	handler  http.Handler
	config   *tls.Config
	log      *slog.Logger
}

// Start implements manager.Runnable.
func (s bootHTTP) Start(ctx context.Context) error {
	return bootserver.Serve(ctx, s.listener, s.handler, s.config, s.log)
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (s bootHTTP) NeedLeaderElection() bool { return false }
