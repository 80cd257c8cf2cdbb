// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strconv"

	"github.com/metalaw/metalaw/test/env"
)

// bmcPort is the port of every emulated BMC; the MAC prefix database of testkit.EmulatorBundle says the same.
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
	w.ports.bmcs, err = env.FreeNetwork(ctx, w.options.servers, bmcPort)
	return err
}

// local is an address of this host.
func local(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

var errNotUp = errors.New("does not answer yet")
