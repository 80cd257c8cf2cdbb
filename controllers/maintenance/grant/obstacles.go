// SPDX-License-Identifier: Apache-2.0

package grant

import (
	"math"
	"slices"
	"strings"
)

// obstacles are everything that a candidate waits for, in the order of the gates, so that the first is its answer. What
// the gates note of a grant stays that of the first one.
func (x *pass) obstacles(c *candidate) []Obstacle {
	grant, closes := c.grant, c.closes
	defer func() { c.grant, c.closes = grant, closes }()
	var all []Obstacle
	add := func(why Answer) {
		if why.Reason != "" {
			all = append(all, Obstacle{Answer: why})
		}
	}
	ask := func(gates []gate) {
		for _, closed := range gates {
			why, _ := closed(x, c)
			add(why)
		}
	}
	add(x.queued(c))
	add(x.stopped)
	ask(lasting)
	add(Consent(c.Maintenance, c.on.Claim, x.policy, x.Now).Answer)
	ask(timed)
	for _, f := range x.policy.FailingPre(&x.facts) {
		add(fails(f))
	}
	return append(all, x.full(c.on, math.MaxInt)...)
}

// Whole is the answer with the reasons for which a maintenance waits besides, as its condition says it.
func (g *Grant) Whole() string {
	var reasons []string
	for _, o := range g.Obstacles {
		if o.Reason != g.Obstacles[0].Reason && !slices.Contains(reasons, o.Reason) {
			reasons = append(reasons, o.Reason)
		}
	}
	if len(reasons) == 0 {
		return g.Message
	}
	besides := " Also: " + strings.Join(reasons, ", ") + "."
	return cut(g.Message, maxMessage-len(besides)) + besides
}
