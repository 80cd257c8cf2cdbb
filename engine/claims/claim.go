// SPDX-License-Identifier: Apache-2.0

// Package claims holds claims as the scheduler, admission and the command line see them: values without Kubernetes types. Its
// packages are index, the fleet in memory, and solve, the one function that says which server each claim gets.
package claims

import (
	"cmp"
	"fmt"
	"time"

	"github.com/metalaw/metalaw/engine/placement"
	"github.com/metalaw/metalaw/engine/selection"
)

// Key names a claim without its UID.
type Key struct{ Namespace, Name string }

// Claim is one version of a claim. New fills in what the solver looks up by.
type Claim struct {
	Key
	UID    string
	Labels map[string]string
	// ServerRef is the server that the claim names; empty for none.
	ServerRef string
	// Spec is what the claim asks of the hard contract. Invalid says why that has no meaning; empty where it has one.
	Spec    selection.ClaimSpec
	Invalid string
	// Beside is what the claim asks of the contract without labels of the inventory; nil where it asks for none of these.
	Beside *selection.ClaimSpec
	// Wants is the priority that the claim asks for.
	Wants int64
	// Asked is what a policy may know of the claim, with the priority that the bundle grants.
	Asked selection.Claim
	// Placement is what the claim asks for beside. Unplaced says why it cannot be read; empty where it can.
	Placement *placement.Placement
	Unplaced  string
	// HadServer: the claim had its server once.
	HadServer bool
	// Open: the claim can be bound and is not known to be. Ending: it has a deletion timestamp.
	Open, Ending bool
	// Rank is the priority with what the claim has waited.
	Rank    int64
	Created time.Time

	contract, class string
}

// New returns the claim ready to be solved.
func New(c Claim) *Claim {
	c.contract = contractOf(c.Spec)
	c.class = c.contract
	if c.Placement != nil {
		namespace := ""
		if c.Placement.Spread() != nil || c.Placement.Gang() != nil {
			namespace = c.Namespace
		}
		c.class += "\x00" + namespace + "\x00" + c.Placement.Asks()
	}
	return &c
}

// Contract is equal for claims that ask the same of the hard contract.
func (c *Claim) Contract() string { return c.contract }

// Class is the equivalence class of the claim: claims of one class ask the hard contract and the placement for the same.
func (c *Claim) Class() string { return c.class }

// Gang is the gang that the claim is part of; nil where it is part of none.
func (c *Claim) Gang() *placement.Gang { return c.Placement.Gang() }

// GangName is empty where the claim is part of no gang.
func (c *Claim) GangName() string {
	if gang := c.Gang(); gang != nil {
		return gang.Name
	}
	return ""
}

// CountsAsMember says that the claim counts as a member of the gang that it names: it has a server, or can be given one.
func (c *Claim) CountsAsMember() bool {
	return c.Gang() != nil && !c.Ending && (c.ServerRef != "" || c.Open)
}

// Before orders claims: the first is served first.
func Before(a, b *Claim) int {
	return cmp.Or(
		cmp.Compare(b.Rank, a.Rank),
		a.Created.Compare(b.Created),
		cmp.Compare(a.Namespace, b.Namespace),
		cmp.Compare(a.Name, b.Name),
		cmp.Compare(a.UID, b.UID),
	)
}

// contractOf is the same text for claims that ask the hard contract for the same.
func contractOf(spec selection.ClaimSpec) string {
	return fmt.Sprintf("%q%q%s", spec.ServerRef, spec.Tolerations, spec.Selector.Canonical())
}
