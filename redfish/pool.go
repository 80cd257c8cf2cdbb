// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// PoolOptions are the limits that hold for every BMC. A zero field takes its default.
type PoolOptions struct {
	// MaxInFlight is how many requests the whole fleet may have under way; default 256. At worst each holds BodyLimit.
	MaxInFlight int
	// MaxOpen is how many BMCs may have connections that nothing is asked over at the moment; default 512. Others take the place of
	// those that were not asked for longest.
	MaxOpen int
	// PerBMC is how many requests and connections one BMC gets at a time; default 2.
	PerBMC int
	// RequestTimeout covers one request with its whole body; default 30 s.
	RequestTimeout time.Duration
	// OperationTimeout covers one call of the port with all its requests; default 3 min.
	OperationTimeout time.Duration
	// RequestLimit is how many requests one call of the port may make; default 400.
	RequestLimit int
	// BodyLimit is the largest body accepted, in bytes; default 8 MiB.
	BodyLimit int64
	// LoginCoolDown is how long refused credentials are not tried again; default 5 min.
	LoginCoolDown time.Duration
	// BasicFor is how long Basic authentication stands in where no session can be had; default 10 min.
	BasicFor time.Duration
	// SystemsFor is how long Manager keeps a list of systems before it reads the list again; default 1 h. A system that is
	// not where it was makes it read the list at once.
	SystemsFor time.Duration
	// RetryPause is how long after a refusal credentials are not tried again by hand either; default 1 min.
	RetryPause time.Duration
	// BusyPause is how long a read waits before it is made again that the BMC refused because it is busy, doubled with the
	// second and last repeat; default 250 ms.
	BusyPause time.Duration
	// ShowPause is how long a boot override may take to show before it is read once more, doubled with each of four such
	// reads; default 1 s.
	ShowPause time.Duration
	// HandOver is how long what was learned of a BMC waits for whoever goes on with it; default 5 min: with a
	// slow API server it takes a while until there is an object for what was found.
	HandOver time.Duration
	// CloseTimeout covers giving back one session; default 5 s.
	CloseTimeout time.Duration
	// BreakerThreshold is how many connection failures in a row open the breaker; default 3.
	BreakerThreshold int
	// BreakerBase is the first delay of an open breaker, doubled with each failure; default 1 s.
	BreakerBase time.Duration
	// BreakerMax bounds that delay; default 1 min.
	BreakerMax time.Duration
	// Logger gets one debug line per request, without bodies, headers and session names; nil logs nothing.
	Logger *slog.Logger
	// Orphans says that a former process, which was killed, may have left sessions behind: then the first login of each
	// BMC looks for one, and does without a session of its own until that one has expired. It may block; nil says no.
	Orphans func() bool
	// Fence is asked right before each POST, PATCH and DELETE that is not about sessions, after the check of WithGuard. An error
	// keeps the request from being sent, as one of that check does. Nil lets every write pass.
	Fence func(ctx context.Context) error
	// OnRequest is called after each request that went out, with one of the Outcome constants; it must not block.
	OnRequest func(key, method, outcome string, took time.Duration)
}

func (o PoolOptions) withDefaults() PoolOptions {
	orDefault(&o.MaxInFlight, 256)
	orDefault(&o.MaxOpen, 512)
	orDefault(&o.PerBMC, 2)
	orDefault(&o.RequestLimit, 400)
	orDefault(&o.BreakerThreshold, 3)
	orDefault(&o.BodyLimit, 8<<20)
	orDefault(&o.RequestTimeout, 30*time.Second)
	orDefault(&o.OperationTimeout, 3*time.Minute)
	orDefault(&o.LoginCoolDown, 5*time.Minute)
	orDefault(&o.BasicFor, 10*time.Minute)
	orDefault(&o.SystemsFor, time.Hour)
	orDefault(&o.RetryPause, time.Minute)
	orDefault(&o.BusyPause, 250*time.Millisecond)
	orDefault(&o.ShowPause, time.Second)
	orDefault(&o.HandOver, 5*time.Minute)
	orDefault(&o.CloseTimeout, 5*time.Second)
	orDefault(&o.BreakerBase, time.Second)
	orDefault(&o.BreakerMax, time.Minute)
	return o
}

func orDefault[T int | int64 | time.Duration](value *T, otherwise T) {
	if *value <= 0 {
		*value = otherwise
	}
}

// Pool keeps one long-lived client per BMC, so that a session, a connection, a breaker and what was learned about a BMC
// outlive one reconcile. It is safe for concurrent use.
type Pool struct {
	options PoolOptions
	fleet   chan struct{}
	shared  shared

	mu      sync.Mutex
	clients map[string]*client
	parked  map[account]*parked
	roots   map[string]freshRoot // by base URL
	closed  bool
	closing sync.WaitGroup // sessions that are being given back
}

// NewPool returns an empty pool. It starts nothing.
func NewPool(options PoolOptions) *Pool {
	options = options.withDefaults()
	return &Pool{
		options: options,
		fleet:   make(chan struct{}, options.MaxInFlight),
		shared:  newShared(options.MaxOpen),
		clients: map[string]*client{},
		parked:  map[account]*parked{},
		roots:   map[string]freshRoot{},
	}
}

// Get returns the client for key (the BMC's UID). The same endpoint and credentials give the same client; others replace
// it, and the old session is given back in the background. Get does no I/O: what is wrong with the endpoint is returned
// by the first call on the client. After Close, every call on a new client fails.
func (p *Pool) Get(key string, endpoint Endpoint, credentials Credentials) BMC {
	p.mu.Lock()
	defer p.mu.Unlock()
	old := p.clients[key]
	if old != nil && old.credentials == credentials && old.endpoint.Equal(endpoint) {
		return old
	}
	fresh := p.adopt(key, endpoint, credentials)
	if fresh == nil {
		fresh = newClient(key, endpoint, credentials, p.options, p.fleet, p.shared)
		p.seed(fresh)
	}
	if p.closed {
		fresh.broken = errClosed
		return fresh
	}
	p.clients[key] = fresh
	if old != nil {
		p.giveBack(old)
	}
	return fresh
}

// Retry lets credentials that the BMC of key refused be tried again before their cool-down has ended, because somebody says
// that they are right now. They are then tried once, for a session, and not with Basic authentication as well. That is done
// once in each cool-down and not within RetryPause of the refusal, so that it adds little to what may lock an account: else
// nothing changes, and again says when it may be asked for or they are tried next. An unknown key is fine.
// The systems of the BMC are listed anew as well.
func (p *Pool) Retry(key string) (done bool, again time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.clients[key]
	if c == nil || c.login == nil {
		return true, time.Time{}
	}
	c.forgetTopology() // what is asked to be tried again is asked to be looked at again
	return p.shared.refused.lift(c.login.digest, p.options.LoginCoolDown, p.options.RetryPause)
}

// Forget drops the client for key and gives its session back in the background. An unknown key is fine.
func (p *Pool) Forget(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if old := p.clients[key]; old != nil && !p.closed {
		delete(p.clients, key)
		p.giveBack(old)
	}
}

// giveBack is called with mu held, so that Close waits for it.
func (p *Pool) giveBack(c *client) {
	p.closing.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), p.options.CloseTimeout)
		defer cancel()
		if err := c.Close(ctx); err != nil && p.options.Logger != nil {
			p.options.Logger.Debug("redfish session not given back", "bmc", c.name(), "error", err)
		}
	})
}

// Close gives back every session, all at once within the fleet's limits, and returns when that is done or ctx ends. The
// error says at which BMCs a session may be left until it expires there: one whose end was not confirmed, one of a login
// whose answer was lost, or one of a former process that is still waited for. A second call waits again.
func (p *Pool) Close(ctx context.Context) error {
	p.mu.Lock()
	p.closed = true
	for _, waiting := range p.parked {
		waiting.timer.Stop()
		p.giveBack(waiting.client)
	}
	clear(p.parked)
	for key, c := range p.clients {
		delete(p.clients, key)
		p.giveBack(c)
	}
	p.mu.Unlock()
	done := make(chan struct{})
	go func() {
		p.closing.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		return fmt.Errorf("redfish: not all sessions were given back: %w", ctx.Err())
	}
	if hosts := p.shared.left.hosts(time.Now()); len(hosts) > 0 {
		return fmt.Errorf("redfish: a session may be left at %d BMCs, where it expires by itself: %s",
			len(hosts), clip(strings.Join(hosts, ", "), 500))
	}
	return nil
}
