// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"sync"
	"time"
)

// monitor speaks with one QEMU over its machine protocol (QMP).
type monitor struct {
	mu   sync.Mutex
	conn net.Conn
	// rebooted says that the guest's last word was a reset.
	rebooted bool
	// ended is closed when QEMU has hung up.
	ended chan struct{}
}

// dial connects to a QEMU that is just starting, for as long as ctx lasts.
func dial(ctx context.Context, socket string) (*monitor, error) {
	for {
		conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
		if err == nil {
			m := &monitor{conn: conn, ended: make(chan struct{})}
			go m.listen()
			err = m.send("qmp_capabilities")
			return m, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("QEMU's monitor %s: %w", socket, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// listen reads what QEMU says until it hangs up.
func (m *monitor) listen() {
	defer close(m.ended)
	decoder := json.NewDecoder(m.conn)
	for {
		var message struct {
			Event string `json:"event"`
			Data  struct {
				Reason string `json:"reason"`
			} `json:"data"`
		}
		if decoder.Decode(&message) != nil {
			return
		}
		if message.Event == "SHUTDOWN" {
			m.mu.Lock()
			m.rebooted = message.Data.Reason == "guest-reset"
			m.mu.Unlock()
		}
	}
}

// send gives a command; the answer is not waited for.
func (m *monitor) send(command string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, err := fmt.Fprintf(m.conn, "{\"execute\": %q}\n", command)
	return err
}

// close hangs up and says whether the guest ended by a reset.
func (m *monitor) close() bool {
	select {
	case <-m.ended:
	case <-time.After(time.Second):
	}
	_ = m.conn.Close()
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.rebooted
}
