// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
)

func TestAManagerThatComesAfterCountsAlsoWhatWasBegunBeforeTheLastRequest(t *testing.T) {
	for name, c := range map[string]struct {
		action policyv1alpha1.FleetAction
		asks   Action
		ago    time.Duration
		counts bool
	}{
		"a power-on before a forced power-off": {"PowerOn", PowerOn, 2 * time.Minute, true},
		"a restart before another operation":   {"PowerCycle", PowerCycle, 2 * time.Minute, true},
		"nothing that is long ago":             {"PowerOn", PowerOn, 11 * time.Minute, false},
	} {
		t.Run(name, func(t *testing.T) {
			spec := &policyv1alpha1.FleetControlSpec{Budgets: []policyv1alpha1.Budget{{Name: "b", Action: c.action, Max: ptr.To[int32](1)}}}
			a, b := newServer("a", "z", asked("ForceOff", time.Minute)), newServer("b", "z")
			Begin(a.Status.Lifecycle, c.asks, metav1.NewMicroTime(noon.Add(-c.ago-time.Hour)), metav1.Duration{})
			Begin(a.Status.Lifecycle, c.asks, metav1.NewMicroTime(noon.Add(-c.ago)), metav1.Duration{})
			Begin(a.Status.Lifecycle, ForcedOff, metav1.NewMicroTime(noon.Add(-time.Minute)), metav1.Duration{})
			if n := len(a.Status.Lifecycle.Begun); n != 2 {
				t.Errorf("%d entries for two actions", n)
			}
			if v := permit(t, newGate(t, spec, a, b), b, c.asks); v.Allowed == c.counts {
				t.Errorf("allowed %v: %s", v.Allowed, v.Message)
			}
		})
	}
}

func TestWhatIsBegunAndNotCountedLeavesNoRecord(t *testing.T) {
	l := &v1alpha1.LifecycleStatus{}
	for _, action := range []Action{Record, Setting, Shutdown, Wipe} {
		Begin(l, action, metav1.NewMicroTime(noon), metav1.Duration{})
	}
	if l.Begun != nil {
		t.Errorf("%+v", l.Begun)
	}
}

func TestAWipeCountsForAsLongAsDisksAreErased(t *testing.T) {
	const uuid, swapped = "00112233-4455-6677-8899-aabbccddeeff", "33221100-5544-7766-8899-aabbccddeeff"
	inventory := func(name string, state policyv1alpha1.WipeState, ago time.Duration) *policyv1alpha1.ServerInventory {
		i := &policyv1alpha1.ServerInventory{ObjectMeta: metav1.ObjectMeta{Name: name}}
		i.Wipe = &policyv1alpha1.WipeReport{State: state, UpdatedAt: metav1.NewMicroTime(noon.Add(-ago))}
		return i
	}
	for name, c := range map[string]struct {
		inventory *policyv1alpha1.ServerInventory
		counts    bool
	}{
		"while it is reported as running":              {inventory(uuid, "Running", 30*time.Second), true},
		"in the other spelling of the UUID":            {inventory(swapped, "Running", 30*time.Second), true},
		"not once the agent is silent":                 {inventory(uuid, "Running", policyv1alpha1.WipeSilence), false},
		"not once it is verified":                      {inventory(uuid, "Verified", 30*time.Second), false},
		"not where another machine's disks are erased": {inventory("77112233-4455-6677-8899-aabbccddeeff", "Running", time.Second), false},
	} {
		t.Run(name, func(t *testing.T) {
			spec := &policyv1alpha1.FleetControlSpec{Budgets: []policyv1alpha1.Budget{{Name: "b", Action: "Wipe", Max: ptr.To[int32](1)}}}
			failed := newServer("a", "z", entered(v1alpha1.StateError, time.Minute), func(s *v1alpha1.Server) { s.Spec.SystemUUID = uuid })
			b := newServer("b", "z")
			after := newGate(t, spec, failed, b)
			after.counters.hear(c.inventory.Name, erasingUntil(c.inventory))
			before := newGate(t, spec)
			before.counters.hear(c.inventory.Name, erasingUntil(c.inventory))
			before.counters.see(failed)
			for when, g := range map[string]*Gate{"after its server": after, "before its server": before} {
				if v := permit(t, g, b, Wipe); v.Allowed == c.counts {
					t.Errorf("heard of %s: allowed %v", when, v.Allowed)
				}
			}
			used := Count(spec.Budgets, []v1alpha1.Server{*failed, *b}, []policyv1alpha1.ServerInventory{*c.inventory}, noon)
			if counted := used[0].Used == 1; counted != c.counts {
				t.Errorf("metalaw fleet status shows %+v", used)
			}
			if !c.counts {
				return
			}
			after.counters.hear(c.inventory.Name, time.Time{})
			if v := permit(t, after, b, Wipe); !v.Allowed {
				t.Errorf("counts though its inventory is gone: %s", v.Message)
			}
		})
	}
}

func TestAGrantIsRecognisedByTheRecordOfTheReconcileThatAskedForIt(t *testing.T) {
	spec := &policyv1alpha1.FleetControlSpec{Budgets: []policyv1alpha1.Budget{
		{Name: "b", Action: "PowerOn", Max: ptr.To[int32](1), WindowSeconds: ptr.To[int32](10)}}}
	a, b := newServer("a", "z"), newServer("b", "z")
	g := newGate(t, spec, a, b)
	at := noon.Add(5 * time.Second) // the scope began at noon
	g.Now = func() time.Time { return at }
	if !permit(t, g, a, PowerOn).Allowed {
		t.Fatal("the first is not allowed")
	}
	g.counters.see(newServer("a", "z", asked("On", 0)))
	at = noon.Add(9 * time.Second)
	if permit(t, g, b, PowerOn).Allowed {
		t.Error("the record does not count")
	}
	at = noon.Add(11 * time.Second)
	if v := permit(t, g, b, PowerOn); !v.Allowed {
		t.Error("the grant counts besides its record: " + v.Message)
	}
}

func TestAnAdoptedFleetTripsNoBreaker(t *testing.T) {
	adopted := func(state v1alpha1.ServerState, before ...v1alpha1.LifecycleMove) func(*v1alpha1.Server) {
		return func(s *v1alpha1.Server) {
			entered(state, time.Minute)(s)
			s.Status.Lifecycle.Rule = "Adopted"
			s.Status.Lifecycle.History = append(before, v1alpha1.LifecycleMove{To: state, Rule: "Adopted", At: metav1.NewMicroTime(noon.Add(-time.Minute))})
		}
	}
	for name, c := range map[string]struct {
		server func(*v1alpha1.Server)
		trips  bool
	}{
		"taken over in a state that is watched": {adopted(v1alpha1.StateError), false},
		"that failed before it was taken over again": {adopted(v1alpha1.StateError,
			v1alpha1.LifecycleMove{From: "Reserved", To: "Error", Rule: "Failed", At: metav1.NewMicroTime(noon.Add(-2 * time.Minute))}), true},
		"that fails": {entered(v1alpha1.StateError, time.Minute), true},
	} {
		t.Run(name, func(t *testing.T) {
			var servers []*v1alpha1.Server
			for _, name := range []string{"a", "b", "c", "d", "e"} {
				servers = append(servers, newServer(name, "z", c.server))
			}
			g := newGate(t, &policyv1alpha1.FleetControlSpec{Breaker: &policyv1alpha1.Breaker{MaxPercent: 50}}, servers...)
			if v := permit(t, g, servers[0], Wipe); v.Allowed == c.trips {
				t.Errorf("allowed %v: %s", v.Allowed, v.Message)
			}
		})
	}
}

func TestAnErrorForHiddenStorageAloneTripsNoBreaker(t *testing.T) {
	move := func(entry int64, ago time.Duration, uncounted bool) v1alpha1.LifecycleMove {
		return v1alpha1.LifecycleMove{From: "Cleanup", To: "Error", Rule: "WipeFailed", Entry: entry, Uncounted: uncounted,
			At: metav1.NewMicroTime(noon.Add(-ago))}
	}
	for name, c := range map[string]struct {
		history []v1alpha1.LifecycleMove
		trips   bool
	}{
		"for it alone":                       {[]v1alpha1.LifecycleMove{move(7, time.Minute, true)}, false},
		"for it alone, after a real failure": {[]v1alpha1.LifecycleMove{move(5, 2*time.Minute, false), move(7, time.Minute, true)}, true},
		"for a disk":                         {[]v1alpha1.LifecycleMove{move(7, time.Minute, false)}, true},
		"for a disk, after one for it alone": {[]v1alpha1.LifecycleMove{move(5, 2*time.Minute, true), move(7, time.Minute, false)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			var servers []*v1alpha1.Server
			for _, name := range []string{"a", "b", "c", "d", "e"} {
				servers = append(servers, newServer(name, "z", func(s *v1alpha1.Server) {
					entered(v1alpha1.StateError, time.Minute)(s)
					s.Status.Lifecycle.Entry, s.Status.Lifecycle.History = 7, c.history
				}))
			}
			g := newGate(t, &policyv1alpha1.FleetControlSpec{Breaker: &policyv1alpha1.Breaker{MaxPercent: 50}}, servers...)
			if v := permit(t, g, servers[0], Wipe); v.Allowed == c.trips {
				t.Errorf("allowed %v: %s", v.Allowed, v.Message)
			}
		})
	}
}

func TestThePowerOffOfAnAgentUsesUpNoBudget(t *testing.T) {
	off := func(uncounted bool) func(*v1alpha1.Server) {
		return func(s *v1alpha1.Server) {
			s.Status.Lifecycle = &v1alpha1.LifecycleStatus{Request: &v1alpha1.PowerRequest{Action: v1alpha1.PowerActionForceOff,
				AskedAt: metav1.NewMicroTime(noon.Add(-time.Minute)), Uncounted: uncounted}}
		}
	}
	one := &policyv1alpha1.FleetControlSpec{Budgets: []policyv1alpha1.Budget{{Name: "off", Action: policyv1alpha1.ActionForcedOff, Max: ptr.To[int32](1)}}}
	frozen := &policyv1alpha1.FleetControlSpec{Freezes: []policyv1alpha1.Freeze{{Name: "f", Level: policyv1alpha1.FreezeDestructive}}}
	for name, c := range map[string]struct {
		spec   *policyv1alpha1.FleetControlSpec
		before func(*v1alpha1.Server)
		action Action
		want   bool
	}{
		"a tenant's after an agent's":              {one, off(true), ForcedOff, true},
		"a tenant's after a tenant's":              {one, off(false), ForcedOff, false},
		"an agent's after a tenant's":              {one, off(false), AgentOff, true},
		"a freeze holds that of an agent back too": {frozen, off(true), AgentOff, false},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := newServer("a", "z", c.before), newServer("b", "z")
			g := newGate(t, c.spec, a, b)
			if v := permit(t, g, b, c.action); v.Allowed != c.want {
				t.Errorf("allowed %t: %s", v.Allowed, v.Message)
			}
		})
	}
}
