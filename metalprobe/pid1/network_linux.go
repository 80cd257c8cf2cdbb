// SPDX-License-Identifier: Apache-2.0

package pid1

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/metalaw/metalaw/metalprobe"
)

const (
	netDir, ipv6Dir = "/sys/class/net", "/proc/sys/net/ipv6/conf"
	// linkScan is how often new interfaces are looked for.
	linkScan = 250 * time.Millisecond
	// carrierScan is how often an interface without a link is looked at.
	carrierScan = 250 * time.Millisecond
	// leaseTry is how long one try for an address takes: servers may look for three seconds whether it is in use. retryPause is the
	// time between two tries.
	leaseTry, retryPause = 10 * time.Second, time.Second
	// retryPause6 is the time between two tries by DHCPv6, which many networks do not offer.
	retryPause6 = 20 * time.Second
	// metricBoot is the metric of the boot interface's routes; other interfaces have higher ones.
	metricBoot, metricOther = 100, 200
	// reachTry is how long an interface may take to reach a host.
	reachTry = 5 * time.Second
)

// network brings all interfaces up, each on its own, for as long as the machine runs.
type network struct {
	console *console
	// boot is the address of the interface that the machine booted from; nil where that is not known.
	boot net.HardwareAddr

	mu      sync.Mutex
	ports   map[string]*port
	answers int
	// first is closed when the first interface has an address that reaches beyond its link.
	first     chan struct{}
	firstOnce sync.Once
	summary   string
}

func newNetwork(c *console, boot net.HardwareAddr) *network {
	return &network{console: c, boot: boot, ports: map[string]*port{}, first: make(chan struct{})}
}

// run serves the interfaces that there are and those that come, until ctx ends.
func (n *network) run(ctx context.Context) {
	if lo, err := netlink.LinkByName("lo"); err == nil {
		_ = netlink.LinkSetUp(lo)
	}
	for metalprobe.Wait(ctx, linkScan) {
		links, err := net.Interfaces()
		if err != nil {
			n.console.say("network", "listing interfaces: %v", err)
			continue
		}
		for _, link := range links {
			if _, err := os.Stat(filepath.Join(netDir, link.Name, "device")); err != nil || len(link.HardwareAddr) != 6 {
				continue
			}
			if n.add(link) {
				go n.serve(ctx, link)
			}
		}
	}
}

func (n *network) add(link net.Interface) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ports[link.Name] != nil {
		return false
	}
	p := &port{name: link.Name, rank: len(n.ports) + 1000}
	if n.boot != nil && bytes.Equal(n.boot, link.HardwareAddr) {
		p.rank = 0
	}
	n.ports[link.Name] = p
	return true
}

// serve brings one interface up and keeps its addresses.
func (n *network) serve(ctx context.Context, link net.Interface) {
	for key, value := range map[string]string{"accept_ra": "2", "autoconf": "1"} {
		_ = os.WriteFile(filepath.Join(ipv6Dir, link.Name, key), []byte(value), 0o600) // without IPv6 there is none
	}
	for {
		handle, err := netlink.LinkByName(link.Name)
		if err == nil {
			err = netlink.LinkSetUp(handle)
		}
		if err == nil {
			break
		}
		n.console.say("network", "%s: cannot be switched on: %v", link.Name, err)
		if !metalprobe.Wait(ctx, retryPause6) {
			return
		}
	}
	n.console.say("network", "%s %s is on", link.Name, link.HardwareAddr)
	var both sync.WaitGroup
	both.Go(func() { n.keep4(ctx, link.Name) })
	both.Go(func() { n.keep6(ctx, link.Name) })
	both.Go(func() { n.watch6(ctx, link.Name) })
	both.Wait()
}

// carrier waits until an interface has a link.
func (n *network) carrier(ctx context.Context, name string) bool {
	for {
		state, err := os.ReadFile(filepath.Join(netDir, name, "carrier"))
		if err == nil && len(state) > 0 && state[0] == '1' {
			return ctx.Err() == nil
		}
		if !metalprobe.Wait(ctx, carrierScan) {
			return false
		}
	}
}

// took remembers a lease, and ranks its interface: the boot interface is first, the others follow as they were answered.
func (n *network) took(name string, l lease, six bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	p := n.ports[name]
	if p.rank >= 1000 {
		n.answers++
		p.rank = n.answers
	}
	if six {
		p.lease6 = &l
	} else {
		p.lease4 = &l
	}
	text := resolvConf(servers(n.ports, func(l *lease) []netip.Addr { return l.dns }))
	if err := os.WriteFile("/etc/resolv.conf", []byte(text), 0o644); err != nil { //nolint:gosec // as on every Linux
		n.console.say("network", "name servers: %v", err)
	}
}

// metric is that of an interface's routes.
func (n *network) metric(name string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	if rank := n.ports[name].rank; rank > 0 {
		return metricOther + min(rank, 1000)
	}
	return metricBoot
}

// reached says that an interface has an address.
func (n *network) reached(name string, address string) {
	n.firstOnce.Do(func() {
		n.mu.Lock()
		n.summary = name + " " + address
		n.mu.Unlock()
		close(n.first)
	})
}

// named is the first interface that had an address, with that address.
func (n *network) named() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.summary
}

// timeServers are the time servers that were offered.
func (n *network) timeServers() []netip.Addr {
	n.mu.Lock()
	defer n.mu.Unlock()
	return servers(n.ports, func(l *lease) []netip.Addr { return l.ntp })
}

// prefer lets the routes of the first interface that reaches a host go before those of the others. It changes nothing where one
// interface has a lease, or where none reaches the host.
func (n *network) prefer(ctx context.Context, host string) {
	n.mu.Lock()
	var names []string
	for name, p := range n.ports {
		if p.lease4 != nil {
			names = append(names, name)
		}
	}
	n.mu.Unlock()
	if len(names) < 2 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, reachTry)
	defer cancel()
	reached := make(chan string, len(names))
	for _, name := range names {
		go func() {
			if dialVia(ctx, name, host) != nil {
				name = ""
			}
			reached <- name
		}()
	}
	for range names {
		if name := <-reached; name != "" {
			n.lead(name)
			return
		}
	}
}

// lead makes an interface the first.
func (n *network) lead(name string) {
	n.mu.Lock()
	p := n.ports[name]
	var former *port
	for _, other := range n.ports {
		if other.rank == 0 && other != p {
			former = other
		}
	}
	if p.rank == 0 {
		n.mu.Unlock()
		return
	}
	p.rank = 0
	if former != nil {
		n.answers++
		former.rank = n.answers
	}
	n.mu.Unlock()
	n.console.say("network", "%s reaches the registry and goes first", name)
	for _, q := range []*port{former, p} {
		if q != nil && q.lease4 != nil {
			n.routes(q.name, *q.lease4)
		}
	}
}

// dialVia connects to a host through one interface.
func dialVia(ctx context.Context, name, host string) error {
	dialer := net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
		var failed error
		err := c.Control(func(fd uintptr) { failed = unix.BindToDevice(int(fd), name) })
		return errors.Join(err, failed)
	}}
	connection, err := dialer.DialContext(ctx, "tcp", host)
	if err != nil {
		return err
	}
	return connection.Close()
}
