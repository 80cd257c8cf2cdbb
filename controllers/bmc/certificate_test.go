// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/access"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/redfish"
)

func TestWhatBecomesOfTheTrustInACertificate(t *testing.T) {
	shown, accepted := strings.Repeat("ab", 32), strings.Repeat("cd", 32)
	first := access.FirstContact{
		Settings: bundle.Settings{BMCTLS: bundle.TLSPin, BMCPinWithin: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}},
		IP:       "10.0.0.7", Err: &redfish.CertificateError{Shown: shown, Err: errors.New("unknown authority")},
	}
	known := first
	known.Known = true
	for _, c := range []struct {
		name     string
		accepted string
		written  bool
		contact  access.FirstContact
		want     certificate
	}{
		{name: "a BMC whose certificate is trusted keeps its trust", contact: access.FirstContact{}},
		{name: "the certificate of the first contact is pinned", contact: first, want: certificate{trust: shown, pinned: true,
			reason: "CertificatePinned", message: "the manager trusts the certificate shown at first use from now on, SHA-256 " + shown}},
		{name: "a BMC that is known is not pinned", contact: known},
		{name: "an accepted certificate is trusted, whatever is shown", accepted: strings.ToUpper(accepted), written: true, contact: known,
			want: certificate{trust: accepted, consumed: true,
				reason: "CertificateAccepted", message: "the manager trusts the accepted certificate from now on, SHA-256 " + accepted}},
		{name: "an acceptance that is no fingerprint is removed", accepted: "yes", written: true, contact: known,
			want: certificate{consumed: true, reason: "CertificateRefused", message: "the annotation policy.metalaw.dev/accept-certificate is no " +
				"SHA-256 fingerprint (\"yes\") and was removed; write the 64 hexadecimal digits of the certificate"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := judgeCertificate(c.accepted, c.written, c.contact); got != c.want {
				t.Errorf("judgeCertificate = %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestABMCIsKnownByEverythingThatTells(t *testing.T) {
	status := func(s v1alpha1.BMCStatus) *v1alpha1.BMC { return &v1alpha1.BMC{Status: s} }
	for _, c := range []struct {
		name    string
		bmc     *v1alpha1.BMC
		servers int
		want    bool
	}{
		{"a new BMC is not known", status(v1alpha1.BMCStatus{}), 0, false},
		{"a BMC that was never reached is not known", status(v1alpha1.BMCStatus{State: v1alpha1.BMCStateError, IP: "10.0.0.7"}), 0, false},
		{"a BMC that was reached is known", status(v1alpha1.BMCStatus{State: v1alpha1.BMCStateError, FirmwareVersion: "1.0"}), 0, true},
		{"a BMC with a Server is known, also when it was made anew", status(v1alpha1.BMCStatus{}), 1, true},
		{"a BMC that was pinned is known", &v1alpha1.BMC{ObjectMeta: metav1.ObjectMeta{
			Annotations: map[string]string{"policy.metalaw.dev/certificate-pinned": "2026-11-23T10:00:00Z"}}}, 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := observed{bmc: c.bmc, owned: make([]v1alpha1.Server, c.servers)}
			if got := o.knownBefore(); got != c.want {
				t.Errorf("knownBefore = %t, want %t", got, c.want)
			}
		})
	}
}
