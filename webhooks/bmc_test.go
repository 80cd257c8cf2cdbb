// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

func inline(name, ip, mac string, change ...func(*v1alpha1.BMC)) *v1alpha1.BMC {
	b := &v1alpha1.BMC{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.BMCSpec{
		Access: &v1alpha1.InlineEndpoint{IP: ip, MACAddress: mac}, Protocol: v1alpha1.Protocol{Name: v1alpha1.ProtocolRedfish}}}
	for _, c := range change {
		c(b)
	}
	return b
}

func referring(name, endpoint string) *v1alpha1.BMC {
	return &v1alpha1.BMC{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.BMCSpec{
		EndpointRef: &corev1.LocalObjectReference{Name: endpoint}, Protocol: v1alpha1.Protocol{Name: v1alpha1.ProtocolRedfish}}}
}

func port(p int32) func(*v1alpha1.BMC) { return func(b *v1alpha1.BMC) { b.Spec.Protocol.Port = p } }

func TestBMC(t *testing.T) {
	stored := []client.Object{
		inline("inline", "10.0.0.1", mac),
		inline("six", "fd00::1", ""),
		inline("nowhere", "", ""),
		endpoint("e", "b0:7b:25:00:0a:01"), // at 10.0.0.7
		referring("referring", "e"),
	}
	for name, c := range map[string]struct {
		before, after *v1alpha1.BMC
		want          string
	}{
		"a place of its own passes":                      {after: inline("b", "10.0.0.2", "b0:7b:25:00:0a:02")},
		"a name that leaves room for its Servers passes": {after: inline(strings.Repeat("b", 237), "10.0.0.2", "")},
		"a name that leaves none is refused": {after: inline(strings.Repeat("b", 238), "10.0.0.2", ""), want: "Invalid\nmetadata.name: Invalid value: \"" +
			strings.Repeat("b", 238) + "\": a name of a BMC has at most 237 characters, because its Servers are named NAME-system-N; choose a shorter one"},
		"one that exists keeps its name": {before: inline(strings.Repeat("b", 250), "10.0.0.2", ""),
			after: inline(strings.Repeat("b", 250), "10.0.0.2", "", func(b *v1alpha1.BMC) { b.Spec.Hostname = "h" })},
		"no address is no address of another's":           {after: inline("b", "", "")},
		"the address of another is refused":               {after: inline("b", "10.0.0.1", ""), want: "Invalid\nspec.access.ip: Duplicate value: \"[10.0.0.1]:443\": BMC \"inline\" has it"},
		"the usual port written out is the same address":  {after: inline("b", "10.0.0.1", "", port(443)), want: "Invalid\nspec.access.ip: Duplicate value: \"[10.0.0.1]:443\": BMC \"inline\" has it"},
		"another port is another service":                 {after: inline("b", "10.0.0.1", "", port(8443))},
		"another spelling of an IPv6 address is the same": {after: inline("b", "fd00:0::0:1", ""), want: "Invalid\nspec.access.ip: Duplicate value: \"[fd00::1]:443\": BMC \"six\" has it"},
		"the MAC address of another is refused":           {after: inline("b", "10.0.0.2", "B0-7B-25-00-0A-FF"), want: "Invalid\nspec.access.macAddress: Duplicate value: \"B0-7B-25-00-0A-FF\": BMC \"inline\" has it"},
		"address and MAC address are refused together": {after: inline("b", "10.0.0.1", mac),
			want: "Invalid\nspec.access.macAddress: Duplicate value: \"" + mac + "\": BMC \"inline\" has it\nspec.access.ip: Duplicate value: \"[10.0.0.1]:443\": BMC \"inline\" has it"},
		"the address of an Endpoint's BMC is refused":      {after: inline("b", "10.0.0.7", ""), want: "Invalid\nspec.access.ip: Duplicate value: \"[10.0.0.7]:443\": BMC \"referring\" has it"},
		"the MAC address of an Endpoint's BMC is refused":  {after: inline("b", "10.0.0.2", "b0:7b:25:00:0a:01"), want: "Invalid\nspec.access.macAddress: Duplicate value: \"b0:7b:25:00:0a:01\": BMC \"referring\" has it"},
		"a second BMC of one Endpoint is refused":          {after: referring("b", "e"), want: "Invalid\nspec.endpointRef: Duplicate value: \"e\": BMC \"referring\" has it"},
		"an Endpoint that does not exist yet passes":       {after: referring("b", "unknown")},
		"a malformed MAC address is refused":               {after: inline("b", "10.0.0.2", "ff:ff:ff:ff:ff:ff"), want: "Invalid\nspec.access.macAddress: Invalid value: \"ff:ff:ff:ff:ff:ff\": MAC address \"ff:ff:ff:ff:ff:ff\": is all ones, which is the broadcast address"},
		"a multicast MAC address passes":                   {after: inline("b", "10.0.0.2", "23:11:8a:33:cf:ea")},
		"its own place passes on an update":                {before: inline("inline", "10.0.0.1", mac), after: inline("inline", "10.0.0.1", mac, func(b *v1alpha1.BMC) { b.Spec.Hostname = "h" })},
		"a change of port to another's address is refused": {before: inline("b", "10.0.0.1", "", port(8443)), after: inline("b", "10.0.0.1", "", port(443)), want: "Invalid\nspec.access.ip: Duplicate value: \"[10.0.0.1]:443\": BMC \"inline\" has it"},
		"a deletion passes":                                {before: inline("inline", "10.0.0.1", mac)},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, defaults(t), stored...)
			var got string
			switch {
			case c.before == nil:
				got, _ = w.ask(PathValidateBMC, user, admissionv1.Create, nil, c.after)
			case c.after == nil:
				got, _ = w.ask(PathValidateBMC, user, admissionv1.Delete, c.before, nil)
			default:
				got, _ = w.ask(PathValidateBMC, user, admissionv1.Update, c.before, c.after)
			}
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestBMCSecret(t *testing.T) {
	type data = map[string][]byte
	yes, no := ptr.To(true), ptr.To(false)
	secret := func(immutable *bool, d data, plain map[string]string) *v1alpha1.BMCSecret {
		return &v1alpha1.BMCSecret{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Immutable: immutable, Data: d, StringData: plain}
	}
	frozen := func(d data) *v1alpha1.BMCSecret { return secret(yes, d, nil) }
	plain := func(d map[string]string) *v1alpha1.BMCSecret { return secret(yes, nil, d) }
	const (
		remedy  = "; make a new BMCSecret and let the BMCs name that"
		because = ", because the BMCSecret is immutable" + remedy
		back    = "\nimmutable: Forbidden: it is true and cannot be taken back" + remedy
	)
	slashes := data{"password": {0xfb, 0xff, 0xfe}} // +//+ in base64
	for name, c := range map[string]struct {
		before, after *v1alpha1.BMCSecret
		want          string
	}{
		"what is not immutable may change": {before: secret(nil, data{"password": []byte("a")}, nil), after: secret(yes, data{"password": []byte("b")}, map[string]string{"username": "c"})},
		"what is immutable may stay":       {before: secret(yes, slashes, map[string]string{"a": "b"}), after: secret(yes, slashes, map[string]string{"a": "b"})},
		"no data is as much as empty data": {before: frozen(nil), after: frozen(data{})},
		"immutable cannot be taken back":   {before: frozen(slashes), after: secret(no, slashes, nil), want: "Forbidden" + back},
		"immutable cannot be left out":     {before: frozen(slashes), after: secret(nil, slashes, nil), want: "Forbidden" + back},
		"a value is frozen": {before: frozen(slashes), after: frozen(data{"password": {0xfb, 0xff, 0xff}}),
			want: "Forbidden\ndata[password]: Forbidden: it cannot be changed" + because},
		"no key is added": {before: frozen(slashes), after: frozen(data{"password": slashes["password"], "username": nil}),
			want: "Forbidden\ndata[username]: Forbidden: it cannot be added" + because},
		"no key goes": {before: frozen(data{"password": []byte("a"), "username": nil}), after: frozen(data{"password": []byte("a")}),
			want: "Forbidden\ndata[username]: Forbidden: it cannot be removed" + because},
		"data does not go": {before: frozen(slashes), after: frozen(nil), want: "Forbidden\ndata[password]: Forbidden: it cannot be removed" + because},
		"plain text is not added": {before: frozen(nil), after: plain(map[string]string{"password": "a"}),
			want: "Forbidden\nstringData[password]: Forbidden: it cannot be added" + because},
		"plain text is frozen": {before: plain(map[string]string{"password": "a"}), after: plain(map[string]string{"password": "b"}),
			want: "Forbidden\nstringData[password]: Forbidden: it cannot be changed" + because},
		"plain text does not go": {before: plain(map[string]string{"password": "a"}), after: plain(nil),
			want: "Forbidden\nstringData[password]: Forbidden: it cannot be removed" + because},
		"everything that is wrong is said": {
			before: secret(yes, data{"b": []byte("1"), "a": []byte("1")}, map[string]string{"c": "1"}),
			after:  secret(nil, data{"b": []byte("2")}, map[string]string{"c": "1", "d": "2"}),
			want: "Forbidden" + back + "\ndata[a]: Forbidden: it cannot be removed" + because +
				"\ndata[b]: Forbidden: it cannot be changed" + because + "\nstringData[d]: Forbidden: it cannot be added" + because},
	} {
		t.Run(name, func(t *testing.T) {
			got, _ := newWorld(t, defaults(t)).ask(PathValidateBMCSecret, user, admissionv1.Update, c.before, c.after)
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestAnAcceptanceThatNamesNoSystemIsRefused(t *testing.T) {
	const path = "metadata.annotations[policy.metalaw.dev/accept-system]: "
	accepting := func(value string) *v1alpha1.BMC {
		b := inline("b", "10.0.0.2", "")
		b.Annotations = map[string]string{v1alpha1.AcceptSystemAnnotation: value}
		return b
	}
	for value, c := range map[string]struct{ denied, warning string }{
		"38947555-7742-3448-3784-82334782383A": {},
		"the new board": {denied: "Invalid\n" + path + "Invalid value: \"the new board\": it is no UUID of a system; " +
			"write the one that the condition SystemsAccepted of the BMC names"},
		"": {denied: "Invalid\n" + path + "Invalid value: \"\": it is no UUID of a system; write the one that the condition SystemsAccepted of the BMC names"},
		"yes": {warning: path + "\"yes\" is no UUID; it accepts nothing unless the BMC shows a system by this very text. " +
			"Write the UUID that the condition SystemsAccepted of the BMC names"},
	} {
		w := newWorld(t, defaults(t))
		denied, warnings := w.ask(PathValidateBMC, user, admissionv1.Update, inline("b", "10.0.0.2", ""), accepting(value))
		if denied != c.denied || strings.Join(warnings, "") != c.warning {
			t.Errorf("%q: %s %q", value, denied, warnings)
		}
		if denied, warnings = w.ask(PathValidateBMC, user, admissionv1.Update, accepting(value), accepting(value)); denied != "" || warnings != nil {
			t.Errorf("%q, stored: %s %q", value, denied, warnings)
		}
	}
}
