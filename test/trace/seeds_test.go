// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish/emulator"
)

// Each seed is a plan for one machine. Unlike those of test/model, which are played to a program of its own, these are played
// to the manager that is recorded.
const (
	seeds, steps = 6, 14
	seedPrefix   = "seed-"
	longestPause = 600 * time.Millisecond
	restarts     = 2
)

// steps are what a seed chooses among.
var actions = []func(t *testing.T, w *world, m *emulator.Machine){
	claims, claims, claims, unclaims, unclaims,
	func(t *testing.T, w *world, m *emulator.Machine) { w.power(t, m.Name(), v1alpha1.PowerOff) },
	func(t *testing.T, w *world, m *emulator.Machine) { w.power(t, m.Name(), v1alpha1.PowerOn) },
	operates(v1alpha1.OperationHardRestartServer), operates(v1alpha1.OperationForceOffServer), operates(v1alpha1.OperationPark),
	operates(v1alpha1.OperationUnpark), operates(v1alpha1.OperationUnpark), operates(v1alpha1.OperationRetry),
	func(t *testing.T, w *world, m *emulator.Machine) {
		w.reclaim(t, m.Name(), v1alpha1.ReclaimPolicyRetain)
	},
	func(t *testing.T, w *world, m *emulator.Machine) {
		w.reclaim(t, m.Name(), v1alpha1.ReclaimPolicyRecycle)
	},
	func(_ *testing.T, _ *world, m *emulator.Machine) { // refuses the next write
		m.Inject(emulator.Fault{Method: "POST,PATCH", Path: "/redfish/v1/Systems/**", Count: 1,
			Action: emulator.Action{Status: http.StatusServiceUnavailable}})
	},
	func(_ *testing.T, _ *world, m *emulator.Machine) { // does the next one and does not say so
		m.Inject(emulator.Fault{Method: "POST", Path: "/redfish/v1/Systems/**", Count: 1, Action: emulator.Action{Execute: true, Reset: true}})
	},
}

func claims(t *testing.T, w *world, m *emulator.Machine) {
	t.Helper()
	w.claim(t, m.Name())
}

func unclaims(t *testing.T, w *world, m *emulator.Machine) {
	t.Helper()
	w.unclaim(t, m.Name())
}

func operates(operation string) func(*testing.T, *world, *emulator.Machine) {
	return func(t *testing.T, w *world, m *emulator.Machine) {
		t.Helper()
		w.annotate(t, m.Name(), v1alpha1.OperationAnnotation, operation)
	}
}

// play carries the plan of a seed out, and leaves the machine alone at the end.
func (w *world) play(t *testing.T, seed uint64) {
	t.Helper()
	m := w.add(t, fmt.Sprintf("%s%d", seedPrefix, seed), emulator.PowerOff)
	w.becomes(t, m.Name(), "Available/Off")
	dice := rand.New(rand.NewPCG(seed, seed))
	for range steps {
		actions[dice.IntN(len(actions))](t, w, m)
		time.Sleep(time.Duration(dice.Int64N(int64(longestPause))))
	}
	w.unclaim(t, m.Name())
	w.reclaim(t, m.Name(), v1alpha1.ReclaimPolicyRecycle)
	time.Sleep(2 * time.Second)
}

// agree fails for each entry in which an order is another than in the stories. What seeds meet besides is not compared: it may
// differ from run to run.
func (w *world) agree(t *testing.T, want orders) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	compared := 0
	for name, s := range w.servers {
		if !strings.HasPrefix(name, seedPrefix) {
			continue
		}
		for _, e := range s.entries {
			known := want[e.key]
			for pair := range known.before {
				a, hasA := e.first[pair[0]]
				b, hasB := e.first[pair[1]]
				if hasA && hasB {
					compared++
				}
				if hasA && hasB && b < a {
					t.Errorf("%s, %s: %s came before %s:\n  %s", name, e.key, pair[1], pair[0], strings.Join(e.events, "\n  "))
				}
			}
			for kind, read := range known.guards {
				if got, asked := e.guards[kind]; asked && len(without(read, got)) > 0 {
					t.Errorf("%s, %s: no live read of %s before %s", name, e.key, strings.Join(without(read, got), ", "), kind)
				}
			}
		}
	}
	t.Logf("compared %d pairs", compared)
}
