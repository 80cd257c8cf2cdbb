// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/loop"
)

// An acceptance, the annotation that lets a new system be managed, speaks of what is behind the BMC when it is written. So
// it counts on a reading that was begun after it was seen: hardware that was exchanged back since, or moved on, would
// otherwise become a Server that stands for nothing.

// acceptances remembers since when this process has seen the acceptance that each BMC bears.
type acceptances struct {
	mu sync.Mutex
	of map[string]acceptance // by the UID of the BMC
}

type acceptance struct {
	value string
	seen  time.Time
	// message is that of its last event.
	message string
}

func newAcceptances() *acceptances { return &acceptances{of: map[string]acceptance{}} }

// see notes the value that a BMC bears now, and returns since when it has; the zero time where it bears none. A repeated
// call with the same value returns the same.
func (a *acceptances) see(uid, value string, now time.Time) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	if value == "" {
		delete(a.of, uid)
		return time.Time{}
	}
	if a.of[uid].value != value {
		a.of[uid] = acceptance{value: value, seen: now}
	}
	return a.of[uid].seen
}

// news says that no event had this message about the acceptance last, and notes that one has now.
func (a *acceptances) news(uid, message string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	entry, known := a.of[uid]
	if !known || entry.message == message {
		return false
	}
	entry.message = message
	a.of[uid] = entry
	return true
}

func (a *acceptances) forget(uid string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.of, uid)
}

// acceptedText is what the annotation says, in the spelling of UUIDs.
func acceptedText(b *v1alpha1.BMC) string {
	return strings.ToLower(strings.TrimSpace(b.Annotations[v1alpha1.AcceptSystemAnnotation]))
}

// unreadSince is the moment after which the BMC has to be read because of its acceptance; the zero time where a reading
// is from after it, or where there is none.
func (v *scope) unreadSince() time.Time {
	seen := v.acceptances.see(string(v.bmc.UID), acceptedText(v.bmc), v.now)
	if seen.IsZero() || v.cache.Reading(v.name).Begun.After(seen) {
		return time.Time{}
	}
	return seen
}

// acceptanceCounts says that the acceptance was seen before the reading was begun.
func (v *scope) acceptanceCounts() bool {
	seen := v.acceptances.see(string(v.bmc.UID), acceptedText(v.bmc), v.now)
	return !seen.IsZero() && v.reading.Begun.After(seen)
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
