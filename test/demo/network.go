// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"strconv"

	"github.com/metalaw/metalaw/test/env"
)

// bmcPort is the port of every emulated BMC; the MAC prefix database of the default bundle says the same.
const bmcPort = 8000

// ports are the addresses that the programs of one demo share. Another demo beside it picks others.
type ports struct {
	webhook, registry, health, metrics, control int
	// bmcs is the loopback network of which every BMC has an address.
	bmcs netip.Prefix
}

func (w *world) pickPorts(ctx context.Context) error {
	for _, port := range []*int{&w.ports.webhook, &w.ports.registry, &w.ports.health, &w.ports.metrics, &w.ports.control} {
		var err error
		if *port, err = env.FreePort(ctx); err != nil {
			return err
		}
	}
	var err error
	w.ports.bmcs, err = pickNetwork(ctx, w.options.servers)
	return err
}

// pickNetwork finds a loopback network wide enough on whose first and last addresses nobody listens.
func pickNetwork(ctx context.Context, addresses int) (netip.Prefix, error) {
	const tries = 50
	bits := 24
	for 1<<(32-bits)-2 < addresses {
		bits--
	}
	var last error
	for range tries {
		// 127.0.x.y is left to everybody else.
		base := netip.AddrFrom4([4]byte{127, byte(1 + rand.IntN(254)), byte(rand.IntN(256)), 0})
		network := netip.PrefixFrom(base, bits).Masked()
		if last = networkFree(ctx, network, addresses); last == nil {
			return network, nil
		}
	}
	return netip.Prefix{}, fmt.Errorf("no loopback network is free for the BMCs (the whole of 127.0.0.0/8 is used, as on Linux): %w", last)
}

func networkFree(ctx context.Context, network netip.Prefix, addresses int) error {
	first := network.Addr().Next()
	last := first
	for range addresses - 1 {
		last = last.Next()
	}
	for _, ip := range []netip.Addr{first, last} {
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(ip.String(), strconv.Itoa(bmcPort)))
		if err != nil {
			return err
		}
		if err := listener.Close(); err != nil {
			return err
		}
	}
	return nil
}

// local is an address of this host.
func local(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

var errNotUp = errors.New("does not answer yet")
