// SPDX-License-Identifier: Apache-2.0

// Package trace holds the test of the orders that are safety: which of custody, record, live read and request to a BMC comes
// before which. It runs the whole operator, and records outside of it: what goes to the API server, and what arrives at the
// emulated BMCs. It knows nothing of how a controller is built.
package trace

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish/emulator"
)

var (
	update = flag.Bool("update", false, "write testdata/orders.txt anew")
	tell   = flag.Bool("tell", false, "tell every event")
)

const golden = "testdata/orders.txt"

// stories are what happens to one machine each, side by side.
var stories = map[string]func(t *testing.T, w *world, machine string){
	"way": func(t *testing.T, w *world, m string) {
		w.add(t, m, emulator.PowerOff)
		w.becomes(t, m, "Available/Off")
		w.claim(t, m)
		w.becomes(t, m, "Reserved/On")
		w.power(t, m, v1alpha1.PowerOff)
		w.becomes(t, m, "Reserved/Off")
		w.power(t, m, v1alpha1.PowerOn)
		w.becomes(t, m, "Reserved/On")
		w.unclaim(t, m)
		w.becomes(t, m, "Available/Off")
	},
	"restarted": func(t *testing.T, w *world, m string) {
		machine := w.add(t, m, emulator.PowerOff)
		w.becomes(t, m, "Available/Off")
		w.claim(t, m)
		w.becomes(t, m, "Reserved/On")
		boots := machine.Boots()
		w.annotate(t, m, v1alpha1.OperationAnnotation, v1alpha1.OperationHardRestartServer)
		w.until(t, "the restart", func() (string, bool) { return "", machine.Boots() > boots })
		w.becomes(t, m, "Reserved/On")
		w.unclaim(t, m)
		w.becomes(t, m, "Available/Off")
		w.claim(t, m) // the second erasure has to have a boot of its own
		w.becomes(t, m, "Reserved/On")
		w.unclaim(t, m)
		w.becomes(t, m, "Available/Off")
	},
	"parked": func(t *testing.T, w *world, m string) {
		w.add(t, m, emulator.PowerOff)
		w.becomes(t, m, "Available/Off")
		w.annotate(t, m, v1alpha1.OperationAnnotation, v1alpha1.OperationPark)
		w.becomes(t, m, "Parked/Off")
		w.annotate(t, m, v1alpha1.OperationAnnotation, v1alpha1.OperationUnpark)
		w.becomes(t, m, "Available/Off")
	},
	"retained": func(t *testing.T, w *world, m string) {
		w.add(t, m, emulator.PowerOff)
		w.becomes(t, m, "Available/Off")
		w.claim(t, m)
		w.becomes(t, m, "Reserved/On")
		w.reclaim(t, m, v1alpha1.ReclaimPolicyRetain)
		w.unclaim(t, m)
		w.becomes(t, m, "Released/Off")
		w.reclaim(t, m, v1alpha1.ReclaimPolicyRecycle)
		w.becomes(t, m, "Available/Off")
	},
	"found": func(t *testing.T, w *world, m string) {
		w.add(t, m, emulator.PowerOn)
		w.becomes(t, m, "Observing/On")
		w.annotate(t, m, v1alpha1.ConsentAnnotation, v1alpha1.ConsentTakeOver)
		w.becomes(t, m, "Available/Off")
	},
}

// reclaim changes what becomes of a server's data.
func (w *world) reclaim(t *testing.T, machine string, policy v1alpha1.ReclaimPolicy) {
	t.Helper()
	s := w.read(t, machine)
	change(t, w, s, func(s *v1alpha1.Server) { s.Spec.ReclaimPolicy = policy })
}

func TestOrders(t *testing.T) {
	w := newWorld(t)
	t.Run("stories", func(t *testing.T) {
		for name, story := range stories {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				story(t, w, name)
			})
		}
	})
	got := w.orders()
	t.Run("seeds", func(t *testing.T) {
		for seed := range uint64(seeds) {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				w.play(t, seed)
			})
		}
		t.Run("restarts", func(t *testing.T) {
			t.Parallel()
			for range restarts {
				time.Sleep(3 * time.Second)
				w.stopManager(t)
				w.startManager(t)
			}
		})
	})
	if *tell {
		w.tell(t)
	}
	w.judge(t)
	w.agree(t, got)
	if w.together == 0 {
		t.Error("no reconcile patched both the main part and the status: nothing tells which comes first")
	}
	if *update {
		must(t, os.WriteFile(golden, []byte(strings.Join(got.lines(), "\n")+"\n"), 0o644))
		return
	}
	compare(t, got.lines())
}

// judge fails for each order that was broken.
func (w *world) judge(t *testing.T) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, fault := range w.faults {
		t.Error(fault)
	}
}

// tell tells every event.
func (w *world) tell(t *testing.T) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, s := range w.servers {
		for _, e := range s.entries {
			t.Logf("%s entry %d %s:\n  %s", name, e.number, e.key, strings.Join(e.events, "\n  "))
		}
	}
}

// compare tells what is not as in the golden file.
func compare(t *testing.T, got []string) {
	t.Helper()
	b, err := os.ReadFile(golden)
	must(t, err)
	want := strings.Split(strings.TrimSpace(string(b)), "\n")
	for _, line := range want {
		if !slices.Contains(got, line) {
			t.Errorf("not so any more: %s", line)
		}
	}
	for _, line := range got {
		if !slices.Contains(want, line) {
			t.Errorf("new: %s", line)
		}
	}
}
