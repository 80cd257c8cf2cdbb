// SPDX-License-Identifier: Apache-2.0

package server

import (
	"math/rand/v2"
	"time"

	"golang.org/x/time/rate"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/rollout"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/redfish"
)

// governShell asks which revision governs the server, and gets what another one waits for.
type governShell struct{ *scope }

// question is what is known of the server when it is asked which revision governs it.
func (v governShell) question() rollout.Question {
	changing, _ := v.changing()
	q := rollout.Question{State: engine.State(v.server.Status.State), Halted: isHalted(v.server), Changing: changing != "",
		Boots: agentEffects[policies.BootFactsOf(v.boot).Purpose], Grants: v.grants,
		Answers: v.systemReading().Identity == policies.IdentitySame,
		Target:  v.candidate(v.Bundles.Governing(v.server)), Active: v.candidate(v.Bundles.Active())}
	if l := v.server.Status.Lifecycle; l != nil && l.Revision != "" {
		q.Revision = l.Revision
		q.Pinned.Bundle, _ = v.Bundles.Revision(l.Revision)
		q.Pinned.Why, q.Pinned.Refused = v.Bundles.Held(l.Revision)
		q.Lost = q.Pinned.Bundle == nil && v.Bundles.Lost(l.Revision)
	}
	return q
}

// candidate is a bundle that may come to govern the server.
func (v governShell) candidate(b *bundle.Bundle) rollout.Candidate {
	c := rollout.Candidate{Bundle: b}
	c.Why, c.Refused = v.Bundles.Held(b.Revision.Name)
	if b.StandsIn && !c.Refused { // it was mended between the two questions
		c.Why, c.Refused = "its content was not to be had a moment ago, and is looked at anew", true
	}
	return c
}

// governBy has a revision govern the server from here on.
func (v *scope) governBy(g rollout.Governance) {
	v.governs, v.bundle = g, g.Bundle
	v.makeFacts()
}

// get takes a place under a canary, or the turn of the server, for which a decision asks.
func (v governShell) get(asks rollout.Asks) {
	if asks.Place != nil {
		v.grants.Place = v.granted(v.Probation == nil || v.Probation.Admit(v.server, asks.Place))
		return
	}
	turn := v.pace.resting
	if asks.Turn == rollout.HaltedTurn {
		turn = v.pace.halted
	}
	v.grants.Turn = v.granted(turn.AllowN(v.now, 1))
}

// granted is an answer. A server that is denied something asks again in its next turn.
func (v governShell) granted(is bool) rollout.Grant {
	if is {
		return rollout.Granted
	}
	v.wakeIn(nextTurn())
	return rollout.Denied
}

// agentEffects are the effects that boot an image of ours, by the purpose of its boot. A wipe's boot is none for a state that
// boots the probe.
var agentEffects = map[string]string{
	v1alpha1.BootPurposeProbe: policies.EffectBootProbe,
	v1alpha1.BootPurposeWipe:  policies.EffectBootWipe,
}

// changing says what is under way with the machine, so that no other revision takes over meanwhile, and how long at most
// until that is over; empty where nothing is.
func (v governShell) changing() (why string, left time.Duration) {
	if left := policies.WipeQuietIn(v.inventory, v.wipeHeard(), v.now); left > 0 {
		return "the wipe that runs has ended", left
	}
	if v.Cache.Busy(v.server.Name) {
		return "the BMC has answered a request", slowestPoll // its end tells
	}
	if left := max(v.requested().UnsettledFor(redfish.PowerOn), v.requested().UnsettledFor(redfish.PowerOff)); left > 0 {
		return "the power change that was asked for has shown or lapsed", left
	}
	return "", 0
}

// pace bounds how many servers a second come under another revision, so that a fleet changes over without a burst of writes.
// Servers that are halted do not wait behind those that rest.
type pace struct {
	resting, halted *rate.Limiter
}

func newPace(perSecond int) *pace {
	return &pace{resting: rate.NewLimiter(rate.Limit(perSecond), perSecond), halted: rate.NewLimiter(rate.Limit(perSecond), perSecond)}
}

// nextTurn is when a server asks again whose turn it is not: within a minute, and not together with the others.
func nextTurn() time.Duration { return 20*time.Second + rand.N(30*time.Second) }
