// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	dialTimeout = 5 * time.Second
	tlsTimeout  = 10 * time.Second
	// idleTimeout is longer than the pauses between the steps of a change, and far shorter than those between the polls of a BMC at
	// rest: a connection takes 20 KB with its goroutines, and a BMC has few places for them.
	idleTimeout    = 15 * time.Second
	maxHeaderBytes = 256 << 10
)

// baseURL checks the endpoint and returns scheme://host:port.
func (e Endpoint) baseURL() (*url.URL, error) {
	if e.Scheme != "https" && e.Scheme != "http" {
		return nil, fmt.Errorf("redfish: scheme %q is neither https nor http", e.Scheme)
	}
	if e.Address == "" || strings.ContainsAny(e.Address, "/@?#[] \t\r\n") {
		return nil, fmt.Errorf("redfish: address %q is not an IP address or host name", e.Address)
	}
	port := e.Port
	if port == 0 {
		port = map[string]int{"https": 443, "http": 80}[e.Scheme]
	}
	if port < 1 || port > 65535 {
		return nil, fmt.Errorf("redfish: port %d of %s is not between 1 and 65535", port, e.Address)
	}
	return &url.URL{Scheme: e.Scheme, Host: net.JoinHostPort(e.Address, strconv.Itoa(port))}, nil
}

// tlsConfig is always our own: a library that sets InsecureSkipVerify on a shared configuration would switch
// verification off for the whole process.
func (e Endpoint) tlsConfig() (*tls.Config, error) {
	config := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: e.InsecureSkipVerify, //nolint:gosec // most BMCs sign their own certificate; whoever gives the endpoint decides
	}
	if e.OldTLS.RSAKeyExchange {
		config.CipherSuites = oldSuites()
	}
	config.VerifyConnection = e.verifyConnection
	if e.CertificateSHA256 != "" {
		config.InsecureSkipVerify = true // the fingerprint is compared instead
		return config, nil
	}
	if len(e.CABundle) > 0 {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(e.CABundle) {
			return nil, fmt.Errorf("redfish: the CA bundle of %s holds no PEM certificate", e.Address)
		}
	}
	return config, nil
}

// verifyConnection checks what the standard library does not, whether or not that verified the certificate.
func (e Endpoint) verifyConnection(state tls.ConnectionState) error {
	if e.CertificateSHA256 != "" {
		if err := e.comparePin(state); err != nil {
			return err
		}
	}
	if e.OldTLS.NegativeSerial {
		return nil
	}
	return checkSerials(state)
}

// comparePin ends a handshake in which another certificate than the trusted one is shown, before any request is sent.
func (e Endpoint) comparePin(state tls.ConnectionState) error {
	shown := ""
	if len(state.PeerCertificates) > 0 {
		shown = fingerprintOf(state.PeerCertificates[0])
	}
	if shown == e.CertificateSHA256 {
		return nil
	}
	return &CertificateError{Shown: shown, Trusted: e.CertificateSHA256, Err: errOtherCertificate}
}

func fingerprintOf(c *x509.Certificate) string {
	sum := sha256.Sum256(c.Raw)
	return hex.EncodeToString(sum[:])
}

// dialer opens the connections to all BMCs.
var dialer = &net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}

// newWire returns the innermost layer. It uses no proxy (management networks are reached directly) and no HTTP/2
// (a limit on connections would not limit anything), asks for no compression (it changes ETags), and by its nature
// repeats a read, never a write, when an idle connection turns out to have been closed by the BMC.
func newWire(e Endpoint, perBMC int, open *openWires) (*wire, error) {
	config, err := e.tlsConfig()
	if err != nil {
		return nil, err
	}
	return &wire{rest: idleTimeout, open: open, dial: func() transport {
		return &http.Transport{
			DialContext:            dialer.DialContext,
			TLSClientConfig:        config,
			TLSHandshakeTimeout:    tlsTimeout,
			MaxConnsPerHost:        perBMC,
			MaxIdleConnsPerHost:    perBMC,
			IdleConnTimeout:        idleTimeout,
			DisableCompression:     true,
			MaxResponseHeaderBytes: maxHeaderBytes,
			TLSNextProto:           map[string]func(string, *tls.Conn) http.RoundTripper{},
		}
	}}, nil
}

// chain stacks the layers, outermost first: refuse while the breaker is open, wait for a slot of the BMC and of the
// fleet, ask the guard of a write, refuse again, count failures, limit the time, observe, check the body, read it, go out.
func chain(key func() string, address string, options PoolOptions, fleet chan struct{}, out roundTrip) http.RoundTripper {
	guard := &breaker{threshold: options.BreakerThreshold, base: options.BreakerBase, max: options.BreakerMax}
	next := observed(key, address, options, wholeBody(options.BodyLimit, out))
	next = guarded(options.Fence, guard.meter(deadline(options.RequestTimeout, next)))
	next = limited(make(chan struct{}, options.PerBMC), "this BMC", limited(fleet, "the fleet", next))
	return guard.gate(next)
}

// roundTrip sends one request, and what each layer of the chain does around the next one.
type roundTrip func(req *http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (r roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return r(req) }

// untrusted adds which certificate was shown.
func untrusted(err error) error {
	failed, ok := errors.AsType[*tls.CertificateVerificationError](err)
	if !ok || len(failed.UnverifiedCertificates) == 0 {
		return err
	}
	return &CertificateError{Shown: fingerprintOf(failed.UnverifiedCertificates[0]), Err: err}
}

// explain adds the remedy to a connection error.
func explain(err error) error {
	switch {
	case is[x509.UnknownAuthorityError](err):
		return untrusted(fmt.Errorf("the certificate is not trusted; trust its CA or its fingerprint, or check who answers there: %w", err))
	case is[x509.HostnameError](err):
		return untrusted(fmt.Errorf("the certificate is for another name; give the BMC one for its address, or check who answers there: %w", err))
	case is[x509.CertificateInvalidError](err):
		return untrusted(fmt.Errorf("the certificate is not valid; renew it, or check the clocks: %w", err))
	case alerted(err):
		return explainAlert(err)
	case is[tls.RecordHeaderError](err):
		return fmt.Errorf("what answers does not speak TLS; check scheme and port: %w", err)
	case is[*net.DNSError](err):
		return fmt.Errorf("the host name does not resolve; check the address: %w", err)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("nothing listens there; check address and port, or whether the BMC restarts: %w", err)
	case errors.Is(err, context.Canceled), !isTimeout(err):
		return err
	}
	return fmt.Errorf("no answer in time; check address, network and whether the BMC hangs: %w", err)
}
