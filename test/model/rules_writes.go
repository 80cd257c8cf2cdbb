// SPDX-License-Identifier: Apache-2.0

package model

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish/emulator"
)

// asked is what a write asks of a machine.
type asked struct {
	ResetType emulator.ResetType
	Boot      struct{ BootSourceOverrideEnabled string }
}

func askedOf(w emulator.Write) asked {
	var a asked
	_ = json.Unmarshal([]byte(w.Body), &a) // what is no JSON asks for nothing
	return a
}

func (a asked) on() bool {
	return a.ResetType == emulator.ResetOn || a.ResetType == emulator.ResetForceOn
}

// stops says that what runs on the machine ends.
func (a asked) stops() bool { return a.ResetType != "" && !a.on() }

// restarts says that it is a request that only an operation makes.
func (a asked) restarts() bool {
	return slices.Contains([]emulator.ResetType{emulator.ResetForceRestart, emulator.ResetGracefulRestart, emulator.ResetPowerCycle}, a.ResetType)
}

// judgeWrite judges one write to a BMC, whether or not the BMC carried it out.
func (r *record) judgeWrite(machine string, w emulator.Write, all []emulator.Write) {
	a := askedOf(w)
	found := func(rule, format string, args ...any) {
		args = append(args, w.Number, w.Method, w.Path, w.Body)
		r.breach(rule, machine, w.Time, format+": write %d, %s %s %s", args...)
	}
	from, _ := window(w.Time)
	if r.throughout(machine, w.Time, in(v1alpha1.StateParked, v1alpha1.StateObserving)) {
		found("6 hands off", "it was parked or observed")
	}
	if r.throughout(machine, w.Time, func(s *v1alpha1.Server) bool { return v1alpha1.Ignored(s) }) {
		found("6 hands off", "it was to be left alone")
	}
	if r.answering[machine].throughout(from, w.Time, func(uuid string) bool { return uuid == w.SystemUUID }) &&
		r.throughout(machine, w.Time, func(s *v1alpha1.Server) bool { return !strings.EqualFold(s.Spec.SystemUUID, w.SystemUUID) }) {
		found("7 identity first", "another machine answered")
	}
	switch {
	case r.frozen(machine, w.Time, policyv1alpha1.FreezeAll):
		found("8 freeze", "everything was frozen")
	case a.stops() && r.frozen(machine, w.Time, policyv1alpha1.FreezeAll, policyv1alpha1.FreezeDestructive):
		found("8 freeze", "what stops machines was frozen")
	case a.on() && r.throughout(machine, w.Time, in(v1alpha1.StateCleanup)) && r.frozen(machine, w.Time, policyv1alpha1.FreezeAll, policyv1alpha1.FreezeDestructive):
		found("8 freeze", "wipes were frozen")
	}
	if a.stops() && !r.ours(machine, w, all) {
		found("5 a machine found running", "it was never ours, and nobody had consented")
	}
	if set := a.Boot.BootSourceOverrideEnabled; set != "" && set != "Disabled" && w.Power != emulator.PowerOff && !r.lied(machine, w.Time) &&
		r.power[machine].throughout(from, w.Time, func(p emulator.PowerState) bool { return p != emulator.PowerOff }) {
		found("4 what a running machine boots", "its power was %s", w.Power)
	}
	r.judgePower(machine, w, a, found)
}

// judgePower asks whether anybody wanted what was asked for.
func (r *record) judgePower(machine string, w emulator.Write, a asked, found func(string, string, ...any)) {
	reserved := r.throughout(machine, w.Time, in(v1alpha1.StateReserved))
	switch {
	case a.ResetType == "":
	case a.stops() && reserved:
		tenant := r.held(machine, w.Time, func(c *v1alpha1.ServerClaim) bool { return c.Spec.Power == v1alpha1.PowerOn })
		if tenant != "" && r.idle(machine, tenant, w.Time) {
			found("a holder's machine runs", "claim %s wants it on, and nobody asked for anything else", tenant)
		}
	case a.on() && r.throughout(machine, w.Time, in(v1alpha1.StateAvailable, v1alpha1.StateReleased, v1alpha1.StateError, v1alpha1.StateInitial)):
		found("nobody switches on", "its state asks for no such thing")
	case a.on() && reserved && r.idle(machine, "", w.Time):
		if tenant := r.held(machine, w.Time, func(c *v1alpha1.ServerClaim) bool { return c.Spec.Power == v1alpha1.PowerOff }); tenant != "" && r.idle(machine, tenant, w.Time) {
			found("nobody switches on", "claim %s wants it off", tenant)
		}
		if r.throughout(machine, w.Time, func(s *v1alpha1.Server) bool { return s.Annotations[v1alpha1.ReleasedClaimAnnotation] != "" }) {
			found("nobody switches on", "its claim was released")
		}
	}
}

// lied says that the BMC did not tell its power in the time before an act.
func (r *record) lied(machine string, at time.Time) bool {
	return r.lying[machine].ever(at.Add(-before-staleness), at, func(lies bool) bool { return lies })
}

// ours says that a machine may be stopped: since its Server was made the operator asked to switch it on, or a claim held
// it, or somebody consented.
func (r *record) ours(machine string, w emulator.Write, all []emulator.Write) bool {
	h := r.servers[serverOf(machine)]
	s, there := h.at(w.Time)
	if !there { // it was deleted a moment ago
		return true
	}
	var since time.Time
	for _, v := range h {
		if !v.gone && v.object.UID == s.UID {
			since = v.at
			break
		}
	}
	for _, other := range all {
		if other.Number < w.Number && !other.Time.Before(since) && askedOf(other).on() {
			return true
		}
	}
	return h.ever(since, w.Time.Add(after), func(v *v1alpha1.Server) bool {
		switch {
		case v.UID != s.UID:
			return false
		case v.Annotations[v1alpha1.ConsentAnnotation] == v1alpha1.ConsentTakeOver:
			return true
		case v.Status.Lifecycle != nil && v.Status.Lifecycle.Request != nil && v.Status.Lifecycle.Request.Action == v1alpha1.PowerActionOn:
			return true // recorded, though it may never have reached the BMC
		}
		return v.Spec.ServerClaimRef != nil && r.claimOf(v) != ""
	})
}

// claimOf is the tenant whose claim agreed at some time with what a server version says.
func (r *record) claimOf(s *v1alpha1.Server) string {
	for tenant, h := range r.claims {
		for _, v := range h {
			if !v.gone && string(v.object.UID) == s.Annotations[v1alpha1.ClaimUIDAnnotation] && v.object.Spec.ServerRef != nil && v.object.Spec.ServerRef.Name == s.Name {
				return tenant
			}
		}
	}
	return ""
}

// judgeCounts compares the power changes that a BMC carried out with the decisions that were recorded for them.
func (r *record) judgeCounts(machine string, all []emulator.Write, now time.Time) {
	decided, operations := map[v1alpha1.PowerAction]map[time.Time]bool{}, map[string]bool{}
	for _, v := range r.servers[serverOf(machine)] {
		if v.gone {
			continue
		}
		if l := v.object.Status.Lifecycle; l != nil && l.Request != nil {
			if decided[l.Request.Action] == nil {
				decided[l.Request.Action] = map[time.Time]bool{}
			}
			decided[l.Request.Action][l.Request.AskedAt.Time] = true
		}
		if op := v.object.Status.Operation; op != nil && op.Name != v1alpha1.OperationPark {
			operations[op.ID] = true
		}
	}
	done := map[v1alpha1.PowerAction]int{}
	restarts := 0
	for _, w := range all {
		if !w.Executed || w.Time.After(now) {
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
	for action, n := range done {
		if extra := n - len(decided[action]); extra > len(operations) {
			r.breach("one request for one decision", machine, now, "%s was carried out %d times, for %d decisions and %d operations", action, n, len(decided[action]), len(operations))
		}
	}
	if restarts > len(operations) {
		r.breach("one request for one decision", machine, now, "%d restarts were made, for %d operations", restarts, len(operations))
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
	const span = budgetWindow*time.Second - 2*time.Second
	wipe := kind == policyv1alpha1.ActionWipe
	if wipe && !r.throughout(machine, w.Time, in(v1alpha1.StateCleanup)) {
		return
	}
	others := 0
	earliest := w.Time
	for other, all := range writes {
		if other == machine {
			continue
		}
		for _, o := range slices.Backward(all) {
			if o.Time.After(w.Time) || !askedOf(o).on() || (!wipe && w.Time.Sub(o.Time) > span) {
				continue
			}
			if wipe && !r.servers[serverOf(other)].throughout(o.Time.Add(-before), w.Time.Add(after), in(v1alpha1.StateCleanup)) {
				break
			}
			others++
			earliest = o.Time
			break
		}
	}
	for most := range 3 {
		if others >= most && r.control.throughout(earliest.Add(-2*before), w.Time.Add(after), func(c *policyv1alpha1.FleetControl) bool {
			return slices.ContainsFunc(c.Spec.Budgets, func(b policyv1alpha1.Budget) bool { return b.Action == kind && int(*b.Max) <= most })
		}) {
			r.breach("8 budget", machine, w.Time, "%d other machines were under %s, and the budget allowed %d in all: write %d", others, kind, most, w.Number)
			return
		}
	}
}
