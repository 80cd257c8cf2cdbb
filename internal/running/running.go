// SPDX-License-Identifier: Apache-2.0

// Package running reads from Leases which managers run, which of them leads, and with which flags. It is pure.
package running

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

const (
	// LeaderLease is the Lease of the leader election.
	LeaderLease = "metalaw-leader"
	// HeartbeatLease is the Lease that the manager which leads renews every ten seconds.
	HeartbeatLease = "metalaw-heartbeat"
	// beats is how old the last heartbeat of a leader may be: two may be late.
	beats = 30 * time.Second
)

// Flags are the flags of a manager that decide what it does to machines.
type Flags struct {
	// ObserveOnly is --observe-only.
	ObserveOnly bool `json:"observeOnly"`
	// Maintenance is --maintenance.
	Maintenance string `json:"maintenance,omitempty"`
	// CredentialUse is --credential-use; empty for a build that does not know it.
	CredentialUse string `json:"credentialUse,omitempty"`
	// RegistryURL is --registry-url.
	RegistryURL string `json:"registryURL,omitempty"`
	// Candidate is the name of the process in the leader election; empty without --leader-elect.
	Candidate string `json:"candidate,omitempty"`
}

// Text is the value of annotation FlagsAnnotation.
func (f Flags) Text() string {
	text, err := json.Marshal(f)
	if err != nil {
		return "" // strings and a bool can always be written
	}
	return string(text)
}

// Manager is one process of the manager.
type Manager struct {
	Name string `json:"name"`
	// Leads says that this process leads now.
	Leads bool `json:"leads,omitempty"`
	// Flags are absent if the process is of a build that does not tell them.
	Flags *Flags `json:"flags,omitempty"`
}

// State is which managers run.
type State struct {
	Managers []Manager `json:"managers,omitempty"`
	// Leading says that a manager leads now.
	Leading bool `json:"leading"`
	// BeatAt is the last heartbeat of a leader; absent if none was ever stored.
	BeatAt *time.Time `json:"beatAt,omitempty"`
}

// Flags are those of the manager that leads; nil if they are not known. While no manager leads, nothing holds by flags.
func (s State) Flags() *Flags {
	for i := range s.Managers {
		if s.Managers[i].Leads {
			return s.Managers[i].Flags
		}
	}
	return nil
}

// Leader is the name of the manager that leads; empty if it is not known.
func (s State) Leader() string {
	for i := range s.Managers {
		if s.Managers[i].Leads {
			return s.Managers[i].Name
		}
	}
	return ""
}

// Of reads the Leases of the manager's namespace.
func Of(leases []coordinationv1.Lease, now time.Time) State {
	s, elected := State{}, ""
	for i := range leases {
		l := &leases[i]
		holder := ptr.Deref(l.Spec.HolderIdentity, "")
		switch {
		case l.Name == LeaderLease && holder != "" && fresh(l, now, 0):
			elected = holder
		case l.Name == HeartbeatLease && l.Spec.RenewTime != nil:
			s.BeatAt = &l.Spec.RenewTime.Time
			s.Leading = holder != "" && fresh(l, now, beats)
		case l.Labels[policyv1alpha1.ReplicaLabel] != "" && fresh(l, now, 0):
			s.Managers = append(s.Managers, Manager{Name: cmp.Or(holder, l.Name), Flags: flagsOf(l)})
		}
	}
	slices.SortFunc(s.Managers, func(a, b Manager) int { return cmp.Compare(a.Name, b.Name) })
	for i := range s.Managers {
		s.Managers[i].Leads = s.Leading && leads(&s.Managers[i], elected, len(s.Managers))
	}
	return s
}

// leads says that a manager is the one that leads: the elected one, or the only one without an election.
func leads(m *Manager, elected string, of int) bool {
	switch {
	case m.Flags == nil: // a build that does not tell its candidate
		return of == 1
	case m.Flags.Candidate == "":
		return elected == "" || of == 1
	}
	return m.Flags.Candidate == elected
}

// fresh says that a Lease was renewed within a time; 0 stands for the time that it says itself.
func fresh(l *coordinationv1.Lease, now time.Time, within time.Duration) bool {
	if within == 0 {
		within = time.Duration(ptr.Deref(l.Spec.LeaseDurationSeconds, 0)) * time.Second
	}
	return l.Spec.RenewTime != nil && now.Sub(l.Spec.RenewTime.Time) <= within
}

func flagsOf(l *coordinationv1.Lease) *Flags {
	f := &Flags{}
	if err := json.Unmarshal([]byte(l.Annotations[policyv1alpha1.FlagsAnnotation]), f); err != nil {
		return nil
	}
	return f
}
