// SPDX-License-Identifier: Apache-2.0

package origin

import (
	"net/netip"
	"testing"
)

func TestFromWhereARequestComes(t *testing.T) {
	type nic struct {
		mac string
		ips []string
	}
	both := []nic{{"52:54:00:AA:BB:01", []string{"192.0.2.7", "fe80::5054:ff:feaa:bb01"}}, {"52:54:00:aa:bb:02", []string{"2001:db8::7/64"}}}
	for name, c := range map[string]struct {
		known []nic
		from  string
		want  Verdict
	}{
		"an address of the machine":                        {both, "192.0.2.7", Machine},
		"an address of it, as a socket of both families":   {both, "::ffff:192.0.2.7", Machine},
		"an address of it that was noted with its network": {both, "2001:db8::7", Machine},
		"a link-local address of it":                       {both, "fe80::5054:ff:feaa:bb01%eth0", Machine},
		"an address made of its MAC address":               {both, "2001:db8:1::5054:ff:feaa:bb02", Machine},
		"an address that it does not have":                 {both, "192.0.2.8", Another},
		"an address of the other family":                   {[]nic{{"52:54:00:aa:bb:01", []string{"192.0.2.7"}}}, "2001:db8::9", Another},
		"an address made of another MAC address":           {[]nic{{"52:54:00:aa:bb:01", nil}}, "2001:db8::5054:ff:feaa:bb09", Another},
		"a machine of which MAC addresses alone are known": {[]nic{{"52:54:00:aa:bb:01", nil}}, "192.0.2.8", Unknown},
		"a machine with a link-local address alone":        {[]nic{{"", []string{"fe80::1"}}}, "192.0.2.8", Unknown},
		"a loopback interface alone":                       {[]nic{{"00:00:00:00:00:00", []string{"127.0.0.1"}}}, "192.0.2.8", Unknown},
		"a machine of which nothing is known":              {nil, "192.0.2.8", Unknown},
		"texts that are no addresses":                      {[]nic{{"none", []string{"none", ""}}}, "2001:db8::5054:ff:feaa:bb09", Unknown},
	} {
		var known Known
		for _, n := range c.known {
			known.Add(n.mac, n.ips...)
		}
		if got := Judge(netip.MustParseAddr(c.from), known); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
	if got := Judge(netip.Addr{}, Known{addresses: []netip.Addr{netip.MustParseAddr("192.0.2.7")}}); got != Unknown {
		t.Errorf("a request without an address: %s", got)
	}
}

func FuzzKnown(f *testing.F) {
	f.Add("52:54:00:aa:bb:01", "192.0.2.7", "2001:db8::5054:ff:feaa:bb01")
	f.Fuzz(func(t *testing.T, mac, address, from string) {
		asked, err := netip.ParseAddr(from)
		if err != nil {
			return
		}
		var known Known
		known.Add(mac, address)
		if Judge(asked, known) == Machine && len(known.addresses)+len(known.macs) == 0 {
			t.Errorf("%s is the machine with %q and %q", from, mac, address)
		}
	})
}
