// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/url"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/metalaw/metalaw/cmd/internal/usage"
)

// bootOptions are the flags of the boot service.
type bootOptions struct {
	kubeconfig     string
	namespace      string
	leaderElect    bool
	logLevel       string
	healthAddress  string
	metricsAddress string
	certDir        string
	workers        int

	boots, medias bootEndpoint
	anySource     bool
	anyMachine    bool

	registries []string
	arch       string
	cacheDir   string
	cacheSize  string
}

// bootEndpoint is where the boot service answers.
type bootEndpoint struct {
	url, address string
	plaintext    bool
}

func (o *bootOptions) register(f *pflag.FlagSet) {
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig file; empty uses the pod's service account, or $KUBECONFIG")
	f.StringVar(&o.namespace, "namespace", envOr("POD_NAMESPACE", "metalaw-system"), "the namespace of the lease for leader election")
	f.BoolVar(&o.leaderElect, "leader-elect", false, "prepare boots only on the elected replica; every replica serves them")
	f.StringVar(&o.logLevel, "log-level", "info", "debug, info or error")
	f.StringVar(&o.healthAddress, "health-probe-bind-address", ":8081", "where /healthz and /readyz are served")
	f.StringVar(&o.metricsAddress, "metrics-bind-address", "0", "where metrics are served without TLS; 0 serves none")
	f.StringVar(&o.certDir, "cert-dir", "/certs", "directory with tls.crt and tls.key, for machines and BMCs")
	f.IntVar(&o.workers, "workers", 8, "how many boots are prepared side by side")

	f.StringVar(&o.boots.url, "boot-url", "", "URL of this service as machines see it; empty serves no iPXE")
	f.StringVar(&o.boots.address, "boot-bind-address", ":8082", "where machines ask")
	f.BoolVar(&o.boots.plaintext, "boot-plaintext", false, "serve machines without TLS; for an iPXE that trusts no authority of yours")
	f.StringVar(&o.medias.url, "media-url", "", "URL of this service as BMCs see it; empty serves no virtual media")
	f.StringVar(&o.medias.address, "media-bind-address", ":8083", "where BMCs ask")
	f.BoolVar(&o.medias.plaintext, "media-plaintext", false, "serve BMCs without TLS; for BMCs that take no authority")
	f.BoolVar(&o.anySource, "media-any-source", false,
		"serve an ISO to every address that knows its URL; for networks that hide the addresses of BMCs")

	f.BoolVar(&o.anyMachine, "boot-any-source", false,
		"serve the ignition of a claim to every address that knows the UUID; for networks that hide or change the addresses of machines")

	f.StringSliceVar(&o.registries, "allow-registries", nil,
		"registries of boot images, or registries with the beginning of a path, such as ghcr.io/example; no other is asked")
	f.StringVar(&o.arch, "architecture", "amd64", "architecture of the machines: amd64 or arm64")
	f.StringVar(&o.cacheDir, "cache-dir", "/cache", "where layers of images are kept")
	f.StringVar(&o.cacheSize, "cache-size", "4Gi", "how much of them is kept")
}

// validate lists everything that is wrong with the flags.
func (o *bootOptions) validate() error {
	p := &usage.Problems{}
	p.AddIf(o.boots.url == "" && o.medias.url == "", "boot-url", "", "neither machines nor BMCs would be served",
		"write --boot-url for iPXE, --media-url for virtual media, or both")
	for flag, e := range map[string]bootEndpoint{"boot": o.boots, "media": o.medias} {
		if e.url == "" {
			continue
		}
		e.validateURL(p, flag)
		cause := badAddress(e.address)
		p.AddIf(cause != "", flag+"-bind-address", e.address, cause, "write host:port or :port, such as :8082")
	}
	p.AddIf(len(o.registries) == 0, "allow-registries", "", "no boot image could be read",
		"name the registries of your boot images, such as ghcr.io/metalaw")
	p.AddIf(o.arch != "amd64" && o.arch != "arm64", "architecture", o.arch, "no machine of it can be booted", "write amd64 or arm64")
	size, err := resource.ParseQuantity(o.cacheSize)
	p.AddIf(err != nil || size.Sign() <= 0, "cache-size", o.cacheSize, "this is no size", "write a quantity, such as 4Gi")
	p.AddIf(o.cacheDir == "", "cache-dir", "", "layers have to be somewhere", "name a writable directory, such as /cache")
	p.AddIf(o.certDir == "" && o.needsCertificate(), "cert-dir", "", "the certificate has to be somewhere",
		"name the directory of tls.crt and tls.key, such as /certs")
	p.AddIf(o.workers < 1, "workers", o.workers, "no boot would be prepared", "write a number from 1, such as 8")
	return p.Err()
}

func (e bootEndpoint) validateURL(p *usage.Problems, flag string) {
	u, err := url.Parse(e.url)
	wanted := "https"
	if e.plaintext {
		wanted = "http"
	}
	const remedy = "write scheme, host and port alone, such as https://boot.example:8082"
	switch {
	case err != nil || !isHost(u.Hostname()):
		p.Add(flag+"-url", e.url, "it names no host", remedy)
	case u.Path != "" || u.RawQuery != "" || u.User != nil || u.Fragment != "":
		p.Add(flag+"-url", u.Redacted(), "it may hold a scheme, a host and a port, and nothing else", remedy)
	case u.Scheme != wanted:
		p.Add(flag+"-url", e.url, "the service speaks "+wanted+" there", "write "+wanted+", or change --"+flag+"-plaintext")
	}
}

func (o *bootOptions) needsCertificate() bool {
	return o.boots.url != "" && !o.boots.plaintext || o.medias.url != "" && !o.medias.plaintext
}
