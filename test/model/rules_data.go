// SPDX-License-Identifier: Apache-2.0

package model

import (
	"strings"
	"time"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish/emulator"
	"github.com/metalaw/metalaw/test/guest"
)

// judgeBoot judges what a machine booted.
func (r *record) judgeBoot(machine string, b boot) {
	found := func(rule, format string, args ...any) { r.breach(rule, machine, b.At, format, args...) }
	switch b.Kind {
	case guest.KindImage:
		tenant := tenantOf(b.Image)
		for drive, contents := range b.drives {
			if owner := tenantOf(contents); owner != "" && !r.heir(tenant, owner) && !r.waivedBy(machine, b.At) {
				found("3 nobody gets another's data", "%s of claim %s was booted while %s held %q", b.Image, tenant, drive, contents)
			}
		}
		from, to := window(b.At)
		if !r.server(machine, b.At).ever(from, to, func(s *v1alpha1.Server) bool {
			return r.tenants[uidOf(s.Annotations[v1alpha1.ClaimUIDAnnotation])] == tenant && s.Spec.ServerClaimRef != nil
		}) {
			found("a machine boots for its holder only", "%s was booted, whose claim %s does not hold it", b.Image, tenant)
		}
	case guest.KindWipe:
		r.judgeWipe(machine, b.At, "the wipe image was booted", "")
		r.judgeHijack(machine, b)
	case guest.KindProbe:
		if tenant := r.held(machine, b.At, anyClaim); tenant != "" && r.throughout(machine, b.At, in(v1alpha1.StateReserved)) {
			found("a machine boots for its holder only", "the probe was booted, while claim %s holds it", tenant)
		}
		r.judgeHijack(machine, b)
	case guest.KindLive:
		if r.consentTo(machine, b.At, true) == "" {
			found("a machine boots for its holder only", "%s was booted, for no maintenance that had the machine", b.Image)
		}
	case guest.KindInstalled, guest.KindNothing: // its own disk
	}
}

// judgeHijack finds an agent that was booted where none belongs.
func (r *record) judgeHijack(machine string, b boot) {
	if r.throughout(machine, b.At, in(v1alpha1.StateReserved, v1alpha1.StateReleased, v1alpha1.StateParked, v1alpha1.StateObserving,
		v1alpha1.StateAvailable, v1alpha1.StateMaintenance, v1alpha1.StateDecommissioned)) {
		r.breach("4 what a running machine boots", machine, b.At, "an agent was booted (%s %s), which its state asks for at no moment",
			b.Kind, b.Configuration)
	}
}

// judgeErase judges that a disk begins to be erased.
func (r *record) judgeErase(machine string, e emulator.Happening) {
	r.judgeWipe(machine, e.At, "the erase of "+e.Drive+" was begun", tenantOf(e.Contents))
	if r.frozen(machine, e.At, policyv1alpha1.FreezeDestructive, policyv1alpha1.FreezeAll) {
		r.breach("8 freeze", machine, e.At, "the erase of %s was begun, and wipes were frozen", e.Drive)
	}
}

// judgeWipe judges that data is erased, or about to be: somebody who may do so must have asked for it.
func (r *record) judgeWipe(machine string, at time.Time, what, owner string) {
	found := func(rule, format string, args ...any) { r.breach(rule, machine, at, what+", and "+format, args...) }
	if r.waivedBy(machine, at) {
		return
	}
	if r.throughout(machine, at, func(s *v1alpha1.Server) bool { return v1alpha1.Ignored(s) }) {
		found("6 hands off", "it was to be left alone")
	}
	if r.throughout(machine, at, in(v1alpha1.StateMaintenance, v1alpha1.StateDecommissioned)) {
		found("6 hands off", "it was in maintenance, or out of service")
	}
	if tenant := r.held(machine, at, anyClaim); tenant != "" {
		found("2 never wipe while claimed", "claim %s holds it", tenant)
	}
	if r.throughout(machine, at, func(s *v1alpha1.Server) bool {
		return s.Spec.ReclaimPolicy == v1alpha1.ReclaimPolicyRetain && s.Spec.ServerClaimRef != nil
	}) {
		found("2 never wipe while retained", "its data is retained")
	}
	if words := r.unreleased(machine, at, owner); words != "" {
		found("1 absence is not evidence", "%s", words)
	}
}

// unreleased says why the data of an owner may not be erased: no release was recorded, or none that counts; empty where it
// may.
func (r *record) unreleased(machine string, at time.Time, owner string) string {
	from, to := window(at)
	records := map[string]bool{}
	r.server(machine, at).ever(from, to, func(s *v1alpha1.Server) bool {
		if record := s.Annotations[v1alpha1.ReleasedClaimAnnotation]; record != "" {
			records[record] = true
		}
		return false
	})
	if len(records) == 0 {
		return "no release was recorded"
	}
	var refused []string
	for record := range records {
		tenant := r.tenants[uidOf(record)]
		switch {
		case !r.released(machine, tenant, at):
			refused = append(refused, "nobody asked for the release of "+record+" ("+tenant+")")
		case owner != "" && tenant == "" && r.released(machine, owner, at): // of a Server that was made anew
			return ""
		case owner != "" && !r.heir(tenant, owner):
			refused = append(refused, "the data is "+owner+"'s, and the release "+tenant+"'s")
		default:
			return ""
		}
	}
	return strings.Join(refused, "; ")
}

// released says that somebody asked for the end of a tenant: the claim was deleted in order, or its release was asked for by
// hand after it had gone.
func (r *record) released(machine, tenant string, at time.Time) bool {
	h := r.claims[tenant]
	if h.ever(r.begun, at.Add(after), func(c *v1alpha1.ServerClaim) bool { return !c.DeletionTimestamp.IsZero() }) {
		return true
	}
	if _, alive := h.at(at); alive {
		return false
	}
	for _, asked := range r.releases[serverOf(machine)] {
		if asked.Before(at) {
			return true
		}
	}
	return false
}

// waivedBy says that somebody who may do so set the rules that guard data aside before an act.
func (r *record) waivedBy(machine string, at time.Time) bool {
	for _, s := range r.waived[machine] {
		if s.from.Before(at.Add(after)) && (s.to.IsZero() || at.Before(s.to)) {
			return true
		}
	}
	return false
}

// judgeOffer finds a server that is offered with a tenant's data on its disks.
func (r *record) judgeOffer(machine string, at time.Time) {
	from, to := window(at)
	if !r.server(machine, at).throughout(from, to, in(v1alpha1.StateAvailable)) || r.waivedBy(machine, at) {
		return
	}
	for drive, h := range r.drives[machine] {
		if h.throughout(from, to, func(contents string) bool { return tenantOf(contents) != "" }) {
			contents, _ := h.at(at)
			r.breach("3 never offer what is dirty", machine, at, "it is Available, and %s holds %q", drive, contents)
		}
	}
}
