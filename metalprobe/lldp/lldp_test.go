// SPDX-License-Identifier: Apache-2.0

package lldp

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

// tlv is one TLV.
func tlv(kind byte, value string) string {
	return string([]byte{kind<<1 | byte(len(value)>>8), byte(len(value))}) + value
}

var (
	chassis = tlv(1, "\x04\x00\x11\x22\x33\x44\x55")
	port    = tlv(2, "\x05Eth1/7")
	ttl     = tlv(3, "\x00\x78")
)

func TestParse(t *testing.T) {
	all := chassis + port + ttl + tlv(4, "u07") + tlv(5, "leaf1\x00") + tlv(6, "SONiC\n4.1") + tlv(7, "\x00\x14\x00\x14") +
		tlv(8, "\x05\x01\x0a\x00\x00\x01\x02\x00\x00\x00\x01\x00") + tlv(8, "\x05\x01\x0a\x00\x00\x02\x02") + tlv(127, "\x00\x80\xc2\x01\x00\x07") + tlv(0, "") + "padding"
	plain := policyv1alpha1.LLDPNeighbor{ChassisID: "00:11:22:33:44:55", PortID: "Eth1/7"}
	for name, c := range map[string]struct {
		pdu   string
		want  policyv1alpha1.LLDPNeighbor
		valid time.Duration
		err   string
	}{
		"everything that is read": {all, policyv1alpha1.LLDPNeighbor{ChassisID: "00:11:22:33:44:55", PortID: "Eth1/7", PortDescription: "u07", SystemName: "leaf1",
			SystemDescription: "SONiC\n4.1", MgmtIP: "10.0.0.1", Capabilities: []string{"bridge", "router"}, VLANID: "7"}, 2 * time.Minute, ""},
		"the least that is allowed":          {chassis + port + ttl, plain, 2 * time.Minute, ""},
		"a neighbour that goes":              {chassis + port + tlv(3, "\x00\x00"), plain, 0, ""},
		"an IPv6 address as the chassis":     {tlv(1, "\x05\x02"+strings.Repeat("\x00", 15)+"\x01") + port + ttl, policyv1alpha1.LLDPNeighbor{ChassisID: "::1", PortID: "Eth1/7"}, 2 * time.Minute, ""},
		"a MAC address as the port":          {chassis + tlv(2, "\x03\x00\x11\x22\x33\x44\x66") + ttl, policyv1alpha1.LLDPNeighbor{ChassisID: "00:11:22:33:44:55", PortID: "00:11:22:33:44:66"}, 2 * time.Minute, ""},
		"bytes that are no text come in hex": {chassis + tlv(2, "\x07\xff\x00") + ttl, policyv1alpha1.LLDPNeighbor{ChassisID: "00:11:22:33:44:55", PortID: "ff00"}, 2 * time.Minute, ""},
		"a port that is missing":             {chassis + ttl, policyv1alpha1.LLDPNeighbor{ChassisID: "00:11:22:33:44:55"}, 0, "is missing"},
		"a TLV that breaks off":              {chassis + "\x04\xff", policyv1alpha1.LLDPNeighbor{ChassisID: "00:11:22:33:44:55"}, 0, "TLV of type 2: 255 bytes, but the frame holds 0 more"},
		"an empty frame":                     {"", policyv1alpha1.LLDPNeighbor{}, 0, "is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			got, valid, err := Parse([]byte(c.pdu))
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("neighbour (-want +got):\n%s", diff)
			}
			if valid != c.valid {
				t.Errorf("valid for %s, want %s", valid, c.valid)
			}
			if (err == nil) != (c.err == "") || (err != nil && !strings.Contains(err.Error(), c.err)) {
				t.Errorf("got %v, want %q", err, c.err)
			}
		})
	}
}

func TestNeighborsForgetsWhatIsNoLongerValid(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	l := newListener(func() time.Time { return now })
	l.take("eth1", []byte(chassis+port+ttl))
	l.take("eth0", []byte(chassis+port+tlv(3, "\x00\x0a")))
	l.take("eth0", []byte(chassis+port+tlv(3, "\x00\x0a")))
	l.take("eth0", []byte("no LLDP"))
	names := func() (list []string) {
		ports, err := l.Neighbors()
		if err != nil {
			t.Error(err)
		}
		for _, p := range ports {
			for _, n := range p.Neighbors {
				list = append(list, p.Name+" "+n.PortID)
			}
		}
		return list
	}
	if diff := cmp.Diff([]string{"eth0 Eth1/7", "eth1 Eth1/7"}, names()); diff != "" {
		t.Errorf("at first (-want +got):\n%s", diff)
	}
	now = now.Add(time.Minute)
	if diff := cmp.Diff([]string{"eth1 Eth1/7"}, names()); diff != "" {
		t.Errorf("a minute later (-want +got):\n%s", diff)
	}
	l.take("eth1", []byte(chassis+port+tlv(3, "\x00\x00")))
	if got := names(); len(got) > 0 {
		t.Errorf("after the neighbour went: %v", got)
	}
}

func TestAPortKeepsAtMostSoManyNeighbors(t *testing.T) {
	l := newListener(time.Now)
	for i := range maxNeighbors + 5 {
		l.take("eth0", []byte(chassis+tlv(2, "\x05"+strings.Repeat("p", i+1))+ttl))
	}
	if ports, _ := l.Neighbors(); len(ports[0].Neighbors) != maxNeighbors {
		t.Errorf("%d neighbours", len(ports[0].Neighbors))
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(chassis + port + ttl + tlv(8, "\x05\x01\x0a\x00\x00\x01\x02")))
	f.Fuzz(func(t *testing.T, pdu []byte) {
		n, valid, err := Parse(pdu)
		if err == nil && (valid < 0 || valid > 18*time.Hour+13*time.Minute) {
			t.Errorf("%+v is valid for %s", n, valid)
		}
	})
}
