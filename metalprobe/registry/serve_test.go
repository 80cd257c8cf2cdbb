// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metalv1alpha1 "github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/metalprobe"
)

// keyPair gives a certificate for 127.0.0.1 and its key, in PEM.
func keyPair(t *testing.T) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded})
}

// serving starts the registry of a fleet on a free port; it ends with the test, and must end without an error.
func serving(t *testing.T, change func(*Options)) (f *fleet, address string) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f = newFleet(t, func(_ *metalv1alpha1.Server, o *Options) {
		o.Plaintext, o.Listener = false, listener
		change(o)
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.registry.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the registry ended with %v", err)
		}
	})
	return f, listener.Addr().String()
}

func TestTheAgentReachesTheRegistryOverTLS(t *testing.T) {
	certificate, key := keyPair(t)
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	f, address := serving(t, func(o *Options) {
		o.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &pair, nil }
	})
	if err := f.registry.Ready(nil); err != nil {
		t.Error(err)
	}
	agent, err := metalprobe.NewHTTPClient(certificate)
	if err != nil {
		t.Fatal(err)
	}
	client := &metalprobe.Client{BaseURL: "https://" + address, Token: "mine", HTTP: agent}
	if err := client.Register(t.Context(), uuid, metalprobe.Data{CPU: []metalprobe.CPU{{}}}); err != nil {
		t.Fatal(err)
	}
	if f.inventory(uuid).Report == nil {
		t.Error("the report was not stored")
	}
	client.Token = "forged"
	if err := client.Register(t.Context(), uuid, metalprobe.Data{CPU: []metalprobe.CPU{{}}}); !metalprobe.IsRefused(err) {
		t.Errorf("got %v, want a refusal", err)
	}
}

func TestACertificateThatAppearsLateIsServed(t *testing.T) {
	dir := t.TempDir()
	f, address := serving(t, func(o *Options) { o.CertDir = dir })
	if f.registry.Ready(nil) == nil {
		t.Error("ready without a certificate")
	}
	certificate, key := keyPair(t)
	for name, content := range map[string][]byte{"tls.key": key, "tls.crt": certificate} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	agent, err := metalprobe.NewHTTPClient(certificate)
	if err != nil {
		t.Fatal(err)
	}
	client := &metalprobe.Client{BaseURL: "https://" + address, Token: "mine", HTTP: agent}
	if err := client.Register(t.Context(), uuid, metalprobe.Data{CPU: []metalprobe.CPU{{}}}); err != nil {
		t.Error(err)
	}
	if err := f.registry.Ready(nil); err != nil {
		t.Error(err)
	}
}

// inside makes an authority and its certificate for a name inside the cluster, as the manager keeps them.
func inside(t *testing.T, dir string) (authority []byte) {
	t.Helper()
	certificate, key := keyPair(t)
	ca, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(2), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{"metalaw-registry.metalaw-system.svc"}}
	der, err := x509.CreateCertificate(rand.Reader, template, ca.Leaf, ca.Leaf.PublicKey, ca.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	serving := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	for name, content := range map[string][]byte{"ca.crt": certificate, "ca.key": key, "tls.key": key, "tls.crt": serving} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certificate
}

func TestTheAgentReachesTheRegistryByItsAddress(t *testing.T) {
	dir := t.TempDir()
	authority := inside(t, dir)
	_, address := serving(t, func(o *Options) { o.CertDir, o.Hosts = dir, []string{"127.0.0.1"} })
	agent, err := metalprobe.NewHTTPClient(authority)
	if err != nil {
		t.Fatal(err)
	}
	client := &metalprobe.Client{BaseURL: "https://" + address, Token: "mine", HTTP: agent}
	if err := client.Register(t.Context(), uuid, metalprobe.Data{CPU: []metalprobe.CPU{{}}}); err != nil {
		t.Error(err)
	}
}

func TestNewRefusesToServeWithoutTLSUnlessAllowed(t *testing.T) {
	client := fakeClient()
	if _, err := New(Options{Reader: client, Writer: client}); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("got %v", err)
	}
	if _, err := New(Options{Plaintext: true}); err == nil || !strings.Contains(err.Error(), "Reader") {
		t.Errorf("got %v", err)
	}
}

func TestEveryUnauthorizedAnswerTakesTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, func(_ *metalv1alpha1.Server, o *Options) { o.UnauthorizedDelay = time.Second })
		for _, body := range []string{report(uuid, least), report(unknown, least)} {
			started := time.Now()
			if got := f.do("POST", "/register", "forged", body); got.Code != http.StatusUnauthorized {
				t.Errorf("got %d", got.Code)
			}
			if took := time.Since(started); took != time.Second {
				t.Errorf("took %s, want 1s", took)
			}
		}
	})
}

func TestOneSourceTakesOnlyItsShareOfTheTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSources(1000, 1000, 8)
		enter := func(remote string) (func(), *refusal) {
			from, refused := s.count(remote, start)
			if refused != nil {
				t.Fatal(refused.message)
			}
			return s.turn(t.Context(), from)
		}
		var leaves []func()
		for range 2 { // a quarter of eight
			leave, refused := enter("10.0.0.1:1")
			if refused != nil {
				t.Fatal(refused.message)
			}
			leaves = append(leaves, leave)
		}
		if _, refused := enter("10.0.0.1:2"); refused == nil || refused.status != http.StatusServiceUnavailable {
			t.Error("the third at once of one source was served")
		}
		leave, refused := enter("10.0.0.2:1")
		if refused != nil {
			t.Fatal("another source was held off")
		}
		for _, leave := range append(leaves, leave) {
			leave()
		}
		if len(s.turns) != 0 {
			t.Errorf("%d turns were not given back", len(s.turns))
		}
	})
}

func FuzzRegister(f *testing.F) {
	f.Add("Bearer mine", []byte(report(uuid, `{"cpu":[{"id":1}]}`)))
	f.Add("Bearer forged", []byte(report(swapped, `{"lldp":{"interfaces":[]}}`)))
	f.Add("Basic x", []byte(`{"systemUUID":"`+uuid+`","data":{"timestamp":-1}}`))
	statuses := []int{201, 401, 409, 413, 422}
	f.Fuzz(func(t *testing.T, header string, body []byte) {
		fleet := newFleet(t, nil)
		request := httptest.NewRequest(http.MethodPost, "/register", strings.NewReader(string(body)))
		request.Header.Set("Authorization", header)
		recorder := httptest.NewRecorder()
		fleet.registry.ServeHTTP(recorder, request)
		if !slices.Contains(statuses, recorder.Code) {
			t.Fatalf("status %d: %s", recorder.Code, recorder.Body)
		}
		hash, _ := presented(request)
		for _, stored := range fleet.stored() {
			if stored.Name != uuid || recorder.Code != 201 || hash != metalprobe.HashToken("mine") {
				t.Fatalf("stored %s after status %d with %q", stored.Name, recorder.Code, header)
			}
		}
	})
}
