// SPDX-License-Identifier: Apache-2.0

package server

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/metalaw/metalaw/api/v1alpha1"
	boots "github.com/metalaw/metalaw/controllers/server/boot"
	"github.com/metalaw/metalaw/controllers/server/seen"
)

// memory is what this process remembers of servers between reconciles. Losing it costs a read, never a wrong action.
type memory struct {
	mu      sync.Mutex
	servers map[string]*remembered
}

// remembered is what this process remembers of one server. No two reconciles of one server run at once, so it needs no lock.
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
	seen seen.Records
	// waits is since when a decision waits for a reading; zero where none does.
	waits time.Time
	// reads is since when an effect waits for a reading, and held since when a move has been put off; zero where none does.
	reads, held time.Time
	// minted is the credential of the agent's boot that was written last, for the object with the UID mintedFor.
	minted    *v1alpha1.ProbeCredential
	mintedFor types.UID
	// ignition is the Secret that this process made last for a boot of the agent.
	ignition metav1.ObjectMeta
	// boot follows the last boot that was asked for.
	boot boots.Watch
}

func newMemory() *memory { return &memory{servers: map[string]*remembered{}} }

// of is what is remembered of a server.
func (m *memory) of(name string) *remembered {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.servers[name]
	if !ok {
		r = &remembered{}
		m.servers[name] = r
	}
	return r
}

func (m *memory) forget(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.servers, name)
}

// remembered is what this process remembers of the server.
func (v *scope) remembered() *remembered { return v.memory.of(v.server.Name) }

// enter notes that this process moved the server.
func (r *remembered) enter(s *v1alpha1.Server, at time.Time) {
	r.entered, r.entry, r.uid, r.waits = at, s.Status.Lifecycle.Entry, s.UID, time.Time{}
}

// enteredAt is when, by this process's clock, a server came into its present entry: a machine counts as seen on in that
// entry by a reading begun after it. Zero where another process moved it; see entered.
func (r *remembered) enteredAt(s *v1alpha1.Server) time.Time {
	if s.Status.Lifecycle == nil || r.uid != s.UID || r.entry != s.Status.Lifecycle.Entry {
		return time.Time{}
	}
	return r.entered
}

// askedAt is the moment before which a reading says nothing of a power change that was recorded at a time; zero where
// another process recorded it.
func (r *remembered) askedAt(recorded time.Time) time.Time {
	if r.asked.Equal(recorded) {
		return recorded
	}
	return time.Time{}
}

// waitedFor says that a reading was begun since a decision waits for one.
func (r *remembered) waitedFor(begun time.Time) bool {
	return !r.waits.IsZero() && !begun.Before(r.waits)
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
func (r *remembered) mint(s *v1alpha1.Server, c v1alpha1.ProbeCredential) {
	r.minted, r.mintedFor = &c, s.UID
}

// credential is that of an agent's boot of the present entry, where this process wrote it; nil else.
func (r *remembered) credential(s *v1alpha1.Server, purpose v1alpha1.ProbePurpose) *v1alpha1.ProbeCredential {
	if r.minted == nil || r.mintedFor != s.UID || r.minted.Entry != s.Status.Lifecycle.Entry || r.minted.Purpose != purpose {
		return nil
	}
	return r.minted.DeepCopy()
}
