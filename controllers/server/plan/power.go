// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/fleet"
	"github.com/metalaw/metalaw/controllers/loop"
	boots "github.com/metalaw/metalaw/controllers/server/boot"
	"github.com/metalaw/metalaw/controllers/server/call"
	"github.com/metalaw/metalaw/controllers/server/power"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/redfish"
)

// change is a power change in the making.
type change struct {
	want power.Want
	// on is the call that switches the machine on, and earns are the marks that come with it.
	on    call.PowerOn
	earns []string
	// under is what the change is besides, so that freezes of that hold it back.
	under []fleet.Action
}

// powerOn makes the machine run from the boot configuration in force.
func powerOn(d *draft, effect engine.Effect) loop.Progress { return switchOn(d, effect) }

func switchOn(d *draft, effect engine.Effect, under ...fleet.Action) loop.Progress {
	c := change{want: power.Want{On: true}, earns: effect.Earns, under: under}
	if !d.Facts.Boot.Ready {
		c.want.Boot.Waits = boots.Waits(d.Boot)
	}
	var source string
	source, c.want.Boot.Refused = boots.Source(d.BootTarget, d.BMC.System.Boot.Missing, d.Facts.Boot.Purpose, d.Settings.Boot.WithoutOverride)
	c.want.Boot.Wipes = d.Boot != nil && d.Boot.Annotations[v1alpha1.BootPurposeAnnotation] == v1alpha1.BootPurposeWipe
	if c.want.Boot.Waits == "" && c.want.Boot.Refused == "" {
		c.on = call.PowerOn{Mode: redfish.BootMode(d.bootSettings().Mode), Service: d.MediaURL, Inserted: d.mediaMayBeIn()}
		c.on.Ways, c.want.Boot.Waits = boots.Ways(boots.WaysInput{Source: source, Policy: d.Settings.Boot.Ways,
			BMC: d.BMC.Stated.Ways, Service: d.MediaURL, Boot: d.Boot})
	}
	return changePower(d, c)
}

// switchOnByItself switches the machine on without a boot override, so that it boots by its own boot order.
func switchOnByItself(d *draft, effect engine.Effect, under ...fleet.Action) loop.Progress {
	return changePower(d, change{want: power.Want{On: true}, earns: effect.Earns, under: under,
		on: call.PowerOn{Ways: []boots.Way{{}}, Service: d.MediaURL, Inserted: d.mediaMayBeIn(), Overridden: d.Facts.BMC.OverrideSet}})
}

// powerOff makes the machine stop: first by asking its operating system, for as long as graceful says, then by force.
func powerOff(d *draft, effect engine.Effect) loop.Progress {
	granted, force := effect.Param("graceful").Duration(), effect.Param("thenForce").Bool()
	return switchOff(d, policies.EndShutdown(d.Server, &d.Settings, granted, force), granted == 0 || force)
}

func switchOff(d *draft, graceful time.Duration, force bool, under ...fleet.Action) loop.Progress {
	return changePower(d, change{under: under, want: power.Want{Graceful: graceful, Force: force,
		Agent: power.RunsAgent(d.Server, d.Facts, d.Instant())}})
}

// powerAsClaimed follows the bound claim.
func powerAsClaimed(d *draft, effect engine.Effect) loop.Progress {
	if d.Claim.Spec.Power != v1alpha1.PowerOn {
		return switchOff(d, ShutdownGrace, true)
	}
	p := switchOn(d, effect)
	seeShown(d) // what shows in this reconcile counts
	if p.Phase == loop.Done && !policies.BootedForClaim(d.Server) {
		return loop.Failing(v1alpha1.ReasonSwitchedOnByHand, "the machine was switched on, not by the manager, before it was booted "+
			"for the claim. It runs what it found. It boots once the claim asks for power Off and then On", 0)
	}
	return p
}

// seeShown records that the machine is as was asked.
func seeShown(d *draft) {
	if s := shownNow(&d.Seen); s != nil {
		d.set(s)
	}
}

// changePower asks for permission, records the request, and has the BMC asked once that is stored.
func changePower(d *draft, c change) loop.Progress {
	out := power.Decide(power.Input{Asked: d.Requested(), Want: c.want, Reading: d.PowerReading(), Busy: d.BMC.Busy(), Poll: d.Shortly()})
	if out.Refresh {
		d.do(Refresh{})
	}
	if out.Polls {
		d.do(Wake{ForBMC: true})
	}
	d.wake(out.Again)
	if out.Ask == "" {
		setRequest(d, out.Request)
		if out.Shows {
			if p := clearOverride(d); p.Phase != loop.Done {
				return p
			}
			d.try(ejectMedia) // what holds a state back for it is ClearBoot
		}
		return out.Progress
	}
	actions := slices.Concat(out.Actions, c.under)
	d.permit(actions...)
	setRequest(d, out.Request)
	if !out.Repeats {
		beginRequest(d, c, out)
	}
	if out.Ask == v1alpha1.PowerActionOn {
		expectMedia(d, c.on.Ways)
	}
	d.ask(Ask{ID: power.RequestID(out.Request), Call: c.call(out.Ask), Actions: actions, Stored: true, ShowsLater: true})
	return out.Progress
}

func setRequest(d *draft, r *v1alpha1.PowerRequest) {
	if !equality.Semantic.DeepEqual(d.Server.Status.Lifecycle.Request, r) {
		d.set(func(s *v1alpha1.Server) { s.Status.Lifecycle.Request = r.DeepCopy() })
	}
}

// beginRequest notes what goes with a request that is about to be recorded.
func beginRequest(d *draft, c change, out power.Output) {
	at := out.Request.AskedAt
	d.remember(func(m *Memory) { m.Asked = at.Time })
	if out.Ask == v1alpha1.PowerActionOn {
		watchBoot(d)
	}
	d.set(func(s *v1alpha1.Server) {
		l := s.Status.Lifecycle
		if out.Ask == v1alpha1.PowerActionOn {
			l.Marks = engine.Decision{Marks: c.earns}.MarksAfter(l.Marks)
		}
		for _, a := range out.Actions {
			fleet.Begin(l, a, at, out.Request.AskedCounted)
		}
	})
}

// call is the call to the BMC that an action takes.
func (c change) call(action v1alpha1.PowerAction) call.Call {
	switch action {
	case v1alpha1.PowerActionGracefulShutdown:
		return call.Reset{Action: redfish.ActionGracefulShutdown}
	case v1alpha1.PowerActionForceOff:
		return call.Reset{Action: redfish.ActionForceOff}
	case v1alpha1.PowerActionOn:
	}
	return c.on
}

// shownNow records that the machine is as was asked; nil if nothing is to be recorded.
func shownNow(s *Seen) func(*v1alpha1.Server) {
	l := s.Server.Status.Lifecycle
	if l == nil || l.Request == nil {
		return nil
	}
	shown, booted := s.Requested().Shown(s.PowerReading(), s.Memory.AskedAt(l.Request.AskedAt.Time))
	if !shown && !booted {
		return nil
	}
	at := metav1.NewMicroTime(s.Now)
	return func(to *v1alpha1.Server) {
		if shown {
			to.Status.Lifecycle.Request.ShownAt = &at
		}
		if booted {
			to.Status.Lifecycle.BootedAt = &at
		}
	}
}
