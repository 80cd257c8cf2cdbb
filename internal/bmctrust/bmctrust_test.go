// SPDX-License-Identifier: Apache-2.0

package bmctrust

import (
	"testing"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

func TestNamed(t *testing.T) {
	bmc := func(trust *v1alpha1.BMCTrust) *v1alpha1.BMC {
		return &v1alpha1.BMC{Spec: v1alpha1.BMCSpec{Trust: trust}}
	}
	data := func(key, value string) *v1alpha1.BMCSecret {
		return &v1alpha1.BMCSecret{Data: map[string][]byte{key: []byte(value)}}
	}
	for name, c := range map[string]struct {
		bmc    *v1alpha1.BMC
		secret *v1alpha1.BMCSecret
		want   bool
	}{
		"by the spec of the BMC":              {bmc(&v1alpha1.BMCTrust{CertificateSHA256: "00"}), nil, true},
		"by an authority in its spec":         {bmc(&v1alpha1.BMCTrust{CABundle: "PEM"}), nil, true},
		"by the fingerprint in its BMCSecret": {bmc(nil), data(v1alpha1.BMCSecretFingerprintKey, "00"), true},
		"by the authority in its BMCSecret":   {nil, data(v1alpha1.BMCSecretCAKey, "PEM"), true},
		"not by an empty trust":               {bmc(&v1alpha1.BMCTrust{}), nil, false},
		"not by an empty key":                 {bmc(nil), data(v1alpha1.BMCSecretCAKey, ""), false},
		"not by another key":                  {nil, data("password", "x"), false},
		"not without either":                  {nil, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Named(c.bmc, c.secret); got != c.want {
				t.Error(got)
			}
		})
	}
}
