// SPDX-License-Identifier: Apache-2.0

// Package power decides which power request is due, given what was asked and read. It asks nothing itself.
//
// A power change goes through these steps, so that no crash makes the BMC hear it twice:
//
//  1. The request is recorded in status.lifecycle.request, under the optimistic lock, by which nothing else changed meanwhile.
//  2. Once the record is stored the BMC is asked, in the background.
//  3. The request is over when a reading shows it. Until the grace has passed since the record, no process asks again,
//     whether or not it knows what the BMC answered. Afterwards only a reading begun since that still shows the old state
//     asks again, a power-on after twice that pause each further time.
package power

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/fleet"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/redfish"
)

// Reasons of pending and failed power effects.
const (
	WaitsForReading = "WaitsForReading"
	WaitsForPower   = "WaitsForPower"
	WaitsForBoot    = "WaitsForBoot"
	RequestFailed   = v1alpha1.ReasonRequestFailed
	// OverrideIgnored: the BMC took the boot override of a power-on and does not show it, so the machine stays off.
	OverrideIgnored = v1alpha1.ReasonBootOverrideIgnored
)

// Reading is the last word of the BMC, as far as a power request relies on it.
type Reading struct {
	// Lacks says what is missing to ask the BMC at all; empty where nothing is.
	Lacks string
	// Tried says that a read has ended, and Failure what the last one failed with; empty where it succeeded.
	Tried   bool
	Failure string
	// Same says that the BMC answers for this server's own machine.
	Same  bool
	Power redfish.PowerState
	// Begun is when the reading was asked for.
	Begun time.Time
	// Fresh says that the reading is of this machine, recent, and begun after the last request had its time to show.
	Fresh bool
}

// Reachable says that the BMC answered.
func (r Reading) Reachable() bool { return r.Tried && r.Failure == "" }

// Silent is what is waited for where the BMC cannot be asked or does not answer; empty where it answers.
func (r Reading) Silent() string {
	if r.Lacks == "" && r.Failure != "" {
		return "the BMC, which does not answer: " + r.Failure
	}
	return r.Lacks
}

// Shows says that the machine is seen in a power state. Unknown is not Off.
func (r Reading) Shows(power redfish.PowerState) bool {
	return r.Same && r.Reachable() && r.Power == power
}

// Known says whether a power request may rely on the reading, and what it waits for where it may not. poll says that the
// wait is for the BMC to show something; its progress has no time then.
func (r Reading) Known() (p loop.Progress, poll, ok bool) {
	switch silent := r.Silent(); {
	case silent != "":
		return loop.Waiting(WaitsForReading, silent, 0), false, false
	case r.Tried && !r.Same:
		return loop.Waiting(WaitsForReading, "the BMC to answer for this server's own machine", 0), true, false
	case r.Tried && r.Power != redfish.PowerOn && r.Power != redfish.PowerOff: // said of an old reading too, so that it stays the same
		return loop.Waiting(WaitsForPower, fmt.Sprintf("the BMC to say whether the machine is on; its power is %s",
			cmp.Or(r.Power, redfish.PowerUnknown)), 0), true, false
	case !r.Fresh:
		return loop.Waiting(WaitsForReading, "a fresh reading of the BMC", 0), false, false
	}
	return loop.Progress{}, false, true
}

// Want is the power that a rule or a claim asks for.
type Want struct {
	// On says that the machine is to run what Boot says; else it is to be off.
	On   bool
	Boot Boot
	// Graceful is how long the operating system is asked to stop, and Force says that the power is cut after that.
	Graceful time.Duration
	Force    bool
	// Agent says that the machine runs an agent of ours and nothing else, so that no budget counts its power-off.
	Agent bool
}

// Boot is what a power-on boots.
type Boot struct {
	// Waits says what a power-on waits for; empty where the boot is prepared.
	Waits string
	// Refused says why the machine cannot be booted from what is prepared; empty where it can.
	Refused string
	// Wipes says that the boot erases disks, so that the budget of wipes counts it.
	Wipes bool
}

// Input is everything that a decision about power depends on.
type Input struct {
	Asked
	Want    Want
	Reading Reading
	// Busy says that the BMC works on a request.
	Busy bool
	// Poll is when to read the BMC again for what waits until it shows something.
	Poll time.Duration
}

// Output is what is due. Where Ask is set the shell asks the budgets for Actions first, and stores nothing where they refuse.
type Output struct {
	Progress loop.Progress
	// Request is the request as it is to be stored; nil for none.
	Request *v1alpha1.PowerRequest
	// Ask is what the BMC is asked for once Request is stored (order 1); empty where it is asked for nothing.
	Ask v1alpha1.PowerAction
	// Repeats says that Request is recorded already and is asked for again.
	Repeats bool
	// Actions is what the request amounts to. Permission for it counts from when it is given (order 5).
	Actions []fleet.Action
	// Shows says that the machine shows what is wanted, so that a boot override may be cleared.
	Shows bool
	// Refresh asks for a new reading, and Polls says that the wait is for the BMC to show something.
	Refresh, Polls bool
	// Again is when to look again, whatever Progress says; 0 leaves it to that.
	Again time.Duration
}

// Decide says which power request is due.
func Decide(in Input) Output {
	in.Request = in.Recorded()
	d := &decision{Input: in}
	d.out.Request = in.Request
	if in.Want.On {
		d.out.Progress = d.switchOn()
	} else {
		d.out.Progress = d.switchOff()
	}
	return d.out
}

// decision is an Output on its way.
type decision struct {
	Input
	out Output
}

// switchOn makes the machine run from the boot configuration in force.
func (d *decision) switchOn() loop.Progress {
	if d.Reading.Shows(redfish.PowerOn) {
		if p := d.awaitOpposite(redfish.PowerOff); p.Phase != loop.Done {
			return p
		}
		if d.Request != nil && LeadsTo[d.Request.Action] == redfish.PowerOff {
			d.out.Request = nil // given up: the next one begins with a shutdown again, which gets the whole of its grace
		}
		d.out.Shows = true
		return loop.Holds()
	}
	if d.Want.Boot.Waits != "" {
		return loop.Waiting(WaitsForBoot, d.Want.Boot.Waits, 0)
	}
	if why := d.Want.Boot.Refused; why != "" && d.Reading.Shows(redfish.PowerOff) {
		return loop.Failing(v1alpha1.ReasonBootOverrideMissing, why, time.Minute)
	}
	if d.Want.Boot.Wipes {
		return d.ask(v1alpha1.PowerActionOn, fleet.Wipe, fleet.PowerOn)
	}
	return d.ask(v1alpha1.PowerActionOn, fleet.PowerOn)
}

// switchOff makes the machine stop: first by asking its operating system, for as long as Graceful says, then by force.
func (d *decision) switchOff() loop.Progress {
	if d.Reading.Shows(redfish.PowerOff) {
		if p := d.awaitOpposite(redfish.PowerOn); p.Phase != loop.Done {
			return p
		}
		if d.out.Request != nil {
			d.out.Request.Attempts = 0 // that power-on is not wanted any more; the next one begins anew
		}
		d.out.Shows = true // an override of a power-on that failed may stand
		return loop.Holds()
	}
	if d.Want.Graceful > 0 {
		if p, wait := d.shutDown(); wait {
			return p
		}
	}
	amountsTo := fleet.ForcedOff
	if d.Want.Agent {
		amountsTo = fleet.AgentOff
	}
	p := d.ask(v1alpha1.PowerActionForceOff, amountsTo)
	if d.out.Ask != "" {
		d.out.Request.Uncounted = d.Want.Agent
	}
	return p
}

// poll is when to look again for what waits until the BMC shows something.
func (d *decision) poll() time.Duration {
	d.out.Polls = true
	return d.Poll
}

// awaitOpposite waits for a request that may still lead to the power state given, though the machine shows the other one
// now: a BMC may take a while to do what it accepted.
func (d *decision) awaitOpposite(power redfish.PowerState) loop.Progress {
	if left := d.UnsettledFor(power); left > 0 {
		return loop.Waiting(WaitsForPower, Words(d.Request.Action)+" that was asked for to show or to lapse", min(d.poll(), left))
	}
	return loop.Holds()
}

// known waits for a reading that a request may rely on.
func (d *decision) known() (loop.Progress, bool) {
	d.out.Refresh = d.out.Refresh || !d.Reading.Fresh && d.Reading.Lacks == ""
	p, polls, ok := d.Reading.Known()
	if polls {
		p.Again = d.poll()
	}
	return p, ok
}

// ask asks for a power change, unless the same was asked for and may still show.
func (d *decision) ask(action v1alpha1.PowerAction, amountsTo ...fleet.Action) loop.Progress {
	what := Words(action)
	if d.Busy {
		return loop.Waiting(WaitsForPower, "the BMC to answer a request, before "+what, 0)
	}
	if request := d.Request; request != nil && request.Action == action {
		err := d.NotDone()
		if left := d.pause(err) - d.Since(); left > 0 && err != nil {
			return d.failed(err, left)
		} else if left > 0 {
			return loop.Waiting(WaitsForPower, what+asOften(request.Attempts)+" to show", min(d.poll(), left))
		}
	}
	if p, ok := d.known(); !ok {
		return p
	}
	d.out.Request, d.out.Ask, d.out.Actions = d.renewed(action), action, amountsTo
	return loop.Waiting(WaitsForPower, what+" to be accepted", 0)
}

// askAgain asks for what is recorded already.
func (d *decision) askAgain(amountsTo fleet.Action) loop.Progress {
	if p, ok := d.known(); !ok {
		return p
	}
	d.out.Ask, d.out.Repeats, d.out.Actions = d.Request.Action, true, []fleet.Action{amountsTo}
	return loop.Waiting(WaitsForPower, Words(d.Request.Action)+" to be accepted", 0)
}

// failed says why a power change was not made, and that it is asked for again after a while.
func (d *decision) failed(err error, left time.Duration) loop.Progress {
	message := Words(d.Request.Action) + ": " + d.failure()
	var override *redfish.OverrideError
	if errors.As(err, &override) {
		return loop.Failing(OverrideIgnored, message, left)
	}
	return loop.Failing(RequestFailed, message, left)
}

func asOften(attempts int32) string {
	if attempts < 2 {
		return ""
	}
	return fmt.Sprintf(", asked for %d times,", attempts)
}
