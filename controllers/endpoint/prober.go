// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/metalaw/metalaw/controllers/access"
	"github.com/metalaw/metalaw/redfish"
)

// Clients is the part of *redfish.Pool that is used here.
type Clients interface {
	Get(key string, endpoint redfish.Endpoint, credentials redfish.Credentials) redfish.BMC
	Forget(key string)
	// Park is Forget, for a client that is about to be asked for under another key, with what it read of its BMC.
	Park(key string, seen redfish.ManagerSnapshot)
	// Probe asks for the service alone, without credentials.
	Probe(ctx context.Context, endpoint redfish.Endpoint) error
}

// question is what is asked about a device. The same question is asked once, until it may be asked again.
type question struct {
	endpoint redfish.Endpoint
	// candidates are tried in order. Without any, only the service is confirmed.
	candidates []redfish.Credentials
	// confirm says that the service alone is asked about, because the credentials are known already.
	confirm bool
	// contact decides whether a certificate that is not trusted is pinned.
	contact access.FirstContact
}

func (q question) fingerprint() [32]byte {
	h := sha256.New()
	c := q.contact
	h.Write(fmt.Appendf(nil, "%x %t %q %q %t %t %s", q.endpoint.Digest(), q.confirm, c.IP, c.Settings.BMCTLS,
		c.Trust, c.Known, c.Settings.BMCPinWithin))
	for _, c := range q.candidates {
		h.Write(fmt.Appendf(nil, " %q %q", c.Username, c.Password))
	}
	return [32]byte(h.Sum(nil))
}

// outcome is how far an answer has come.
type outcome uint8

const (
	// asking: no answer yet.
	asking outcome = iota
	// accepted: a Redfish service answers, and takes the credentials in the answer, where some were tried.
	accepted
	// refused: a Redfish service answers and takes none of the candidates.
	refused
	// failed: nothing usable answers; the error says what.
	failed
)

type answer struct {
	outcome     outcome
	credentials redfish.Credentials
	// pin is the fingerprint of the certificate that was pinned at first use; empty where none was.
	pin string
	err error
	// next is when the same question may be asked again; zero for an answer that stands.
	next time.Time
}

// prober asks devices in the background what they are, and which factory account they take. Each account is offered to
// an address once; one that was refused is not offered again before the cool-down has passed, whoever asks.
type prober struct {
	Options
	requeue func(name string)

	slots   chan struct{}
	base    context.Context
	cancel  context.CancelFunc
	flights sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	devices map[string]*device
	turned  map[[32]byte]time.Time // accounts that were refused, and until when they rest
}

type device struct {
	question [32]byte
	answer   answer
	failures int
	cancel   context.CancelFunc
}

// maxProbes bounds how many devices are asked at a time.
const maxProbes = 64

func newProber(o Options, requeue func(string)) *prober {
	p := &prober{Options: o, requeue: requeue, slots: make(chan struct{}, maxProbes), devices: map[string]*device{},
		turned: map[[32]byte]time.Time{}}
	p.base, p.cancel = context.WithCancel(context.Background())
	return p
}

// Close ends all work and waits for it.
func (p *prober) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.cancel()
	p.flights.Wait()
}

// ask returns the answer as it stands, at once. Where there is none yet, or it is time to ask again, the device is asked
// in the background, and its endpoint requeued when the answer is there. key names the device to the pool of clients.
func (p *prober) ask(name, key string, q question) answer {
	p.mu.Lock()
	defer p.mu.Unlock()
	asked := q.fingerprint()
	d := p.devices[name]
	if d != nil && d.question == asked {
		if d.answer.outcome == asking || d.answer.next.IsZero() || p.now().Before(d.answer.next) {
			return d.answer
		}
	} else {
		p.drop(name)
		d = &device{question: asked}
		p.devices[name] = d
	}
	d.answer = answer{}
	p.begin(name, key, d, q)
	return d.answer
}

// forget drops what is known of a device, and gives up asking it.
func (p *prober) forget(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(name)
}

func (p *prober) drop(name string) {
	if d := p.devices[name]; d != nil {
		if d.cancel != nil {
			d.cancel()
		}
		delete(p.devices, name)
	}
}

// begin is called with the lock held.
func (p *prober) begin(name, key string, d *device, q question) {
	if p.closed {
		return
	}
	ctx, cancel := context.WithTimeout(p.base, timeout)
	d.cancel = cancel
	p.flights.Go(func() {
		defer cancel()
		got := p.try(ctx, key, q)
		p.mu.Lock()
		current := p.devices[name] == d
		if current {
			d.record(got, p.now())
		}
		closed := p.closed
		p.mu.Unlock()
		if current && !closed {
			p.requeue(name)
		}
	})
}

func (d *device) record(got answer, now time.Time) {
	switch got.outcome {
	case failed:
		d.failures++
		got.next = now.Add(backoff(d.failures))
	case refused:
		d.failures = 0
		got.next = now.Add(coolDown)
	default:
		d.failures = 0
	}
	d.answer = got
}

// try first makes sure that the device speaks Redfish: what does not is offered no credential.
func (p *prober) try(ctx context.Context, key string, q question) answer {
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	case <-ctx.Done():
		return answer{outcome: failed, err: ctx.Err()}
	}
	err := p.probe(ctx, q.endpoint)
	q.contact.Err = err
	pin := access.Pin(q.contact)
	if pin != "" {
		q.endpoint.CertificateSHA256 = pin
		err = p.probe(ctx, q.endpoint)
	}
	if err != nil {
		return answer{outcome: failed, err: err}
	}
	if q.confirm {
		return answer{outcome: accepted, pin: pin}
	}
	defer p.Clients.Forget(key)
	for _, candidate := range q.candidates {
		account := accountOf(q.endpoint, candidate)
		if p.resting(account) {
			continue
		}
		bmc, began := p.Clients.Get(key, q.endpoint, candidate), time.Now()
		seen, err := bmc.Manager(ctx)
		if err == nil && !seen.TakenAt.IsZero() && seen.TakenAt.Before(began) { // handed over: it may be of another device at this address
			seen, err = bmc.Manager(ctx)
		}
		var auth *redfish.AuthError
		switch {
		case err == nil:
			p.Clients.Park(key, seen) // the BMC object that is made next goes on with the session, and with what was read
			return answer{outcome: accepted, credentials: candidate, pin: pin}
		case errors.As(err, &auth):
			p.rest(account)
		default:
			return answer{outcome: failed, err: err}
		}
	}
	return answer{outcome: refused}
}

func accountOf(e redfish.Endpoint, c redfish.Credentials) [32]byte {
	return sha256.Sum256(fmt.Appendf(nil, "%q %d %q %q", e.Address, e.Port, c.Username, c.Password))
}

func (p *prober) resting(account [32]byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	until, ok := p.turned[account]
	return ok && p.now().Before(until)
}

// rest keeps a refused account and drops those whose rest has ended, which bounds the map.
func (p *prober) rest(account [32]byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	for known, until := range p.turned {
		if !now.Before(until) {
			delete(p.turned, known)
		}
	}
	p.turned[account] = now.Add(coolDown)
}

// backoff grows from one second to about a minute.
func backoff(failures int) time.Duration {
	return min(time.Second<<min(failures-1, 6), time.Minute)
}
