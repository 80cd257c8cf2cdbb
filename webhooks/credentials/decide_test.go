// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

func bmc(change ...func(*v1alpha1.BMC)) *v1alpha1.BMC {
	b := &v1alpha1.BMC{ObjectMeta: metav1.ObjectMeta{Name: "b1"}, Spec: v1alpha1.BMCSpec{
		Access: &v1alpha1.InlineEndpoint{IP: "10.0.0.1"}, BMCSecretRef: corev1.LocalObjectReference{Name: "pass"},
		Protocol: v1alpha1.Protocol{Name: v1alpha1.ProtocolRedfish, Port: 443}}}
	for _, c := range change {
		c(b)
	}
	return b
}

func trusts(b *v1alpha1.BMC) {
	b.Spec.Trust = &v1alpha1.BMCTrust{CertificateSHA256: strings.Repeat("0", 64)}
}

func overHTTP(b *v1alpha1.BMC) { b.Spec.Protocol.Scheme = v1alpha1.ProtocolSchemeHTTP }

func words(all []Use) string {
	var lines []string
	for _, u := range all {
		lines = append(lines, u.Secret+" by "+u.Path.String())
	}
	return strings.Join(lines, ", ")
}

func TestOfBMC(t *testing.T) {
	weakens := func(b *v1alpha1.BMC) {
		metav1.SetMetaDataAnnotation(&b.ObjectMeta, v1alpha1.OldTLSAnnotation, "rsa-key-exchange")
	}
	accepts := func(b *v1alpha1.BMC) {
		metav1.SetMetaDataAnnotation(&b.ObjectMeta, v1alpha1.AcceptCertificateAnnotation, strings.Repeat("0", 64))
	}
	for name, c := range map[string]struct {
		was, is *v1alpha1.BMC
		want    string
	}{
		"one that is created":               {nil, bmc(), "pass by spec.bmcSecretRef"},
		"one that is created without any":   {nil, bmc(func(b *v1alpha1.BMC) { b.Spec.BMCSecretRef.Name = "" }), ""},
		"a verified one that is created":    {nil, bmc(trusts), "pass by spec.bmcSecretRef"},
		"another reference":                 {bmc(), bmc(func(b *v1alpha1.BMC) { b.Spec.BMCSecretRef.Name = "other" }), "other by spec.bmcSecretRef"},
		"another address":                   {bmc(), bmc(func(b *v1alpha1.BMC) { b.Spec.Access = &v1alpha1.InlineEndpoint{IP: "10.0.0.2"} }), "pass by spec.access"},
		"another Endpoint":                  {bmc(), bmc(func(b *v1alpha1.BMC) { b.Spec.EndpointRef = &corev1.LocalObjectReference{Name: "e"} }), "pass by spec.endpointRef"},
		"another port":                      {bmc(), bmc(func(b *v1alpha1.BMC) { b.Spec.Protocol.Port = 8443 }), "pass by spec.protocol"},
		"no TLS":                            {bmc(), bmc(overHTTP), "pass by spec.protocol"},
		"another host name":                 {bmc(), bmc(func(b *v1alpha1.BMC) { b.Spec.Hostname = "evil.example" }), "pass by spec.hostname"},
		"another trust":                     {bmc(), bmc(trusts), "pass by spec.trust"},
		"no trust any more":                 {bmc(trusts), bmc(), "pass by spec.trust"},
		"a certificate that is accepted":    {bmc(), bmc(accepts), "pass by metadata.annotations[policy.metalaw.dev/accept-certificate]"},
		"one that was accepted before":      {bmc(accepts), bmc(accepts), ""},
		"old TLS":                           {bmc(), bmc(weakens), "pass by metadata.annotations[policy.metalaw.dev/old-tls]"},
		"old TLS that ends":                 {bmc(weakens), bmc(), ""},
		"an acceptance that is taken away":  {bmc(accepts), bmc(), ""},
		"the same again":                    {bmc(), bmc(), ""},
		"other annotations":                 {bmc(), bmc(func(b *v1alpha1.BMC) { b.Annotations = map[string]string{v1alpha1.SystemUUIDsAnnotation: "x"} }), ""},
		"another manager of the same place": {bmc(), bmc(func(b *v1alpha1.BMC) { b.Spec.BMCUUID = "1" }), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := words(ofBMC(c.was, c.is)); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestOfServer(t *testing.T) {
	server := func(address, secret string) *v1alpha1.Server {
		return &v1alpha1.Server{Spec: v1alpha1.ServerSpec{BMC: &v1alpha1.BMCAccess{Address: address,
			BMCSecretRef: corev1.LocalObjectReference{Name: secret}, Protocol: v1alpha1.Protocol{Name: v1alpha1.ProtocolRedfish}}}}
	}
	const path = "pass by spec.bmc.bmcSecretRef"
	port := server("10.0.0.1", "pass")
	port.Spec.BMC.Protocol.Port = 8443
	for name, c := range map[string]struct {
		was, is *v1alpha1.Server
		want    string
	}{
		"one that is created":         {nil, server("10.0.0.1", "pass"), path},
		"one that gets an inline BMC": {&v1alpha1.Server{}, server("10.0.0.1", "pass"), path},
		"another address":             {server("10.0.0.1", "pass"), server("10.0.0.2", "pass"), path},
		"another port":                {server("10.0.0.1", "pass"), port, path},
		"another reference":           {server("10.0.0.1", "other"), server("10.0.0.1", "pass"), path},
		"the same again":              {server("10.0.0.1", "pass"), server("10.0.0.1", "pass"), ""},
		"one that loses it":           {server("10.0.0.1", "pass"), &v1alpha1.Server{}, ""},
		"one without":                 {nil, &v1alpha1.Server{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := words(ofServer(c.was, c.is)); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestOfEndpoint(t *testing.T) {
	endpoint := func(ip, mac string) *v1alpha1.Endpoint {
		return &v1alpha1.Endpoint{ObjectMeta: metav1.ObjectMeta{Name: "e1"}, Spec: v1alpha1.EndpointSpec{IP: ip, MACAddress: mac}}
	}
	secret := func(name string, keys ...string) map[string]*v1alpha1.BMCSecret {
		s := &v1alpha1.BMCSecret{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string][]byte{}}
		for _, key := range keys {
			s.Data[key] = []byte("x")
		}
		return map[string]*v1alpha1.BMCSecret{name: s}
	}
	const one, two = "02:00:00:00:00:01", "02:00:00:00:00:02"
	was, moved, exchanged := endpoint("10.0.0.1", one), endpoint("10.0.0.2", one), endpoint("10.0.0.1", two)
	leads := func(b *v1alpha1.BMC, secrets map[string]*v1alpha1.BMCSecret, authority bool) reached {
		return reached{bmcs: []v1alpha1.BMC{*b}, secrets: secrets, authority: authority}
	}
	for name, c := range map[string]struct {
		was, is *v1alpha1.Endpoint
		to      reached
		want    string
	}{
		"another address":                        {was, moved, leads(bmc(), nil, false), "pass by spec.ip"},
		"one that is created for a BMC":          {nil, was, leads(bmc(), nil, false), "pass by metadata.name"},
		"another spelling of its address":        {endpoint("fd00::1", one), endpoint("fd00:0::1", one), leads(bmc(), nil, false), ""},
		"another MAC address":                    {was, exchanged, leads(bmc(), nil, false), ""},
		"a BMC with a fingerprint":               {was, moved, leads(bmc(trusts), nil, false), ""},
		"a BMC with one in its BMCSecret":        {was, moved, leads(bmc(), secret("pass", v1alpha1.BMCSecretFingerprintKey), false), ""},
		"a BMC with an authority in it":          {was, moved, leads(bmc(), secret("pass", v1alpha1.BMCSecretCAKey), false), ""},
		"a BMCSecret that names none":            {was, moved, leads(bmc(), secret("pass", "password"), false), "pass by spec.ip"},
		"a BMC that the authority verifies":      {was, moved, leads(bmc(), nil, true), ""},
		"an authority, and no TLS":               {was, moved, leads(bmc(overHTTP), nil, true), "pass by spec.ip"},
		"a BMC without a BMCSecret":              {was, moved, leads(bmc(func(b *v1alpha1.BMC) { b.Spec.BMCSecretRef.Name = "" }), nil, false), ""},
		"two BMCs with one BMCSecret":            {was, moved, reached{bmcs: []v1alpha1.BMC{*bmc(), *bmc()}}, "pass by spec.ip"},
		"one that nothing refers to":             {nil, was, reached{}, ""},
		"one with the name of a BMCSecret":       {nil, was, reached{secrets: secret("e1", "password")}, "e1 by metadata.name"},
		"such one at another address":            {was, moved, reached{secrets: secret("e1", "password")}, "e1 by spec.ip"},
		"such one that becomes a known device":   {was, exchanged, reached{secrets: secret("e1", "password")}, "e1 by spec.macAddress"},
		"such one whose BMCSecret names trust":   {nil, was, reached{secrets: secret("e1", v1alpha1.BMCSecretCAKey)}, ""},
		"such one, because nothing tells of TLS": {nil, was, reached{secrets: secret("e1", "password"), authority: true}, "e1 by metadata.name"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := words(ofEndpoint(c.was, c.is, c.to)); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
