// SPDX-License-Identifier: Apache-2.0

// Package controllers is the map of the shell: Setup lists everything that runs on the elected leader.
package controllers

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/go-logr/logr"

	"github.com/prometheus/client_golang/prometheus"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/access"
	"github.com/metalaw/metalaw/controllers/bmc"
	"github.com/metalaw/metalaw/controllers/claim"
	"github.com/metalaw/metalaw/controllers/collectors"
	"github.com/metalaw/metalaw/controllers/endpoint"
	"github.com/metalaw/metalaw/controllers/faults"
	"github.com/metalaw/metalaw/controllers/fleet"
	"github.com/metalaw/metalaw/controllers/hardware"
	"github.com/metalaw/metalaw/controllers/heartbeat"
	"github.com/metalaw/metalaw/controllers/leading"
	"github.com/metalaw/metalaw/controllers/maintenance"
	"github.com/metalaw/metalaw/controllers/readiness"
	"github.com/metalaw/metalaw/controllers/restored"
	"github.com/metalaw/metalaw/controllers/revision"
	"github.com/metalaw/metalaw/controllers/rivals"
	"github.com/metalaw/metalaw/controllers/scheduler"
	"github.com/metalaw/metalaw/controllers/scheduler/informer"
	"github.com/metalaw/metalaw/controllers/server"
	"github.com/metalaw/metalaw/controllers/server/census"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/internal/counted"
	"github.com/metalaw/metalaw/internal/fieldindex"
	"github.com/metalaw/metalaw/internal/running"
	"github.com/metalaw/metalaw/redfish"
)

// Options are what the operator is told from outside.
type Options struct {
	// Namespace is the manager's own.
	Namespace string
	// ProbeImage and WipeImage are booted to inspect and to erase.
	ProbeImage, WipeImage string
	// RegistryURL is where agents report to; RegistryCA, PEM, is whom they trust there.
	RegistryURL string
	RegistryCA  func() []byte
	// BootTarget is the boot source for network boots: Pxe or UefiHttp.
	BootTarget string
	// MediaURL is the URL by which BMCs reach the boot service; empty where there is none.
	MediaURL string
	// BMCCABundle is trusted for BMCs instead of the system's certificates; PEM, may be empty.
	BMCCABundle []byte
	// SteadyPoll is how often a BMC is read while nothing is expected to change.
	SteadyPoll time.Duration
	// Workers is the number of servers that are looked at side by side.
	Workers int
	// AdoptionRate is how many servers a second come under another policy revision while they rest; default 10.
	AdoptionRate int
	// PowerGrace is how long a BMC may take to show what it accepted, before it is asked again; default 1 min.
	PowerGrace time.Duration
	// RetryPause is how long after a refusal a BMC's credentials are not tried again by hand either; default 1 min.
	RetryPause time.Duration
	// BootGrace stands in for boot.firstWord of every bundle; default 0, by which that is in force.
	BootGrace time.Duration
	// NoReleaseGrace lets a release take effect at once, whatever releaseGrace of a bundle says: for demos and tests.
	NoReleaseGrace bool
	// Maintenance is what is done with maintenances; off where it is empty.
	Maintenance maintenance.Mode
	// CredentialUse is the mode of the rule about credentials, which the webhooks keep; the Lease of the manager tells it.
	CredentialUse string
	// ObserveOnly runs everything and does nothing to any machine.
	ObserveOnly bool
	// Admission fails until the webhooks of this process listen. The controllers that write what those judge begin no sooner, but
	// after half a minute all the same; nil where this process serves none. That the API server gets through to them, which
	// takes the Service in front of them some seconds more, it does not tell.
	Admission healthz.Checker
	// Unadmitted says that no admission webhook is served, so that what admission writes on objects is anybody's word.
	Unadmitted bool
	// Fleet is the index of the fleet that admission in this process asks as well; where it is nil the scheduler has its own.
	Fleet *informer.Informer
	// StoreLook is the time between two looks whether the cluster's store was restored; default 30 s.
	StoreLook time.Duration
	// Now is the wall clock; time.Now where it is nil. Counted is counted time; default that of this process.
	Now     func() time.Time
	Counted *counted.Clock
	// Metrics registers the metrics; default the registry that the manager serves.
	Metrics prometheus.Registerer
	// Leader fences each write to a BMC by the Lease of the leader election; nil where no process is elected.
	Leader *leading.Leader
}

func (o *Options) setDefaults() {
	if o.Metrics == nil {
		o.Metrics = metrics.Registry
	}
	if o.Counted == nil {
		start := time.Now()
		o.Counted = counted.NewClock(start, func() time.Duration { return time.Since(start) })
	}
}

func newHeartbeat(mgr ctrl.Manager, o Options) *heartbeat.Heartbeat {
	return &heartbeat.Heartbeat{Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Namespace: o.Namespace,
		Now: o.Now, Counted: o.Counted}
}

// flags are what the Lease of this manager tells of it.
func (o *Options) flags() running.Flags {
	f := running.Flags{ObserveOnly: o.ObserveOnly, Maintenance: string(o.Maintenance), RegistryURL: o.RegistryURL,
		CredentialUse: o.CredentialUse}
	if o.Leader != nil {
		f.Candidate = o.Leader.Identity
	}
	return f
}

// Setup adds every controller to the manager. The manager's cache must not have started.
func Setup(ctx context.Context, mgr ctrl.Manager, store *revision.Store, o Options) error {
	o.setDefaults()
	if err := fieldindex.Register(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	if err := o.Metrics.Register(collectors.New(mgr.GetCache())); err != nil {
		return err
	}
	shadows, err := revision.NewShadows(o.Metrics)
	if err != nil {
		return err
	}
	probation := revision.NewProbation(store, mgr.GetCache(), time.Now)
	if err := revision.Setup(ctx, mgr, revision.Options{Store: store, Shadows: shadows, Probation: probation, Namespace: o.Namespace,
		Metrics: o.Metrics, Flags: o.flags().Text()}); err != nil {
		return err
	}
	gate, err := fleet.Setup(ctx, mgr, fleet.Options{ObserveOnly: o.ObserveOnly, Metrics: o.Metrics,
		Now: o.Now, Counted: o.Counted})
	if err != nil {
		return err
	}
	if err := restored.Setup(mgr, restored.Options{Interval: o.StoreLook, Metrics: o.Metrics}); err != nil {
		return err
	}
	beat := newHeartbeat(mgr, o)
	pool, err := newPool(mgr, beat, o)
	if err != nil {
		return err
	}
	writers := newAdmitted(mgr, o.Admission)
	if err := writers.Add(beat); err != nil { // the outage lasts until the controllers begin
		return err
	}
	if err := endpoint.Setup(writers, endpoint.Options{Bundles: store, Clients: pool, Namespace: o.Namespace, CABundle: o.BMCCABundle}); err != nil {
		return err
	}
	shown := rivals.New()
	if err := bmc.Setup(writers, bmc.Options{Bundles: store, Clients: pool, CABundle: o.BMCCABundle, SteadyPoll: o.SteadyPoll,
		Absent: beat.Absent, Gate: gate, Rivals: shown}); err != nil {
		return err
	}
	claims, err := scheduler.Setup(ctx, writers, scheduler.Options{Bundles: store, Fleet: o.Fleet, ObserveOnly: o.ObserveOnly})
	if err != nil {
		return err
	}
	store.Changed(claims.Wake)
	if err := claim.Setup(writers, claim.Options{Scheduler: claims, MaxConcurrent: o.Workers,
		Now: o.Now, Counted: o.Counted}); err != nil {
		return err
	}
	if err := maintenance.Setup(writers, maintenance.Options{Mode: o.Maintenance, Bundles: store, Gate: gate,
		Now: o.Now, Counted: o.Counted, Namespace: o.Namespace,
		Unadmitted: o.Unadmitted, Metrics: o.Metrics}); err != nil {
		return err
	}
	return setupServers(writers, store, shadows, probation, pool, beat, gate, shown, o)
}

// newPool makes the clients of BMCs. The manager gives their sessions back when it ends.
func newPool(mgr ctrl.Manager, beat *heartbeat.Heartbeat, o Options) (*redfish.Pool, error) {
	requests, err := newRequestMetrics(o.Metrics)
	if err != nil {
		return nil, err
	}
	pool := redfish.NewPool(redfish.PoolOptions{OnRequest: requests.observe, Orphans: beat.FormerWasKilled, RetryPause: o.RetryPause,
		Fence: fence(o.Leader), Logger: slog.New(logr.ToSlogHandler(mgr.GetLogger().WithName("redfish")))})
	return pool, errors.Join(mgr.Add(heartbeat.Standby{Heartbeat: beat}), mgr.Add(givingSessionsBack(pool, beat)), watch(mgr, o.Leader))
}

// setupUpkeep adds what follows from the condition of machines: taints, and proposals to take a server out of service.
func setupUpkeep(mgr ctrl.Manager, store *revision.Store, o Options) error {
	if err := readiness.Setup(mgr); err != nil {
		return err
	}
	return faults.Setup(mgr, faults.Options{Bundles: store, ObserveOnly: o.ObserveOnly})
}

func setupServers(mgr ctrl.Manager, store *revision.Store, shadows *revision.Shadows, probation *revision.Probation, pool *redfish.Pool,
	beat *heartbeat.Heartbeat, gate *fleet.Gate, shown *rivals.Memory, o Options,
) error {
	if err := setupUpkeep(mgr, store, o); err != nil {
		return err
	}
	measured, err := server.NewMetrics(o.Metrics)
	if err != nil {
		return err
	}
	if err := o.Metrics.Register(census.New(mgr.GetCache(), store.Active)); err != nil {
		return err
	}
	resolve := func(ctx context.Context, b *v1alpha1.BMC, settings bundle.Settings) (hardware.Target, error) {
		return access.Resolve(ctx, mgr.GetClient(), b, settings, o.BMCCABundle)
	}
	return server.Setup(mgr, server.Options{
		Bundles: store, Shadows: shadows, Probation: probation, Access: resolve, Gate: gate,
		Clients: pool, Metrics: measured, Outage: beat.Outage, Counted: o.Counted, Now: o.Now, Rivals: shown,
		Namespace: o.Namespace, ProbeImage: o.ProbeImage, WipeImage: o.WipeImage, RegistryURL: o.RegistryURL, RegistryCA: o.RegistryCA,
		BootTarget: o.BootTarget, MediaURL: strings.TrimSuffix(o.MediaURL, "/"), SteadyPoll: o.SteadyPoll, Workers: o.Workers,
		PowerGrace: o.PowerGrace, BootGrace: o.BootGrace, NoReleaseGrace: o.NoReleaseGrace,
		AdoptionRate: o.AdoptionRate,
	})
}

// givingSessionsBack ends every session when the manager stops, so that none is left on a BMC that allows few, and says so
// to the next manager. Where one may be left, the next manager is told the same as after a kill.
func givingSessionsBack(pool *redfish.Pool, beat *heartbeat.Heartbeat) manager.Runnable {
	return manager.RunnableFunc(func(ctx context.Context) error {
		<-ctx.Done()
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
		defer cancel()
		if err := pool.Close(closing); err != nil {
			logf.FromContext(ctx).WithName("redfish").Info("the next manager waits for sessions that may be left, as after a kill",
				"cause", err.Error())
			return nil
		}
		return beat.Leave(closing)
	})
}

// requestMetrics count what the BMCs are asked.
type requestMetrics struct {
	total *prometheus.CounterVec
	took  *prometheus.HistogramVec
}

func newRequestMetrics(registry prometheus.Registerer) (*requestMetrics, error) {
	m := &requestMetrics{
		total: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "metalaw_redfish_requests_total",
			Help: "Requests to BMCs by method and outcome."}, []string{"method", "outcome"}),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "metalaw_redfish_request_duration_seconds",
			Help: "Time that BMCs take to answer.", Buckets: prometheus.ExponentialBuckets(0.005, 3, 9)}, []string{"method"}),
	}
	for _, c := range []prometheus.Collector{m.total, m.took} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *requestMetrics) observe(_, method, outcome string, took time.Duration) {
	m.total.WithLabelValues(method, outcome).Inc()
	m.took.WithLabelValues(method).Observe(took.Seconds())
}
