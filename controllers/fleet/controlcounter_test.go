// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
)

func TestACounterThatFollowedEveryChangeCountsAsOneThatIsBegunNow(t *testing.T) {
	spec := policyv1alpha1.FleetControlSpec{
		Breaker: &policyv1alpha1.Breaker{MaxPercent: 1, MinServers: ptr.To[int32](1)},
		Budgets: []policyv1alpha1.Budget{
			{Name: "on", Action: "PowerOn", Max: ptr.To[int32](3)},
			{Name: "off-per-zone", Action: "ForcedOff", Max: ptr.To[int32](3), Per: zone, WindowSeconds: ptr.To[int32](60)},
			{Name: "wipe-in-z1", Action: "Wipe", Max: ptr.To[int32](3), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{zone: "z1"}}},
		},
	}
	control := &policyv1alpha1.FleetControl{Spec: spec}
	random := rand.New(rand.NewPCG(1, 2))
	g := newGate(t, &spec)
	changes := []func(*v1alpha1.Server){
		func(*v1alpha1.Server) {}, beingWiped, asked("On", time.Minute), asked("ForceOff", 30*time.Second), asked("ForceOff", 2*time.Minute),
		entered(v1alpha1.StateError, time.Minute), entered(v1alpha1.StateError, time.Hour), operated("force-on-server", time.Second),
	}
	g.counters.counts(control)
	for turn := range 2000 {
		name := fmt.Sprint("s", random.IntN(20))
		switch random.IntN(10) {
		case 0:
			g.counters.forget(name)
		case 1:
			g.counters.grant(newServer(name, "z1"), "PowerOn", noon)
		default:
			g.counters.see(newServer(name, fmt.Sprint("z", random.IntN(3)), changes[random.IntN(len(changes))]))
		}
		followed := g.counters.counts(control)
		g.counters.controlCounter = nil
		begun := g.counters.counts(control)
		every := func(*account, string, int32) bool { return true }
		if diff := cmp.Diff(begun.usage(noon, every), followed.usage(noon, every)); diff != "" {
			t.Fatalf("turn %d: - begun now, + followed:\n%s", turn, diff)
		}
		of := len(g.counters.machines)
		if diff := cmp.Diff(begun.breaker.trips(of, noon), followed.breaker.trips(of, noon)); diff != "" {
			t.Fatalf("turn %d: - begun now, + followed:\n%s", turn, diff)
		}
		g.counters.controlCounter = followed
	}
}

func TestACounterTellsWhenTheFirstOtherCeasesToCount(t *testing.T) {
	in := func(s int) time.Time { return noon.Add(time.Duration(s) * time.Second) }
	for name, c := range map[string]struct {
		until map[string]time.Time
		used  int32
		free  time.Duration
	}{
		"none":                                {nil, 0, 0},
		"itself alone":                        {map[string]time.Time{"me": in(5)}, 0, 0},
		"the first of others":                 {map[string]time.Time{"a": in(9), "b": in(7), "c": in(8)}, 3, 7 * time.Second},
		"the first besides itself":            {map[string]time.Time{"me": in(1), "a": in(9), "b": in(7), "c": in(8)}, 3, 7 * time.Second},
		"one other":                           {map[string]time.Time{"me": in(1), "a": in(9)}, 1, 9 * time.Second},
		"whoever is over counts no more":      {map[string]time.Time{"a": in(0), "b": in(-3), "c": in(4)}, 1, 4 * time.Second},
		"those of which it cannot be told":    {map[string]time.Time{"a": {}, "b": {}}, 2, 0},
		"the first of which it can be told":   {map[string]time.Time{"a": {}, "b": in(3)}, 2, 3 * time.Second},
		"itself, which is the first, and one": {map[string]time.Time{"a": {}, "me": in(3)}, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var counts counter
			for name, until := range c.until {
				counts.set(name, in(100))
				counts.set(name, until)
			}
			counts.set("gone", in(1))
			counts.drop("gone")
			if used, free := counts.count("me", noon); used != c.used || free != c.free {
				t.Errorf("%d, %s", used, free)
			}
		})
	}
}
