// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"slices"
	"time"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/fleet"
	"github.com/metalaw/metalaw/controllers/loop"
	boots "github.com/metalaw/metalaw/controllers/server/boot"
	"github.com/metalaw/metalaw/controllers/server/power"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/redfish"
)

// powerKnown sees to a fresh reading with a power state that can be acted on.
func (v *scope) powerKnown() (loop.Progress, bool) {
	reading := v.powerReading()
	if !reading.Fresh && reading.Lacks == "" {
		v.refresh()
	}
	p, polls, ok := reading.Known()
	if polls {
		p.Again = v.pollInterval()
	}
	return p, ok
}

// powerReading is the last word of the BMC as power requests rely on it.
func (v *scope) powerReading() power.Reading {
	r := power.Reading{Tried: v.reading.Tried, Same: v.facts.BMC.Identity == policies.IdentitySame, Power: v.reading.Value.Power,
		Begun: v.reading.Begun, Fresh: v.fresh()}
	if v.targetErr != nil {
		r.Lacks = v.targetErr.Error()
	}
	if v.reading.Err != nil {
		r.Failure = words(v.reading.Err)
	}
	return r
}

func (v *scope) shows(state redfish.PowerState) bool {
	return v.facts.BMC.Identity == policies.IdentitySame && v.reading.Reachable() && v.reading.Value.Power == state
}

// powerShell carries out what is decided about the power of a machine, for one effect.
type powerShell struct {
	*scope
	// source is what a boot from the network boots from, earns are the marks that come with a power-on, and way is how it is made.
	source string
	earns  []string
	way    wayIn
	// under is what a power change is besides, so that freezes of that hold it back.
	under []fleet.Action
}

// powerOn makes the machine run from the boot configuration in force.
func (s powerShell) powerOn(ctx context.Context, effect engine.Effect) loop.Progress {
	v, want := s.scope, power.Want{On: true}
	if !v.facts.Boot.Ready {
		want.Boot.Waits = boots.Waits(v.boot)
	}
	s.source, want.Boot.Refused = boots.Source(v.BootTarget, v.reading.Value.Boot.Missing, v.facts.Boot.Purpose, v.settings().Boot.WithoutOverride)
	want.Boot.Wipes = v.boot != nil && v.boot.Annotations[v1alpha1.BootPurposeAnnotation] == v1alpha1.BootPurposeWipe
	if want.Boot.Waits == "" && want.Boot.Refused == "" {
		s.way, want.Boot.Waits = bootShell{v}.bootWays(s.source)
	}
	s.earns = effect.Earns
	return s.carryOut(ctx, power.Decide(s.input(want)))
}

// powerOff makes the machine stop: first by asking its operating system, for as long as graceful says, then by force.
func (s powerShell) powerOff(ctx context.Context, effect engine.Effect) loop.Progress {
	granted, force := effect.Param("graceful").Duration(), effect.Param("thenForce").Bool()
	return s.stop(ctx, policies.EndShutdown(s.server, &s.observed.Settings, granted, force), granted == 0 || force)
}

func (s powerShell) stop(ctx context.Context, graceful time.Duration, force bool) loop.Progress {
	return s.carryOut(ctx, power.Decide(s.input(power.Want{Graceful: graceful, Force: force,
		Agent: power.RunsAgent(s.server, s.facts, s.instant())})))
}

// powerAsClaimed follows the bound claim.
func (s powerShell) powerAsClaimed(ctx context.Context, effect engine.Effect) loop.Progress {
	if s.claim.Spec.Power != v1alpha1.PowerOn {
		return s.stop(ctx, shutdownGrace, true)
	}
	p := s.powerOn(ctx, effect)
	s.recordShown() // what shows in this reconcile counts
	if p.Phase == loop.Done && !policies.BootedForClaim(s.server) {
		return loop.Failing(v1alpha1.ReasonSwitchedOnByHand, "the machine was switched on, not by the manager, before it was booted "+
			"for the claim. It runs what it found. It boots once the claim asks for power Off and then On", 0)
	}
	return p
}

func (s powerShell) input(want power.Want) power.Input {
	return power.Input{Asked: s.requested(), Want: want, Reading: s.powerReading(), Busy: s.Cache.Busy(s.server.Name), Poll: s.shortly()}
}

// carryOut asks for permission, records the request, and has the BMC asked once that is stored.
func (s powerShell) carryOut(ctx context.Context, out power.Output) loop.Progress {
	v := s.scope
	if out.Refresh {
		v.refresh()
	}
	v.out.awaitsBMC = v.out.awaitsBMC || out.Polls
	v.wakeIn(out.Again)
	if out.Ask == "" {
		v.server.Status.Lifecycle.Request = out.Request
		if out.Shows {
			if p := (bootShell{v}).clearOverride(ctx); p.Phase != loop.Done {
				return p
			}
			bootShell{v}.ejectMedia(ctx) // what holds a state back for it is ClearBoot
		}
		return out.Progress
	}
	actions := slices.Concat(out.Actions, s.under)
	if p, ok := v.permitted(ctx, actions...); !ok { // order 5: budgets count from when permission is given
		return p
	}
	v.server.Status.Lifecycle.Request = out.Request
	if !out.Repeats {
		s.begin(out)
	}
	if out.Ask == v1alpha1.PowerActionOn {
		bootShell{v}.recordMedia(s.way.ways)
	}
	id, guarded := power.RequestID(out.Request), v.guarded(s.call(out.Ask), actions...)
	return out.Progress.Then(func() { // order 1: the record is stored before the BMC is asked
		v.Cache.Repeat(v.server.Name, id)
		v.Cache.DoLater(v.server.Name, v.target, id, guarded)
	})
}

// begin notes what goes with a request that is about to be recorded.
func (s powerShell) begin(out power.Output) {
	l := s.server.Status.Lifecycle
	s.remembered().asked = out.Request.AskedAt.Time
	if out.Ask == v1alpha1.PowerActionOn {
		bootShell{s.scope}.watchBoot()
		l.Marks = engine.Decision{Marks: s.earns}.MarksAfter(l.Marks)
	}
	for _, a := range out.Actions {
		fleet.Begin(l, a, out.Request.AskedAt, out.Request.AskedCounted)
	}
}

// call is the call to the BMC that an action takes.
func (s powerShell) call(action v1alpha1.PowerAction) call {
	switch action {
	case v1alpha1.PowerActionGracefulShutdown:
		return reset(redfish.ActionGracefulShutdown)
	case v1alpha1.PowerActionForceOff:
		return reset(redfish.ActionForceOff)
	case v1alpha1.PowerActionOn:
	}
	return s.way.powerOn
}

func reset(action redfish.PowerAction) call {
	return func(ctx context.Context, bmc redfish.BMC, uri string, want redfish.Identity) error {
		return bmc.Reset(ctx, uri, want, action)
	}
}
