// SPDX-License-Identifier: Apache-2.0

package emulator

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"time"
)

// Certificate names the certificate that a BMC shows.
type Certificate string

const (
	// CertificateFleet is signed by the fleet's CA for the BMC's address.
	CertificateFleet Certificate = ""
	// CertificateSelfSigned is signed by itself.
	CertificateSelfSigned Certificate = "SelfSigned"
	// CertificateRotated is signed by a CA that nobody was told of.
	CertificateRotated Certificate = "Rotated"
	// CertificateExpired is the fleet's, out of date since a day.
	CertificateExpired Certificate = "Expired"
	// CertificateWrongName is the fleet's, for another name.
	CertificateWrongName Certificate = "WrongName"
)

// authority is the CA of a fleet. All BMCs share one private key, because making keys is all that is expensive here.
type authority struct {
	pem   []byte
	cert  *x509.Certificate
	key   crypto.Signer
	other *x509.Certificate // the CA that nobody trusts, with the same key material as key
	pool  *x509.CertPool
	leaf  *ecdsa.PrivateKey
}

func newAuthority() (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("emulator: key of the fleet's CA: %w", err)
	}
	leaf, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("emulator: key of the BMCs: %w", err)
	}
	a := &authority{key: key, leaf: leaf, pool: x509.NewCertPool()}
	if a.cert, err = newCA("Emulated fleet CA", key); err != nil {
		return nil, err
	}
	// The leaf key signs for the unknown CA, so that no client that trusts the fleet's accepts it.
	if a.other, err = newCA("Another CA", leaf); err != nil {
		return nil, err
	}
	a.pool.AddCert(a.cert)
	a.pem = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
	return a, nil
}

func newCA(name string, key *ecdsa.PrivateKey) (*x509.Certificate, error) {
	template := template(name, time.Now().Add(10*365*24*time.Hour))
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("emulator: CA certificate: %w", err)
	}
	return x509.ParseCertificate(raw)
}

func template(name string, notAfter time.Time) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:      pkix.Name{CommonName: name, Organization: []string{"metalaw emulator"}},
		NotBefore:    time.Now().Add(-48 * time.Hour), NotAfter: notAfter,
	}
}

func (a *authority) clientConfig() *tls.Config {
	return &tls.Config{RootCAs: a.pool, MinVersion: tls.VersionTLS12}
}

// serverConfig asks the endpoint of each connection for its certificate. HTTP/2 is not offered, as no BMC does.
func (a *authority) serverConfig() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"http/1.1"},
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			c, ok := hello.Conn.(*conn)
			if !ok {
				return nil, errNoConn
			}
			return c.endpoint.certificate(a)
		},
	}
}

// issue makes a certificate of that kind for host.
func (a *authority) issue(host string, kind Certificate) (*tls.Certificate, error) {
	t := template(host, time.Now().Add(365*24*time.Hour))
	t.KeyUsage = x509.KeyUsageDigitalSignature
	t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	parent, signer := a.cert, a.key
	name := host
	switch kind {
	case CertificateSelfSigned:
		parent, signer = t, a.leaf
	case CertificateRotated:
		parent, signer = a.other, a.leaf
	case CertificateExpired:
		t.NotAfter = time.Now().Add(-24 * time.Hour)
	case CertificateWrongName:
		name = "another-bmc.example"
	case CertificateFleet:
	default:
		return nil, errors.New("emulator: unknown certificate kind " + string(kind))
	}
	if ip := net.ParseIP(name); ip != nil {
		t.IPAddresses = []net.IP{ip}
	} else {
		t.DNSNames = []string{name}
	}
	raw, err := x509.CreateCertificate(rand.Reader, t, parent, a.leaf.Public(), signer)
	if err != nil {
		return nil, fmt.Errorf("emulator: certificate for %s: %w", host, err)
	}
	return &tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: a.leaf}, nil
}

func (e *endpoint) setCertificate(kind Certificate) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.cert, e.issued = kind, nil
	e.dropLocked(nil)
}

// certificate is made at the first handshake, so that a fleet that is never spoken to costs nothing.
func (e *endpoint) certificate(a *authority) (*tls.Certificate, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.issued == nil {
		host, _, err := net.SplitHostPort(e.addr)
		if err != nil {
			return nil, fmt.Errorf("emulator: address %q of a BMC: %w", e.addr, err)
		}
		if e.issued, err = a.issue(host, e.cert); err != nil {
			return nil, err
		}
	}
	return e.issued, nil
}
