// SPDX-License-Identifier: Apache-2.0

package peers

import (
	"net"
	"sync"
)

// connectionShare is the part of all connections that one peer may hold, so that it does not lock out the others. It is large, because
// a fleet may reach a server through one translated address.
const connectionShare = 2

// connections counts those that are open. Each of them takes one of a budget.
type connections struct {
	net.Listener
	budget *Budget
}

// Listen bounds how many connections a listener holds at once, and how many of one peer. It closes others at once; machines try again.
// Accept never waits for a connection to end, because those who hold them all would decide when.
func Listen(listener net.Listener, most int) net.Listener {
	return &connections{Listener: listener, budget: NewBudget(int64(most), int64(max(1, most/connectionShare)))}
}

// Accept implements net.Listener.
func (c *connections) Accept() (net.Conn, error) {
	for {
		conn, err := c.Listener.Accept()
		if err != nil {
			return nil, err
		}
		share := c.budget.Share(Of(conn.RemoteAddr().String()))
		if share.Take(1) {
			return &connection{Conn: conn, leave: sync.OnceFunc(share.Return)}, nil
		}
		_ = conn.Close()
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
