// SPDX-License-Identifier: Apache-2.0

package model

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish/emulator"
	"github.com/metalaw/metalaw/test/guest"
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

// accepted says that the BMC said it would do what was asked, or did it.
func accepted(w emulator.Write) bool {
	return w.Executed || (w.Status >= http.StatusOK && w.Status < http.StatusMultipleChoices)
}

// reaches is the power state that a request leads to.
func (a asked) reaches() emulator.PowerState {
	if a.on() {
		return emulator.PowerOn
	}
	return emulator.PowerOff
}

// arms says that it sets a boot override.
func (a asked) arms() bool {
	return a.Boot.BootSourceOverrideEnabled != "" && a.Boot.BootSourceOverrideEnabled != "Disabled"
}

// judgeWrite judges one write to a BMC, whether or not the BMC carried it out.
func (r *record) judgeWrite(machine string, w emulator.Write, all []emulator.Write) {
	a := askedOf(w)
	found := func(rule, format string, args ...any) {
		args = append(args, w.Number, w.Method, w.Path, w.Body)
		r.breach(rule, machine, w.Time, format+": write %d, %s %s %s", args...)
	}
	from, _ := window(w.Time)
	if r.throughout(machine, w.Time, in(v1alpha1.StateParked, v1alpha1.StateObserving, v1alpha1.StateDecommissioned)) {
		found("6 hands off", "it was parked, observed or out of service")
	}
	if r.throughout(machine, w.Time, func(s *v1alpha1.Server) bool { return v1alpha1.Ignored(s) }) {
		found("6 hands off", "it was to be left alone")
	}
	r.judgeMaintenance(machine, w, a, found)
	if r.answering[machine].throughout(from, w.Time, func(uuid string) bool { return uuid == w.SystemUUID }) &&
		r.throughout(machine, w.Time, func(s *v1alpha1.Server) bool { return !strings.EqualFold(s.Spec.SystemUUID, w.SystemUUID) }) {
		found("7 identity first", "another machine answered, which no Server stands for")
	}
	r.judgeFreeze(machine, w, a, found)
	if a.stops() && !r.ours(machine, w, all) {
		found("5 a machine found running", "it was never ours, and nobody had consented")
	}
	if a.arms() && w.Power != emulator.PowerOff && !r.lied(machine, w.Time) &&
		r.power[machine].throughout(from, w.Time, func(p emulator.PowerState) bool { return p != emulator.PowerOff }) {
		found("4 what a running machine boots", "its power was %s", w.Power)
	}
	r.judgePower(machine, w, a, found)
	r.judgePatience(machine, w, a, all, found)
}

// judgeFreeze asks whether what was asked for was frozen.
func (r *record) judgeFreeze(machine string, w emulator.Write, a asked, found func(string, string, ...any)) {
	wipes := a.on() && r.throughout(machine, w.Time, in(v1alpha1.StateCleanup))
	switch {
	case r.frozen(machine, w.Time, policyv1alpha1.FreezeAll):
		found("8 freeze", "everything was frozen")
	case a.ResetType != "" && r.throughout(machine, w.Time, in(v1alpha1.StateMaintenance)) &&
		r.frozen(machine, w.Time, policyv1alpha1.FreezeMaintenance, policyv1alpha1.FreezeDestructive):
		found("8 freeze", "maintenances were frozen")
	case (a.stops() || wipes) && r.frozen(machine, w.Time, policyv1alpha1.FreezeAll, policyv1alpha1.FreezeDestructive):
		found("8 freeze", "what stops machines or erases data was frozen")
	}
}

// judgePower asks whether anybody wanted what was asked for.
func (r *record) judgePower(machine string, w emulator.Write, a asked, found func(string, string, ...any)) {
	reserved := r.throughout(machine, w.Time, in(v1alpha1.StateReserved))
	switch {
	case a.ResetType == "":
	case a.stops() && reserved:
		r.judgeStop(machine, w, found)
	case a.stops():
		r.judgeEviction(machine, w, found)
	case a.on() && r.throughout(machine, w.Time, in(v1alpha1.StateAvailable, v1alpha1.StateReleased, v1alpha1.StateError, v1alpha1.StateInitial)):
		found("nobody switches on", "its state asks for no such thing")
	case a.on() && reserved && r.idle(machine, "", w.Time):
		tenant := r.held(machine, w.Time, func(c *v1alpha1.ServerClaim) bool { return c.Spec.Power == v1alpha1.PowerOff })
		if tenant != "" && r.idle(machine, tenant, w.Time) {
			found("nobody switches on", "claim %s wants it off", tenant)
		}
		if r.throughout(machine, w.Time, func(s *v1alpha1.Server) bool { return s.Annotations[v1alpha1.ReleasedClaimAnnotation] != "" }) {
			found("nobody switches on", "its claim was released")
		}
	}
}

// judgeStop asks whether the holder of a machine, or its end, or anybody else wanted it to stop.
func (r *record) judgeStop(machine string, w emulator.Write, found func(string, string, ...any)) {
	from, to := window(w.Time)
	s, there := r.server(machine, w.Time).at(w.Time)
	if !there || r.lied(machine, w.Time) {
		return
	}
	uid := s.Annotations[v1alpha1.ClaimUIDAnnotation]
	tenant := r.tenants[uidOf(uid)]
	holds := func(s *v1alpha1.Server) bool {
		return s.Spec.ServerClaimRef != nil && s.Annotations[v1alpha1.ClaimUIDAnnotation] == uid &&
			s.Annotations[v1alpha1.ReleasedClaimAnnotation] == ""
	}
	ends := func(c *v1alpha1.ServerClaim) bool {
		return c.Spec.Power == v1alpha1.PowerOff || !c.DeletionTimestamp.IsZero()
	}
	asked := func(c *v1alpha1.ServerClaim) bool { return c.Annotations[v1alpha1.OperationAnnotation] != "" }
	if tenant == "" || !r.throughout(machine, w.Time, holds) || !r.idle(machine, "", w.Time) ||
		r.claims[tenant].ever(from, to, ends) || r.claims[tenant].ever(from, to, asked) {
		return
	}
	if _, exists := r.claims[tenant].at(w.Time); !exists {
		found("1 absence is not evidence", "claim %s is gone, and no release was recorded", tenant)
		return
	}
	found("a holder's machine runs", "claim %s wants it on, and nobody asked for anything else", tenant)
}

// judgeEviction asks whether anybody ended the tenancy of whoever runs on a machine that is stopped for another end. The
// hands that clear a reference or force a server end it too.
func (r *record) judgeEviction(machine string, w emulator.Write, found func(string, string, ...any)) {
	if !r.throughout(machine, w.Time, in(v1alpha1.StateCleanup, v1alpha1.StateReleased)) || r.waivedBy(machine, w.Time) ||
		r.handed[serverOf(machine)] || r.lied(machine, w.Time) {
		return
	}
	var runs string
	for _, b := range r.boots[machine] {
		if b.At.Before(w.Time) {
			runs = ""
			if b.Kind == guest.KindImage {
				runs = tenantOf(b.Image)
			}
		}
	}
	if runs == "" || w.Power != emulator.PowerOn {
		return
	}
	for tenant := range r.claims {
		if r.heir(tenant, runs) && r.released(machine, tenant, w.Time) {
			return
		}
	}
	found("1 absence is not evidence", "claim %s runs on it, and nobody had ended it", runs)
}

// lied says that the BMC did not tell its power in the time before an act.
func (r *record) lied(machine string, at time.Time) bool {
	return r.lying[machine].ever(at.Add(-before-staleness), at, func(lies bool) bool { return lies })
}

// ours says that a machine may be stopped: since its Server was made the operator asked to switch it on, or a claim held
// it, or somebody consented.
func (r *record) ours(machine string, w emulator.Write, all []emulator.Write) bool {
	h := r.server(machine, w.Time)
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
	return h.ever(since, w.Time.Add(after), func(v *v1alpha1.Server) bool { return v.UID == s.UID && r.takenOver(v, w.Time) })
}

// takenOver says that a version of a server tells why its machine may be stopped.
func (r *record) takenOver(s *v1alpha1.Server, by time.Time) bool {
	if s.Annotations[v1alpha1.ConsentAnnotation] == v1alpha1.ConsentTakeOver || (s.Spec.ServerClaimRef != nil && r.claimOf(s) != "") {
		return true
	}
	if l := s.Status.Lifecycle; l != nil && l.Request != nil { // recorded before, though it may never have reached the BMC
		return l.Request.Action == v1alpha1.PowerActionOn && l.Request.AskedAt.Time.Before(by)
	}
	return false
}

// claimOf is the tenant whose claim agreed at some time with what a server version says.
func (r *record) claimOf(s *v1alpha1.Server) string {
	for tenant, h := range r.claims {
		for _, v := range h {
			if v.gone || string(v.object.UID) != s.Annotations[v1alpha1.ClaimUIDAnnotation] {
				continue
			}
			if ref := v.object.Spec.ServerRef; ref != nil && ref.Name == s.Name {
				return tenant
			}
		}
	}
	return ""
}
