// SPDX-License-Identifier: Apache-2.0

package env

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// reservedPort holds a port of 127.0.0.1 for a child that listens with SO_REUSEPORT
// (--permit-port-sharing). Nobody else can take it between choosing and listening, nor while the
// child restarts. The reserving socket never listens, so it receives no connections.
type reservedPort struct {
	fd     int
	number int
}

func reservePort() (*reservedPort, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	p := &reservedPort{fd: fd}
	if err := p.bind(); err != nil {
		p.release()
		return nil, fmt.Errorf("reserve a port of 127.0.0.1: %w", err)
	}
	return p, nil
}

func (p *reservedPort) bind() error {
	unix.CloseOnExec(p.fd)
	if err := unix.SetsockoptInt(p.fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
		return os.NewSyscallError("setsockopt", err)
	}
	if err := unix.Bind(p.fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return os.NewSyscallError("bind", err)
	}
	name, err := unix.Getsockname(p.fd)
	if err != nil {
		return os.NewSyscallError("getsockname", err)
	}
	p.number = name.(*unix.SockaddrInet4).Port
	return nil
}

// release gives the port back; a nil or released one is fine.
func (p *reservedPort) release() {
	if p != nil && p.fd >= 0 {
		_ = unix.Close(p.fd)
		p.fd = -1
	}
}

// Below the ports that Linux gives to clients by default (/proc/sys/net/ipv4/ip_local_port_range), so that no connection
// takes a server's port while the server is being started again.
const firstPort, lastPort = 10000, 32000

// given are the ports that this process gave away already: a server listens on its own only later.
var given sync.Map

// FreePort returns a port of 127.0.0.1 that nobody listened on a moment ago, for a server that
// has to be told its port before it starts. It never returns the same one again.
func FreePort(ctx context.Context) (int, error) {
	err := errors.New("this process has given away each one that was tried")
	for range 50 {
		port := firstPort + rand.IntN(lastPort-firstPort)
		if _, taken := given.LoadOrStore(port, true); taken {
			continue
		}
		var listener net.Listener
		if listener, err = new(net.ListenConfig).Listen(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			return port, listener.Close()
		}
	}
	return 0, fmt.Errorf("find a free port of 127.0.0.1: %w", err)
}
