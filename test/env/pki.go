// SPDX-License-Identifier: Apache-2.0

package env

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// certLifetime outlasts any test and any demo that is left running over a weekend.
const certLifetime = 30 * 24 * time.Hour

// pki is the one certificate authority of a control plane: it signs the API server's certificate,
// the users' and, on request, a webhook server's.
type pki struct {
	dir   string
	ca    *x509.Certificate
	caKey crypto.Signer
	caPEM []byte
}

// newPKI makes an authority and writes its certificate to dir/ca.crt.
func newPKI(dir string) (*pki, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	ca, err := cert.NewSelfSignedCACert(cert.Config{CommonName: "metalaw-env"}, key)
	if err != nil {
		return nil, err
	}
	p := &pki{dir: dir, ca: ca, caKey: key, caPEM: encodeCert(ca.Raw)}
	return p, os.WriteFile(p.path("ca.crt"), p.caPEM, 0o644)
}

func (p *pki) path(name string) string { return filepath.Join(p.dir, name) }

// client signs a certificate that the API server takes for the user.
func (p *pki) client(user User) (certPEM, keyPEM []byte, err error) {
	return p.sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: user.Name, Organization: user.Groups},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

// server signs a certificate for a server on the loopback interface that also answers to names.
func (p *pki) server(names ...string) (certPEM, keyPEM []byte, err error) {
	return p.sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: names[0]},
		DNSNames:    append(names, "localhost"),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
}

func (p *pki) sign(template *x509.Certificate) (certPEM, keyPEM []byte, err error) {
	key, err := newKey()
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, nil, err
	}
	now := time.Now()
	template.SerialNumber = serial
	template.NotBefore, template.NotAfter = now.Add(-time.Minute), now.Add(certLifetime)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, p.ca, key.Public(), p.caKey)
	if err != nil {
		return nil, nil, fmt.Errorf("sign the certificate of %q: %w", template.Subject.CommonName, err)
	}
	keyPEM, err = keyutil.MarshalPrivateKeyToPEM(key)
	return encodeCert(der), keyPEM, err
}

// write stores a pair as dir/name.crt and dir/name.key and returns both paths.
func (p *pki) write(name string, certPEM, keyPEM []byte) (certPath, keyPath string, err error) {
	certPath, keyPath = p.path(name+".crt"), p.path(name+".key")
	if err := os.WriteFile(certPath, certPEM, 0o644); err != nil {
		return "", "", err
	}
	return certPath, keyPath, os.WriteFile(keyPath, keyPEM, 0o600)
}

func newKey() (*ecdsa.PrivateKey, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }

func encodeCert(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: der})
}
