// SPDX-License-Identifier: Apache-2.0

package index

import (
	"sync"

	"github.com/metalaw/metalaw/engine/claims"
	"github.com/metalaw/metalaw/engine/selection"
)

// Record is what one version of a server means to claims.
type Record struct {
	// State is what the hard contract looks at.
	State selection.ServerState
	// Zone and Rack are empty where they are not known.
	Zone, Rack string
	// Holder is the claim that the server is written for, and Counts is how that counts for the quota of its namespace.
	Holder claims.Holder
	Counts claims.Held
	// HeldUp is the code of the contract that passes for this server only when an operator acts; empty where there is none.
	HeldUp string
	// Known: nothing more is to be found out of what the machine is made of.
	Known bool
	// Object is the version itself.
	Object Object
}

// Object is a version of a server as its source has it.
type Object interface {
	// Candidate is the server as a selection policy sees it.
	Candidate() selection.Candidate
}

// Entry is one version of a server. It is immutable.
type Entry struct {
	// open: the hard contract lets a claim have the server that asks for nothing. What every claim looks at stands together.
	open     bool
	slot     uint32
	once     sync.Once
	prepared *selection.PreparedCandidate
	since    uint64

	Record
}

// Name is the server's name.
func (e *Entry) Name() string { return e.State.Name }

// Candidate is the server as a selection policy sees it, made once.
func (e *Entry) Candidate() *selection.PreparedCandidate {
	e.once.Do(func() { e.prepared = selection.NewCandidate(e.Object.Candidate()) })
	return e.prepared
}

// Claim names the claim that the server is written for; the zero value where there is none.
func (e *Entry) Claim() claims.Key { return e.Holder.Claim }

// CountsFor is the namespace of the claim that the server is written for; empty where there is none, or the claim has ended.
func (e *Entry) CountsFor() string {
	if e == nil || e.Holder.Ended {
		return ""
	}
	return e.Holder.Claim.Namespace
}

// Eligible says whether the hard contract lets a claim have the server, assumptions left aside.
func (e *Entry) Eligible(spec selection.ClaimSpec) bool {
	if e.open { // what a claim tolerates adds nothing to that
		return (spec.ServerRef == "" || spec.ServerRef == e.Name()) && spec.Selector.Matches(e.State.Labels)
	}
	ok, _, _ := selection.Eligible(spec, e.State)
	return ok
}

// Number is the same for every version of a server, and at any time of one server alone.
func (e *Entry) Number() uint32 { return e.slot }

// Since is the Index.Sequence at which the server last changed in a way that matters to claims.
func (e *Entry) Since() uint64 { return e.since }

// IsFree says that the server is Available and written for no claim.
func (e *Entry) IsFree() bool { return !e.State.Claimed && e.State.State == selection.StateAvailable }

// counted is the server as it counts for a policy: for the claim that is written on it, or else the one that is assumed to have it.
func (e *Entry) counted(assumed bool, namespace string) selection.Counted {
	if e.Holder.Claim.Namespace != "" {
		namespace = e.Holder.Claim.Namespace
	}
	return selection.Counted{Zone: e.Zone, Rack: e.Rack, Claimed: e.State.Claimed || assumed, Free: selection.Free(e.State), Namespace: namespace}
}

// Assume moves a server in a census from free to claimed by a claim of a namespace.
func (e *Entry) Assume(census *selection.Census, namespace string) {
	census.Remove(e.counted(false, ""))
	census.Add(e.counted(true, namespace))
}
