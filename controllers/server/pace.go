// SPDX-License-Identifier: Apache-2.0

package server

import (
	"math/rand/v2"
	"time"

	"golang.org/x/time/rate"
)

// pace bounds how many servers a second come under another revision, so that a fleet changes over without a burst of writes.
// Servers that are halted do not wait behind those that rest.
type pace struct {
	resting, halted *rate.Limiter
}

func newPace(perSecond int) *pace {
	return &pace{resting: rate.NewLimiter(rate.Limit(perSecond), perSecond), halted: rate.NewLimiter(rate.Limit(perSecond), perSecond)}
}

// rests takes the turn of a server that rests, and says whether there is one.
func (p *pace) rests(now time.Time) bool { return p.resting.AllowN(now, 1) }

// halts takes the turn of a server that is halted, and says whether there is one.
func (p *pace) halts(now time.Time) bool { return p.halted.AllowN(now, 1) }

// nextTurn is when a server asks again whose turn it is not: within a minute, and not together with the others.
func nextTurn() time.Duration { return 20*time.Second + rand.N(30*time.Second) }
