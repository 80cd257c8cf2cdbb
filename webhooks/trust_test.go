// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

func TestTheTrustInACertificate(t *testing.T) {
	digits := strings.Repeat("ab", 32)
	accepting := func(value string) *v1alpha1.BMC {
		return inline("b", "10.0.0.2", "", func(b *v1alpha1.BMC) {
			metav1.SetMetaDataAnnotation(&b.ObjectMeta, "policy.metalaw.dev/accept-certificate", value)
		})
	}
	trusting := func(authorities string) *v1alpha1.BMC {
		return inline("b", "10.0.0.2", "", func(b *v1alpha1.BMC) { b.Spec.Trust = &v1alpha1.BMCTrust{CABundle: authorities} })
	}
	old := func(words string) *v1alpha1.BMC {
		return inline("b", "10.0.0.2", "", func(b *v1alpha1.BMC) {
			metav1.SetMetaDataAnnotation(&b.ObjectMeta, "policy.metalaw.dev/old-tls", words)
		})
	}
	plain := inline("b", "10.0.0.2", "")
	for name, c := range map[string]struct {
		before, after *v1alpha1.BMC
		want          string
	}{
		"a fingerprint is accepted": {before: plain, after: accepting(digits)},
		"a text that is no fingerprint is refused": {before: plain, after: accepting("yes"),
			want: "Invalid\nmetadata.annotations[policy.metalaw.dev/accept-certificate]: Invalid value: \"yes\": it is no SHA-256 fingerprint; " +
				"write its 64 hexadecimal digits, with or without colons"},
		"what is stored is not held against another change": {before: accepting("yes"), after: accepting("yes")},
		"a certificate is not promised where none is shown": {before: plain, after: inline("b", "10.0.0.2", "", func(b *v1alpha1.BMC) {
			b.Spec.Protocol.Scheme, b.Spec.Trust = v1alpha1.ProtocolSchemeHTTP, &v1alpha1.BMCTrust{CertificateSHA256: digits}
		}), want: "Forbidden\nspec.trust: Forbidden: over http a BMC shows no certificate; set spec.protocol.scheme to https"},
		"old TLS is allowed by its words": {before: plain, after: old("rsa-key-exchange, negative-serial")},
		"an unknown word of old TLS is refused": {before: plain, after: old("tls10"),
			want: "Invalid\nmetadata.annotations[policy.metalaw.dev/old-tls]: Unsupported value: \"tls10\": supported values: \"rsa-key-exchange\", \"negative-serial\""},
		"authorities that are no PEM are refused": {before: plain, after: trusting("my CA"),
			want: "Invalid\nspec.trust.caBundle: Invalid value: \"my CA\": it holds no PEM certificate; write the certificates of the authorities that sign the BMC's"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, defaults(t))
			if got, _ := w.ask(PathValidateBMC, user, admissionv1.Update, c.before, c.after); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestTheTrustInABMCSecretQuotesNoValue(t *testing.T) {
	w := newWorld(t, defaults(t))
	secret := &v1alpha1.BMCSecret{ObjectMeta: metav1.ObjectMeta{Name: "s"}, StringData: map[string]string{
		"username": "admin", "password": "secret", "certificate-sha256": "hunter2", "ca.crt": "hunter2"}}
	got, _ := w.ask(PathValidateBMCSecret, user, admissionv1.Create, nil, secret)
	want := "Forbidden\nstringData[certificate-sha256]: Forbidden: it is no SHA-256 fingerprint; write its 64 hexadecimal digits, with or without colons\n" +
		"stringData[ca.crt]: Forbidden: it holds no PEM certificate; write the certificates of the authorities that sign the BMC's"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestWhiteSpaceAroundCredentialsIsWarnedOf(t *testing.T) {
	secret := func(data map[string][]byte, text map[string]string) *v1alpha1.BMCSecret {
		return &v1alpha1.BMCSecret{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Data: data, StringData: text}
	}
	for name, c := range map[string]struct {
		secret *v1alpha1.BMCSecret
		keys   []string
	}{
		"none":                              {secret(map[string][]byte{"username": []byte("admin"), "password": []byte("se cret")}, nil), nil},
		"a line break after the password":   {secret(map[string][]byte{"username": []byte("admin"), "password": []byte("hunter2\n")}, nil), []string{"data[password]"}},
		"a blank before the user name":      {secret(nil, map[string]string{"username": " admin", "password": "hunter2"}), []string{"stringData[username]"}},
		"both":                              {secret(nil, map[string]string{"username": "admin\r\n", "password": "hunter2\t"}), []string{"stringData[username]", "stringData[password]"}},
		"stringData goes before data":       {secret(map[string][]byte{"password": []byte("hunter2\n")}, map[string]string{"password": "hunter2"}), nil},
		"another key may have a line break": {secret(map[string][]byte{"note": []byte("hunter2\n")}, nil), nil},
	} {
		t.Run(name, func(t *testing.T) {
			for _, operation := range []admissionv1.Operation{admissionv1.Create, admissionv1.Update} {
				denied, warnings := newWorld(t, defaults(t)).ask(PathValidateBMCSecret, user, operation, secret(nil, nil), c.secret)
				if denied != "" || len(warnings) != len(c.keys) || strings.Contains(strings.Join(warnings, ""), "hunter2") {
					t.Fatalf("%s: denied %q, warned %q", operation, denied, warnings)
				}
				for i, key := range c.keys {
					if !strings.HasPrefix(warnings[i], key+": ") {
						t.Errorf("%q does not name %s", warnings[i], key)
					}
				}
			}
		})
	}
}
