// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"crypto/x509"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap/zapcore"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/metalaw/metalaw/cmd/internal/usage"
	"github.com/metalaw/metalaw/controllers/maintenance"
	"github.com/metalaw/metalaw/metalprobe/registry/sink"
	"github.com/metalaw/metalaw/webhooks/credentials"
)

// leastPoll is the shortest time between two readings of a BMC at rest: a mistyped unit must not flood the fleet.
const leastPoll = time.Second

// validate lists everything that is wrong with the flags. It reads the files that they name, and opens nothing else.
func (o *options) validate() error {
	p := &usage.Problems{}
	o.validateNames(p)
	o.validateAddresses(p)
	o.validateRegistryURL(p)
	o.validateFiles(p)
	o.validateMachines(p)
	return p.Err()
}

func (o *options) validateNames(p *usage.Problems) {
	name := func(flag, value, remedy string, rule func(string) []string) {
		p.AddIf(len(rule(value)) > 0, flag, value, "no object can have this name", remedy)
	}
	name("namespace", o.Namespace, "write the namespace that the manager runs in, such as metalaw-system", validation.IsDNS1123Label)
	name("service-account", o.serviceAccount, "write the name of the manager's service account, such as metalaw-manager",
		validation.IsDNS1123Subdomain)
	if o.rotateCerts {
		name("webhook-cert-secret", o.webhookSecret, "write the name of a Secret, such as metalaw-webhook-certs", validation.IsDNS1123Subdomain)
	}
	for _, host := range o.extraDNSNames {
		p.AddIf(!isHost(strings.TrimPrefix(host, "*.")), "extra-dns-names", host, "this is no host name",
			"write names without scheme and port, such as metalaw-registry.example")
	}
	_, err := zapcore.ParseLevel(o.logLevel)
	p.AddIf(err != nil, "log-level", o.logLevel, "there is no such level", "write debug, info or error")
	if o.sanitizationSink != "" {
		if _, err := sink.Parse(o.sanitizationSink); err != nil {
			p.Add("sanitization-sink", o.sanitizationSink, err.Error(),
				"write such a URL, or leave the flag out to keep records in the cluster alone")
		}
	}
}

func (o *options) validateAddresses(p *usage.Problems) {
	listen := func(flag, value string, off bool) {
		if off && value == "0" {
			return
		}
		remedy := "write host:port or :port, such as :10000"
		if flag == "pprof-bind-address" {
			remedy = "write localhost:port, such as localhost:6060"
		}
		if off {
			remedy += ", or 0 to serve none"
		}
		cause := badAddress(value)
		p.AddIf(cause != "", flag, value, cause, remedy)
	}
	listen("metrics-bind-address", o.metricsAddress, true)
	if host, _, err := net.SplitHostPort(o.pprofAddress); err != nil || isLoopback(host) {
		listen("pprof-bind-address", o.pprofAddress, true)
	} else {
		p.Add("pprof-bind-address", o.pprofAddress, "profiles are served to every program that can connect",
			"write localhost:PORT, and reach it with kubectl port-forward")
	}
	listen("health-probe-bind-address", o.healthAddress, true)
	listen("registry-bind-address", o.registryAddress, false)
	if !o.webhooks {
		return
	}
	p.AddIf(!slices.Contains(credentials.Modes(), credentials.Mode(o.CredentialUse)), "credential-use", o.CredentialUse,
		"there is no such mode", "write off, warn or on")
	p.AddIf(o.webhookPort < 1 || o.webhookPort > 65535, "webhook-port", o.webhookPort, "this is no port",
		"write a number from 1 to 65535, such as 9443")
	p.AddIf(o.webhookHost != "" && !isHost(o.webhookHost), "webhook-host", o.webhookHost, "this is neither an address nor a host name",
		"write one without scheme and port, or nothing for every address")
}

// badAddress says why nothing can listen at an address; empty where something can.
func badAddress(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "this is no address to listen on"
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return "its port is no number from 0 to 65535"
	}
	if host != "" && !isHost(host) {
		return "its host is neither an address nor a host name"
	}
	return ""
}

func isHost(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return len(validation.IsDNS1123Subdomain(strings.ToLower(host))) == 0
}

// isLoopback says that nobody outside of the pod or the host reaches what listens there.
func isLoopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && address.IsLoopback()
}

func (o *options) validateRegistryURL(p *usage.Problems) {
	const flag, remedy = "registry-url", "write the URL that the agents on the servers dial, such as https://metalaw-registry.example:10000"
	u, err := url.Parse(o.RegistryURL)
	switch {
	case o.RegistryURL == "":
		p.Add(flag, "", "it is required", remedy)
	case err != nil:
		p.Add(flag, o.RegistryURL, "this is no URL", remedy)
	case u.Scheme != "http" && u.Scheme != "https":
		p.Add(flag, o.RegistryURL, "agents speak http and https alone", remedy)
	case !isHost(u.Hostname()) || badAddress(net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "443"))) != "":
		p.Add(flag, o.RegistryURL, "it names no host and port that an agent could dial", remedy)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		p.Add(flag, u.Redacted(), "it may hold a scheme, a host, a port and a path, and nothing else", remedy)
	case u.Scheme == "http" && !o.registryPlaintext:
		p.Add(flag, o.RegistryURL, "the registry speaks TLS, and agents told http would send their tokens in the clear",
			"write https, or add --registry-plaintext on a closed network")
	}
}

func (o *options) validateFiles(p *usage.Problems) {
	if o.kubeconfig != "" {
		if _, err := clientcmd.LoadFromFile(o.kubeconfig); err != nil {
			p.Add("kubeconfig", o.kubeconfig, usage.Reading(err), "name a kubeconfig that the manager may read")
		}
	}
	p.AddIf(o.webhookCerts == "" && (o.webhooks || (!o.registryPlaintext && (o.rotateCerts || o.registryCerts == ""))),
		"webhook-cert-dir", "", "the certificates have to be somewhere", "name the directory of tls.crt, tls.key and ca.crt, such as /certs")
	if o.bmcCAFile == "" {
		return
	}
	pem, err := os.ReadFile(o.bmcCAFile)
	switch {
	case err != nil:
		p.Add("bmc-ca-file", o.bmcCAFile, usage.Reading(err), "name a PEM file that the manager may read")
	case !x509.NewCertPool().AppendCertsFromPEM(pem):
		p.Add("bmc-ca-file", o.bmcCAFile, "it holds no certificate", "name a PEM file with the certificates that BMCs are trusted by")
	}
}

func (o *options) validateMachines(p *usage.Problems) {
	cause := badImage(o.ProbeImage)
	p.AddIf(cause != "", "probe-image", o.ProbeImage, cause, "write an image, such as ghcr.io/metalaw/metalprobe:latest")
	cause = badImage(o.WipeImage)
	p.AddIf(cause != "" && o.WipeImage != "", "wipe-image", o.WipeImage, cause, "write an image, or nothing to use --probe-image")
	p.AddIf(o.BootTarget != "Pxe" && o.BootTarget != "UefiHttp", "boot-target", o.BootTarget, "there is no such boot source",
		"write Pxe or UefiHttp")
	if o.MediaURL != "" {
		u, err := url.Parse(o.MediaURL)
		p.AddIf(err != nil || !isHost(u.Hostname()) || u.Scheme != "http" && u.Scheme != "https" || strings.Trim(u.Path, "/") != "" || u.User != nil,
			"media-url", o.MediaURL, "BMCs cannot dial it", "write what --media-url of metalaw boot is, such as https://boot.example:8083")
	}
	p.AddIf(!slices.Contains(maintenance.Modes(), o.Maintenance), "maintenance", o.Maintenance, "there is no such mode", "write off, plan or on")
	p.AddIf(o.SteadyPoll < leastPoll, "steady-poll", o.SteadyPoll, "BMCs cannot be read so often",
		fmt.Sprintf("write a duration of at least %s, such as 3m", leastPoll))
	p.AddIf(o.PowerGrace <= 0, "power-grace", o.PowerGrace, "a BMC needs time to show what it accepted", "write a duration above 0, such as 1m")
	p.AddIf(o.AdoptionRate < 1, "adoption-rate", o.AdoptionRate, "no server would ever come under another policy",
		"write a number from 1, such as 10")
	p.AddIf(o.gcPercent < leastGCPercent, "gc-percent", o.gcPercent, "the manager would do little else than collect",
		fmt.Sprintf("write a number from %d, such as %d", leastGCPercent, gcPercent))
	p.AddIf(o.Workers < 1, "workers", o.Workers, "no server would be looked at", "write a number from 1, such as 16")
}

// badImage says why a text names no image; empty where it may. Whether there is such an image, the boot operator finds out.
func badImage(image string) string {
	switch {
	case image == "":
		return "it is required"
	case strings.ContainsFunc(image, func(r rune) bool { return r <= ' ' || r == 0x7f }):
		return "an image's name has no spaces"
	case strings.Contains(image, "://"):
		return "an image's name has no scheme"
	default:
		return ""
	}
}
