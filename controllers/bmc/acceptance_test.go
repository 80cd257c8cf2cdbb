// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/events"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish"
)

const absent = "33333333-3333-3333-3333-333333333333"

func TestWhatBecomesOfAnAcceptance(t *testing.T) {
	mine := behind("b", "b-system-0", uuid1, uri1)
	theirs := behind("old", "old-system-0", uuid2, uri2)
	exchanged := facts{systems: []System{system(uri1, uuid2)}, owned: []server{mine}}
	unread := facts{systems: []System{{URI: uri1, Err: "status 500"}}, owned: []server{mine}}
	contested := facts{systems: []System{system(uri1, uuid1), system(uri2, uuid2)}, owned: []server{mine}, byUUID: known(mine),
		rivals: map[string][]string{uuid2: {"twin"}}}
	elsewhere := facts{systems: []System{system(uri1, uuid2)}, owned: []server{mine}, byUUID: known(theirs), incumbents: map[string]incumbent{"old": {}}}
	comes := facts{systems: []System{system(uri1, uuid2)}, owned: []server{mine}, byUUID: known(theirs), incumbents: map[string]incumbent{"old": {gone: true}}}
	quiet := facts{systems: []System{system(uri1, uuid1)}, owned: []server{mine}, byUUID: known(mine)}
	for name, c := range map[string]struct {
		facts    facts
		accepted string
		consumed bool
		remark   string
	}{
		"nothing is said where nothing is accepted":        {facts: exchanged},
		"one that serves is consumed, and its Server told": {exchanged, uuid2, true, ""},
		"one that names another system than the one that waits says which does": {exchanged, absent, false,
			"the annotation policy.metalaw.dev/accept-system=" + absent + " names no system behind the BMC, and waits for one; " +
				uuid2 + " behind the BMC waits to be accepted; correct the annotation, or remove it"},
		"one that comes where nothing waits says so": {quiet, absent, false,
			"the annotation policy.metalaw.dev/accept-system=" + absent + " names no system behind the BMC, and waits for one; " +
				"no system behind the BMC waits to be accepted; correct the annotation, or remove it"},
		"one that is no UUID is removed": {exchanged, "new board", true,
			"the annotation policy.metalaw.dev/accept-system is no UUID of a system (\"new board\"), and was removed; " +
				uuid2 + " behind the BMC waits to be accepted"},
		"one of a system that is managed here is removed": {quiet, uuid1, true,
			"the system with UUID " + uuid1 + " has its Server behind this BMC, so that nothing is left to accept; " +
				"the annotation policy.metalaw.dev/accept-system was removed"},
		"one of a system that may be the one that cannot be read waits": {unread, uuid2, false,
			"the annotation policy.metalaw.dev/accept-system=" + uuid2 + " waits, because not every system behind the BMC can be read, " +
				"and none that can shows this UUID"},
		"one of a system that another BMC shows as well waits": {contested, uuid2, false,
			"the annotation policy.metalaw.dev/accept-system=" + uuid2 + " waits until nothing else stands in the way of that system"},
		"one of a system whose Server stays elsewhere is removed": {elsewhere, uuid2, true,
			"the annotation policy.metalaw.dev/accept-system cannot decide about the system with UUID " + uuid2 +
				", because Server old-system-0 stands for it already; it was removed; the condition SystemsAccepted says what to do"},
		"one of a system whose Server comes here is consumed": {comes, uuid2, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.facts.bmc, c.facts.takeOverAfter, c.facts.accepted = "b", 10*time.Minute, c.accepted
			p := makePlan(c.facts)
			if p.consumed != c.consumed || p.remark != c.remark {
				t.Errorf("consumed %t, %q\nwant %t, %q", p.consumed, p.remark, c.consumed, c.remark)
			}
			if _, _, message := p.verdict(); c.remark != "" && strings.Contains(message, c.remark) == c.consumed {
				t.Errorf("the condition says %q", message)
			}
		})
	}
}

func (w *world) accept(uuid string) {
	w.t.Helper()
	w.change("b", func(b *v1alpha1.BMC) { b.Annotations = map[string]string{v1alpha1.AcceptSystemAnnotation: uuid} })
}

// put exchanges the hardware behind b.
func (w *world) put(uuid string) {
	w.devices["b"].change(func(d *device) { d.systems = map[string]redfish.Identity{uri1: {UUID: uuid, SerialNumber: "S1"}} })
}

// events are those that were recorded since the last call.
func (w *world) events() []string {
	var all []string
	recorded := w.subject.Recorder.(*events.FakeRecorder).Events
	for {
		select {
		case e := <-recorded:
			all = append(all, e)
		default:
			return all
		}
	}
}

// acceptanceEvents are the reasons of those that concern an acceptance.
func (w *world) acceptanceEvents() []string {
	var reasons []string
	for _, e := range w.events() {
		if reason := strings.Fields(e)[1]; strings.HasPrefix(reason, "Acceptance") {
			reasons = append(reasons, reason)
		}
	}
	return reasons
}

func TestAnAcceptanceCountsOnceTheBMCWasReadAnew(t *testing.T) {
	for name, c := range map[string]struct {
		behind string // at the time of the acceptance
		want   string
	}{
		"the system is still there":       {uuid2, "b-system-0 " + uuid1 + ",b-system-1 " + uuid2},
		"the former system is back":       {uuid1, "b-system-0 " + uuid1},
		"a third system is there instead": {absent, "b-system-0 " + uuid1},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.put(uuid2)
				w.pass("b", time.Minute)
				w.expect("b", v1alpha1.ConditionSystemsAccepted, "False SystemUnaccepted")
				time.Sleep(time.Second)
				w.put(c.behind)
				w.accept(uuid2)
				w.pass("b", time.Minute)
				if got := strings.Join(w.machines(), ","); got != c.want {
					t.Errorf("got  %s\nwant %s", got, c.want)
				}
			})
		})
	}
}

func TestAnAcceptanceThatNamesNothingIsToldOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		w.pass("b", time.Minute)
		w.accept(absent)
		w.pass("b", time.Hour)
		if got := strings.Join(w.acceptanceEvents(), ","); got != "AcceptanceWaits" {
			t.Errorf("events %q", got)
		}
		w.put(absent)
		w.pass("b", 12*time.Hour)
		if got := strings.Join(w.machines(), ","); got != "b-system-0 "+uuid1+",b-system-1 "+absent {
			t.Errorf("it does not count for what comes later: %s", got)
		}
	})
}

func TestAnAcceptanceThatCannotServeIsRemovedWithAWord(t *testing.T) {
	inWorld(t, func(w *world) {
		w.pass("b", time.Minute)
		for range 2 { // the same value written again is answered again
			w.accept(uuid1)
			w.pass("b", time.Minute)
			if _, still := w.bmc("b").Annotations[v1alpha1.AcceptSystemAnnotation]; still {
				t.Error("the annotation stays")
			}
			if got := strings.Join(w.acceptanceEvents(), ","); got != "AcceptanceRemoved" {
				t.Errorf("events %q", got)
			}
		}
	})
}

func TestAnOperationWithoutANameIsRemovedWithAWord(t *testing.T) {
	inWorld(t, func(w *world) {
		w.rest("b")
		w.annotate("b", "")
		w.rest("b")
		if _, still := w.bmc("b").Annotations[v1alpha1.OperationAnnotation]; still {
			t.Error("the annotation stays")
		}
		want := "Warning UnknownOperation the operation annotation names no operation (a BMC knows graceful-restart-bmc, retry and ignore); it was removed"
		if got := w.events(); !slices.Contains(got, want) {
			t.Errorf("events %q", got)
		}
	})
}
