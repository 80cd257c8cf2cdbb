// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"

	"github.com/metalaw/metalaw/controllers"
)

// options are the flags of the manager.
type options struct {
	kubeconfig     string
	namespace      string
	serviceAccount string
	metricsAddress string
	pprofAddress   string
	metricsSecure  bool
	healthAddress  string
	leaderElect    bool
	logLevel       string

	webhooks      bool
	webhookHost   string
	webhookPort   int
	webhookCerts  string
	rotateCerts   bool
	webhookSecret string
	extraDNSNames []string

	registryAddress   string
	registryURL       string
	registryCerts     string
	registryPlaintext bool

	probeImage string
	wipeImage  string
	bootTarget string
	bmcCAFile  string
	steadyPoll time.Duration
	powerGrace time.Duration
	workers    int
	adoption   int

	observeOnly bool
}

func (o *options) register(f *pflag.FlagSet) {
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig file; empty uses the pod's service account, or $KUBECONFIG")
	f.StringVar(&o.namespace, "namespace", envOr("POD_NAMESPACE", "metalaw-system"), "the manager's namespace")
	f.StringVar(&o.serviceAccount, "service-account", "metalaw-manager", "the manager's service account; the webhooks know the manager by it")
	f.StringVar(&o.metricsAddress, "metrics-bind-address", ":8443", "where metrics are served; 0 serves none")
	f.BoolVar(&o.metricsSecure, "metrics-secure", true, "serve metrics over TLS to those whom RBAC lets read them")
	f.StringVar(&o.pprofAddress, "pprof-bind-address", "0", "loopback address where profiles of Go are served, such as localhost:6060; 0 serves none")
	f.StringVar(&o.healthAddress, "health-probe-bind-address", ":8081", "where /healthz and /readyz are served")
	f.BoolVar(&o.leaderElect, "leader-elect", false, "run reconcilers only on the elected replica")
	f.StringVar(&o.logLevel, "log-level", "info", "debug, info or error")

	f.BoolVar(&o.webhooks, "webhooks", true, "serve the admission webhooks")
	f.StringVar(&o.webhookHost, "webhook-host", "", "address the webhooks listen on; empty is every address")
	f.IntVar(&o.webhookPort, "webhook-port", 9443, "port of the webhooks")
	f.StringVar(&o.webhookCerts, "webhook-cert-dir", "/certs", "directory with tls.crt, tls.key and ca.crt")
	f.BoolVar(&o.rotateCerts, "webhook-cert-rotation", true, "make and renew the certificates; false where cert-manager does")
	f.StringVar(&o.webhookSecret, "webhook-cert-secret", "metalaw-webhook-certs", "Secret that the certificates are kept in")
	f.StringSliceVar(&o.extraDNSNames, "extra-dns-names", nil, "further names that the certificate is good for, such as the registry's outside name")

	f.StringVar(&o.registryAddress, "registry-bind-address", ":10000", "where agents report to")
	f.StringVar(&o.registryURL, "registry-url", "", "URL of the registry as the agents see it; required")
	f.StringVar(&o.registryCerts, "registry-cert-dir", "", "directory with the registry's tls.crt, tls.key and ca.crt; empty uses --webhook-cert-dir")
	f.BoolVar(&o.registryPlaintext, "registry-plaintext", false, "serve the registry without TLS; only for closed networks")

	f.StringVar(&o.probeImage, "probe-image", "ghcr.io/metalaw/metalprobe:latest", "image that is booted to inspect a server")
	f.StringVar(&o.wipeImage, "wipe-image", "", "image that is booted to erase a server; empty uses --probe-image")
	f.StringVar(&o.bootTarget, "boot-target", "Pxe", "boot source for network boots: Pxe or UefiHttp")
	f.StringVar(&o.bmcCAFile, "bmc-ca-file", "", "PEM file with the certificates that BMCs are trusted by; empty uses the system's")
	f.DurationVar(&o.steadyPoll, "steady-poll", 3*time.Minute, "how often a BMC is read while nothing is expected to change")
	f.BoolVar(&o.observeOnly, "observe-only", false, "observe and decide, but do nothing to any machine and bind no claim")
	f.DurationVar(&o.powerGrace, "power-grace", time.Minute, "how long a BMC may take to show what it accepted, before it is asked again")
	f.IntVar(&o.adoption, "adoption-rate", 10,
		"how many servers a second come under another policy revision while they rest, and how many halted ones besides")
	f.IntVar(&o.workers, "workers", 16, "how many servers are looked at side by side")
}

func envOr(name, fallback string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return fallback
}

// complete fills what follows from other flags.
func (o *options) complete() {
	if o.wipeImage == "" {
		o.wipeImage = o.probeImage
	}
	if o.registryCerts == "" {
		o.registryCerts = o.webhookCerts
	}
}

func (o *options) controllers() (controllers.Options, error) {
	c := controllers.Options{Namespace: o.namespace, ProbeImage: o.probeImage, WipeImage: o.wipeImage, RegistryURL: o.registryURL,
		BootTarget: o.bootTarget, SteadyPoll: o.steadyPoll, Workers: o.workers, AdoptionRate: o.adoption, PowerGrace: o.powerGrace,
		ObserveOnly: o.observeOnly}
	if !o.registryPlaintext {
		// The rotator may renew the certificate authority while the manager runs.
		c.RegistryCA = func() []byte {
			pem, err := os.ReadFile(filepath.Join(o.registryCerts, "ca.crt"))
			if err != nil {
				return nil
			}
			return pem
		}
	}
	if o.bmcCAFile != "" {
		pem, err := os.ReadFile(o.bmcCAFile)
		if err != nil {
			return c, fmt.Errorf("--bmc-ca-file: %w", err)
		}
		c.BMCCABundle = pem
	}
	return c, nil
}
