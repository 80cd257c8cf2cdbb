// SPDX-License-Identifier: Apache-2.0

// Package server runs the lifecycle of servers: it observes a machine, lets the policy in force decide, and moves the
// server or makes the effects of its state hold.
package server

import (
	"cmp"
	"context"
	"time"

	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/fleet"
	"github.com/metalaw/metalaw/controllers/hardware"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/controllers/rivals"
	"github.com/metalaw/metalaw/controllers/server/identity"
	"github.com/metalaw/metalaw/controllers/server/storage"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/internal/counted"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/redfish"
)

// Bundles knows the policies in force.
type Bundles interface {
	// Active is the bundle that servers adopt where no canary governs them.
	Active() *bundle.Bundle
	// Governing is the bundle that a server would adopt: that of the canary in whose scope it is, else the active one.
	Governing(server *v1alpha1.Server) *bundle.Bundle
	// Revision is the bundle of a revision that some server is pinned to.
	Revision(name string) (*bundle.Bundle, bool)
	// Lost says that there is no revision of that name any more, rather than one that does not compile or cannot be read.
	Lost(name string) bool
	// Held says that this engine refuses a revision, and why: nothing moves under it, and nothing is done.
	Held(name string) (why string, held bool)
	// Shadows are the bundles that are evaluated beside the one that governs.
	Shadows() []*bundle.Bundle
	// Changed has a function called whenever what governs has become another, or what is held. It must not block.
	Changed(call func())
}

// Shadows collects what shadows would have decided otherwise.
type Shadows interface {
	// Observe takes in what the governing revision decided about a server, and what a shadow decided on the same facts. It
	// counts a difference once until it changes, however often it is called.
	Observe(shadow, server string, want, got *engine.Decision, at time.Time)
	// Forget drops what is remembered of a server that is gone.
	Forget(server string)
}

// Probation bounds how many servers are under a canary that have not shown yet how they fare there.
type Probation interface {
	// Admit says whether a server may come under a bundle now, and takes the place of one that may. Called again before Saw it takes
	// no further one.
	Admit(server *v1alpha1.Server, b *bundle.Bundle) bool
	// Saw takes in a server as it is stored after a look at it, and whether the look had word of the machine and left it at rest.
	Saw(server *v1alpha1.Server, rests bool)
}

// Access resolves how a BMC is reached.
type Access func(ctx context.Context, bmc *v1alpha1.BMC, settings bundle.Settings) (hardware.Target, error)

// Cache reads systems and carries out requests in the background.
type Cache = hardware.Cache[redfish.SystemSnapshot]

// Options is what the controller needs from outside.
type Options struct {
	Client client.Client
	// Reader reads past the cache.
	Reader  client.Reader
	Bundles Bundles
	// Shadows may be nil; then no shadow is evaluated.
	Shadows Shadows
	// Probation may be nil; then any number of servers comes under a canary.
	Probation Probation
	Access    Access
	// Gate is asked before anything is done to a machine.
	Gate *fleet.Gate
	// Clients is the pool of BMC clients.
	Clients hardware.Clients
	// Cache is made by Setup.
	Cache *Cache
	// Storage reads the drives that BMCs list; it is made by Setup. Nil reads none.
	Storage *storage.Reader
	// Identities is made by Setup; nil stores nothing of what BMCs show of their machines.
	Identities *identity.Cache
	// Rivals knows which other BMCs show the UUID of a server; nil knows none.
	Rivals   *rivals.Memory
	Recorder events.EventRecorder
	Metrics  *Metrics
	// Outage tells the time in which no manager ran, before this one began.
	Outage func() policies.Outage
	Now    func() time.Time
	// Counted tells counted time; nil knows none, and then no grace ends.
	Counted *counted.Clock

	// Namespace is the manager's: boot configurations of its own live there.
	Namespace string
	// ProbeImage and WipeImage are booted to inspect and to erase.
	ProbeImage, WipeImage string
	// RegistryURL is where the agent reports to, and RegistryCA, PEM, whom it trusts there; empty for the system's.
	RegistryURL string
	RegistryCA  func() []byte
	// BootTarget is the boot source for network boots: Pxe or UefiHttp.
	BootTarget string
	// MediaURL is the URL by which BMCs reach the boot service, without a slash at the end; empty where there is none.
	MediaURL string
	// SteadyPoll is how old a reading may be while nothing is expected to change.
	SteadyPoll time.Duration
	// PowerGrace is how long a BMC may take to show what it accepted, before it is asked again.
	PowerGrace time.Duration
	// BootGrace stands in for boot.firstWord of every bundle; 0 leaves that in force.
	BootGrace time.Duration
	// NoReleaseGrace lets a release take effect at once, and sets releaseGrace of a bundle aside.
	NoReleaseGrace bool
	// Workers is the number of reconciles side by side.
	Workers int
	// AdoptionRate is how many servers a second come under another revision while they rest, and how many do besides because
	// theirs halts them.
	AdoptionRate int
}

const (
	// parkedPoll is how old a reading of a parked machine may be. Its power is shown within 15 s, the reading included.
	parkedPoll = 10 * time.Second
	// missingRetry is the time between two looks for what is needed to reach a BMC.
	missingRetry = time.Minute
)

func (o *Options) setDefaults(mgr ctrl.Manager) {
	if o.Client == nil {
		o.Client = mgr.GetClient()
	}
	o.Client = client.WithFieldOwner(o.Client, loop.FieldOwner)
	if o.Reader == nil {
		o.Reader = mgr.GetAPIReader()
	}
	if o.Recorder == nil {
		o.Recorder = mgr.GetEventRecorder("metalaw-server")
	}
	if o.Outage == nil {
		o.Outage = func() policies.Outage { return policies.Outage{} }
	}
	if o.RegistryCA == nil {
		o.RegistryCA = func() []byte { return nil }
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	o.BootTarget = cmp.Or(o.BootTarget, "Pxe")
	o.SteadyPoll = cmp.Or(o.SteadyPoll, 3*time.Minute)
	o.PowerGrace = cmp.Or(o.PowerGrace, time.Minute)
	o.Workers = cmp.Or(o.Workers, 16)
	o.AdoptionRate = cmp.Or(o.AdoptionRate, 10)
}
