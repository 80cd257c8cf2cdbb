// SPDX-License-Identifier: Apache-2.0

package server

import (
	"math/rand/v2"
	"time"

	"golang.org/x/time/rate"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/rollout"
	"github.com/metalaw/metalaw/controllers/server/gates"
	"github.com/metalaw/metalaw/controllers/server/operations"
	"github.com/metalaw/metalaw/controllers/server/plan"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/redfish"
)

// question is what is known of the server when it is asked which revision governs it.
func (v *scope) question() rollout.Question {
	changing, _ := v.changing()
	q := rollout.Question{State: engine.State(v.server.Status.State), Halted: isHalted(v.server), Changing: changing != "",
		Boots: agentEffects[policies.BootFactsOf(v.seen.Boot).Purpose], Grants: v.grants,
		Answers: v.seen.Read().Identity == policies.IdentitySame,
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
func (v *scope) candidate(b *bundle.Bundle) rollout.Candidate {
	c := rollout.Candidate{Bundle: b}
	c.Why, c.Refused = v.Bundles.Held(b.Revision.Name)
	if b.StandsIn && !c.Refused { // it was mended between the two questions
		c.Why, c.Refused = "its content was not to be had a moment ago, and is looked at anew", true
	}
	return c
}

// governBy has a revision govern the server from here on, and makes the facts under it.
func (v *scope) governBy(g rollout.Governance) {
	v.governs, v.seen.Bundle = g, g.Bundle
	o := v.seen.Observation
	o.System, o.Counted = v.seen.Read(), 0
	v.seen.Observation, v.seen.Facts, v.clock = gates.Facts(o, &v.governs, v.settings(), v.deadlines(), v.seen.BMC.Tried)
	o = v.seen.Observation
	if _, remaining := policies.Released(v.server, o.Settings.ReleaseGrace, o.CountedNow); remaining > 0 {
		v.x.wakeIn(remaining)
	}
	v.x.wakeIn(policies.WipeQuietIn(o.Inventory, o.WipeHeard, o.Now))
	v.x.wakeIn(policies.FirstWordIn(o, v.seen.Facts))
	v.x.wakeIn(policies.ListAwaitedIn(o))
}

// deadlines is what tells whether time counts.
func (v *scope) deadlines() gates.Clock {
	return gates.Clock{Outage: v.Outage(), HeldBack: v.heldBack, NoGrace: v.NoReleaseGrace}
}

// gatesInput is everything that the decision is made on.
func (v *scope) gatesInput() gates.Input {
	changing, left := v.changing()
	in := gates.Input{Observation: v.seen.Observation, Facts: v.seen.Facts, Governance: v.governs, Active: v.candidate(v.Bundles.Active()),
		Clock: v.deadlines(), Reading: v.seen.PowerReading(), Halted: isHalted(v.server), Grants: v.grants,
		Machine: gates.Machine{Changing: changing, ChangingFor: left, PowerOnFor: v.seen.Requested().UnsettledFor(redfish.PowerOn)}}
	if v.seen.Forced = nil; v.seen.Bundle != nil && v.governs.Resting == nil && v.server.Status.Lifecycle != nil {
		if v.seen.Forced = operations.Force(v.seen.Operations()); v.seen.Forced.Made() {
			in.Forced = &v.seen.Forced.Decision
		}
	}
	return in
}

// settle gets what the decision wants from outside, and returns the decision that stands then. No question is asked twice.
func (v *scope) settle() engine.Decision {
	for asks := v.gated.Wants.Asks; asks.Any(); asks = v.gated.Wants.Asks {
		v.get(asks)
		v.governBy(rollout.Governs(v.question()))
		v.Decide()
	}
	if own := v.gated.Own; own != nil {
		v.compare(*own)
	}
	if v.gated.Governance.Bundle != v.seen.Bundle {
		v.governBy(v.gated.Governance)
	}
	wants := v.gated.Wants
	v.x.wakeIn(wants.Wake)
	if wants.Poll {
		v.x.poll()
	}
	if wants.Reading && v.seen.BMC.Lacks == nil {
		v.x.refresh()
	}
	return v.gated.Decision
}

// get takes a place under a canary, or the turn of the server, for which a decision asks.
func (v *scope) get(asks rollout.Asks) {
	if asks.Place != nil {
		v.grants.Place = v.granted(v.Probation == nil || v.Probation.Admit(v.server, asks.Place))
		return
	}
	turn := v.pace.resting
	if asks.Turn == rollout.HaltedTurn {
		turn = v.pace.halted
	}
	v.grants.Turn = v.granted(turn.AllowN(v.seen.Now, 1))
}

// granted is an answer. A server that is denied something asks again in its next turn.
func (v *scope) granted(is bool) rollout.Grant {
	if is {
		return rollout.Granted
	}
	v.x.wakeIn(nextTurn())
	return rollout.Denied
}

// agentEffects are the effects that boot an image of ours, by the purpose of its boot. A wipe's boot is none for a state that
// boots the probe.
var agentEffects = map[string]string{
	v1alpha1.BootPurposeProbe: policies.EffectBootProbe,
	v1alpha1.BootPurposeWipe:  policies.EffectBootWipe,
}

// changing says what is under way with the machine, so that no other revision takes over meanwhile, and how long at most
// until that is over; empty if nothing is.
func (v *scope) changing() (why string, left time.Duration) {
	if left := policies.WipeQuietIn(v.seen.Inventory, v.seen.WipeHeard, v.seen.Now); left > 0 {
		return "the wipe that runs has ended", left
	}
	if v.Cache.Busy(v.server.Name) {
		return "the BMC has answered a request", plan.SlowestPoll // its end tells
	}
	asked := v.seen.Requested()
	if left := max(asked.UnsettledFor(redfish.PowerOn), asked.UnsettledFor(redfish.PowerOff)); left > 0 {
		return "the power change that was asked for has shown or lapsed", left
	}
	return "", 0
}

// readingAge is how old a reading may be, and when to look next. It may be old while the server rests as it should, younger on
// its way, if what it waits for tells by itself, and very young at first if the BMC is to show it.
func (v *scope) readingAge(begun time.Time) (maxAge, next time.Duration) {
	age := v.usualAge(begun)
	if !begun.Before(v.seen.BMC.LastJob) {
		return age, age
	}
	// The last reading says nothing of the last request. Nothing is read while that is under way, nor right after it: a
	// reading would show too little. Then one is taken soon.
	left := plan.FastestPoll - v.seen.Now.Sub(v.seen.BMC.LastJob)
	if v.seen.BMC.Busy() {
		left = plan.SlowestPoll // its end tells
	}
	if left > 0 {
		return max(age, v.seen.Now.Sub(v.Cache.Reading(v.server.Name).At)+left), left
	}
	age = min(age, v.seen.Shortly())
	return age, age
}

func (v *scope) usualAge(begun time.Time) time.Duration {
	parked := v.server.Status.State == v1alpha1.StateParked
	switch {
	case parked && begun.Before(v.seen.Memory.EnteredAt(v.server)):
		return v.seen.Shortly() // the machine was handed over on that reading, and may be on by now
	case parked: // another program may change its power, and looks for that here
		return min(parkedPoll, v.SteadyPoll)
	case !v.inTransition():
		return v.SteadyPoll
	case v.seen.Memory.AwaitsBMC:
		return v.seen.Shortly()
	}
	return min(plan.SlowestPoll, v.SteadyPoll)
}

// inTransition says that the server is to leave its state, or that some effect of its state did not hold at the last look.
func (v *scope) inTransition() bool {
	s := v.server
	if v.seen.Bundle == nil {
		return false // nothing moves it
	}
	if s.Status.Lifecycle == nil || !v.seen.Bundle.Lifecycle.Stable(engine.State(s.Status.State)) {
		return true
	}
	return s.Status.Operation.Active() || v.seen.Memory.Unsettled
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
