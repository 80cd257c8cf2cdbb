// SPDX-License-Identifier: Apache-2.0

// Package servingcert makes a serving certificate good for further host names and IP addresses.
package servingcert

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// Get gives a serving certificate, as tls.Config.GetCertificate does.
type Get = func(*tls.ClientHelloInfo) (*tls.Certificate, error)

// Missing are the hosts that a certificate is not good for, each once.
func Missing(certificate *x509.Certificate, hosts []string) []string {
	var missing []string
	for _, host := range hosts {
		if certificate.VerifyHostname(host) != nil && !slices.Contains(missing, host) {
			missing = append(missing, host)
		}
	}
	return missing
}

// Extend has the authority sign the certificate anew with further hosts. Key, purpose and validity stay.
func Extend(serving, authority *tls.Certificate, hosts []string) (*tls.Certificate, error) {
	old, err := x509.ParseCertificate(serving.Certificate[0])
	if err != nil {
		return nil, err
	}
	signer, err := x509.ParseCertificate(authority.Certificate[0])
	if err != nil {
		return nil, fmt.Errorf("the authority: %w", err)
	}
	if err := old.CheckSignatureFrom(signer); err != nil {
		return nil, fmt.Errorf("another authority signed the serving certificate: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: old.Subject, NotBefore: old.NotBefore, NotAfter: old.NotAfter,
		DNSNames: slices.Clone(old.DNSNames), IPAddresses: slices.Clone(old.IPAddresses),
		KeyUsage: old.KeyUsage, ExtKeyUsage: old.ExtKeyUsage, BasicConstraintsValid: true,
	}
	for _, host := range Missing(old, hosts) {
		if ip, err := netip.ParseAddr(host); err == nil {
			template.IPAddresses = append(template.IPAddresses, ip.AsSlice())
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, signer, old.PublicKey, authority.PrivateKey)
	if err != nil {
		return nil, err
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: serving.PrivateKey, Leaf: leaf}, nil
}

// For gives what get gives, made good for the hosts. That takes ca.crt and ca.key of the authority in the directory;
// without them the certificate is given as it is, and the log says which hosts it is not good for.
func For(dir string, hosts []string, get Get, log *slog.Logger) Get {
	var mu sync.Mutex
	var base, extended *tls.Certificate
	return func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		now, err := get(hello)
		if err != nil || now == nil {
			return now, err
		}
		mu.Lock()
		defer mu.Unlock()
		if now != base {
			base, extended = now, now
			if extended, err = extendFrom(dir, now, hosts); err != nil {
				extended = now
				log.Warn("the certificate is not good for each host by which agents reach the registry, so they refuse it; "+
					"name another one with --registry-cert-dir", "dir", dir, "hosts", hosts, "error", err)
			}
		}
		return extended, nil
	}
}

func extendFrom(dir string, serving *tls.Certificate, hosts []string) (*tls.Certificate, error) {
	leaf, err := x509.ParseCertificate(serving.Certificate[0])
	if err != nil {
		return nil, err
	}
	if len(Missing(leaf, hosts)) == 0 {
		return serving, nil
	}
	authority, err := tls.LoadX509KeyPair(filepath.Join(dir, "ca.crt"), filepath.Join(dir, "ca.key"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, errors.New("the authority's key ca.key is not there to sign it anew")
	}
	if err != nil {
		return nil, err
	}
	return Extend(serving, &authority, hosts)
}
