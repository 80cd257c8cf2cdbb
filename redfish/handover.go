// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"context"
	"maps"
	"time"
)

// A BMC is found by one part of the operator, under the key of where it was found, and used by another, under its own.
// What the first learned is handed over, so that a BMC is logged in to once.

// account is where a parked client is logged in, and as whom.
type account struct {
	address  string
	port     int
	scheme   string
	username string
	password string
}

func accountOf(e Endpoint, c Credentials) account {
	return account{e.Address, e.Port, e.Scheme, c.Username, c.Password}
}

type parked struct {
	client *client
	timer  *time.Timer
}

type freshRoot struct {
	root     *serviceRoot
	endpoint Endpoint
	until    time.Time
}

// Probe asks whether a Redfish service answers at the endpoint: one GET of /redfish/v1/, without credentials. Nil means
// yes. A client for the same endpoint that is made within PoolOptions.HandOver does not ask again.
func (p *Pool) Probe(ctx context.Context, endpoint Endpoint) error {
	root, err := p.probeService(ctx, endpoint)
	if err != nil {
		return err
	}
	base, err := endpoint.baseURL()
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(p.roots, func(_ string, known freshRoot) bool { return !now.Before(known.until) })
	p.roots[base.String()] = freshRoot{root: root, endpoint: endpoint, until: now.Add(p.options.HandOver)}
	return nil
}

// seed gives a new client what Probe has just read. It is called with mu held.
func (p *Pool) seed(c *client) {
	if c.base == nil {
		return
	}
	if known, ok := p.roots[c.base.String()]; ok && time.Now().Before(known.until) && known.endpoint.Equal(c.endpoint) {
		c.memory.root = known.root
	}
}

// Park drops the client for key as Forget does, but keeps its session for PoolOptions.HandOver: a Get for another key with
// the same endpoint and credentials goes on with it. seen is what its Manager returned: the first Manager after that Get
// returns it once more and asks nothing, unless something was written to the BMC meanwhile. An unknown key is fine.
func (p *Pool) Park(key string, seen ManagerSnapshot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.clients[key]
	if c == nil || p.closed {
		return
	}
	delete(p.clients, key)
	at := accountOf(c.endpoint, c.credentials)
	if former := p.parked[at]; former != nil {
		former.timer.Stop()
		p.giveBack(former.client)
	}
	c.learn(func(m *memory) { m.handed = &seen })
	waiting := &parked{client: c}
	p.parked[at] = waiting
	waiting.timer = time.AfterFunc(p.options.HandOver, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.parked[at] == waiting {
			delete(p.parked, at)
			p.giveBack(c)
		}
	})
}

// adopt takes a parked client over; nil where none fits. It is called with mu held.
func (p *Pool) adopt(key string, endpoint Endpoint, credentials Credentials) *client {
	at := accountOf(endpoint, credentials)
	waiting := p.parked[at]
	if waiting == nil || !waiting.client.endpoint.Equal(endpoint) {
		return nil
	}
	waiting.timer.Stop()
	delete(p.parked, at)
	c := waiting.client
	c.mu.Lock()
	c.key = key
	c.mu.Unlock()
	return c
}

// takeOver returns, once, what was handed over with the client.
func (c *client) takeOver() (ManagerSnapshot, bool) {
	var seen *ManagerSnapshot
	c.learn(func(m *memory) { seen, m.handed = m.handed, nil })
	if seen == nil || c.login.closed.Load() || time.Since(seen.TakenAt) > c.options.HandOver {
		return ManagerSnapshot{}, false
	}
	return *seen, true
}
