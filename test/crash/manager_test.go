// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/metalaw/metalaw/test/env"
)

// startLimit is the time the manager has to become ready.
const startLimit = 90 * time.Second

// manager is the built program as a process of its own, started again whenever it has ended.
type manager struct {
	plane  *env.Env
	name   string
	binary string
	args   []string
	health string
	// await holds back the next process after a kill until it returns; nil holds nothing back.
	await func(context.Context)

	// life ends with stop.
	life context.Context
	end  context.CancelFunc

	mu      sync.Mutex
	child   *env.Child
	stopped bool
	starts  int
	// ready is closed once the present process is ready.
	ready chan struct{}
	// failures are ends that nobody asked for.
	failures []error
	followed sync.WaitGroup
}

// start runs the manager until stop.
func (m *manager) start() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.life, m.end = context.WithCancel(context.Background())
	return m.launch()
}

// launch is called with the lock held.
func (m *manager) launch() error {
	child, err := m.plane.StartChild(m.name, m.binary, m.args...)
	if err != nil {
		return err
	}
	m.child, m.ready = child, make(chan struct{})
	m.starts++
	ready := m.ready
	m.followed.Go(func() { m.follow(child, ready) })
	return nil
}

// follow starts the next process when this one has ended.
func (m *manager) follow(child *env.Child, ready chan struct{}) {
	if child.AwaitReady(context.Background(), startLimit, m.answers) == nil {
		close(ready)
	}
	<-child.Done()
	if m.await != nil {
		m.await(m.life)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stopped {
		return
	}
	if m.child == child { // nobody killed it
		m.failures = append(m.failures, child.Failure())
		m.child = nil
	}
	if err := m.launch(); err != nil {
		m.failures = append(m.failures, err)
	}
}

func (m *manager) answers(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+m.health+"/readyz", http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	if err := response.Body.Close(); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("readyz: %s", response.Status)
	}
	return nil
}

// kill ends the process at once, and returns when it is gone. False: there is none at this moment.
func (m *manager) kill() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.child == nil || m.stopped {
		return false
	}
	child := m.child
	m.child = nil
	child.Kill()
	return true
}

// awaitReady waits until the process that runs now is ready, or gone.
func (m *manager) awaitReady(ctx context.Context) bool {
	m.mu.Lock()
	child, ready := m.child, m.ready
	m.mu.Unlock()
	if child == nil {
		return false
	}
	select {
	case <-ready:
		return true
	case <-child.Done():
	case <-ctx.Done():
	}
	return false
}

// stop ends the manager in order, and returns how it ended by itself before, if it did.
func (m *manager) stop(grace time.Duration) []error {
	m.mu.Lock()
	m.stopped = true
	child := m.child
	m.mu.Unlock()
	if m.end != nil {
		m.end()
	}
	if child != nil {
		child.Stop(grace)
	}
	m.followed.Wait()
	return m.failures
}
