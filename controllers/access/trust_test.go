// SPDX-License-Identifier: Apache-2.0

package access

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/redfish"
)

var (
	shown = strings.Repeat("ab", 32)
	other = strings.Repeat("cd", 32)
)

func TestTrustOfABMC(t *testing.T) {
	spec := func(trust v1alpha1.BMCTrust) *v1alpha1.BMC {
		return bmc(func(s *v1alpha1.BMCSpec) { s.Trust = &trust })
	}
	keys := func(values map[string]string) *v1alpha1.BMCSecret {
		return &v1alpha1.BMCSecret{ObjectMeta: metav1.ObjectMeta{Name: "s"}, StringData: values}
	}
	fleet := redfish.Endpoint{CABundle: []byte("fleet")}
	for _, c := range []struct {
		name   string
		before redfish.Endpoint
		bmc    *v1alpha1.BMC
		secret *v1alpha1.BMCSecret
		want   redfish.Endpoint
		reason string
	}{
		{name: "nothing given keeps what the manager says", before: fleet, bmc: bmc(nil), secret: keys(nil), want: fleet},
		{name: "a fingerprint of the spec is trusted", before: fleet, bmc: spec(v1alpha1.BMCTrust{CertificateSHA256: strings.ToUpper(shown)}),
			want: redfish.Endpoint{CABundle: []byte("fleet"), CertificateSHA256: shown}},
		{name: "authorities of the spec replace the manager's", before: fleet, bmc: spec(v1alpha1.BMCTrust{CABundle: "own"}),
			want: redfish.Endpoint{CABundle: []byte("own")}},
		{name: "authorities are verified where the bundle verifies nothing", before: redfish.Endpoint{InsecureSkipVerify: true},
			bmc: spec(v1alpha1.BMCTrust{CABundle: "own"}), want: redfish.Endpoint{CABundle: []byte("own")}},
		{name: "the BMCSecret gives a fingerprint", bmc: bmc(nil), secret: keys(map[string]string{"certificate-sha256": shown}),
			want: redfish.Endpoint{CertificateSHA256: shown}},
		{name: "the BMCSecret gives authorities", bmc: bmc(nil), secret: keys(map[string]string{"ca.crt": "rack"}),
			want: redfish.Endpoint{CABundle: []byte("rack")}},
		{name: "the spec goes before the BMCSecret", bmc: spec(v1alpha1.BMCTrust{CABundle: "own"}),
			secret: keys(map[string]string{"certificate-sha256": shown}), want: redfish.Endpoint{CABundle: []byte("own")}},
		{name: "a fingerprint that is none leaves the BMC alone", bmc: bmc(nil), secret: keys(map[string]string{"certificate-sha256": "ab"}),
			reason: "TrustUnusable"},
		{name: "a certificate is not promised where none is shown", before: redfish.Endpoint{Scheme: "http"},
			bmc: spec(v1alpha1.BMCTrust{CertificateSHA256: shown}), reason: "TrustUnusable"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Trust(c.before, c.bmc, c.secret)
			var unusable *Error
			if c.reason != "" {
				if !errors.As(err, &unusable) || unusable.Reason != c.reason {
					t.Fatalf("error %v, want reason %s", err, c.reason)
				}
				return
			}
			if err != nil || !got.Equal(c.want) {
				t.Errorf("Trust = %+v, %v, want %+v", got, err, c.want)
			}
		})
	}
}

func TestPin(t *testing.T) {
	within := []netip.Prefix{netip.MustParsePrefix("10.20.0.0/16")}
	untrusted := fmt.Errorf("read: %w", &redfish.UnreachableError{Err: &redfish.CertificateError{Shown: shown, Err: errors.New("unknown authority")}})
	settings := func(tls string) bundle.Settings { return bundle.Settings{BMCTLS: tls, BMCPinWithin: within} }
	for _, c := range []struct {
		name    string
		contact FirstContact
		want    string
	}{
		{"the certificate of the first contact is pinned", FirstContact{settings("pin"), "10.20.1.7", false, false, untrusted}, shown},
		{"the same address in its IPv6 form is in the network", FirstContact{settings("pin"), "::ffff:10.20.1.7", false, false, untrusted}, shown},
		{"a bundle that verifies pins nothing", FirstContact{settings("verify"), "10.20.1.7", false, false, untrusted}, ""},
		{"an address outside the networks is not pinned", FirstContact{settings("pin"), "10.21.1.7", false, false, untrusted}, ""},
		{"an address that is none is not pinned", FirstContact{settings("pin"), "bmc-7", false, false, untrusted}, ""},
		{"a trust that somebody gave is not replaced", FirstContact{settings("pin"), "10.20.1.7", true, false, untrusted}, ""},
		{"a lost pin is no first use", FirstContact{settings("pin"), "10.20.1.7", false, true, untrusted}, ""},
		{"a certificate that changed is not pinned", FirstContact{settings("pin"), "10.20.1.7", false, false,
			&redfish.CertificateError{Shown: other, Trusted: shown, Err: errors.New("another")}}, ""},
		{"a BMC that does not answer has nothing to pin", FirstContact{settings("pin"), "10.20.1.7", false, false, errors.New("refused")}, ""},
		{"a certificate that an authority signed needs no pin", FirstContact{settings("pin"), "10.20.1.7", false, false, nil}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Pin(c.contact); got != c.want {
				t.Errorf("Pin = %q, want %q", got, c.want)
			}
		})
	}
}
