// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"

	"github.com/metalaw/metalaw/controllers"
)

// options are the flags of the manager.
type options struct {
	controllers.Options

	kubeconfig     string
	serviceAccount string
	metricsAddress string
	pprofAddress   string
	metricsSecure  bool
	healthAddress  string
	leaderElect    bool
	logLevel       string
	gcPercent      int

	webhooks      bool
	webhookHost   string
	webhookPort   int
	webhookCerts  string
	rotateCerts   bool
	webhookSecret string
	extraDNSNames []string

	registryAddress   string
	registryCerts     string
	registryPlaintext bool
	sanitizationSink  string

	bmcCAFile string
}

func (o *options) register(f *pflag.FlagSet) {
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig file; empty uses the pod's service account, or $KUBECONFIG")
	f.StringVar(&o.Namespace, "namespace", envOr("POD_NAMESPACE", "metalaw-system"), "the manager's namespace")
	f.StringVar(&o.serviceAccount, "service-account", "metalaw-manager", "the manager's service account; the webhooks know the manager by it")
	f.StringVar(&o.metricsAddress, "metrics-bind-address", ":8443", "where metrics are served; 0 serves none")
	f.BoolVar(&o.metricsSecure, "metrics-secure", true, "serve metrics over TLS to those whom RBAC lets read them")
	f.StringVar(&o.pprofAddress, "pprof-bind-address", "0", "loopback address where profiles of Go are served, such as localhost:6060; 0 serves none")
	f.StringVar(&o.healthAddress, "health-probe-bind-address", ":8081", "where /healthz and /readyz are served")
	f.BoolVar(&o.leaderElect, "leader-elect", false, "run reconcilers only on the elected replica")
	f.StringVar(&o.logLevel, "log-level", "info", "debug, info or error")
	f.IntVar(&o.gcPercent, "gc-percent", gcPercent, "how much the heap may grow until Go collects, in percent of what is in use: "+
		"less takes less memory and more processor time; $GOGC overrides it")

	f.BoolVar(&o.webhooks, "webhooks", true, "serve the admission webhooks")
	f.StringVar(&o.webhookHost, "webhook-host", "", "address the webhooks listen on; empty is every address")
	f.IntVar(&o.webhookPort, "webhook-port", 9443, "port of the webhooks")
	f.StringVar(&o.webhookCerts, "webhook-cert-dir", "/certs", "directory with tls.crt, tls.key and ca.crt")
	f.BoolVar(&o.rotateCerts, "webhook-cert-rotation", true, "make and renew the certificates; false where cert-manager does")
	f.StringVar(&o.webhookSecret, "webhook-cert-secret", "metalaw-webhook-certs", "Secret that the certificates are kept in")
	f.StringSliceVar(&o.extraDNSNames, "extra-dns-names", nil,
		"further names that the certificate is good for; that of the registry is good for the host of --registry-url by itself")
	f.StringVar(&o.CredentialUse, "credential-use", "warn",
		"what becomes of a user who decides where the password of a BMC goes, and lacks the verb use "+
			"on its BMCSecret: off asks nothing, warn warns, on refuses")

	f.StringVar(&o.registryAddress, "registry-bind-address", ":10000", "where agents report to")
	f.StringVar(&o.RegistryURL, "registry-url", "", "URL of the registry as the agents see it; required")
	f.StringVar(&o.registryCerts, "registry-cert-dir", "", "directory with the registry's tls.crt, tls.key and ca.crt; empty uses --webhook-cert-dir")
	f.BoolVar(&o.registryPlaintext, "registry-plaintext", false, "serve the registry without TLS; only for closed networks")

	f.StringVar(&o.sanitizationSink, "sanitization-sink", "", "where records of wipes are kept outside the cluster, before a server is offered: "+
		"file:///directory, or s3://bucket/prefix?endpoint=https://host&region=name; empty keeps them in the cluster alone")

	f.StringVar(&o.ProbeImage, "probe-image", "ghcr.io/metalaw/metalprobe:latest", "image that is booted to inspect a server")
	f.StringVar(&o.WipeImage, "wipe-image", "", "image that is booted to erase a server; empty uses --probe-image")
	f.StringVar(&o.BootTarget, "boot-target", "Pxe", "boot source for network boots: Pxe or UefiHttp")
	f.StringVar(&o.MediaURL, "media-url", "",
		"URL by which BMCs reach metalaw boot, the same as its --media-url; empty boots nothing from virtual media")
	f.StringVar(&o.bmcCAFile, "bmc-ca-file", "", "PEM file with the certificates that BMCs are trusted by; empty uses the system's")
	f.DurationVar(&o.SteadyPoll, "steady-poll", 3*time.Minute, "how often a BMC is read while nothing is expected to change")
	f.BoolVar(&o.ObserveOnly, "observe-only", false, "observe and decide, but do nothing to any machine and bind no claim")
	f.StringVar((*string)(&o.Maintenance), "maintenance", "off", "what is done with ServerMaintenances: off grants none; "+
		"plan says of each what on would do; on hands servers over as the policy says")
	f.DurationVar(&o.PowerGrace, "power-grace", time.Minute, "how long a BMC may take to show what it accepted, before it is asked again")
	f.BoolVar(&o.NoReleaseGrace, "no-release-grace", false,
		"let releases take effect at once, whatever releaseGrace of the policy says; for demos and load tests")
	f.IntVar(&o.AdoptionRate, "adoption-rate", 10,
		"how many servers a second come under another policy revision while they rest, and how many halted ones besides")
	f.IntVar(&o.Workers, "workers", 16, "how many servers are looked at side by side")
}

func envOr(name, fallback string) string { return cmp.Or(os.Getenv(name), fallback) }

// complete fills what follows from other flags.
func (o *options) complete() {
	o.WipeImage = cmp.Or(o.WipeImage, o.ProbeImage)
	o.registryCerts = cmp.Or(o.registryCerts, o.webhookCerts)
}

// readCertificates fills in what the certificates on disk say.
func (o *options) readCertificates() error {
	if !o.registryPlaintext {
		// The rotator may renew the certificate authority while the manager runs.
		o.RegistryCA = func() []byte {
			pem, err := os.ReadFile(filepath.Join(o.registryCerts, "ca.crt"))
			if err != nil {
				return nil
			}
			return pem
		}
	}
	if o.bmcCAFile == "" {
		return nil
	}
	pem, err := os.ReadFile(o.bmcCAFile)
	if err != nil {
		return fmt.Errorf("--bmc-ca-file: %w", err)
	}
	o.BMCCABundle = pem
	return nil
}
