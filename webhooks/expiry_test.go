// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
)

// certificateUntil is a PEM certificate that ends then.
func certificateUntil(t *testing.T, end int64) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Unix(end, 0)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func TestTheEndOfEachCertificateIsTold(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, parts ...[]byte) string {
		var text []byte
		for _, part := range parts {
			text = append(text, part...)
		}
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	registry := prometheus.NewRegistry()
	if err := registry.Register(NewExpiry(map[string]string{
		"webhook":   write("tls.crt", certificateUntil(t, 2_000_000_000)),
		"authority": write("ca.crt", certificateUntil(t, 2_200_000_000), certificateUntil(t, 2_100_000_000)),
		"broken":    write("broken.crt", []byte("no certificate")),
		"absent":    filepath.Join(dir, "absent.crt"),
	})); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			got[f.GetName()+" "+m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue()
		}
	}
	want := map[string]float64{
		"metalaw_certificate_expiry_timestamp_seconds webhook":   2_000_000_000,
		"metalaw_certificate_expiry_timestamp_seconds authority": 2_100_000_000,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("- want, + got:\n%s", diff)
	}
}
