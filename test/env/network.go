// SPDX-License-Identifier: Apache-2.0

package env

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"strconv"
)

// FreeNetwork returns a loopback network of at least so many addresses, nobody of whom listened on the port of the first
// and the last a moment ago. Linux answers on the whole of 127.0.0.0/8; 127.0.x.y is left to everybody else.
func FreeNetwork(ctx context.Context, addresses, port int) (netip.Prefix, error) {
	const tries = 50
	bits := 24
	for 1<<(32-bits)-2 < addresses {
		bits--
	}
	if bits < 12 {
		return netip.Prefix{}, fmt.Errorf("%d addresses of a loopback network are too many: at most 1048574", addresses)
	}
	var last error
	for range tries {
		base := netip.AddrFrom4([4]byte{127, byte(16 + rand.IntN(224)), byte(rand.IntN(256)), 0})
		network := netip.PrefixFrom(base, bits).Masked()
		if last = portFree(ctx, network, addresses, port); last == nil {
			return network, nil
		}
	}
	return netip.Prefix{}, fmt.Errorf("no loopback network of %d addresses is free (all of 127.0.0.0/8 is used, as on Linux): %w", addresses, last)
}

func portFree(ctx context.Context, network netip.Prefix, addresses, port int) error {
	first := network.Addr().Next()
	last := first
	for range addresses - 1 {
		last = last.Next()
	}
	for _, ip := range []netip.Addr{first, last} {
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(ip.String(), strconv.Itoa(port)))
		if err != nil {
			return err
		}
		if err := listener.Close(); err != nil {
			return err
		}
	}
	return nil
}
