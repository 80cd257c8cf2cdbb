// SPDX-License-Identifier: Apache-2.0

package pid1

import (
	"encoding/pem"
	"fmt"
	"net"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/dhcpv6"
)

func pemOf(server *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}

func ack(t *testing.T, modifiers ...dhcpv4.Modifier) *dhcpv4.DHCPv4 {
	t.Helper()
	packet, err := dhcpv4.New(append([]dhcpv4.Modifier{
		dhcpv4.WithYourIP(net.IPv4(10, 0, 2, 15)), dhcpv4.WithNetmask(net.CIDRMask(24, 32)),
		dhcpv4.WithOption(dhcpv4.OptServerIdentifier(net.IPv4(10, 0, 2, 2))),
		dhcpv4.WithOption(dhcpv4.OptRouter(net.IPv4(10, 0, 2, 2), net.IPv4(10, 0, 2, 3))),
		dhcpv4.WithOption(dhcpv4.OptDNS(net.IPv4(10, 0, 2, 4))), dhcpv4.WithOption(dhcpv4.OptNTPServers(net.IPv4(10, 0, 2, 5))),
		dhcpv4.WithLeaseTime(3600),
	}, modifiers...)...)
	if err != nil {
		t.Fatal(err)
	}
	return packet
}

func TestLease4(t *testing.T) {
	classless := dhcpv4.OptClasslessStaticRoute(
		&dhcpv4.Route{Dest: &net.IPNet{IP: net.IPv4(0, 0, 0, 0).To4(), Mask: net.CIDRMask(0, 32)}, Router: net.IPv4(169, 254, 0, 1).To4()},
		&dhcpv4.Route{Dest: &net.IPNet{IP: net.IPv4(10, 9, 0, 0).To4(), Mask: net.CIDRMask(16, 32)}, Router: net.IPv4(10, 0, 2, 9).To4()})
	for name, c := range map[string]struct {
		modifiers []dhcpv4.Modifier
		want, err string
	}{
		"as most servers answer": {nil, "10.0.2.15/24 1h0m0s 0.0.0.0/0>10.0.2.2 mtu 0", ""},
		"classless routes stand for the router": {[]dhcpv4.Modifier{dhcpv4.WithOption(classless)},
			"10.0.2.15/24 1h0m0s 0.0.0.0/0>169.254.0.1 10.9.0.0/16>10.0.2.9 mtu 0", ""},
		"a short lease": {[]dhcpv4.Modifier{dhcpv4.WithLeaseTime(1)}, "10.0.2.15/24 1m0s 0.0.0.0/0>10.0.2.2 mtu 0", ""},
		"a lease without an end": {[]dhcpv4.Modifier{dhcpv4.WithLeaseTime(0xffffffff)},
			"10.0.2.15/24 24h0m0s 0.0.0.0/0>10.0.2.2 mtu 0", ""},
		"an MTU": {[]dhcpv4.Modifier{dhcpv4.WithGeneric(dhcpv4.OptionInterfaceMTU, []byte{0x23, 0x28})},
			"10.0.2.15/24 1h0m0s 0.0.0.0/0>10.0.2.2 mtu 9000", ""},
		"an MTU that is none": {[]dhcpv4.Modifier{dhcpv4.WithGeneric(dhcpv4.OptionInterfaceMTU, []byte{0, 1})},
			"10.0.2.15/24 1h0m0s 0.0.0.0/0>10.0.2.2 mtu 0", ""},
		"no router and no mask": {[]dhcpv4.Modifier{dhcpv4.WithoutOption(dhcpv4.OptionRouter), dhcpv4.WithoutOption(dhcpv4.OptionSubnetMask)},
			"10.0.2.15/32 1h0m0s mtu 0", ""},
		"no address": {[]dhcpv4.Modifier{dhcpv4.WithYourIP(net.IPv4zero)}, "", "no address"},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := lease4(ack(t, c.modifiers...))
			if (err == nil) != (c.err == "") || (err != nil && !strings.Contains(err.Error(), c.err)) {
				t.Fatalf("got %v, want %q", err, c.err)
			}
			if err != nil {
				return
			}
			words := []string{l.address.String(), l.valid.String()}
			for _, r := range l.routes {
				words = append(words, fmt.Sprintf("%s/%d>%s", r.to, r.bits, r.via))
			}
			if got := strings.Join(words, " ") + fmt.Sprintf(" mtu %d", l.mtu); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestLease6(t *testing.T) {
	reply, err := dhcpv6.NewMessage(dhcpv6.WithIANA(dhcpv6.OptIAAddress{IPv6Addr: net.ParseIP("fd00::5"), ValidLifetime: time.Hour}),
		dhcpv6.WithDNS(net.ParseIP("fd00::1")))
	if err != nil {
		t.Fatal(err)
	}
	l, err := lease6(reply)
	if err != nil || l.address.String() != "fd00::5/128" || l.valid != time.Hour || len(l.dns) != 1 || len(l.routes) != 0 {
		t.Errorf("got %+v, %v", l, err)
	}
	empty, err := dhcpv6.NewMessage()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lease6(empty); err == nil {
		t.Error("an answer without an address is a lease")
	}
}

func TestTheServersOfTheBootInterfaceGoFirst(t *testing.T) {
	address := netip.MustParseAddr
	ports := map[string]*port{
		"eth0": {name: "eth0", rank: 1, lease4: &lease{dns: []netip.Addr{address("10.0.0.1"), address("10.0.0.2")}}},
		"eth1": {name: "eth1", rank: 0, lease4: &lease{dns: []netip.Addr{address("10.1.0.1")}}, lease6: &lease{dns: []netip.Addr{address("fd00::1")}}},
		"eth2": {name: "eth2", rank: 1000},
		"eth3": {name: "eth3", rank: 2, lease4: &lease{dns: []netip.Addr{address("10.1.0.1")}}},
	}
	got := resolvConf(servers(ports, func(l *lease) []netip.Addr { return l.dns }))
	want := "# written by metalprobe\nnameserver 10.1.0.1\nnameserver fd00::1\nnameserver 10.0.0.1\noptions timeout:2 attempts:3\n"
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func FuzzLease4(f *testing.F) {
	f.Add([]byte{53, 1, 5, 1, 4, 255, 255, 255, 0, 26, 2, 5, 220, 121, 5, 0, 10, 0, 0, 1, 255})
	f.Fuzz(func(t *testing.T, options []byte) {
		packet, err := dhcpv4.New(dhcpv4.WithYourIP(net.IPv4(10, 0, 0, 9)))
		if err != nil {
			t.Fatal(err)
		}
		head := packet.ToBytes()[:240]
		parsed, err := dhcpv4.FromBytes(append(head, options...))
		if err != nil {
			return
		}
		if l, err := lease4(parsed); err == nil && (!l.address.IsValid() || l.valid < minLease || l.valid > maxLease) {
			t.Errorf("%+v", l)
		}
	})
}
