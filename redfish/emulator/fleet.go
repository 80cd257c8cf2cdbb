// SPDX-License-Identifier: Apache-2.0

package emulator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Fleet is a set of emulated BMCs in one process. Its methods may be called from any goroutine.
type Fleet struct {
	opts   Options
	clock  Clock
	certs  *authority // nil without TLS
	faults *faultSet
	log    *journal
	memory *memoryNet // nil unless Options.InMemory
	server *http.Server

	// ctx is the life of guests and pending requests; guests waits for them.
	ctx    context.Context
	stop   context.CancelFunc
	guests sync.WaitGroup
	// started is read under the locks of endpoints, which are taken under mu.
	started atomic.Bool

	mu       sync.Mutex
	machines []*Machine
	bmcs     []*bmc
	names    map[string]*Machine
	closed   bool
	err      error
}

// New makes a fleet without machines. Nothing listens before Start.
func New(opts Options) *Fleet {
	f := &Fleet{opts: opts.withDefaults(), names: map[string]*Machine{}}
	f.clock = f.opts.Clock
	f.faults = newFaultSet(f.opts.Seed)
	f.log = newJournal(f.opts.JournalLimit)
	f.ctx, f.stop = context.WithCancel(context.Background())
	if f.opts.InMemory {
		f.memory = newMemoryNet()
	}
	if f.opts.TLS {
		certs, err := newAuthority()
		f.certs, f.err = certs, err
	}
	f.server = &http.Server{
		Handler: f,
		// Handshakes that a client breaks off are part of the game and not worth a line each.
		ErrorLog:          log.New(io.Discard, "", 0),
		ReadHeaderTimeout: time.Minute,
		ConnContext:       withEndpoint,
	}
	return f
}

// Add makes a machine, behind a BMC of its own unless the spec says otherwise. It may be called before and after
// Start; after Start the BMC answers when Add returns. What is wrong with the spec is told by Start, and by Machine.Err.
func (f *Fleet) Add(spec MachineSpec) *Machine {
	f.mu.Lock()
	defer f.mu.Unlock()
	var b *bmc
	var err error
	if spec.Behind != nil {
		b = spec.Behind.bmc
	} else {
		b, err = newBMC(f, len(f.bmcs), spec)
		f.bmcs = append(f.bmcs, b)
	}
	m := newMachine(b, len(f.machines), spec)
	if f.names[m.name] != nil {
		err = errors.Join(err, fmt.Errorf("emulator: machine name %q is taken: choose another", m.name))
	}
	f.machines = append(f.machines, m)
	f.names[m.name] = m
	if f.closed {
		err = errors.Join(err, errors.New("emulator: the fleet is closed: make a new one"))
	} else if f.started.Load() && spec.Behind == nil {
		err = errors.Join(err, b.port().open())
	}
	m.err = err
	f.err = errors.Join(f.err, err)
	b.adopt(m)
	return m
}

// Start lets every BMC listen and returns when all do. The fleet closes when ctx ends. A second call is an error.
func (f *Fleet) Start(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.started.Load() || f.closed {
		return errors.New("emulator: this fleet was started before: make a new one")
	}
	if f.err != nil {
		return f.err
	}
	f.started.Store(true)
	var errs []error
	for _, b := range f.bmcs {
		errs = append(errs, b.port().open())
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	context.AfterFunc(ctx, f.Close)
	return nil
}

// Close switches the fleet off: listeners and connections are closed, guests are cancelled and waited for.
// A repeated call does nothing more.
func (f *Fleet) Close() {
	f.mu.Lock()
	f.closed = true
	bmcs := slices.Clone(f.bmcs)
	f.mu.Unlock()
	f.stop()
	for _, b := range bmcs {
		b.shut()
	}
	// Close of a server reports only listeners that were closed before.
	_ = f.server.Close()
	f.guests.Wait()
}

// Machines lists the machines in the order in which they were added.
func (f *Fleet) Machines() []*Machine {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.machines)
}

// Machine returns the machine of that name; nil where there is none.
func (f *Fleet) Machine(name string) *Machine {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.names[name]
}

// Matches says whether any machine's name matches the glob that Fault.Machine is; machines that are added later do not count.
func (f *Fleet) Matches(pattern string) bool {
	re := glob(pattern)
	return slices.ContainsFunc(f.Machines(), func(m *Machine) bool { return re == nil || re.MatchString(m.name) })
}

// CA is the PEM certificate that signed the fleet's certificates; nil without TLS.
func (f *Fleet) CA() []byte {
	if f.certs == nil {
		return nil
	}
	return slices.Clone(f.certs.pem)
}

// DialContext connects to a BMC of this fleet, in memory where the fleet is in memory.
// It has the form that http.Transport wants.
func (f *Fleet) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if f.memory != nil {
		return f.memory.dial(ctx, address)
	}
	var d net.Dialer
	return d.DialContext(ctx, network, address)
}

// Client returns a new http.Client that reaches the fleet, trusts its CA and follows no redirect.
func (f *Fleet) Client() *http.Client {
	transport := &http.Transport{DialContext: f.DialContext}
	if f.certs != nil {
		transport.TLSClientConfig = f.certs.clientConfig()
	}
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// SwapAddresses lets two BMCs change places: each answers at the other's address from the next connection on, as
// after a change of DHCP leases.
func (f *Fleet) SwapAddresses(a, b *Machine) {
	first, second := a.bmc, b.bmc
	if first == second {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	pa, pb := first.port(), second.port()
	first.endpoint.Store(pb)
	second.endpoint.Store(pa)
	pa.owner.Store(second)
	pb.owner.Store(first)
	pa.dropConns(nil)
	pb.dropConns(nil)
}
