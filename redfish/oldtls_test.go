// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/hex"
	"errors"
	"math/big"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/metalaw/metalaw/internal/oldtls"
)

// newOldFake is a BMC whose TLS is not what Go speaks by default.
func newOldFake(t *testing.T, config *tls.Config) *fakeBMC {
	f := bareFake()
	f.server = httptest.NewUnstartedServer(f)
	f.server.TLS = config
	f.server.Config.ErrorLog = discardLog
	f.server.StartTLS()
	t.Cleanup(f.server.Close)
	return f
}

func TestABMCThatKnowsRSAKeyExchangeAloneIsAllowedIt(t *testing.T) {
	for _, suite := range []uint16{tls.TLS_RSA_WITH_AES_128_GCM_SHA256, tls.TLS_RSA_WITH_AES_256_CBC_SHA} {
		f := newOldFake(t, &tls.Config{MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{suite}})
		endpoint := f.endpoint()
		endpoint.CABundle = f.pem()
		_, err := poolOf(t).Get("bmc", endpoint, login0).Manager(t.Context())
		if err == nil || !strings.Contains(err.Error(), "set its annotation policy.metalaw.dev/old-tls to rsa-key-exchange") || MayHaveHappened(err) {
			t.Errorf("error %v does not name the setting", err)
		}
		if unanswered, asked := Unanswered(err); unanswered || !asked {
			t.Error("a BMC that ends the handshake is taken for one that does not answer")
		}
		endpoint.OldTLS = oldtls.Allowed{RSAKeyExchange: true}
		if _, err := poolOf(t).Get("bmc", endpoint, login0).Manager(t.Context()); err != nil {
			t.Errorf("allowed: %v", err)
		}
	}
}

func TestABMCWithRSAKeyExchangeAllowedStillSpeaksTLSOfToday(t *testing.T) {
	f := newTLSFake(t)
	endpoint := f.endpoint()
	endpoint.CABundle, endpoint.OldTLS = f.pem(), oldtls.Allowed{RSAKeyExchange: true}
	if _, err := poolOf(t).Get("bmc", endpoint, login0).Manager(t.Context()); err != nil {
		t.Error(err)
	}
	f = newOldFake(t, &tls.Config{MaxVersion: tls.VersionTLS12})
	endpoint.Port, endpoint.CABundle = f.endpoint().Port, f.pem()
	if _, err := poolOf(t).Get("bmc", endpoint, login0).Manager(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestABMCWithoutTLS12IsNamed(t *testing.T) {
	f := newOldFake(t, &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11})
	endpoint := f.endpoint()
	endpoint.CABundle, endpoint.OldTLS = f.pem(), oldtls.Allowed{RSAKeyExchange: true, NegativeSerial: true}
	_, err := poolOf(t).Get("bmc", endpoint, login0).Manager(t.Context())
	if err == nil || !strings.Contains(err.Error(), "knows no TLS 1.2") {
		t.Errorf("error %v", err)
	}
}

// negative is a certificate for 127.0.0.1 whose serial number is -1. The standard library makes none.
func negative(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	name := pkix.Name{CommonName: "bmc"}
	made, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(0x7f), Subject: name, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}},
		&x509.Certificate{Subject: name}, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	var whole struct {
		Body      asn1.RawValue
		Algorithm pkix.AlgorithmIdentifier
		Signature asn1.BitString
	}
	if _, err := asn1.Unmarshal(made, &whole); err != nil {
		t.Fatal(err)
	}
	body := strings.Replace(string(whole.Body.FullBytes), "\x02\x01\x7f", "\x02\x01\xff", 1)
	digest := sha256.Sum256([]byte(body))
	signature, err := key.Sign(rand.Reader, digest[:], crypto.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	whole.Body = asn1.RawValue{FullBytes: []byte(body)}
	whole.Signature = asn1.BitString{Bytes: signature, BitLength: 8 * len(signature)}
	der, err := asn1.Marshal(whole)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func TestANegativeSerialNumberIsRefusedUnlessTheBMCIsAllowedIt(t *testing.T) {
	f := newOldFake(t, &tls.Config{Certificates: []tls.Certificate{negative(t)}})
	leaf := f.server.TLS.Certificates[0].Certificate[0]
	sum := sha256.Sum256(leaf)
	pinned, insecure, trusted := f.endpoint(), f.endpoint(), f.endpoint()
	pinned.CertificateSHA256 = hex.EncodeToString(sum[:])
	insecure.InsecureSkipVerify = true
	trusted.CABundle = f.pem()
	for name, endpoint := range map[string]Endpoint{"pinned": pinned, "insecure": insecure, "by its authority": trusted} {
		t.Run(name, func(t *testing.T) {
			f.seen()
			_, err := poolOf(t).Get("bmc", endpoint, login0).Manager(t.Context())
			if err == nil || !strings.Contains(err.Error(), "negative serial number") || !strings.Contains(err.Error(), "policy.metalaw.dev/old-tls of the BMC to negative-serial") {
				t.Errorf("error %v does not name the cause and the setting", err)
			}
			if unanswered, asked := Unanswered(err); unanswered || !asked {
				t.Error("a BMC whose certificate is refused is taken for one that does not answer")
			}
			if len(f.seen("GET", "POST")) != 0 { // the pool of another case may end its session
				t.Error("a request was sent")
			}
			endpoint.OldTLS = oldtls.Allowed{NegativeSerial: true}
			if _, err := poolOf(t).Get("bmc", endpoint, login0).Manager(t.Context()); err != nil {
				t.Errorf("allowed: %v", err)
			}
		})
	}
	other := pinned
	other.CertificateSHA256, other.OldTLS = strings.Repeat("0", 64), oldtls.Allowed{NegativeSerial: true}
	var refused *CertificateError
	if _, err := poolOf(t).Get("bmc", other, login0).Manager(t.Context()); !errors.As(err, &refused) {
		t.Errorf("another certificate than the pinned one: %v", err)
	}
}

func TestEndpointsDifferByWhatOldTLSTheyAreAllowed(t *testing.T) {
	plain, allowed := Endpoint{Address: "a", Scheme: "https"}, Endpoint{Address: "a", Scheme: "https", OldTLS: oldtls.Allowed{NegativeSerial: true}}
	if plain.Equal(allowed) || plain.Digest() == allowed.Digest() {
		t.Error("a client would keep the TLS of before")
	}
}
