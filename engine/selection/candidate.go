// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"sync/atomic"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/metalaw/metalaw/engine/internal/regosandbox"
)

// PreparedCandidate is a Candidate with what a policy found out about it. Keep one per version of the server, and share it
// among claims and goroutines. It holds on to the maps and lists of the Candidate, which must not change.
type PreparedCandidate struct {
	// place is what the policy that looked last has found out. What each look needs stands together.
	place atomic.Pointer[place]
	// size is that of all strings, longest that of the longest string which is a field of its own.
	size, longest int
	facts         Candidate
}

// NewCandidate prepares a candidate.
func NewCandidate(c Candidate) *PreparedCandidate {
	c.AvailableDay = dayOf(c.AvailableSince)
	p := &PreparedCandidate{facts: c,
		size: len(c.Name) + len(c.Manufacturer) + len(c.Model) + len(c.SKU) + len(c.BIOSVersion) + len(c.CPUModel)}
	for key, value := range c.Labels {
		p.size += len(key) + len(value)
	}
	for _, taint := range c.Taints {
		p.size += len(taint.Key) + len(taint.Value)
	}
	p.longest = max(len(c.Name), len(c.Manufacturer), len(c.Model), len(c.SKU), len(c.BIOSVersion), len(c.CPUModel), len(c.Health),
		len(c.Zone), len(c.Region), len(c.Rack), len(c.InstanceType))
	return p
}

// Name is the server's name.
func (c *PreparedCandidate) Name() string { return c.facts.Name }

// Facts are those of the server. They must not be changed.
func (c *PreparedCandidate) Facts() *Candidate { return &c.facts }

// term is the candidate in the form that the interpreter reads. It is made anew each time: it takes many times the memory of
// the facts, and an evaluation many times the work of making it.
func (c *PreparedCandidate) term() *ast.Term { return regosandbox.Value(c.facts) }

func (c Claim) size() int {
	size := len(c.Image)
	for _, m := range []map[string]string{c.Labels, c.Annotations, c.Selector} {
		for key, value := range m {
			size += len(key) + len(value)
		}
	}
	for _, t := range c.Tolerations {
		size += len(t.Key) + len(t.Value)
	}
	return size
}

// longest is the length of the longest string that is a field of its own.
func (c Claim) longest() int {
	return max(len(c.Namespace), len(c.Name), len(c.Image), len(c.Power), len(c.ServerRef))
}
