// SPDX-License-Identifier: Apache-2.0

// Package registry is the receiving side of the agents: it authenticates what servers report about themselves and
// keeps it in ServerInventories, so that any replica can serve and no restart loses anything.
package registry

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	metalv1alpha1 "github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/internal/peers"
	"github.com/metalaw/metalaw/internal/ratelimit"
)

// Reasons of Events on a Server.
const (
	// ReasonReportRefused says that a report was refused.
	ReasonReportRefused = "ProbeReportRefused"
	// ReasonAgentKeyConflict says that two agents with different keys reported for one entry.
	ReasonAgentKeyConflict = "AgentKeyConflict"
	// ReasonHardwareChanged says that a report found other hardware than the one before.
	ReasonHardwareChanged = "HardwareChanged"
)

// Defaults of Options.
const (
	// DefaultAddress is where agents expect the registry.
	DefaultAddress = ":10000"
	// DefaultPerSource is how many requests a second one source may send in the long run.
	DefaultPerSource = 50
	// DefaultBurst is how many requests one source may send at once.
	DefaultBurst = 500
	// DefaultConcurrency is how many requests are served at once.
	DefaultConcurrency = 256
	// DefaultConnections is how many connections are open at once.
	DefaultConnections = 4096
	// DefaultUnauthorizedDelay is how long every answer 401 takes at least.
	DefaultUnauthorizedDelay = 250 * time.Millisecond
)

// Allow says whether a server's machine needs no token. An error means that the policy which governs the server cannot
// be asked now: the machine is to ask again.
type Allow func(server *metalv1alpha1.Server) (bool, error)

// Sink keeps a record outside the cluster. It returns nil only once the record outlives a crash.
type Sink interface {
	Append(ctx context.Context, record *policyv1alpha1.SanitizationRecord) error
	// Has says whether the sink has a machine's record of a number.
	Has(ctx context.Context, systemUUID string, sequence int64) (bool, error)
}

// Options say what the registry works with.
type Options struct {
	// Reader finds Servers by fieldindex.ServerBySystemUUID, and reads inventories and boot configurations; usually the cache.
	Reader client.Reader
	// Live reads past any cache: whatever permits an erase is read with it. Nil means Reader.
	Live client.Reader
	// Writer writes ServerInventories and the status of boot configurations.
	Writer client.Client
	// Sink keeps records of wipes outside the cluster. Nil keeps them in the cluster alone.
	Sink Sink
	// Recorder tells of refused reports. Nil tells nobody.
	Recorder events.EventRecorder

	// Address is where to listen; empty means DefaultAddress. Listener, where set, goes before it.
	Address  string
	Listener net.Listener
	// GetCertificate gives the serving certificate, such as a certificate watcher's.
	GetCertificate getCertificate
	// CertDir holds tls.crt and tls.key, which are read again when they change and may appear late.
	// It is used where GetCertificate is nil.
	CertDir string
	// Hosts are the names and IP addresses by which agents reach the registry. A certificate of CertDir is made good for
	// them where ca.key of its authority lies beside it.
	Hosts []string
	// Plaintext allows serving without TLS, where neither GetCertificate nor CertDir is set.
	Plaintext bool

	// AllowUnauthenticated says whether a report without a token is accepted for a server now. Nil accepts none.
	// Such a report never touches a wipe, and never replaces one of the same entry that showed a token.
	AllowUnauthenticated Allow
	// AllowUnauthenticatedBootState does so for POST /bootstate, which a claim's operating system sends without a
	// token. Nil means AllowUnauthenticated.
	AllowUnauthenticatedBootState Allow

	// Demands says what the policy that governs a server asks of the end of a wipe. Nil asks for nothing. An error means that the
	// policy cannot be asked now: the agent is to come again.
	Demands func(server *metalv1alpha1.Server) (Demands, error)

	// IdentityRequired says whether a machine must be proved before a disk of it is erased. Nil requires it of none.
	IdentityRequired IdentityRequired

	// Ungoverned says why no policy governs, so that no agent begins to erase a disk; empty where one does.
	// Nil says that one does.
	Ungoverned func() string
	// ObserveOnly lets no agent begin to erase a disk.
	ObserveOnly bool
	// HeldRetry is when an agent asks again that may not begin a disk for now, in whole seconds; zero means as often as it
	// gives a sign of life (WipeReportInterval).
	HeldRetry time.Duration

	// PerSource and Burst limit the requests of one source (an IPv4 address or an IPv6 /64); zero means the default.
	PerSource float64
	Burst     int
	// Concurrency limits the requests served at once, of which one source may take a quarter; the others wait for their
	// turn. Zero means DefaultConcurrency.
	Concurrency int
	// Connections limits the connections that are open at once, of which one source may hold half; the others are closed.
	// Zero means DefaultConnections.
	Connections int
	// UnauthorizedDelay is how long every answer 401 takes at least, so that its time does not tell whether a server
	// exists; zero means DefaultUnauthorizedDelay, below zero none.
	UnauthorizedDelay time.Duration

	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Log receives one line for each refusal and failure; nil means slog.Default.
	Log *slog.Logger
	// Metrics registers the counters; nil means the registry of controller-runtime.
	Metrics prometheus.Registerer
}

// Registry serves the agents. It is an http.Handler, and a manager's Runnable on every replica.
type Registry struct {
	options Options
	handler http.Handler
	sources *sources
	bodies  *peers.Budget
	refused *ratelimit.Limiter // of Events
	unseen  *unseenReports
	// former holds the owners of tokens that were good, by their hash. A machine that is left running when its entry ends goes
	// on to report with the token that it was booted with: that is no attack, and no credential of the server says so any more.
	former *lru.Cache
	// unrecorded holds the entries whose wipe has no record in the sink yet.
	unrecorded  *lru.Cache
	requests    *prometheus.CounterVec
	phases      *heldPhases
	certificate atomic.Pointer[getCertificate]
}

// New checks the options and makes a registry that does not listen yet.
func New(options Options) (*Registry, error) {
	if options.Reader == nil || options.Writer == nil {
		return nil, errors.New("probe registry: Reader and Writer must be given")
	}
	if options.GetCertificate == nil && options.CertDir == "" && !options.Plaintext {
		return nil, errors.New("probe registry: no certificate; give a certificate directory, or allow plain text where the network is trusted")
	}
	options.setDefaults()
	requests := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "metalaw_probe_requests_total",
		Help: "Requests to the probe registry by endpoint and outcome.",
	}, []string{"endpoint", "outcome"})
	if err := options.Metrics.Register(requests); err != nil {
		var already prometheus.AlreadyRegisteredError
		known := errors.As(err, &already)
		if known {
			requests, known = already.ExistingCollector.(*prometheus.CounterVec)
		}
		if !known {
			return nil, err
		}
	}
	r := &Registry{
		options:  options,
		sources:  newSources(options.PerSource, options.Burst, options.Concurrency),
		bodies:   peers.NewBudget(bodiesOfAll, bodiesOfOne),
		requests: requests,
		phases:   newHeldPhases(),
		refused:  ratelimit.New(eventPause, maxEventKeys),
		unseen:   newUnseenReports(),
		former:   lru.New(maxFormer),

		unrecorded: lru.New(maxFormer),
	}
	if options.GetCertificate != nil {
		r.certificate.Store(&options.GetCertificate)
	}
	r.handler = r.routes()
	return r, nil
}

func (o *Options) setDefaults() {
	o.Live = cmp.Or(o.Live, o.Reader)
	o.Address = cmp.Or(o.Address, DefaultAddress)
	o.HeldRetry = cmp.Or(o.HeldRetry, policyv1alpha1.WipeReportInterval)
	o.UnauthorizedDelay = cmp.Or(o.UnauthorizedDelay, DefaultUnauthorizedDelay)
	o.Log = cmp.Or(o.Log, slog.Default())
	o.Metrics = cmp.Or(o.Metrics, prometheus.Registerer(metrics.Registry))
	if o.AllowUnauthenticatedBootState == nil {
		o.AllowUnauthenticatedBootState = o.AllowUnauthenticated
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	orDefault(&o.PerSource, DefaultPerSource)
	orDefault(&o.Burst, DefaultBurst)
	orDefault(&o.Concurrency, DefaultConcurrency)
	orDefault(&o.Connections, DefaultConnections)
}

func orDefault[T int | float64](value *T, otherwise T) {
	if *value <= 0 {
		*value = otherwise
	}
}

// ServeHTTP implements http.Handler.
func (r *Registry) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	r.handler.ServeHTTP(w, request)
}

// NeedLeaderElection says no: every replica serves, and what it writes wakes the leader.
func (r *Registry) NeedLeaderElection() bool { return false }
