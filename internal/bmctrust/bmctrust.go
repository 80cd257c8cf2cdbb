// SPDX-License-Identifier: Apache-2.0

// Package bmctrust says whether a BMC or its BMCSecret names by what the BMC's certificate is trusted.
package bmctrust

import "github.com/metalaw/metalaw/api/v1alpha1"

// Named says that a BMC or its BMCSecret names a certificate or an authority. Either may be nil.
func Named(b *v1alpha1.BMC, secret *v1alpha1.BMCSecret) bool {
	if b != nil && b.Spec.Trust != nil && *b.Spec.Trust != (v1alpha1.BMCTrust{}) {
		return true
	}
	return secret != nil && (Value(secret, v1alpha1.BMCSecretCAKey) != "" || Value(secret, v1alpha1.BMCSecretFingerprintKey) != "")
}

// Value reads a key of a BMCSecret. It prefers stringData, as an API server would when it merges the two.
func Value(s *v1alpha1.BMCSecret, key string) string {
	if text, ok := s.StringData[key]; ok {
		return text
	}
	return string(s.Data[key])
}
