// SPDX-License-Identifier: Apache-2.0

package server

import "sync"

// memory is what this process remembers of servers between reconciles. Losing it costs a read or an operation that is
// reported as interrupted, never a wrong action.
type memory struct {
	mu      sync.Mutex
	waiting map[string]bool
	begun   map[string]bool
}

func newMemory() *memory {
	return &memory{waiting: map[string]bool{}, begun: map[string]bool{}}
}

// unsettled says that some effect of the server's state did not hold when we looked last.
func (m *memory) unsettled(server string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.waiting[server]
}

func (m *memory) settle(server string, settled bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if settled {
		delete(m.waiting, server)
	} else {
		m.waiting[server] = true
	}
}

// begin notes that this process has recorded an operation as begun and may carry it out, once.
func (m *memory) begin(operation string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.begun[operation] = true
}

// send says whether an operation may be carried out now: this process began it, and send was not called for it before.
func (m *memory) send(operation string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	mine := m.begun[operation]
	delete(m.begun, operation)
	return mine
}

func (m *memory) forget(server, operation string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.waiting, server)
	delete(m.begun, operation)
}
