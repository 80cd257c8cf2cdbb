// SPDX-License-Identifier: Apache-2.0

package index

import (
	"maps"
	"slices"
	"sync"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/selection"
	"github.com/metalaw/metalaw/policies"
)

// Entry is one version of a server. It is immutable, and so is the server, which the cache shares.
type Entry struct {
	Server *v1alpha1.Server
	// State is what the hard contract looks at.
	State selection.ServerState
	// Zone and Rack are empty where nobody said.
	Zone, Rack string

	// hardware is what is known of the machine, by an agent or by its BMC.
	hardware policies.Hardware
	known    bool
	slot     uint32
	since    uint64
	once     sync.Once
	prepared *selection.PreparedCandidate
}

func newEntry(s *v1alpha1.Server, h policies.Hardware) *Entry {
	return &Entry{Server: s, State: policies.ServerStateOf(s), Zone: s.Labels[v1alpha1.ZoneLabel], Rack: policies.RackOf(s),
		hardware: h.FilledFrom(s), known: h.IsKnown(s)}
}

// Name is the server's name.
func (e *Entry) Name() string { return e.Server.Name }

// Candidate is the server as a selection policy sees it, made once.
func (e *Entry) Candidate() *selection.PreparedCandidate {
	e.once.Do(func() { e.prepared = selection.NewCandidate(policies.CandidateOf(e.Server, e.hardware)) })
	return e.prepared
}

// Claim names the claim that the server is written for; the zero value where there is none.
func (e *Entry) Claim() ClaimKey {
	if ref := e.Server.Spec.ServerClaimRef; ref != nil {
		return ClaimKey{ref.Namespace, ref.Name}
	}
	return ClaimKey{}
}

// CountsFor is the namespace of the claim that the server is written for; empty where there is none, or the claim has ended.
func (e *Entry) CountsFor() string {
	if e == nil || v1alpha1.BindingEnded(e.Server) {
		return ""
	}
	return e.Claim().Namespace
}

// Eligible says whether the hard contract lets a claim have the server, assumptions left aside.
func (e *Entry) Eligible(spec selection.ClaimSpec) bool {
	ok, _, _ := selection.Eligible(spec, e.State)
	return ok
}

// IsKnown says that nothing more is to be found out of what the machine is made of: policies.Hardware.IsKnown.
func (e *Entry) IsKnown() bool { return e.known }

// Number is the same for every version of a server, and at any time of one server alone.
func (e *Entry) Number() uint32 { return e.slot }

// Since is the Index.Sequence at which the server last changed in a way that matters to claims.
func (e *Entry) Since() uint64 { return e.since }

// IsFree says that the server is Available and written for nobody.
func (e *Entry) IsFree() bool {
	return e.Server.Spec.ServerClaimRef == nil && e.Server.Status.State == v1alpha1.StateAvailable
}

// Change is what came in about one server. Before is nil for a new one, After for one that is gone, and both where nothing new
// was said.
type Change struct{ Before, After *Entry }

// Matters says whether the change can alter what some claim gets or is told.
func (c Change) Matters() bool {
	if c.Before == nil || c.After == nil {
		return c.Before != c.After
	}
	return otherMachine(c.Before, c.After) || matters(c.Before, c.After)
}

// otherMachine says that the facts of the machine itself, which a claim's placement may ask about, differ.
func otherMachine(a, b *Entry) bool {
	x, y := &a.Server.Status, &b.Server.Status
	return a.hardware != b.hardware || x.BIOSVersion != y.BIOSVersion || x.Manufacturer != y.Manufacturer || x.Model != y.Model || x.SKU != y.SKU ||
		policies.HealthOf(a.Server) != policies.HealthOf(b.Server)
}

func matters(a, b *Entry) bool {
	if (a.Server.Spec.ServerClaimRef == nil) != (b.Server.Spec.ServerClaimRef == nil) || a.State.State != b.State.State ||
		a.State.Unclaimable != b.State.Unclaimable || a.State.Deleting != b.State.Deleting || a.State.Dirty != b.State.Dirty ||
		a.State.InService != b.State.InService {
		return true
	}
	if a.Server.Annotations[v1alpha1.ClaimUIDAnnotation] != b.Server.Annotations[v1alpha1.ClaimUIDAnnotation] ||
		v1alpha1.BindingEnded(a.Server) != v1alpha1.BindingEnded(b.Server) ||
		v1alpha1.KeptAfterRelease(a.Server) != v1alpha1.KeptAfterRelease(b.Server) {
		return true
	}
	if !maps.Equal(a.State.Labels, b.State.Labels) || !slices.Equal(a.State.Taints, b.State.Taints) || a.Rack != b.Rack ||
		policies.HealthOf(a.Server) != policies.HealthOf(b.Server) {
		return true
	}
	return b.State.State == string(v1alpha1.StateAvailable) && a.State.Power != b.State.Power
}
