// SPDX-License-Identifier: Apache-2.0

package pid1

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/dhcpv6"
)

const (
	// minLease and maxLease bound the time for which an address is used as it was given.
	minLease = time.Minute
	maxLease = 24 * time.Hour
	// maxServers is how many name servers a resolver reads.
	maxServers = 3
)

// route is a way to a network.
type route struct {
	to, via netip.Addr
	bits    int
}

// lease is what a DHCP server gave to an interface.
type lease struct {
	address netip.Prefix
	routes  []route
	dns     []netip.Addr
	ntp     []netip.Addr
	mtu     int
	// server is who gave it.
	server string
	valid  time.Duration
}

// lease4 reads the answer of a DHCPv4 server.
func lease4(ack *dhcpv4.DHCPv4) (lease, error) {
	own, ok := netip.AddrFromSlice(ack.YourIPAddr.To4())
	if !ok || own.IsUnspecified() {
		return lease{}, fmt.Errorf("the answer of %s holds no address", ack.ServerIdentifier())
	}
	bits := 32
	if mask := ack.SubnetMask(); mask != nil {
		if ones, size := mask.Size(); size == 32 {
			bits = ones
		}
	}
	l := lease{address: netip.PrefixFrom(own, bits), dns: addresses(ack.DNS()), ntp: addresses(ack.NTPServers()),
		server: ack.ServerIdentifier().String(), valid: min(max(ack.IPAddressLeaseTime(time.Hour), minLease), maxLease)}
	// RFC 3442: where there are classless routes, the router is in them.
	for _, r := range ack.ClasslessStaticRoute() {
		to, okTo := netip.AddrFromSlice(r.Dest.IP.To4())
		via, okVia := netip.AddrFromSlice(r.Router.To4())
		if ones, size := r.Dest.Mask.Size(); okTo && okVia && size == 32 {
			l.routes = append(l.routes, route{to: to, bits: ones, via: via})
		}
	}
	if len(l.routes) == 0 {
		for _, router := range addresses(ack.Router()) {
			l.routes = append(l.routes, route{to: netip.IPv4Unspecified(), via: router})
			break
		}
	}
	if raw := ack.Options.Get(dhcpv4.OptionInterfaceMTU); len(raw) == 2 {
		if mtu := int(raw[0])<<8 | int(raw[1]); mtu >= 1280 {
			l.mtu = mtu
		}
	}
	return l, nil
}

// lease6 reads the answer of a DHCPv6 server. Routes come from routers, not from DHCPv6.
func lease6(reply *dhcpv6.Message) (lease, error) {
	l := lease{dns: addresses(reply.Options.DNS()), ntp: addresses(reply.Options.NTPServers()), server: "DHCPv6"}
	given := reply.Options.OneIANA()
	if given == nil || given.Options.OneAddress() == nil {
		return l, fmt.Errorf("the answer holds no address")
	}
	own, ok := netip.AddrFromSlice(given.Options.OneAddress().IPv6Addr)
	if !ok || own.IsUnspecified() {
		return l, fmt.Errorf("the answer holds no address")
	}
	l.address = netip.PrefixFrom(own, 128)
	l.valid = min(max(given.Options.OneAddress().ValidLifetime, minLease), maxLease)
	return l, nil
}

func addresses(ips []net.IP) []netip.Addr {
	var found []netip.Addr
	for _, ip := range ips {
		if a, ok := netip.AddrFromSlice(ip); ok && !a.IsUnspecified() {
			found = append(found, a.Unmap())
		}
	}
	return found
}

// resolvConf is the file of the resolver: the servers of the boot interface first.
func resolvConf(servers []netip.Addr) string {
	var text strings.Builder
	text.WriteString("# written by metalprobe\n")
	for i, server := range servers {
		if i < maxServers {
			text.WriteString("nameserver " + server.String() + "\n")
		}
	}
	text.WriteString("options timeout:2 attempts:3\n")
	return text.String()
}

// port is an interface with what it was given.
type port struct {
	name string
	// rank orders the ports: the boot interface is 0, the others follow as their leases came.
	rank           int
	lease4, lease6 *lease
}

// servers are the name or time servers of all ports, the first port's first, each once.
func servers(ports map[string]*port, of func(*lease) []netip.Addr) []netip.Addr {
	var ordered []*port
	for _, p := range ports {
		ordered = append(ordered, p)
	}
	slices.SortFunc(ordered, func(a, b *port) int { return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.name, b.name)) })
	var found []netip.Addr
	for _, p := range ordered {
		for _, l := range []*lease{p.lease4, p.lease6} {
			if l == nil {
				continue
			}
			for _, a := range of(l) {
				if !slices.Contains(found, a) {
					found = append(found, a)
				}
			}
		}
	}
	return found
}
