// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"strings"

	"github.com/metalaw/metalaw/engine/selection"
)

// File is the name under which findings speak of a placement: that of the annotation which holds it.
const File = "policy.metalaw.dev/placement"

// Placement is a compiled document. It is immutable and safe for use by many goroutines at once.
type Placement struct {
	where        *expression
	alternatives []alternative
	preferred    []preference
	spread       *Spread
	gang         *Gang
	asks         string
	cost         int64
}

// alternative is one of several groups of servers. It has everything where both are nil.
type alternative struct {
	selector *selection.Selector
	where    *expression
}

// preference adds its weight to the score of servers for which it holds.
type preference struct {
	weight int64
	where  *expression
}

// Spread is nil where the claim does not ask for it.
func (p *Placement) Spread() *Spread {
	if p == nil {
		return nil
	}
	return p.spread
}

// Gang is nil where the claim is not part of one.
func (p *Placement) Gang() *Gang {
	if p == nil {
		return nil
	}
	return p.gang
}

// Alternatives is how many groups of servers there are; at least one.
func (p *Placement) Alternatives() int {
	if p == nil {
		return 1
	}
	return max(1, len(p.alternatives))
}

// Prefers says that Judge gives scores, so that the highest score of the policy alone does not decide.
func (p *Placement) Prefers() bool { return p != nil && len(p.preferred) > 0 }

// Asks is the same text for placements that ask for the same; comments and layout make no difference. Claims of one
// namespace with the same text can share what Judge says.
func (p *Placement) Asks() string {
	if p == nil {
		return ""
	}
	return p.asks
}

// Cost is what it costs at most to judge a server, in CEL's units and at least one.
func (p *Placement) Cost() int64 {
	if p == nil {
		return 1
	}
	return p.cost
}

// JudgesPassing says whether a condition may follow what passes by itself: how a server is at the moment, or how often it was
// used. A mention in a text counts as well.
func (p *Placement) JudgesPassing() bool {
	return p != nil && (strings.Contains(p.asks, "health") || strings.Contains(p.asks, "timesClaimed"))
}
