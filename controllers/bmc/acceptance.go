// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/loop"
)

// An acceptance, the annotation that lets a new system be managed, speaks of what is behind the BMC when it is written. So
// it counts on a reading that was begun after it was seen: hardware that was exchanged back since, or moved on, would
// otherwise become a Server that stands for nothing.

// acceptance is the one that a BMC bears, and since when this process has seen it.
type acceptance struct {
	value string
	seen  time.Time
	// message is that of its last event.
	message string
}

// acceptedText is what the annotation says, in the spelling of UUIDs.
func acceptedText(b *v1alpha1.BMC) string {
	return strings.ToLower(strings.TrimSpace(b.Annotations[v1alpha1.AcceptSystemAnnotation]))
}

// acceptanceSeen is since when this process has seen the acceptance; the zero time where there is none. It counts on a
// reading that was begun after that.
func (v *scope) acceptanceSeen() time.Time {
	uid, value := string(v.bmc.UID), acceptedText(v.bmc)
	if value == "" {
		v.acceptances.forget(uid)
		return time.Time{}
	}
	if v.acceptances.get(uid).value != value {
		v.acceptances.put(uid, acceptance{value: value, seen: v.now})
	}
	return v.acceptances.get(uid).seen
}

// judgeAcceptance says what becomes of the acceptance. It is consumed where it was served, and where it cannot come true;
// else it stays, and remark says what it waits for.
func (p *plan) judgeAcceptance(f facts) {
	if f.accepted == "" || p.consumed {
		return
	}
	name := v1alpha1.AcceptSystemAnnotation
	shown, unread := f.look(f.accepted)
	known := f.byUUID[shown]
	switch {
	case !usableUUID.MatchString(f.accepted):
		p.consumed = true
		p.remark = fmt.Sprintf("the annotation %s is no UUID of a system (%q), and was removed; %s",
			name, loop.Shortened(f.accepted, maxOperation), p.acceptable())
	case f.registered(f.accepted):
		p.consumed = true
		p.remark = fmt.Sprintf("the system with UUID %s has its Server behind this BMC, so that nothing is left to accept; "+
			"the annotation %s was removed", f.accepted, name)
	case shown != "" && slices.ContainsFunc(p.steps, func(s step) bool { return s.uuid == shown }):
		p.consumed = true // the Server that stands for it comes here
	case shown != "" && len(known) > 0:
		p.consumed = true
		p.remark = fmt.Sprintf("the annotation %s cannot decide about the system with UUID %s, because Server %s stands for it already; "+
			"it was removed; the condition %s says what to do", name, f.accepted, known[0].name, v1alpha1.ConditionSystemsAccepted)
	case shown != "":
		p.remark = fmt.Sprintf("the annotation %s=%s waits until nothing else stands in the way of that system", name, f.accepted)
	case unread:
		p.remark = fmt.Sprintf("the annotation %s=%s waits, because not every system behind the BMC can be read, and none that can shows this UUID",
			name, f.accepted)
	default:
		p.remark = fmt.Sprintf("the annotation %s=%s names no system behind the BMC, and waits for one; %s; correct the annotation, or remove it",
			name, f.accepted, p.acceptable())
	}
}

// look finds a system by its UUID, as the BMC spells it, and says whether one could not be read.
func (f facts) look(uuid string) (shown string, unread bool) {
	for _, s := range f.systems {
		if s.Err != "" {
			unread = true
			continue
		}
		if isSystem(uuid, s.Identity.UUID) {
			shown = strings.ToLower(s.Identity.UUID)
		}
	}
	return shown, unread
}

// acceptable says what an acceptance could name.
func (p *plan) acceptable() string {
	var waiting []string
	for _, r := range p.refusals {
		if r.reason == v1alpha1.ReasonSystemUnaccepted {
			waiting = append(waiting, r.uuid)
		}
	}
	return cmp.Or(strings.Join(waiting, ", "), "no system") + " behind the BMC waits to be accepted"
}
