// SPDX-License-Identifier: Apache-2.0

// Package plan says what is to be done about a server. Pure functions turn what is Seen into acts, which an executor
// carries out, and turn what was done into the record.
package plan

import (
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/access"
	boots "github.com/metalaw/metalaw/controllers/server/boot"
	"github.com/metalaw/metalaw/controllers/server/identity"
	"github.com/metalaw/metalaw/controllers/server/operations"
	"github.com/metalaw/metalaw/controllers/server/power"
	"github.com/metalaw/metalaw/controllers/server/seen"
	"github.com/metalaw/metalaw/controllers/server/shown"
	"github.com/metalaw/metalaw/controllers/server/status"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/internal/bmcsystems"
	"github.com/metalaw/metalaw/internal/uuids"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/redfish"
)

// The bounds of how often a machine is read.
const (
	// FastestPoll and SlowestPoll bound how often a machine in transition is read. The interval grows with the time since
	// something was asked of it.
	FastestPoll = 100 * time.Millisecond
	SlowestPoll = 15 * time.Second
	// Freshness is how old a reading may be on which a move or a power action relies.
	Freshness = 5 * time.Second
	// ShutdownGrace is how long an operating system may take to shut down if the policy does not say.
	ShutdownGrace = 5 * time.Minute
)

// Seen is everything that is known of one server in one reconcile. No function of this package changes it.
type Seen struct {
	Config
	// Observation is what the facts are made of. Its settings are those under which the server is looked at.
	policies.Observation
	Facts *policies.Facts
	// Bundle governs; nil if nothing may be decided.
	Bundle *bundle.Bundle
	BMC    BMC
	Memory Memory
	// Holder is, if a release by hand is asked for, the claim that holds the server; empty if it does not exist.
	Holder string
	// NewID names an operation, or a holder, that is recorded now.
	NewID string
	// Unconfirmed says that what is asked for by hand could not be read past the cache.
	Unconfirmed bool
	// Forced is the move that an operation forces; nil if none does.
	Forced *operations.Move
	// Rivals are the other BMCs that show the UUID of the server.
	Rivals []policyv1alpha1.RivalBMC
	// Identity is what the BMC shows of its machine; nil if nothing of that is kept.
	Identity *identity.Input
	// ObserveOnly says that the manager does nothing to machines.
	ObserveOnly bool
}

// Config is what the manager was started with.
type Config struct {
	// Namespace is the manager's, ProbeImage and WipeImage are what it boots, and RegistryURL is where agents report.
	Namespace, ProbeImage, WipeImage, RegistryURL string
	// BootTarget is the boot source of network boots, and MediaURL the URL by which BMCs reach the boot service.
	BootTarget, MediaURL string
	// PowerGrace is how long a BMC may take to show what it accepted. BootGrace stands in for boot.firstWord; 0 does not.
	PowerGrace, BootGrace time.Duration
}

// BMC is what is known of the machine through its BMC.
type BMC struct {
	// Lacks is why the BMC cannot be asked; nil if it can.
	Lacks error
	// Tried says that a read has ended, and Err what the last one failed with; nil if it succeeded.
	Tried bool
	Err   error
	// Begun and At are when the last read that succeeded was begun and had ended; zero if none succeeded.
	Begun, At time.Time
	// System is what it returned.
	System redfish.SystemSnapshot
	// Jobs are the calls that this process made, by ID, and LastJob is when the last one ended, or now while one runs.
	Jobs    map[string]power.Job
	LastJob time.Time
	Stated  Stated
}

// Stated is what the annotations of the BMC say of the server's system.
type Stated struct {
	status.Stated
	// Assigned is the UUID that was given to the system, and what proves it; empty if none was, or it cannot be read.
	Assigned bmcsystems.Assignment
	// Ways are those of BootWaysAnnotation.
	Ways string
}

// Reachable says that the BMC answered.
func (b *BMC) Reachable() bool { return b.Tried && b.Err == nil }

// Busy says that a call runs, so that none can be begun.
func (b *BMC) Busy() bool {
	for _, j := range b.Jobs {
		if j.Running {
			return true
		}
	}
	return false
}

// Shows says that the machine is seen in a power state. Unknown is not Off.
func (s *Seen) Shows(state redfish.PowerState) bool {
	return s.same() && s.BMC.Reachable() && s.BMC.System.Power == state
}

// same says that the BMC answered for this server's own machine.
func (s *Seen) same() bool { return s.Facts.BMC.Identity == policies.IdentitySame }

// Instant is the moment of this reconcile by both clocks.
func (s *Seen) Instant() policies.Instant { return policies.Instant{Now: s.Now, Counted: s.CountedNow} }

// Fresh says that the reading is of this machine, was begun after the last request and after its time to show, and is
// recent. A reading of the entry before serves this one too: a move changes nothing about the machine.
func (s *Seen) Fresh() bool { return s.same() && s.Recent(s.BMC.Reachable(), s.BMC.Begun, s.BMC.At) }

// Recent is Fresh of any reading, and asks nothing about its machine. A reading that a decision waited for is recent
// enough however long the queue was.
func (s *Seen) Recent(reachable bool, begun, at time.Time) bool {
	if !reachable || begun.Before(s.BMC.LastJob) || begun.Before(s.Requested().Lapsed()) {
		return false
	}
	return s.Now.Sub(at) <= Freshness || s.Memory.waitedFor(begun)
}

// PowerReading is the last word of the BMC as power requests rely on it.
func (s *Seen) PowerReading() power.Reading {
	r := power.Reading{Tried: s.BMC.Tried, Same: s.same(), Power: s.BMC.System.Power, Begun: s.BMC.Begun, Fresh: s.Fresh()}
	if s.BMC.Lacks != nil {
		r.Lacks = s.BMC.Lacks.Error()
	}
	if s.BMC.Err != nil {
		r.Failure = Words(s.BMC.Err)
	}
	return r
}

// Words says what went wrong with a BMC, alike for as long as it is the same.
func Words(err error) string {
	message, _ := access.Describe(err)
	return message
}

// Requested is the last power request with what this process knows of it.
func (s *Seen) Requested() power.Asked {
	a := power.Asked{Grace: s.PowerGrace, Now: s.Now, CountedNow: s.CountedNow, WasOff: s.Server.Status.PowerState == v1alpha1.PowerStateOff}
	l := s.Server.Status.Lifecycle
	if l == nil {
		return a
	}
	a.Request, a.Entry, a.EnteredAt = l.Request, l.Entry, l.EnteredAt.Time
	if l.Request == nil {
		return a
	}
	id, records := power.RequestID(l.Request), s.Memory.Seen
	a.RecordedAt = records.RecordedAt(seen.Power, id, l.Request.AskedAt, l.Request.AskedCounted, s.Instant())
	a.Job = s.BMC.Jobs[id]
	return a
}

// Want is the identity that must answer before anything is written to the BMC.
func (s *Seen) Want() redfish.Identity {
	if a := s.BMC.Stated.Assigned; a.UUID != "" && uuids.Same(a.UUID, s.Server.Spec.SystemUUID) {
		a = provenBy(a, policies.OnRecord(s.Server, s.Inventory), policies.MayHoldData(s.Server, s.Inventory))
		return redfish.Identity{UUID: s.Server.Spec.SystemUUID, SerialNumber: a.SerialNumber, MAC: a.MAC, Assigned: true}
	}
	return redfish.Identity{UUID: s.Server.Spec.SystemUUID, SerialNumber: s.Server.Status.SerialNumber}
}

// provenBy is what must be shown for an assigned UUID. While the machine may hold data, an assignment that names other
// hardware than was recorded proves nothing. A MAC address that the operating system does not report counts together
// with the serial number.
func provenBy(a bmcsystems.Assignment, recorded bmcsystems.Record, holdsData bool) bmcsystems.Assignment {
	if !holdsData {
		return a
	}
	if a.SerialNumber == "" && len(recorded.SerialNumbers) > 0 && !recorded.HasMAC(a) {
		a.SerialNumber = recorded.SerialNumbers[0]
	}
	if recorded.Contradicts(a) {
		a.SerialNumber, a.MAC = "", ""
	}
	return a
}

// Read is what the BMC says of the system that is wanted.
func (s *Seen) Read() policies.SystemReading {
	if !s.BMC.Reachable() {
		return policies.SystemReading{}
	}
	return shown.System(s.Want(), s.BMC.System)
}

// Served says that the server is in the hands of a maintenance that the manager granted.
func (s *Seen) Served() bool {
	return s.Server.Status.State == v1alpha1.StateMaintenance && policies.MaintenanceIsOurs(s.Server, s.Maintenance)
}

// Shortly is when to read the BMC again for what waits until it shows something. It grows with the time since something
// was asked of the BMC.
func (s *Seen) Shortly() time.Duration {
	since := s.Server.CreationTimestamp.Time
	if l := s.Server.Status.Lifecycle; l != nil {
		since = l.EnteredAt.Time
	}
	// Another process whose clock is ahead entered the state, or a request is under way, whose end tells.
	if since.After(s.Now) || s.BMC.LastJob.After(s.Now) {
		return SlowestPoll
	}
	return min(max(s.Now.Sub(later(since, s.BMC.LastJob))/3, FastestPoll), SlowestPoll)
}

// marked says that the status of the server has a mark.
func (s *Seen) marked(mark string) bool {
	l := s.Server.Status.Lifecycle
	return l != nil && slices.Contains(l.Marks, mark)
}

// Ours says that the manager wrote a boot configuration for what the server is doing now, or that it is its claim's.
func (s *Seen) Ours(boot *v1alpha1.ServerBootConfiguration) bool {
	if s.Claim != nil && boots.OwnedByClaim(boot, s.Claim) {
		return true // a claim's boot configuration is known by its owner, whichever program wrote it
	}
	switch boot.Annotations[v1alpha1.BootPurposeAnnotation] {
	case v1alpha1.BootPurposeProbe, v1alpha1.BootPurposeWipe:
		return s.Server.Status.Lifecycle != nil && boot.Namespace == s.Namespace && metav1.IsControlledBy(boot, s.Server) &&
			boot.Annotations[v1alpha1.BootEntryAnnotation] == EntryText(s.Server.Status.Lifecycle.Entry)
	}
	return false
}

// jobID names a call by the entry that asks for it, so that one of a former entry is never taken for this one.
func (s *Seen) jobID(what string) string {
	return EntryText(s.Server.Status.Lifecycle.Entry) + "/" + what
}

// EntryText is an entry as annotations and names of calls spell it.
func EntryText(entry int64) string { return strconv.FormatInt(entry, 10) }

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
