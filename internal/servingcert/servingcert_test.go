// SPDX-License-Identifier: Apache-2.0

package servingcert

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const inside = "metalaw-registry.metalaw-system.svc"

// authority makes an authority.
func authority(t *testing.T) *tls.Certificate {
	t.Helper()
	return sign(t, nil, &x509.Certificate{Subject: pkix.Name{CommonName: "ca"}, IsCA: true, KeyUsage: x509.KeyUsageCertSign})
}

// serving makes a certificate of the authority for a name.
func serving(t *testing.T, by *tls.Certificate, names ...string) *tls.Certificate {
	t.Helper()
	return sign(t, by, &x509.Certificate{Subject: pkix.Name{CommonName: "server"}, DNSNames: names,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
}

func sign(t *testing.T, by *tls.Certificate, template *x509.Certificate) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber, template.BasicConstraintsValid = big.NewInt(1), true
	template.NotBefore, template.NotAfter = time.Unix(0, 0), time.Unix(1<<32, 0)
	parent, signer := template, any(key)
	if by != nil {
		parent, signer = by.Leaf, by.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

func TestExtend(t *testing.T) {
	ca := authority(t)
	roots := x509.NewCertPool()
	roots.AddCert(ca.Leaf)
	for name, hosts := range map[string][]string{
		"an address":                      {"10.0.0.5"},
		"an address of IPv6":              {"2001:db8::5"},
		"a name":                          {"registry.example"},
		"a wildcard":                      {"*.example"},
		"addresses and names together":    {"10.0.0.5", inside, "10.0.0.5", "registry.example"},
		"a host that the certificate has": {inside},
	} {
		t.Run(name, func(t *testing.T) {
			old := serving(t, ca, inside)
			got, err := Extend(old, ca, hosts)
			if err != nil {
				t.Fatal(err)
			}
			if missing := Missing(got.Leaf, append(hosts, inside)); len(missing) > 0 {
				t.Errorf("it is not good for %v", missing)
			}
			if _, err := got.Leaf.Verify(x509.VerifyOptions{Roots: roots}); err != nil {
				t.Error(err)
			}
			if got.PrivateKey != old.PrivateKey || !got.Leaf.NotAfter.Equal(old.Leaf.NotAfter) {
				t.Error("its key or its end is another")
			}
		})
	}
	if _, err := Extend(serving(t, authority(t), inside), ca, []string{"10.0.0.5"}); err == nil {
		t.Error("it signs what another authority signed")
	}
}

// given returns how For serves a certificate from a directory that holds the authority, and what it logs.
func given(t *testing.T, ca *tls.Certificate, withKey bool, current **tls.Certificate) (get Get, log *bytes.Buffer) {
	t.Helper()
	dir := t.TempDir()
	files := map[string][]byte{"ca.crt": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.Certificate[0]})}
	if withKey {
		key, err := x509.MarshalPKCS8PrivateKey(ca.PrivateKey)
		if err != nil {
			t.Fatal(err)
		}
		files["ca.key"] = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	log = &bytes.Buffer{}
	base := func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return *current, nil }
	return For(dir, []string{"10.0.0.5"}, base, slog.New(slog.NewTextHandler(log, nil))), log
}

func TestForFollowsARenewedCertificate(t *testing.T) {
	ca := authority(t)
	current := serving(t, ca, inside)
	get, log := given(t, ca, true, &current)
	first, err := get(nil)
	if err != nil || len(Missing(first.Leaf, []string{"10.0.0.5", inside})) > 0 {
		t.Fatalf("%v, good for %v", err, first.Leaf.IPAddresses)
	}
	if again, _ := get(nil); again != first {
		t.Error("it is signed for each connection")
	}
	current = serving(t, ca, inside)
	renewed, err := get(nil)
	if err != nil || renewed.PrivateKey != current.PrivateKey || len(Missing(renewed.Leaf, []string{"10.0.0.5"})) > 0 {
		t.Errorf("%v, good for %v", err, renewed.Leaf.IPAddresses)
	}
	if log.Len() > 0 {
		t.Errorf("it logs %s", log)
	}
}

func TestWithoutTheKeyOfTheAuthorityTheLogNamesTheRemedyOnce(t *testing.T) {
	ca := authority(t)
	current := serving(t, ca, inside)
	get, log := given(t, ca, false, &current)
	for range 2 {
		if got, err := get(nil); err != nil || got != current {
			t.Errorf("%v, another certificate", err)
		}
	}
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != 1 || !strings.Contains(lines[0], "--registry-cert-dir") {
		t.Errorf("it logs %q", lines)
	}
}

func TestACertificateThatIsGoodIsGivenAsItIs(t *testing.T) {
	ca := authority(t)
	current := serving(t, ca, inside)
	get := For(t.TempDir(), []string{inside}, func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return current, nil },
		slog.New(slog.DiscardHandler))
	if got, err := get(nil); err != nil || got != current {
		t.Errorf("%v, another certificate", err)
	}
}
