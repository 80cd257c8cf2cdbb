// SPDX-License-Identifier: Apache-2.0

package pid1

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/dhcpv4/nclient4"
	"github.com/insomniacslk/dhcp/dhcpv6"
	"github.com/insomniacslk/dhcp/dhcpv6/nclient6"
	"github.com/insomniacslk/dhcp/iana"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/metalaw/metalaw/metalprobe"
)

// keep4 gets an address by DHCPv4 and keeps it, until ctx ends.
func (n *network) keep4(ctx context.Context, name string) {
	var held *nclient4.Lease
	var used *lease
	quiet := false
	for n.carrier(ctx, name) {
		next, err := n.ask4(ctx, name, held)
		if err != nil {
			if !quiet {
				quiet = true // one line; the rest would fill the console
				n.console.say("network", "%s: %v; trying on", name, reason4(err))
			}
			if used != nil && time.Since(held.CreationTime) > used.valid {
				n.console.say("network", "%s: the lease of %s ran out", name, used.address)
				n.drop(name, used)
				held, used = nil, nil
			}
			if !metalprobe.Wait(ctx, retryPause) {
				return
			}
			continue
		}
		quiet = false
		taken, err := lease4(next.ACK)
		if err == nil {
			err = n.use(name, taken, used, false)
		}
		if err != nil {
			n.console.say("network", "%s: %v", name, err)
			held = nil
			if !metalprobe.Wait(ctx, retryPause6) {
				return
			}
			continue
		}
		held, used = next, &taken
		if !metalprobe.Wait(ctx, taken.valid/2) {
			return
		}
	}
}

// ask4 asks for a lease, or for more time for the one that is held.
func (n *network) ask4(ctx context.Context, name string, held *nclient4.Lease) (*nclient4.Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, leaseTry)
	defer cancel()
	client, err := nclient4.New(name, nclient4.WithTimeout(time.Second), nclient4.WithRetry(3))
	if err != nil {
		return nil, err
	}
	defer func() { _ = client.Close() }()
	wanted := dhcpv4.WithRequestedOptions(dhcpv4.OptionSubnetMask, dhcpv4.OptionRouter, dhcpv4.OptionClasslessStaticRoute,
		dhcpv4.OptionDomainNameServer, dhcpv4.OptionNTPServers, dhcpv4.OptionInterfaceMTU)
	if held != nil {
		if renewed, err := client.Renew(ctx, held, wanted); err == nil {
			return renewed, nil
		}
	}
	return client.Request(ctx, wanted)
}

// reason4 words the usual failure in few words.
func reason4(err error) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nclient4.ErrNoResponse) {
		return errors.New("no DHCPv4 server answers")
	}
	return fmt.Errorf("DHCPv4: %w", err)
}

// keep6 gets an address by DHCPv6 and keeps it, until ctx ends. Most networks offer none, which is no failure.
func (n *network) keep6(ctx context.Context, name string) {
	var used *lease
	for n.carrier(ctx, name) {
		pause := retryPause6
		taken, err := n.ask6(ctx, name)
		if err == nil {
			err = n.use(name, taken, used, true)
		}
		if err == nil {
			used = &taken
			pause = taken.valid / 2
		}
		if !metalprobe.Wait(ctx, pause) {
			return
		}
	}
}

func (n *network) ask6(ctx context.Context, name string) (lease, error) {
	ctx, cancel := context.WithTimeout(ctx, leaseTry)
	defer cancel()
	var client *nclient6.Client
	for { // the interface needs a link-local address first, which takes about two seconds
		var err error
		if client, err = nclient6.New(name, nclient6.WithTimeout(time.Second), nclient6.WithRetry(2)); err == nil {
			break
		}
		if !metalprobe.Wait(ctx, carrierScan) {
			return lease{}, err
		}
	}
	defer func() { _ = client.Close() }()
	wanted := dhcpv6.WithRequestedOptions(dhcpv6.OptionDNSRecursiveNameServer, dhcpv6.OptionNTPServer)
	// The client is named by its address alone, so that it gets the same lease again.
	self := dhcpv6.WithClientID(&dhcpv6.DUIDLL{HWType: iana.HWTypeEthernet, LinkLayerAddr: client.InterfaceAddr()})
	offer, err := client.Solicit(ctx, wanted, self)
	if err != nil {
		return lease{}, err
	}
	reply, err := client.Request(ctx, offer, wanted)
	if err != nil {
		return lease{}, err
	}
	return lease6(reply)
}

// watch6 says when routers gave an address to an interface; the kernel does the rest.
func (n *network) watch6(ctx context.Context, name string) {
	for metalprobe.Wait(ctx, linkScan) {
		link, err := netlink.LinkByName(name)
		if err != nil {
			continue
		}
		found, err := netlink.AddrList(link, netlink.FAMILY_V6)
		if err != nil {
			continue
		}
		for _, a := range found {
			if a.IP.IsGlobalUnicast() && a.Flags&(unix.IFA_F_TENTATIVE|unix.IFA_F_DADFAILED) == 0 {
				if ones, _ := a.Mask.Size(); ones < 128 { // those of DHCPv6 are told already
					n.console.say("network", "%s %s from a router", name, a.IPNet)
				}
				n.reached(name, a.IPNet.String())
				return
			}
		}
	}
}

// use gives an interface what a server gave, in place of what it had.
func (n *network) use(name string, l lease, former *lease, six bool) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	if l.mtu > 0 && l.mtu != link.Attrs().MTU {
		if err := netlink.LinkSetMTU(link, l.mtu); err != nil {
			n.console.say("network", "%s: MTU %d: %v", name, l.mtu, err)
		}
	}
	if former != nil && former.address != l.address {
		n.drop(name, former)
	}
	address := &netlink.Addr{IPNet: ipNet(l.address), ValidLft: int(l.valid.Seconds()), PreferedLft: int(l.valid.Seconds())}
	if err := netlink.AddrReplace(link, address); err != nil {
		return fmt.Errorf("using address %s: %w", l.address, err)
	}
	n.took(name, l, six)
	n.routes(name, l)
	if former == nil || former.address != l.address {
		n.console.say("network", "%s %s from %s for %s", name, l.address, l.server, l.valid)
	}
	n.reached(name, l.address.String())
	return nil
}

// drop takes an address from an interface; its routes go with it.
func (n *network) drop(name string, l *lease) {
	if link, err := netlink.LinkByName(name); err == nil {
		_ = netlink.AddrDel(link, &netlink.Addr{IPNet: ipNet(l.address)}) // it may have run out already
	}
}

// routes sets the routes of a lease, with the metric of the interface.
func (n *network) routes(name string, l lease) {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return
	}
	metric := n.metric(name)
	existing, _ := netlink.RouteList(link, netlink.FAMILY_V4) // none is known then, and none is removed
	for _, r := range l.routes {
		to := ipNet(netip.PrefixFrom(r.to, r.bits).Masked())
		for _, old := range existing {
			if old.Priority != metric && old.Gw.Equal(r.via.AsSlice()) && sameNet(old.Dst, to) {
				_ = netlink.RouteDel(&old) // the new one follows
			}
		}
		add := &netlink.Route{LinkIndex: link.Attrs().Index, Dst: to, Priority: metric, Protocol: unix.RTPROT_DHCP}
		if r.via.IsUnspecified() {
			add.Scope = netlink.SCOPE_LINK
		} else {
			add.Gw = r.via.AsSlice()
			if !l.address.Masked().Contains(r.via) {
				add.Flags = int(netlink.FLAG_ONLINK)
			}
		}
		if err := netlink.RouteReplace(add); err != nil {
			n.console.say("network", "%s: route to %s by %s: %v", name, to, r.via, err)
		}
	}
}

func sameNet(a, b *net.IPNet) bool {
	if a == nil { // the default route, as older kernels list it
		ones, _ := b.Mask.Size()
		return ones == 0
	}
	return a.String() == b.String()
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
