// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/metalaw/metalaw/cmd/internal/usage"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/access"
	"github.com/metalaw/metalaw/controllers"
	"github.com/metalaw/metalaw/controllers/dedup"
	"github.com/metalaw/metalaw/controllers/maintenance"
	"github.com/metalaw/metalaw/controllers/revision"
	"github.com/metalaw/metalaw/controllers/scheduler/informer"
	"github.com/metalaw/metalaw/internal/eventsink"
	"github.com/metalaw/metalaw/metalprobe/registry"
	"github.com/metalaw/metalaw/metalprobe/registry/sink"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/webhooks"
	"github.com/metalaw/metalaw/webhooks/credentials"
)

func newManagerCommand() *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   "manager",
		Short: "Run the operator: controllers on the leader, webhooks and probe registry on every replica.",
		Long: "Exit codes: 0 it was asked to stop. 1 it cannot start or go on, such as without access to an API server, at an address " +
			"in use, or in a namespace that does not exist. 2 flags cannot be used. It names all of those before it starts anything.",
		Args: usage.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.validate(); err != nil {
				return err
			}
			o.complete()
			return o.run(cmd.Context())
		},
	}
	o.register(cmd.Flags())
	return cmd
}

func (o *options) run(ctx context.Context) error {
	logger, err := newLogger(o.logLevel, os.Stderr)
	if err != nil {
		return err
	}
	ctrl.SetLogger(logger)
	o.setCollector(os.Getenv(collectorVariable))
	embedded, err := policies.Default()
	if err != nil {
		return err
	}
	config, err := o.restConfig()
	if err != nil {
		return err
	}
	if err := o.checkPlaces(ctx); err != nil {
		return err
	}
	mgr, err := o.newManager(ctx, config)
	if err != nil {
		return err
	}
	if err := o.checkNamespace(ctx, mgr.GetAPIReader()); err != nil {
		return err
	}
	store := revision.NewStore(mgr.GetClient(), embedded)
	if err := o.readCertificates(); err != nil {
		return err
	}
	if o.Fleet, err = informer.Setup(ctx, mgr.GetCache()); err != nil {
		return err
	}
	o.Unadmitted = !o.webhooks
	if o.Admission, err = o.addWebhooks(mgr, store, o.Fleet); err != nil {
		return fmt.Errorf("webhooks: %w", err)
	}
	if err := controllers.Setup(ctx, mgr, store, o.Options); err != nil {
		return fmt.Errorf("controllers: %w", err)
	}
	if err := o.addRegistry(mgr, store); err != nil {
		return err
	}
	if err := ctrlmetrics.Registry.Register(webhooks.NewExpiry(o.certificates())); err != nil {
		return err
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

func (o *options) newManager(ctx context.Context, config *rest.Config) (ctrl.Manager, error) {
	scheme, err := access.Scheme()
	if err != nil {
		return nil, err
	}
	metrics := metricsserver.Options{BindAddress: o.metricsAddress}
	if o.metricsSecure && o.metricsAddress != "0" {
		metrics.SecureServing = true
		metrics.FilterProvider = filters.WithAuthenticationAndAuthorization
	}
	lock, err := o.leaderLock(config)
	if err != nil {
		return nil, fmt.Errorf("leader election: %w", err)
	}
	options := ctrl.Options{
		Scheme:                  scheme,
		Metrics:                 metrics,
		PprofBindAddress:        o.pprofAddress,
		HealthProbeBindAddress:  o.healthAddress,
		GracefulShutdownTimeout: new(25 * time.Second),
		WebhookServer:           webhook.NewServer(webhook.Options{Host: o.webhookHost, Port: o.webhookPort, CertDir: o.webhookCerts}),
		Cache:                   cache.Options{DefaultTransform: dedup.Transform()},
		Client: client.Options{Cache: &client.CacheOptions{
			// Secrets of tenants are read when they are needed, and never kept.
			DisableFor: []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}},
		}},
	}
	elect(lock, &options)
	mgr, err := ctrl.NewManager(config, options)
	if err != nil {
		return nil, err
	}
	o.leads(mgr, lock)
	return eventsink.For(ctx, mgr)
}

// restConfig is the access to the API server: of --kubeconfig, else of $KUBECONFIG, else of the pod's service account, else of
// the user's own kubeconfig.
func (o *options) restConfig() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	var config *rest.Config
	err := rest.ErrNotInCluster
	if o.kubeconfig == "" && os.Getenv(clientcmd.RecommendedConfigPathEnvVar) == "" {
		config, err = rest.InClusterConfig()
	}
	if errors.Is(err, rest.ErrNotInCluster) {
		config, err = clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{}).ClientConfig()
	}
	if clientcmd.IsEmptyConfig(err) {
		return nil, errors.New("which cluster? There is no kubeconfig, and this is no pod with a service account: " +
			"name a kubeconfig with --kubeconfig or $KUBECONFIG")
	}
	if err != nil {
		return nil, fmt.Errorf("no access to an API server: %w; name a kubeconfig with --kubeconfig or $KUBECONFIG", err)
	}
	// The API server's own priority and fairness is the limit; the client's would slow a burst of claims.
	config.QPS = -1
	config.UserAgent = "metalaw"
	return config, nil
}

func (o *options) addRegistry(mgr ctrl.Manager, store *revision.Store) error {
	records, err := sink.Open(o.sanitizationSink)
	if err != nil {
		return fmt.Errorf("--sanitization-sink: %w", err)
	}
	r, err := registry.New(registry.Options{
		Sink:   records,
		Reader: mgr.GetClient(), Live: mgr.GetAPIReader(), Writer: mgr.GetClient(), Recorder: mgr.GetEventRecorder("metalaw-registry"),
		Log:         slog.New(logr.ToSlogHandler(ctrl.Log.WithName("registry"))),
		ObserveOnly: o.ObserveOnly,
		Address:     o.registryAddress, CertDir: o.registryCertDir(), Hosts: o.registryHosts(), Plaintext: o.registryPlaintext,
		AllowUnauthenticated: store.MayReport, AllowUnauthenticatedBootState: store.MayReportBootState,
		Demands:          store.WipeDemands,
		IdentityRequired: store.IdentityRequired,
		Ungoverned:       store.Missing,
	})
	if err != nil {
		return err
	}
	return mgr.Add(r)
}

func (o *options) registryCertDir() string {
	if o.registryPlaintext {
		return ""
	}
	return o.registryCerts
}

// registryHosts are the hosts by which agents reach the registry: the certificate must be good for each.
func (o *options) registryHosts() []string {
	if u, err := url.Parse(o.RegistryURL); err == nil && u.Hostname() != "" {
		return append([]string{u.Hostname()}, o.extraDNSNames...)
	}
	return o.extraDNSNames
}

// certificateNames are the names that the rotator puts into the certificate. It knows no IP addresses.
func (o *options) certificateNames() []string {
	names := []string{"metalaw-registry." + o.Namespace + ".svc"}
	for _, name := range o.extraDNSNames {
		if net.ParseIP(name) == nil {
			names = append(names, name)
		}
	}
	return names
}

// certificates are the files of the certificates that the manager serves, by what each is for.
func (o *options) certificates() map[string]string {
	files := map[string]string{}
	if o.webhooks {
		files["webhook"] = filepath.Join(o.webhookCerts, "tls.crt")
		files["webhook-authority"] = filepath.Join(o.webhookCerts, "ca.crt")
	}
	if !o.registryPlaintext {
		files["registry"] = filepath.Join(o.registryCerts, "tls.crt")
		files["registry-authority"] = filepath.Join(o.registryCerts, "ca.crt")
	}
	return files
}

// addWebhooks serves admission on every replica, and makes the certificates where nobody else does. The probe registry
// uses the same certificate unless it is given one of its own. What it returns fails until the webhooks answer; nil where
// this process serves none.
func (o *options) addWebhooks(mgr ctrl.Manager, store *revision.Store, fleet *informer.Informer) (serves healthz.Checker, err error) {
	var ready <-chan struct{}
	if o.rotateCerts && (o.webhooks || !o.registryPlaintext) {
		ready, err = webhooks.AddRotator(mgr, webhooks.RotatorOptions{Namespace: o.Namespace, SecretName: o.webhookSecret,
			CertDir: o.webhookCerts, ExtraDNSNames: o.certificateNames()})
		if err != nil {
			return nil, err
		}
	}
	if !o.webhooks {
		return nil, mgr.AddReadyzCheck("ping", healthz.Ping)
	}
	return webhooks.Setup(mgr, webhooks.Options{Bundles: store, Fleet: fleet, Namespace: o.Namespace, Ready: ready,
		ManagerUser: "system:serviceaccount:" + o.Namespace + ":" + o.serviceAccount, NoReleaseGrace: o.NoReleaseGrace,
		HoldsMaintenances: o.Maintenance == maintenance.On,
		CredentialUse:     credentials.Mode(o.CredentialUse), BMCAuthority: o.bmcCAFile != ""})
}
