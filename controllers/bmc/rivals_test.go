// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

// servers lists "name bmc" of the Servers.
func (w *world) servers() []string {
	w.t.Helper()
	var list v1alpha1.ServerList
	w.must(w.api.List(w.t.Context(), &list))
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name+" "+bmcOf(&list.Items[i]))
	}
	slices.Sort(names)
	return names
}

func (w *world) expectServers(want ...string) {
	w.t.Helper()
	if diff := cmp.Diff(want, w.servers()); diff != "" {
		w.t.Errorf("servers: %s", diff)
	}
}

// twin adds the BMC c, which shows the same system as b, and takes the Server away that stood for it.
func (w *world) twin() {
	w.t.Helper()
	w.devices["c"] = newDevice(uuid1)
	w.addBMC("c")
	w.must(w.api.DeleteAllOf(w.t.Context(), &v1alpha1.Server{}))
}

func TestWithoutAnIncumbentNeitherOfTwoBMCsGetsTheSystem(t *testing.T) {
	inWorld(t, func(w *world) {
		w.rest("b")
		w.devices["c"] = newDevice(uuid1)
		w.addBMC("c")
		w.rest("c")
		w.expect("c", "SystemsAccepted", "False SystemConflict")
		w.expectServers("b-system-0 b")

		w.must(w.api.DeleteAllOf(t.Context(), &v1alpha1.Server{}))
		for range 3 {
			w.rest("b")
			w.rest("c")
		}
		w.expect("b", "SystemsAccepted", "False SystemConflict")
		w.expect("c", "SystemsAccepted", "False SystemConflict")
		w.expectServers()

		w.start() // the one that a new process reads first is no incumbent either
		w.rest("c")
		w.rest("b")
		w.rest("c")
		w.expectServers()

		w.must(client.IgnoreNotFound(w.api.Delete(t.Context(), w.bmc("c"))))
		w.rest("c")
		w.rest("b")
		w.expect("b", "SystemsAccepted", "True SystemsKnown")
		w.expectServers("b-system-0 b")
	})
}

func TestARivalThatIsLostForLongIsNone(t *testing.T) {
	inWorld(t, func(w *world) {
		w.twin()
		w.rest("b")
		w.expectServers("b-system-0 b")
		w.rest("c")
		w.must(w.api.DeleteAllOf(t.Context(), &v1alpha1.Server{}))
		w.rest("b")
		w.rest("c")
		w.expectServers()
		w.devices["c"].change(func(d *device) { d.fails = errSilent })
		w.pass("c", 5*time.Minute)
		w.rest("b")
		w.expectServers()
		w.pass("c", 10*time.Minute)
		w.pass("b", 5*time.Minute)
		w.expectServers("b-system-0 b")
	})
}

func TestAServerOfADeletedBMCGoesToNeitherOfTwo(t *testing.T) {
	inWorld(t, func(w *world) {
		w.rest("b")
		for _, name := range []string{"c", "d"} {
			w.devices[name] = newDevice(uuid1)
			w.addBMC(name)
			w.rest(name)
		}
		w.must(w.api.Delete(t.Context(), w.bmc("b")))
		w.rest("b")
		w.rest("c")
		w.rest("d")
		w.expectServers("b-system-0 b")
		w.expect("c", "SystemsAccepted", "False SystemConflict")
		w.expect("d", "SystemsAccepted", "False SystemConflict")
		w.must(w.api.Delete(t.Context(), w.bmc("d")))
		w.rest("d")
		w.rest("c")
		w.expectServers("b-system-0 c")
	})
}

func TestSightingsKnowASystemInEitherByteOrder(t *testing.T) {
	s := &sightings{of: map[string][]string{}, by: index{}}
	s.note("b", []System{system(uri1, ordered), {URI: uri2, Err: "status 500"}})
	s.note("c", []System{system(uri1, uuid2)})
	if diff := cmp.Diff([]string{"b"}, s.showing(swapped)); diff != "" {
		t.Error(diff)
	}
	s.note("b", nil)
	if len(s.showing(ordered)) != 0 || !s.has("b") {
		t.Error("what a BMC no longer shows is remembered, or that it was read is not")
	}
	s.forget("b")
	if s.has("b") || len(s.by) != 1 {
		t.Errorf("a BMC that is gone is remembered: %v", s.by)
	}
}
