// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/metalaw/metalaw/api/v1alpha1"
	boots "github.com/metalaw/metalaw/controllers/server/boot"
	"github.com/metalaw/metalaw/controllers/server/seen"
)

// Memory is what a process remembers of a server between reconciles. Losing it costs a read, never a wrong action.
type Memory struct {
	// Unsettled says that an effect of the state did not hold at the last look, AwaitsBMC that it waited for the BMC.
	Unsettled, AwaitsBMC bool
	// Entered is when this process, by its clock, moved the object with UID into Entry; zero if another process did. The
	// clock of another process says nothing here, and its moves are older than any reading of this one.
	Entered time.Time
	Entry   int64
	UID     types.UID
	// Asked is the last power change that this process recorded, by its clock; see Entered.
	Asked time.Time
	// Seen is when this process first saw the latest record of each kind.
	Seen seen.Records
	// Waits is since when a decision waits for a reading; zero if none does.
	Waits time.Time
	// Reads is since when an effect waits for a reading, and Held since when a move has been put off; zero if none does.
	Reads, Held time.Time
	// Minted is the credential of the agent's boot that was written last, for the object with the UID MintedFor.
	Minted    *v1alpha1.ProbeCredential
	MintedFor types.UID
	// Ignition is the Secret that this process made last for a boot of the agent.
	Ignition metav1.ObjectMeta
	// Boot follows the last boot that was asked for.
	Boot boots.Watch
}

// Enter notes that this process moved the server.
func (m *Memory) Enter(s *v1alpha1.Server, at time.Time) {
	m.Entered, m.Entry, m.UID, m.Waits = at, s.Status.Lifecycle.Entry, s.UID, time.Time{}
}

// EnteredAt is when, by this process's clock, a server came into its present entry; zero if another process moved it. A
// machine counts as seen on in that entry by a reading that was begun later.
func (m *Memory) EnteredAt(s *v1alpha1.Server) time.Time {
	if s.Status.Lifecycle == nil || m.UID != s.UID || m.Entry != s.Status.Lifecycle.Entry {
		return time.Time{}
	}
	return m.Entered
}

// AskedAt is the moment before which a reading says nothing of a power change that was recorded at a time; zero if
// another process recorded it.
func (m *Memory) AskedAt(recorded time.Time) time.Time {
	if m.Asked.Equal(recorded) {
		return recorded
	}
	return time.Time{}
}

// waitedFor says that a reading was begun since a decision waits for one.
func (m *Memory) waitedFor(begun time.Time) bool {
	return !m.Waits.IsZero() && !begun.Before(m.Waits)
}

// Mint notes the credential that goes with a boot which was written.
func (m *Memory) Mint(s *v1alpha1.Server, c v1alpha1.ProbeCredential) {
	m.Minted, m.MintedFor = &c, s.UID
}

// Credential is that of an agent's boot of the present entry, if this process wrote it; nil else.
func (m *Memory) Credential(s *v1alpha1.Server, purpose v1alpha1.ProbePurpose) *v1alpha1.ProbeCredential {
	if m.Minted == nil || m.MintedFor != s.UID || m.Minted.Entry != s.Status.Lifecycle.Entry || m.Minted.Purpose != purpose {
		return nil
	}
	return m.Minted.DeepCopy()
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
