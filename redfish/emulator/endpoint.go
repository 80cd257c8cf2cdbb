// SPDX-License-Identifier: Apache-2.0

package emulator

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"
)

// Reachability is how a BMC's address behaves.
type Reachability string

const (
	// Reachable is the normal case.
	Reachable Reachability = "Reachable"
	// Refusing closes all connections and refuses new ones.
	Refusing Reachability = "Refusing"
	// Silent closes all connections, accepts new ones and never answers on them: what a client sees of a black hole.
	Silent Reachability = "Silent"
)

// address is where the BMC with that index listens.
func (f *Fleet) address(index int) (string, error) {
	host, port := f.opts.Host, f.opts.Port
	switch {
	case f.opts.Network != "":
		prefix, err := netip.ParsePrefix(f.opts.Network)
		if err != nil {
			return net.JoinHostPort(host, "0"), fmt.Errorf("emulator: network %q: %w: write it like 127.0.1.0/24", f.opts.Network, err)
		}
		ip := prefix.Masked().Addr()
		for range index + 1 {
			ip = ip.Next()
		}
		if !prefix.Contains(ip) {
			return net.JoinHostPort(host, "0"),
				fmt.Errorf("emulator: network %s has no address for BMC number %d: use a wider one", prefix, index+1)
		}
		host = ip.String()
	case port != 0:
		port += index
	}
	if f.opts.InMemory && port == 0 {
		// In memory nothing hands out ports; only a distinct name is needed.
		port = 10_000 + index
	}
	return net.JoinHostPort(host, strconv.Itoa(port)), nil
}

// endpoint is one address. Its owner is the BMC that answers there at the moment.
type endpoint struct {
	fleet *Fleet
	owner atomic.Pointer[bmc]

	mu       sync.Mutex
	addr     string
	listener net.Listener
	reach    Reachability
	limit    int
	conns    map[*conn]struct{}
	cert     Certificate
	issued   *tls.Certificate
	closed   bool
}

func newEndpoint(f *Fleet, addr string) *endpoint {
	return &endpoint{fleet: f, addr: addr, reach: Reachable, conns: map[*conn]struct{}{}}
}

func (e *endpoint) address() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.addr
}

// open listens and serves in the background.
func (e *endpoint) open() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.openLocked()
}

func (e *endpoint) openLocked() error {
	if e.closed || e.listener != nil {
		return nil
	}
	var err error
	var l net.Listener
	if e.fleet.memory != nil {
		l, err = e.fleet.memory.listen(e.addr)
	} else {
		var lc net.ListenConfig
		l, err = lc.Listen(e.fleet.ctx, "tcp", e.addr)
	}
	if err != nil {
		return fmt.Errorf("emulator: BMC cannot listen on %s: %w: choose another address or port", e.addr, err)
	}
	e.addr = l.Addr().String()
	e.listener = l
	var serve net.Listener = &acceptor{Listener: l, endpoint: e}
	if e.fleet.certs != nil {
		serve = tls.NewListener(serve, e.fleet.certs.serverConfig())
	}
	// Serve ends when the listener closes, which is the only error it can have.
	go func() { _ = e.fleet.server.Serve(serve) }()
	return nil
}

func (e *endpoint) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	e.closeLocked(nil)
}

func (e *endpoint) closeLocked(keep *conn) {
	if e.listener != nil {
		// Nothing is lost with a listener that fails to close.
		_ = e.listener.Close()
		e.listener = nil
	}
	e.dropLocked(keep)
}

// dropConns closes all connections but keep.
func (e *endpoint) dropConns(keep *conn) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.dropLocked(keep)
}

func (e *endpoint) dropLocked(keep *conn) {
	for c := range e.conns {
		if c != keep {
			_ = c.Conn.Close()
			delete(e.conns, c)
		}
	}
}

func (e *endpoint) setReach(r Reachability, keep *conn) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch r {
	case Refusing:
		e.reach = r
		e.closeLocked(keep)
		return nil
	case Silent, Reachable:
		e.reach = r
		e.dropLocked(keep)
		if !e.fleet.started.Load() {
			return nil
		}
		return e.openLocked()
	}
	return fmt.Errorf("emulator: reachability %q is unknown: use Reachable, Refusing or Silent", r)
}

func (e *endpoint) setLimit(n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.limit = n
}

// admit registers a new connection and says what becomes of it.
func (e *endpoint) admit(c *conn) (serve, hold bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed || e.reach == Refusing || e.limit > 0 && len(e.conns) >= e.limit {
		return false, false
	}
	e.conns[c] = struct{}{}
	return e.reach == Reachable, e.reach == Silent
}

// acceptor hands the server those connections that the endpoint admits.
type acceptor struct {
	net.Listener
	endpoint *endpoint
}

// Accept returns the next connection to serve.
func (a *acceptor) Accept() (net.Conn, error) {
	for {
		raw, err := a.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &conn{Conn: raw, endpoint: a.endpoint}
		serve, hold := a.endpoint.admit(c)
		if serve {
			return c, nil
		}
		if !hold {
			_ = raw.Close()
		}
	}
}

// conn knows its endpoint.
type conn struct {
	net.Conn
	endpoint *endpoint
}

// Close closes the connection and forgets it.
func (c *conn) Close() error {
	c.endpoint.mu.Lock()
	delete(c.endpoint.conns, c)
	c.endpoint.mu.Unlock()
	return c.Conn.Close()
}

// abort closes with a reset instead of a farewell, where the network has such a thing.
func (c *conn) abort() {
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

type connKey struct{}

// withEndpoint lets a handler find the connection that a request came by.
func withEndpoint(ctx context.Context, c net.Conn) context.Context {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	return context.WithValue(ctx, connKey{}, c)
}

var errNoConn = errors.New("emulator: request without a connection of this fleet")

func connOf(ctx context.Context) (*conn, error) {
	c, ok := ctx.Value(connKey{}).(*conn)
	if !ok {
		return nil, errNoConn
	}
	return c, nil
}
