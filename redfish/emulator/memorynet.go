// SPDX-License-Identifier: Apache-2.0

package emulator

import (
	"context"
	"net"
	"sync"
	"syscall"
)

// memoryNet is a network inside the process, made of net.Pipe. Unlike sockets it lets testing/synctest see that
// everybody waits.
type memoryNet struct {
	mu        sync.Mutex
	listeners map[string]*memoryListener
}

func newMemoryNet() *memoryNet { return &memoryNet{listeners: map[string]*memoryListener{}} }

func (n *memoryNet) listen(addr string) (net.Listener, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.listeners[addr] != nil {
		return nil, opError("listen", addr, syscall.EADDRINUSE)
	}
	l := &memoryListener{net: n, addr: memoryAddr(addr), conns: make(chan net.Conn), done: make(chan struct{})}
	n.listeners[addr] = l
	return l, nil
}

func (n *memoryNet) dial(ctx context.Context, addr string) (net.Conn, error) {
	n.mu.Lock()
	l := n.listeners[addr]
	n.mu.Unlock()
	if l == nil {
		return nil, opError("dial", addr, syscall.ECONNREFUSED)
	}
	ours, theirs := net.Pipe()
	select {
	case l.conns <- theirs:
		return ours, nil
	case <-l.done:
		return nil, opError("dial", addr, syscall.ECONNREFUSED)
	case <-ctx.Done():
		return nil, opError("dial", addr, ctx.Err())
	}
}

func opError(op, addr string, err error) error {
	return &net.OpError{Op: op, Net: "tcp", Addr: memoryAddr(addr), Err: err}
}

type memoryAddr string

// Network is the name that clients know.
func (memoryAddr) Network() string { return "tcp" }

func (a memoryAddr) String() string { return string(a) }

type memoryListener struct {
	net   *memoryNet
	addr  memoryAddr
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

// Accept waits for the next dial.
func (l *memoryListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, opError("accept", string(l.addr), net.ErrClosed)
	}
}

// Close refuses later dials. A repeated call does nothing.
func (l *memoryListener) Close() error {
	l.once.Do(func() {
		close(l.done)
		l.net.mu.Lock()
		defer l.net.mu.Unlock()
		delete(l.net.listeners, string(l.addr))
	})
	return nil
}

// Addr is the name that was listened on.
func (l *memoryListener) Addr() net.Addr { return l.addr }
