// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"
	"time"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish/emulator"
)

// decisions are what was recorded of a machine before its BMC was asked: the power changes, by the moment of the record, and
// the operations by their ID.
type decisions struct {
	power      map[v1alpha1.PowerAction]map[time.Time]bool
	operations map[string]bool
}

func (r *record) decisions(machine string) decisions {
	d := decisions{map[v1alpha1.PowerAction]map[time.Time]bool{v1alpha1.PowerActionOn: {}, v1alpha1.PowerActionForceOff: {},
		v1alpha1.PowerActionGracefulShutdown: {}}, map[string]bool{}}
	for _, name := range r.serversOf(machine) {
		for _, v := range r.servers[name] {
			if v.gone {
				continue
			}
			if l := v.object.Status.Lifecycle; l != nil && l.Request != nil {
				d.power[l.Request.Action][l.Request.AskedAt.Time] = true
			}
			if op := v.object.Status.Operation; op != nil && op.Name != v1alpha1.OperationPark {
				d.operations[op.ID] = true
			}
		}
	}
	return d
}

// judgeCounts compares the power changes that a BMC carried out with the decisions that were recorded for them.
func (r *record) judgeCounts(machine string, all []emulator.Write, now time.Time) {
	done := map[v1alpha1.PowerAction]int{}
	restarts := 0
	for _, w := range all {
		if !accepted(w) || w.Time.After(now) {
			continue
		}
		switch a := askedOf(w); {
		case a.restarts():
			restarts++
		case a.ResetType == emulator.ResetOn:
			done[v1alpha1.PowerActionOn]++
		case a.ResetType == emulator.ResetForceOff:
			done[v1alpha1.PowerActionForceOff]++
		}
	}
	d := r.decisions(machine)
	for action, n := range done {
		if n > len(d.power[action])+len(d.operations) {
			r.breach("one request for one decision", machine, now, "%s was carried out %d times, for %d decisions and %d operations",
				action, n, len(d.power[action]), len(d.operations))
		}
	}
	if restarts > len(d.operations) {
		r.breach("one request for one decision", machine, now, "%d restarts were made, for %d operations", restarts, len(d.operations))
	}
}

// patience is the time within which nobody asks for the same again, as long as it has not come true: what the operator gives a
// BMC, less what a request may have waited on its way.
const patience = grace / 2

// judgePatience finds a power change that was asked for again before the BMC had its time to show it.
func (r *record) judgePatience(machine string, w emulator.Write, a asked, all []emulator.Write, found func(string, string, ...any)) {
	if a.ResetType == "" || a.restarts() || !accepted(w) || r.lied(machine, w.Time) || !r.idle(machine, "", w.Time) {
		return
	}
	for _, former := range slices.Backward(all) {
		b := askedOf(former)
		if former.Number >= w.Number || b.ResetType == "" || !accepted(former) {
			continue
		}
		if b.ResetType == a.ResetType && w.Time.Sub(former.Time) < patience &&
			!r.power[machine].ever(former.Time, w.Time, func(p emulator.PowerState) bool { return p == a.reaches() }) {
			found("one request for one decision", "it had been asked for %s before (write %d)", w.Time.Sub(former.Time), former.Number)
		}
		return
	}
}

// judgeBudgets counts the machines that are switched on, and those that are wiped, at a time.
func (r *record) judgeBudgets(writes map[string][]emulator.Write, since, now time.Time) {
	for machine, all := range writes {
		for _, w := range all {
			if !w.Time.After(since) || w.Time.After(now) || !askedOf(w).on() {
				continue
			}
			for _, kind := range []policyv1alpha1.FleetAction{policyv1alpha1.ActionPowerOn, policyv1alpha1.ActionWipe} {
				r.judgeBudget(kind, machine, w, writes)
			}
		}
	}
}

func (r *record) judgeBudget(kind policyv1alpha1.FleetAction, machine string, w emulator.Write, writes map[string][]emulator.Write) {
	if kind == policyv1alpha1.ActionWipe && !r.throughout(machine, w.Time, in(v1alpha1.StateCleanup)) {
		return
	}
	others, earliest := 0, w.Time
	for other, all := range writes {
		if other == machine {
			continue
		}
		if at := r.under(kind, other, w.Time, all); !at.IsZero() {
			others++
			if at.Before(earliest) {
				earliest = at
			}
		}
	}
	if r.control.throughout(earliest.Add(-2*before), w.Time.Add(after), func(c *policyv1alpha1.FleetControl) bool {
		return slices.ContainsFunc(c.Spec.Budgets, func(b policyv1alpha1.Budget) bool { return b.Action == kind && int(*b.Max) <= others })
	}) {
		r.breach("8 budget", machine, w.Time, "%d other machines were under %s already, which is all that the budget allows: write %d",
			others, kind, w.Number)
	}
}

// under is when an action began that a machine still is under at a moment; zero where it is under none.
func (r *record) under(kind policyv1alpha1.FleetAction, machine string, moment time.Time, all []emulator.Write) time.Time {
	const span = budgetWindow*time.Second - 2*time.Second // what was counted first may have been asked for later
	for _, w := range slices.Backward(all) {
		if w.Time.After(moment) || !askedOf(w).on() {
			continue
		}
		from, to := w.Time.Add(-before), moment.Add(after)
		switch {
		case kind == policyv1alpha1.ActionPowerOn && moment.Sub(w.Time) > span:
		case kind == policyv1alpha1.ActionWipe && !r.server(machine, moment).throughout(from, to, in(v1alpha1.StateCleanup)):
		default:
			return w.Time
		}
		return time.Time{}
	}
	return time.Time{}
}
