// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"net"
	"net/netip"
	"sync"
)

// connectionShare is the part of all connections that one source may hold, so that it does not lock out the others. It
// is large, because a fleet may reach the registry through one translated address.
const connectionShare = 2

// connections bounds how many connections a listener holds at once, and how many of one source. What is beyond is closed
// at once; agents try again. Accept never waits for a connection to end, because whoever holds them all would decide when.
type connections struct {
	net.Listener
	most int

	mu   sync.Mutex
	open int
	of   map[netip.Prefix]int
}

func newConnections(listener net.Listener, most int) *connections {
	return &connections{Listener: listener, most: most, of: map[netip.Prefix]int{}}
}

// Accept implements net.Listener.
func (c *connections) Accept() (net.Conn, error) {
	for {
		conn, err := c.Listener.Accept()
		if err != nil {
			return nil, err
		}
		from := prefixOf(conn.RemoteAddr().String())
		if c.enter(from) {
			return &connection{Conn: conn, leave: sync.OnceFunc(func() { c.leave(from) })}, nil
		}
		_ = conn.Close()
	}
}

func (c *connections) enter(from netip.Prefix) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open >= c.most || c.of[from] >= max(1, c.most/connectionShare) {
		return false
	}
	c.open++
	c.of[from]++
	return true
}

func (c *connections) leave(from netip.Prefix) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open--
	c.of[from]--
	if c.of[from] == 0 {
		delete(c.of, from)
	}
}

// connection counts until it is closed.
type connection struct {
	net.Conn
	leave func()
}

// Close implements net.Conn.
func (c *connection) Close() error {
	defer c.leave()
	return c.Conn.Close()
}
