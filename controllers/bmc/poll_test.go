// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish"
)

// told sets a condition of a Server, as its own controller does.
func told(kind string, holds bool) func(*v1alpha1.Server) {
	status := metav1.ConditionFalse
	if holds {
		status = metav1.ConditionTrue
	}
	return func(s *v1alpha1.Server) {
		meta.SetStatusCondition(&s.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: "Because"})
	}
}

var (
	readsWell   = told(v1alpha1.ConditionBMCReachable, true)
	unreached   = told(v1alpha1.ConditionBMCReachable, false)
	otherSystem = told(v1alpha1.ConditionIdentityMismatch, true)
)

func TestABMCIsReadSeldomOnlyWhileItsServersAreReadWell(t *testing.T) {
	ignored := func(s *v1alpha1.Server) {
		s.Annotations = map[string]string{v1alpha1.OperationAnnotation: v1alpha1.OperationIgnore}
	}
	deleted := func(s *v1alpha1.Server) { s.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }
	type changes []func(*v1alpha1.Server)
	for name, c := range map[string]struct {
		servers []changes
		want    int
	}{
		"no server":                         {nil, 0},
		"one that was not read yet":         {[]changes{{}}, 0},
		"one that is read well":             {[]changes{{readsWell}}, 1},
		"one that is not reached":           {[]changes{{unreached}}, 0},
		"one in whose place another is":     {[]changes{{readsWell, otherSystem}}, 0},
		"two that are read well":            {[]changes{{readsWell}, {readsWell}}, 2},
		"one of two is not reached":         {[]changes{{readsWell}, {unreached}}, 0},
		"one that nobody reads any more":    {[]changes{{readsWell, ignored}}, 0},
		"one that goes":                     {[]changes{{readsWell, deleted}}, 0},
		"one that is read, beside one gone": {[]changes{{readsWell}, {unreached, deleted}}, 1},
	} {
		var servers []v1alpha1.Server
		for _, list := range c.servers {
			s := v1alpha1.Server{}
			for _, change := range list {
				change(&s)
			}
			servers = append(servers, s)
		}
		if got := vouching(servers); got != c.want {
			t.Errorf("%s: %d", name, got)
		}
	}
}

func TestAnIdleBMCIsAskedLittleForEachOfItsServers(t *testing.T) {
	for _, servers := range []int{1, 2, 3, 8} {
		inWorld(t, func(w *world) {
			w.changeServer("b-system-0", readsWell)
			for i := 1; i < servers; i++ {
				name := fmt.Sprintf("b-system-%d", i)
				uuid, uri := fmt.Sprintf("33333333-3333-3333-3333-%012d", i), fmt.Sprintf("/redfish/v1/Systems/more-%d", i)
				w.devices["b"].systems[uri] = redfish.Identity{UUID: uuid}
				w.devices["b"].manager.SystemURIs = append(w.devices["b"].manager.SystemURIs, uri)
				w.create(&v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: name},
					Spec: v1alpha1.ServerSpec{SystemUUID: uuid, SystemURI: uri, BMCRef: reference("b")}})
				w.changeServer(name, readsWell)
			}
			w.rest("b")
			w.devices["b"].seen()
			const hours = 48
			w.pass("b", hours*time.Hour)
			reads := len(w.devices["b"].seen())
			// The list of systems is one more request with each read; a read of a Server every 3 min makes 19 in an hour.
			lists := reads / (servers + 1)
			if each := float64(reads+lists) / hours / float64(servers); reads == 0 || each > 0.9 {
				t.Errorf("%d servers: %d reads and %d lists, which are %.2f for each server and hour", servers, reads, lists, each)
			}
		})
	}
}

func TestTroubleWithAServerIsLookedIntoOnce(t *testing.T) {
	for name, c := range map[string]struct {
		trouble func(*v1alpha1.Server)
		want    []string
	}{
		"its BMC is not reached":        {unreached, []string{"manager", uri1}},
		"another system is there":       {otherSystem, []string{"manager", uri1}},
		"all is well":                   {readsWell, nil},
		"a condition of another matter": {told(v1alpha1.ConditionReady, false), nil},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.changeServer("b-system-0", readsWell)
				w.rest("b")
				time.Sleep(2 * time.Second)
				w.devices["b"].seen()
				w.changeServer("b-system-0", c.trouble)
				w.pass("b", 2*time.Minute)
				if diff := cmp.Diff(c.want, w.devices["b"].seen()); diff != "" {
					t.Errorf("read: %s", diff)
				}
			})
		})
	}
}

func TestAnOutageOfAServerIsSeenAtItsBMCAtOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		w.changeServer("b-system-0", readsWell)
		w.rest("b")
		time.Sleep(time.Minute)
		w.devices["b"].change(func(d *device) { d.fails = errSilent })
		w.changeServer("b-system-0", unreached)
		w.pass("b", 2*time.Second)
		w.expect("b", "Ready", "False ConnectionFailed")
	})
}

func TestOnlyTroubleOfAServerWakesItsBMC(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*v1alpha1.Server)
		want   bool
	}{
		"it was not reached":         {unreached, true},
		"another system is there":    {otherSystem, true},
		"it was read":                {readsWell, false},
		"it moved":                   {func(s *v1alpha1.Server) { s.Status.State = v1alpha1.StateReserved }, false},
		"it names another BMC":       {func(s *v1alpha1.Server) { s.Spec.BMCRef = reference("c") }, true},
		"somebody changed its label": {func(s *v1alpha1.Server) { s.Labels = map[string]string{"a": "b"} }, false},
	} {
		before := &v1alpha1.Server{Spec: v1alpha1.ServerSpec{BMCRef: reference("b")}}
		after := before.DeepCopy()
		c.change(after)
		if got := concerning.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestASystemThatTheListShowedIsNotReadAgain(t *testing.T) {
	listed := func(uuid string) redfish.SystemSnapshot {
		return redfish.SystemSnapshot{URI: uri1, Identity: redfish.Identity{UUID: uuid}, TakenAt: time.Now()}
	}
	for name, c := range map[string]struct {
		listed     []redfish.SystemSnapshot
		unreadable []string
		reads      []string
		systems    []string
	}{
		"the list is remembered":      {nil, nil, []string{"manager", uri1}, []string{uuid1}},
		"the list shows the system":   {[]redfish.SystemSnapshot{listed(uuid2)}, nil, []string{"manager"}, []string{uuid2}},
		"the list shows no UUID":      {[]redfish.SystemSnapshot{listed("")}, nil, []string{"manager", uri1}, []string{uuid1}},
		"a system could not be shown": {[]redfish.SystemSnapshot{listed(uuid2)}, []string{uri2}, []string{"manager"}, []string{uuid2, "the BMC lists it and does not show it"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDevice(uuid1)
			d.manager.Listed, d.manager.Unreadable = c.listed, c.unreadable
			reading, err := newReader(time.Now).read(t.Context(), d, targetOf("b"))
			if err != nil {
				t.Fatal(err)
			}
			var systems []string
			for _, s := range reading.Systems {
				systems = append(systems, s.Identity.UUID+s.Err)
			}
			if diff := cmp.Diff(c.systems, systems); diff != "" {
				t.Errorf("systems: %s", diff)
			}
			if diff := cmp.Diff(c.reads, d.seen()); diff != "" {
				t.Errorf("reads: %s", diff)
			}
			if reading.Manager.Listed != nil {
				t.Error("what the list says besides makes two readings differ")
			}
		})
	}
}

func TestAnIdentityIsAsOldAsTheListThatShowedIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDevice(uuid1)
		d.manager.Listed = []redfish.SystemSnapshot{{URI: uri1, Identity: redfish.Identity{UUID: uuid1}, TakenAt: time.Now()}}
		time.Sleep(time.Minute)
		r := newReader(time.Now)
		for _, after := range []time.Duration{0, identityFor - time.Minute} { // the second is when the list was read an hour ago
			time.Sleep(after)
			if _, err := r.read(t.Context(), d, targetOf("b")); err != nil {
				t.Fatal(err)
			}
			d.manager.Listed = nil
		}
		if diff := cmp.Diff([]string{"manager", "manager", uri1}, d.seen()); diff != "" {
			t.Errorf("reads: %s", diff)
		}
	})
}

func TestAReadingThatWasHandedOverIsAsOldAsItIs(t *testing.T) {
	inWorld(t, func(w *world) {
		d, taken := w.devices["b"], time.Now()
		d.change(func(d *device) { d.manager.TakenAt = taken })
		time.Sleep(2 * time.Minute)
		if again := w.rest("b"); again < time.Minute || again > 66*time.Second {
			t.Errorf("it is read again after %s, want a minute, and up to a tenth more: three minutes after it was taken", again)
		}
		if got := w.subject.cache.Reading(w.subject.names.get("b")); !got.Begun.Equal(taken) || !got.At.Equal(taken) {
			t.Errorf("begun at %s and taken at %s, want %s", got.Begun, got.At, taken)
		}
	})
}

func TestWhenAReadingWasTakenMakesNoDifference(t *testing.T) {
	if !Same(Reading{TakenAt: time.Unix(1, 0)}, Reading{TakenAt: time.Unix(2, 0)}) {
		t.Error("two readings that show the same differ")
	}
}
