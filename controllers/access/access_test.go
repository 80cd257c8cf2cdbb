// SPDX-License-Identifier: Apache-2.0

package access

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/hardware"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/internal/oldtls"
	"github.com/metalaw/metalaw/redfish"
)

var verify = bundle.Settings{BMCTLS: bundle.TLSVerify}

func bmc(change func(*v1alpha1.BMCSpec)) *v1alpha1.BMC {
	b := &v1alpha1.BMC{ObjectMeta: metav1.ObjectMeta{Name: "b", UID: "uid-b"}}
	b.Spec.EndpointRef = &corev1.LocalObjectReference{Name: "e"}
	b.Spec.BMCSecretRef.Name = "s"
	b.Spec.Protocol.Name = v1alpha1.ProtocolRedfish
	if change != nil {
		change(&b.Spec)
	}
	return b
}

func endpoint() *v1alpha1.Endpoint {
	return &v1alpha1.Endpoint{ObjectMeta: metav1.ObjectMeta{Name: "e"}, Spec: v1alpha1.EndpointSpec{IP: "10.0.0.7", MACAddress: "02:4d:4c:00:00:01"}}
}

func secret(data map[string][]byte, text map[string]string) *v1alpha1.BMCSecret {
	return &v1alpha1.BMCSecret{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Data: data, StringData: text}
}

func usual() *v1alpha1.BMCSecret {
	return secret(map[string][]byte{"username": []byte("root"), "password": []byte("calvin")}, nil)
}

func target(address, scheme string, port int) hardware.Target {
	return hardware.Target{
		Key:         "uid-b",
		Endpoint:    redfish.Endpoint{Address: address, Scheme: scheme, Port: port},
		Credentials: redfish.Credentials{Username: "root", Password: "calvin"},
	}
}

func annotated(name, value string) *v1alpha1.BMC {
	b := bmc(nil)
	b.Annotations = map[string]string{name: value}
	return b
}

func TestResolve(t *testing.T) {
	for _, c := range []struct {
		name     string
		bmc      *v1alpha1.BMC
		objects  []client.Object
		settings bundle.Settings
		caBundle []byte
		want     hardware.Target
		reason   string
	}{
		{name: "the address comes from the endpoint, and https on 443 is the default", bmc: bmc(nil),
			objects: []client.Object{endpoint(), usual()}, settings: verify, want: target("10.0.0.7", "https", 443)},
		{name: "plain http listens on 80", bmc: bmc(func(s *v1alpha1.BMCSpec) { s.Protocol.Scheme = v1alpha1.ProtocolSchemeHTTP }),
			objects: []client.Object{endpoint(), usual()}, settings: verify, want: target("10.0.0.7", "http", 80)},
		{name: "a port that is given is used", bmc: bmc(func(s *v1alpha1.BMCSpec) { s.Protocol.Port = 8443 }),
			objects: []client.Object{endpoint(), usual()}, settings: verify, want: target("10.0.0.7", "https", 8443)},
		{name: "inline access needs no endpoint", bmc: bmc(func(s *v1alpha1.BMCSpec) {
			s.EndpointRef, s.Access = nil, &v1alpha1.InlineEndpoint{IP: "fd00::7"}
		}), objects: []client.Object{usual()}, settings: verify, want: target("fd00::7", "https", 443)},
		{name: "a certificate is checked against the host name", bmc: bmc(func(s *v1alpha1.BMCSpec) { s.Hostname = "bmc-7.example" }),
			objects: []client.Object{endpoint(), usual()}, settings: verify, want: target("bmc-7.example", "https", 443)},
		{name: "where no certificate is checked the address is enough", bmc: bmc(func(s *v1alpha1.BMCSpec) { s.Hostname = "bmc-7.example" }),
			objects: []client.Object{endpoint(), usual()}, settings: bundle.Settings{BMCTLS: bundle.TLSInsecure},
			want: hardware.Target{Key: "uid-b", Credentials: redfish.Credentials{Username: "root", Password: "calvin"},
				Endpoint: redfish.Endpoint{Address: "10.0.0.7", Scheme: "https", Port: 443, InsecureSkipVerify: true}}},
		{name: "the manager's CA bundle is trusted", bmc: bmc(nil), objects: []client.Object{endpoint(), usual()}, settings: verify,
			caBundle: []byte("pem"),
			want: hardware.Target{Key: "uid-b", Credentials: redfish.Credentials{Username: "root", Password: "calvin"},
				Endpoint: redfish.Endpoint{Address: "10.0.0.7", Scheme: "https", Port: 443, CABundle: []byte("pem")}}},
		{name: "stringData goes before data", bmc: bmc(nil), settings: verify,
			objects: []client.Object{endpoint(), secret(map[string][]byte{"username": []byte("root"), "password": []byte("old")}, map[string]string{"password": "calvin"})},
			want:    target("10.0.0.7", "https", 443)},
		{name: "white space around credentials is left out", bmc: bmc(nil), settings: verify,
			objects: []client.Object{endpoint(), secret(map[string][]byte{"username": []byte(" root\r\n"), "password": []byte("calvin\n")}, nil)},
			want:    target("10.0.0.7", "https", 443)},
		{name: "a user name of white space is none", bmc: bmc(nil), settings: verify,
			objects: []client.Object{endpoint(), secret(map[string][]byte{"username": []byte("\n"), "password": []byte("x")}, nil)}, reason: "SecretMissing"},
		{name: "old TLS is what the BMC's annotation allows", settings: verify, objects: []client.Object{endpoint(), usual()},
			bmc: annotated(v1alpha1.OldTLSAnnotation, "negative-serial"),
			want: hardware.Target{Key: "uid-b", Credentials: redfish.Credentials{Username: "root", Password: "calvin"},
				Endpoint: redfish.Endpoint{Address: "10.0.0.7", Scheme: "https", Port: 443, OldTLS: oldtls.Allowed{NegativeSerial: true}}}},
		{name: "an unknown word of old TLS has a reason", settings: verify, objects: []client.Object{endpoint(), usual()},
			bmc: annotated(v1alpha1.OldTLSAnnotation, "tls10"), reason: "TrustUnusable"},
		{name: "an empty password is a password", bmc: bmc(nil), settings: verify,
			objects: []client.Object{endpoint(), secret(map[string][]byte{"username": []byte("root"), "password": nil}, nil)},
			want: hardware.Target{Key: "uid-b", Credentials: redfish.Credentials{Username: "root"},
				Endpoint: redfish.Endpoint{Address: "10.0.0.7", Scheme: "https", Port: 443}}},
		{name: "inline access without an address has a reason", bmc: bmc(func(s *v1alpha1.BMCSpec) {
			s.EndpointRef, s.Access = nil, &v1alpha1.InlineEndpoint{MACAddress: "02:4d:4c:00:00:01"}
		}), objects: []client.Object{usual()}, settings: verify, reason: "EndpointMissing"},
		{name: "a missing endpoint has a reason", bmc: bmc(nil), objects: []client.Object{usual()}, settings: verify, reason: "EndpointMissing"},
		{name: "a missing secret has a reason", bmc: bmc(nil), objects: []client.Object{endpoint()}, settings: verify, reason: "SecretMissing"},
		{name: "a secret without user name has a reason", bmc: bmc(nil), settings: verify,
			objects: []client.Object{endpoint(), secret(map[string][]byte{"password": []byte("x")}, nil)}, reason: "SecretMissing"},
		{name: "a secret without password has a reason", bmc: bmc(nil), settings: verify,
			objects: []client.Object{endpoint(), secret(map[string][]byte{"username": []byte("x")}, nil)}, reason: "SecretMissing"},
		{name: "a reserved protocol has a reason", bmc: bmc(func(s *v1alpha1.BMCSpec) { s.Protocol.Name = v1alpha1.ProtocolIPMI }),
			objects: []client.Object{endpoint(), usual()}, settings: verify, reason: "ProtocolUnsupported"},
	} {
		t.Run(c.name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := v1alpha1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(c.objects...).Build()
			got, err := Resolve(t.Context(), reader, c.bmc, c.settings, c.caBundle)
			var missing *Error
			if errors.As(err, &missing) {
				if missing.Reason != c.reason {
					t.Fatalf("reason %q (%v), want %q", missing.Reason, err, c.reason)
				}
				return
			}
			if err != nil || c.reason != "" {
				t.Fatalf("error %v, want reason %q", err, c.reason)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
