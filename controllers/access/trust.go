// SPDX-License-Identifier: Apache-2.0

package access

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/diag"
	"github.com/metalaw/metalaw/internal/bmctrust"
	"github.com/metalaw/metalaw/internal/fingerprint"
	"github.com/metalaw/metalaw/internal/oldtls"
	"github.com/metalaw/metalaw/redfish"
)

// Trust says by what the certificate of a BMC is trusted: by its spec, else by its BMCSecret, else as the bundle and the
// manager's options say. BMC and BMCSecret may be nil. The error is an *Error where what is written cannot be used.
func Trust(e redfish.Endpoint, b *v1alpha1.BMC, secret *v1alpha1.BMCSecret) (redfish.Endpoint, error) {
	if !bmctrust.Named(b, secret) {
		return e, nil
	}
	given, where := v1alpha1.BMCTrust{}, "spec.trust.certificateSHA256"
	if bmctrust.Named(b, nil) {
		given = *b.Spec.Trust
	} else {
		given.CABundle = bmctrust.Value(secret, v1alpha1.BMCSecretCAKey)
		given.CertificateSHA256 = bmctrust.Value(secret, v1alpha1.BMCSecretFingerprintKey)
		where = fmt.Sprintf("the key %s of BMCSecret %q", v1alpha1.BMCSecretFingerprintKey, secret.Name)
	}
	switch {
	case e.Scheme == string(v1alpha1.ProtocolSchemeHTTP):
		return e, &Error{v1alpha1.ReasonTrustUnusable,
			"the BMC or its BMCSecret names a certificate, and the BMC is asked over http, which shows none; " +
				"set spec.protocol.scheme to https, or remove the certificate"}
	case given.CertificateSHA256 != "":
		e.CertificateSHA256 = fingerprint.Parse(given.CertificateSHA256)
		if e.CertificateSHA256 == "" {
			return e, &Error{v1alpha1.ReasonTrustUnusable,
				fmt.Sprintf("%s is no SHA-256 fingerprint, so that the BMC is not asked; write its 64 hexadecimal digits", where)}
		}
	case given.CABundle != "":
		e.CABundle, e.InsecureSkipVerify = []byte(given.CABundle), false
	}
	return e, nil
}

// oldTLS reads what a BMC is allowed of old TLS. The error is an *Error where a word is not known.
func oldTLS(b *v1alpha1.BMC) (oldtls.Allowed, error) {
	allowed, unknown := oldtls.Parse(b.Annotations[v1alpha1.OldTLSAnnotation])
	if len(unknown) == 0 {
		return allowed, nil
	}
	return allowed, &Error{v1alpha1.ReasonTrustUnusable, fmt.Sprintf(
		"the annotation %s holds the unknown word %q, so that the BMC is not asked; write %s",
		v1alpha1.OldTLSAnnotation, diag.Shortened(unknown[0], 43), strings.Join(oldtls.Words(), " or "))}
}

// FirstContact is what decides whether the certificate that a BMC showed is trusted from now on.
type FirstContact struct {
	// Settings are those of the bundle in force.
	Settings bundle.Settings
	// IP is where the BMC is.
	IP string
	// Trust says that the BMC or its BMCSecret names a certificate or an authority, or the BMC a host name that its certificate
	// has to be for.
	Trust bool
	// Known says that the BMC was reached, or a certificate pinned, before.
	Known bool
	// Err is what the attempt to reach it ended with.
	Err error
}

// Pin returns the SHA-256 fingerprint that is to be trusted from now on; empty where none is. A pin that was lost is never
// replaced: somebody has to say that the certificate is right.
func Pin(c FirstContact) string {
	var shown *redfish.CertificateError
	if c.Settings.BMCTLS != bundle.TLSPin || c.Trust || c.Known || !errors.As(c.Err, &shown) || shown.Trusted != "" {
		return ""
	}
	ip, err := netip.ParseAddr(c.IP)
	if err != nil || !slices.ContainsFunc(c.Settings.BMCPinWithin, func(p netip.Prefix) bool { return p.Contains(ip.Unmap()) }) {
		return ""
	}
	return shown.Shown
}
