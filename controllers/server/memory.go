// SPDX-License-Identifier: Apache-2.0

package server

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/metalaw/metalaw/api/v1alpha1"
	boots "github.com/metalaw/metalaw/controllers/server/boot"
	"github.com/metalaw/metalaw/redfish"
)

// memory is what this process remembers of servers between reconciles. Losing it costs a read, never a wrong action.
type memory struct {
	mu      sync.Mutex
	servers map[string]*remembered
}

// remembered is what this process remembers of one server.
type remembered struct {
	// unsettled says that some effect of its state did not hold when we looked last, and awaitsBMC that it was for the BMC
	// to show something.
	unsettled, awaitsBMC bool
	// entered is when, by this process's clock, it was moved into the entry of the object with that UID; zero where
	// another process moved it, whose clock says nothing here and whose moves are older than any reading of ours.
	entered time.Time
	entry   int64
	uid     types.UID
	// asked is the last power change that this process recorded, by its clock; see entered.
	asked time.Time
	// seen is when this process first saw the latest record of each kind.
	seen map[recordKind]sighting
	// waits is since when a decision waits for a reading; zero where none does.
	waits time.Time
	// reads is since when an effect waits for a reading, and held since when a move has been put off; zero where none does.
	reads, held time.Time
	// minted is the credential of the agent's boot that was written last, for the object with the UID mintedFor.
	minted    *v1alpha1.ProbeCredential
	mintedFor types.UID
	// boot follows the last boot that was asked for.
	boot boots.Watch
}

// recordKind is what a record with a time tells of.
type recordKind uint8

const (
	powerRecord recordKind = iota
	entryRecord
	operationRecord
	// deferredRecord is what of a status waits for the next write.
	deferredRecord
)

// sighting is when a record was first seen.
type sighting struct {
	id string
	at time.Time
}

func newMemory() *memory { return &memory{servers: map[string]*remembered{}} }

// of is called with the lock held.
func (m *memory) of(name string) *remembered {
	r, ok := m.servers[name]
	if !ok {
		r = &remembered{}
		m.servers[name] = r
	}
	return r
}

func (m *memory) unsettled(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.servers[name]
	return ok && r.unsettled
}

func (m *memory) awaitsBMC(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.servers[name]
	return ok && r.awaitsBMC
}

// settle notes whether all effects hold, and so that no decision waits, and whether the BMC is to show something.
func (m *memory) settle(name string, settled, awaitsBMC bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.of(name)
	r.unsettled, r.awaitsBMC = !settled, awaitsBMC
	if settled {
		r.waits = time.Time{}
	}
}

// enter notes that this process moved a server.
func (m *memory) enter(s *v1alpha1.Server, at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.of(s.Name)
	r.entered, r.entry, r.uid, r.waits = at, s.Status.Lifecycle.Entry, s.UID, time.Time{}
}

// enteredAt is when, by this process's clock, a server came into its present entry: a machine counts as seen on in that
// entry by a reading begun after it. Zero where another process moved it; see entered.
func (m *memory) enteredAt(s *v1alpha1.Server) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.servers[s.Name]
	if !ok || s.Status.Lifecycle == nil || r.uid != s.UID || r.entry != s.Status.Lifecycle.Entry {
		return time.Time{}
	}
	return r.entered
}

// watchBoot takes in what a BMC shows of a boot, and says whether that has come to its operating system,
// or is in its self test.
func (m *memory) watchBoot(name, boot string, shown redfish.BootProgress) (started, testing bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.of(name)
	r.boot, started, testing = r.boot.Look(boot, shown)
	return started, testing
}

// ask notes that this process records a power change.
func (m *memory) ask(name string, at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.of(name).asked = at
}

// askedAt is the moment before which a reading says nothing of a power change that was recorded at a time; zero where
// another process recorded it.
func (m *memory) askedAt(name string, recorded time.Time) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r, ok := m.servers[name]; ok && r.asked.Equal(recorded) {
		return recorded
	}
	return time.Time{}
}

// firstSeen is when this process first saw a record of a server.
func (m *memory) firstSeen(name string, kind recordKind, id string, now time.Time) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.of(name)
	if r.seen == nil {
		r.seen = map[recordKind]sighting{}
	}
	if r.seen[kind].id != id {
		r.seen[kind] = sighting{id: id, at: now}
	}
	return r.seen[kind].at
}

// waitFor notes since when a decision waits for a reading.
func (m *memory) waitFor(name string, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.of(name); r.waits.IsZero() {
		r.waits = now
	}
}

// waitedFor says that a reading was begun since a decision waits for one.
func (m *memory) waitedFor(name string, begun time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.servers[name]
	return ok && !r.waits.IsZero() && !begun.Before(r.waits)
}

// answered notes that a decision was made on a reading that it may have waited for: the next one needs a reading of its
// own.
func (m *memory) answered(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r, ok := m.servers[name]; ok {
		r.waits = time.Time{}
	}
}

// waiting notes whether an effect waits for a reading, and whether a move is put off. It returns since when; zero for not.
func (m *memory) waiting(name string, reads, held bool, now time.Time) (readsSince, heldSince time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.of(name)
	r.reads, r.held = since(r.reads, reads, now), since(r.held, held, now)
	return r.reads, r.held
}

// since is when something began that is so now, or not.
func since(began time.Time, is bool, now time.Time) time.Time {
	switch {
	case !is:
		return time.Time{}
	case began.IsZero():
		return now
	}
	return began
}

// mint notes the credential that goes with a boot which was written.
func (m *memory) mint(s *v1alpha1.Server, c v1alpha1.ProbeCredential) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.of(s.Name)
	r.minted, r.mintedFor = &c, s.UID
}

// mintedFor is the credential of an agent's boot of the present entry, where this process wrote it; nil else.
func (m *memory) mintedFor(s *v1alpha1.Server, purpose v1alpha1.ProbePurpose) *v1alpha1.ProbeCredential {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.servers[s.Name]
	if !ok || r.minted == nil || r.mintedFor != s.UID || r.minted.Entry != s.Status.Lifecycle.Entry || r.minted.Purpose != purpose {
		return nil
	}
	return r.minted.DeepCopy()
}

func (m *memory) forget(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.servers, name)
}
