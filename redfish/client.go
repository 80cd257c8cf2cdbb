// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"sync"
	"time"
)

var errClosed = errors.New("redfish: this client was given back because its BMC, endpoint or credentials changed; ask the pool for the current one")

// client is the one client of one BMC; it implements BMC.
type client struct {
	endpoint    Endpoint
	credentials Credentials
	options     PoolOptions
	broken      error // what every call returns; nil for a usable endpoint

	base  *url.URL
	wire  *wire
	http  *http.Client
	login *login

	mu     sync.Mutex
	key    string // may change while nobody uses the client
	memory memory
}

func (c *client) name() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.key
}

// shared is what all clients of one process know of logins and of connections.
type shared struct {
	refused  *denials
	sessions *openSessions
	left     *leftSessions
	open     *openWires
}

func newShared(mostOpen int) shared {
	return shared{refused: newDenials(), sessions: &openSessions{}, left: newLeftSessions(), open: newOpenWires(mostOpen)}
}

// memory is what one BMC taught us. Losing it costs requests, never correctness.
type memory struct {
	root       *serviceRoot
	managerURI string
	// managerProven says that links of the BMC prove that manager to be the one of its hosts.
	managerProven bool
	systemURIs    []string
	listedAt      time.Time
	listedBy      string              // the incarnation of the manager at the listing
	resetTypes    map[string][]string // by ActionInfo URI
	habits        habits
	listed        map[string]listedSystem // by URI; see SystemDetail
	uncleared     map[string]stays        // by URI; see clearing
	spelled       map[string]string       // by path of a write: the spelling that the BMC redirects it to
	handed        *ManagerSnapshot        // what the next Manager returns; see Pool.Park
	writes        int                     // counts the beginnings and the ends of writes; a list that spans one is not kept
}

// habits are deviations that a BMC showed by an error status; each costs one refused request, once.
type habits struct {
	noExpand     bool // refuses $expand although it offers it
	postIfMatch  bool // 428 on an action POST without If-Match
	patchIfMatch bool // 428 on a PATCH of a resource that has no ETag
	noBootMode   bool // 400 on BootSourceOverrideMode
}

func newClient(key string, endpoint Endpoint, credentials Credentials, options PoolOptions, fleet chan struct{}, shared shared) *client {
	endpoint.CABundle = append([]byte(nil), endpoint.CABundle...)
	c := &client{key: key, endpoint: endpoint, credentials: credentials, options: options}
	c.memory.resetTypes = map[string][]string{}
	if c.base, c.broken = endpoint.baseURL(); c.broken != nil {
		return c
	}
	if c.wire, c.broken = newWire(endpoint, options.PerBMC, shared.open); c.broken != nil {
		return c
	}
	c.http = &http.Client{Transport: chain(c.name, c.base.Host, options, fleet, c.wire.RoundTrip), CheckRedirect: refuseRedirects}
	c.login = newLogin(c, shared)
	return c
}

// Close gives the session back and closes idle connections; afterwards every call fails. The error says that the BMC
// did not confirm that no session is left. A second call asks the BMC nothing.
func (c *client) Close(ctx context.Context) error {
	if c.login == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.options.CloseTimeout)
	defer cancel()
	defer c.wire.CloseIdleConnections()
	return c.login.close(&operation{c: c, ctx: ctx, left: 1})
}

// recall reads, and learn changes, what is remembered.
func (c *client) recall() memory {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.memory
}

func (c *client) learn(change func(m *memory)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.memory)
}

// wrote makes what was listed so far, and what is being listed, no longer stand for a read of a system.
func (c *client) wrote() {
	c.learn(func(m *memory) {
		m.listed, m.handed = nil, nil
		m.writes++
	})
}

// forgetTopology makes the next read of the manager look at everything again.
func (c *client) forgetTopology() {
	c.learn(func(m *memory) {
		m.root, m.managerURI, m.systemURIs, m.listedAt, m.listed = nil, "", nil, time.Time{}, nil
		m.managerProven, m.handed, m.spelled = false, nil, nil
		m.resetTypes = map[string][]string{}
	})
}

// probeTimeout covers the one request of a probe: what answers there is mostly no BMC.
const probeTimeout = 15 * time.Second

// probeService reads the service root, without credentials, within the limits of the pool.
func (p *Pool) probeService(ctx context.Context, endpoint Endpoint) (*serviceRoot, error) {
	options := p.options
	options.PerBMC, options.RequestTimeout = 1, min(options.RequestTimeout, probeTimeout)
	c := newClient("", endpoint, Credentials{}, options, p.fleet, newShared(1))
	op, cancel, err := c.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer cancel()
	defer c.wire.CloseIdleConnections()
	return op.root()
}
