// SPDX-License-Identifier: Apache-2.0

package index

import (
	"maps"
	"slices"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/claims"
	"github.com/metalaw/metalaw/engine/claims/index"
	"github.com/metalaw/metalaw/engine/selection"
	"github.com/metalaw/metalaw/policies"
)

// Entry is one version of a server.
type Entry = index.Entry

// ClaimKey names a claim without its UID.
type ClaimKey = claims.Key

// Everything asks for no server in particular.
var Everything = index.Everything

// version is a server as the cache has it, which shares it, with what is known of its machine.
type version struct {
	server   *v1alpha1.Server
	hardware policies.Hardware
}

// Candidate implements index.Object.
func (v *version) Candidate() selection.Candidate { return policies.CandidateOf(v.server, v.hardware) }

// Server is the server of an entry. It must not be changed.
func Server(e *Entry) *v1alpha1.Server { return e.Object.(*version).server }

func recordOf(s *v1alpha1.Server, h policies.Hardware) index.Record {
	return index.Record{State: policies.ServerStateOf(s), Zone: s.Labels[v1alpha1.ZoneLabel], Rack: policies.RackOf(s),
		Holder: policies.HolderOf(s), Counts: policies.HeldOf(s), HeldUp: policies.HeldUpBy(s), Known: h.IsKnown(s),
		Object: &version{s, h.FilledFrom(s)}}
}

// Change is what came in about one server. Before is nil for a new one, After for one that is gone, and both where nothing new
// was said.
type Change struct{ Before, After *Entry }

// Matters says whether the change can alter what some claim gets or is told.
func (c Change) Matters() bool {
	if c.Before == nil || c.After == nil {
		return c.Before != c.After
	}
	return differ(&c.Before.Record, &c.After.Record)
}

// differ says whether two versions differ in what matters to claims.
func differ(a, b *index.Record) bool {
	return otherMachine(a.Object.(*version), b.Object.(*version)) || matters(a, b)
}

// otherMachine says that the facts of the machine itself, which a claim's placement may ask about, differ.
func otherMachine(a, b *version) bool {
	x, y := &a.server.Status, &b.server.Status
	return a.hardware != b.hardware || x.BIOSVersion != y.BIOSVersion || x.Manufacturer != y.Manufacturer || x.Model != y.Model || x.SKU != y.SKU ||
		policies.HealthOf(a.server) != policies.HealthOf(b.server)
}

func matters(a, b *index.Record) bool {
	if a.State.Claimed != b.State.Claimed || a.State.State != b.State.State || a.State.Unclaimable != b.State.Unclaimable ||
		a.State.Deleting != b.State.Deleting || a.State.Dirty != b.State.Dirty || a.State.InService != b.State.InService ||
		a.State.Parking != b.State.Parking {
		return true
	}
	if a.Holder.UID != b.Holder.UID || a.Holder.Ended != b.Holder.Ended || a.Holder.Kept != b.Holder.Kept {
		return true
	}
	if !maps.Equal(a.State.Labels, b.State.Labels) || !slices.Equal(a.State.Taints, b.State.Taints) || a.Rack != b.Rack {
		return true
	}
	return b.State.State == selection.StateAvailable && a.State.Power != b.State.Power
}
