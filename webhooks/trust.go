// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"crypto/x509"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/diag"
	"github.com/metalaw/metalaw/internal/fingerprint"
	"github.com/metalaw/metalaw/internal/oldtls"
	"github.com/metalaw/metalaw/webhooks/review"
)

const (
	noFingerprint = "it is no SHA-256 fingerprint; write its 64 hexadecimal digits, with or without colons"
	noAuthority   = "it holds no PEM certificate; write the certificates of the authorities that sign the BMC's"
)

// checkTrust refuses a certificate that nobody can show. What is stored already is not held against another change.
func checkTrust(c review.Change[v1alpha1.BMC], found *review.Findings) {
	if value, set := review.Written(c.Old, c.New, v1alpha1.AcceptCertificateAnnotation); set && fingerprint.Parse(value) == "" {
		found.Deny(field.Invalid(review.AnnotationsPath.Key(v1alpha1.AcceptCertificateAnnotation), value, noFingerprint))
	}
	if value, set := review.Written(c.Old, c.New, v1alpha1.OldTLSAnnotation); set {
		if _, unknown := oldtls.Parse(value); len(unknown) > 0 {
			path := review.AnnotationsPath.Key(v1alpha1.OldTLSAnnotation)
			found.Deny(field.NotSupported(path, diag.Shortened(unknown[0], 43), oldtls.Words()))
		}
	}
	is, was := c.New.Spec.Trust, (*v1alpha1.BMCTrust)(nil)
	if c.Old != nil {
		was = c.Old.Spec.Trust
	}
	if is != nil && *is != (v1alpha1.BMCTrust{}) && c.New.Spec.Protocol.Scheme == v1alpha1.ProtocolSchemeHTTP {
		found.Deny(field.Forbidden(field.NewPath("spec", "trust"), "over http a BMC shows no certificate; set spec.protocol.scheme to https"))
	}
	if is == nil || is.CABundle == "" || was != nil && was.CABundle == is.CABundle {
		return
	}
	if !x509.NewCertPool().AppendCertsFromPEM([]byte(is.CABundle)) {
		found.Deny(field.Invalid(field.NewPath("spec", "trust", "caBundle"), diag.Shortened(is.CABundle, 43), noAuthority))
	}
}

// checkSecretTrust refuses the same in a BMCSecret. It quotes no value, because a password may stand at the wrong key.
func checkSecretTrust(s *v1alpha1.BMCSecret, found *review.Findings) {
	check := func(path *field.Path, key, value string) {
		switch {
		case key == v1alpha1.BMCSecretFingerprintKey && fingerprint.Parse(value) == "":
			found.Deny(field.Forbidden(path.Key(key), noFingerprint))
		case key == v1alpha1.BMCSecretCAKey && !x509.NewCertPool().AppendCertsFromPEM([]byte(value)):
			found.Deny(field.Forbidden(path.Key(key), noAuthority))
		}
	}
	for _, key := range []string{v1alpha1.BMCSecretFingerprintKey, v1alpha1.BMCSecretCAKey} {
		if value, set := s.Data[key]; set {
			check(field.NewPath("data"), key, string(value))
		}
		if value, set := s.StringData[key]; set {
			check(field.NewPath("stringData"), key, value)
		}
	}
}
