// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

const zone = v1alpha1.ZoneLabel

// newServer is a server in a zone, as stored.
func newServer(name, in string, change ...func(*v1alpha1.Server)) *v1alpha1.Server {
	s := &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{zone: in}}}
	s.Status.State = v1alpha1.StateReserved
	s.Status.Lifecycle = &v1alpha1.LifecycleStatus{Entry: 3, EnteredAt: metav1.NewMicroTime(noon.Add(-time.Hour))}
	for _, c := range change {
		c(s)
	}
	return s
}

func asked(action v1alpha1.PowerAction, ago time.Duration) func(*v1alpha1.Server) {
	return func(s *v1alpha1.Server) {
		s.Status.Lifecycle.Request = &v1alpha1.PowerRequest{Action: action, AskedAt: metav1.NewMicroTime(noon.Add(-ago))}
	}
}

// operated is a server with an operation that was recorded an hour ago and had to wait before it was begun.
func operated(name string, ago time.Duration) func(*v1alpha1.Server) {
	return func(s *v1alpha1.Server) {
		begun := metav1.NewMicroTime(noon.Add(-ago))
		s.Status.Operation = &v1alpha1.OperationStatus{Name: name, State: v1alpha1.OperationSucceeded,
			StartedAt: metav1.NewMicroTime(noon.Add(-time.Hour)), BegunAt: &begun}
	}
}

func beingWiped(s *v1alpha1.Server) {
	s.Status.Lifecycle.Credential = &v1alpha1.ProbeCredential{Purpose: v1alpha1.ProbePurposeWipe}
}

func entered(state v1alpha1.ServerState, ago time.Duration) func(*v1alpha1.Server) {
	return func(s *v1alpha1.Server) {
		s.Status.State, s.Status.Lifecycle.EnteredAt = state, metav1.NewMicroTime(noon.Add(-ago))
	}
}

func newGate(t *testing.T, spec *policyv1alpha1.FleetControlSpec, servers ...*v1alpha1.Server) *Gate {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := policyv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	api := fake.NewClientBuilder().WithScheme(scheme)
	if spec != nil {
		api = api.WithObjects(&policyv1alpha1.FleetControl{ObjectMeta: metav1.ObjectMeta{Name: "fleet"}, Spec: *spec})
	}
	reader := api.Build()
	g := &Gate{Client: reader, Reader: reader, Now: func() time.Time { return noon }}
	for _, s := range servers {
		g.counters.see(s)
	}
	return g
}

// changeControl changes the stored FleetControl, as an API server does: with another generation.
func changeControl(t *testing.T, g *Gate, change func(*policyv1alpha1.FleetControl)) {
	t.Helper()
	c, err := g.Control(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	change(c)
	c.Generation++
	if err := g.Client.(client.Client).Update(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}

func permit(t *testing.T, g *Gate, s *v1alpha1.Server, action Action) Verdict {
	t.Helper()
	v, err := g.Permit(t.Context(), s, action)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestWhatAFreezeHoldsBack(t *testing.T) {
	freezes := func(f ...policyv1alpha1.Freeze) *policyv1alpha1.FleetControlSpec {
		return &policyv1alpha1.FleetControlSpec{Freezes: f}
	}
	inA := &metav1.LabelSelector{MatchLabels: map[string]string{zone: "a"}}
	broken := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: zone, Operator: "Roughly"}}}
	ends := func(in time.Duration) *metav1.Time { at := metav1.NewTime(noon.Add(in)); return &at }
	for name, c := range map[string]struct {
		spec        *policyv1alpha1.FleetControlSpec
		observeOnly bool
		held        []Action
	}{
		"nothing without a FleetControl":           {nil, false, nil},
		"nothing without a freeze":                 {freezes(), false, nil},
		"nothing at level None":                    {freezes(policyv1alpha1.Freeze{Name: "x", Level: "None"}), false, nil},
		"what stops or erases at Destructive":      {freezes(policyv1alpha1.Freeze{Name: "x", Level: "Destructive"}), false, []Action{Shutdown, ForcedOff, PowerCycle, Wipe}},
		"whatever reaches a machine at All":        {freezes(policyv1alpha1.Freeze{Name: "x", Level: "All"}), false, []Action{Setting, PowerOn, Shutdown, ForcedOff, PowerCycle, Wipe}},
		"nothing on servers that are not selected": {freezes(policyv1alpha1.Freeze{Name: "x", Level: "All", Selector: inA}), false, nil},
		"everything where the selector cannot be read": {freezes(policyv1alpha1.Freeze{Name: "x", Level: "All", Selector: broken}), false,
			[]Action{Setting, PowerOn, Shutdown, ForcedOff, PowerCycle, Wipe}},
		"nothing once it has ended": {freezes(policyv1alpha1.Freeze{Name: "x", Level: "All", Until: ends(0)}), false, nil},
		"until it ends":             {freezes(policyv1alpha1.Freeze{Name: "x", Level: "Destructive", Until: ends(time.Second)}), false, []Action{Shutdown, ForcedOff, PowerCycle, Wipe}},
		"the strictest of several": {freezes(policyv1alpha1.Freeze{Name: "x", Level: "All"}, policyv1alpha1.Freeze{Name: "y", Level: "None"}), false,
			[]Action{Setting, PowerOn, Shutdown, ForcedOff, PowerCycle, Wipe}},
		"all of it, and what is only written down, when the manager only observes": {nil, true,
			[]Action{Record, Setting, PowerOn, Shutdown, ForcedOff, PowerCycle, Wipe}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer("s", "b")
			g := newGate(t, c.spec, s)
			g.ObserveOnly = c.observeOnly
			var held []Action
			for _, action := range []Action{Record, Setting, PowerOn, Shutdown, ForcedOff, PowerCycle, Wipe} {
				if !permit(t, g, s, action).Allowed {
					held = append(held, action)
				}
			}
			if diff := cmp.Diff(c.held, held); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWhatABudgetAllows(t *testing.T) {
	budget := func(action policyv1alpha1.FleetAction, most int32, per string) *policyv1alpha1.FleetControlSpec {
		return &policyv1alpha1.FleetControlSpec{Budgets: []policyv1alpha1.Budget{{Name: "b", Action: action, Max: ptr.To(most), Per: per}}}
	}
	for name, c := range map[string]struct {
		spec    *policyv1alpha1.FleetControlSpec
		others  []*v1alpha1.Server
		action  Action
		allowed bool
		again   time.Duration
	}{
		"a power-on while others were switched on long ago": {budget("PowerOn", 1, ""),
			[]*v1alpha1.Server{newServer("o", "a", asked("On", 11*time.Minute))}, PowerOn, true, 0},
		"no power-on beyond the number": {budget("PowerOn", 1, ""),
			[]*v1alpha1.Server{newServer("o", "a", asked("On", 9*time.Minute+30*time.Second))}, PowerOn, false, 30 * time.Second},
		"one more where the number is two": {budget("PowerOn", 2, ""),
			[]*v1alpha1.Server{newServer("o", "a", asked("On", time.Minute))}, PowerOn, true, 0},
		"another action": {budget("PowerOn", 1, ""),
			[]*v1alpha1.Server{newServer("o", "a", asked("On", time.Minute))}, ForcedOff, true, 0},
		"a power-on in another zone": {budget("PowerOn", 1, zone),
			[]*v1alpha1.Server{newServer("o", "b", asked("On", time.Minute))}, PowerOn, true, 0},
		"no power-on in the same zone": {budget("PowerOn", 1, zone),
			[]*v1alpha1.Server{newServer("o", "a", asked("On", time.Minute))}, PowerOn, false, askAgain},
		"no wipe beside one that is under way, however old": {budget("Wipe", 1, ""),
			[]*v1alpha1.Server{newServer("o", "a", beingWiped)}, Wipe, false, askAgain},
		"no forced power-off after one that an operation asked for": {budget("ForcedOff", 1, ""),
			[]*v1alpha1.Server{newServer("o", "a", operated("force-off-server", 9*time.Minute+50*time.Second))}, ForcedOff, false, 10 * time.Second},
		"no power cycle beyond the number": {budget("PowerCycle", 1, ""),
			[]*v1alpha1.Server{newServer("o", "a", operated("hard-restart-server", 9*time.Minute+50*time.Second))}, PowerCycle, false, 10 * time.Second},
		"a power cycle while one waits or ended before it was begun": {budget("PowerCycle", 1, ""),
			[]*v1alpha1.Server{newServer("o", "a", func(s *v1alpha1.Server) {
				s.Status.Operation = &v1alpha1.OperationStatus{Name: "hard-restart-server", State: v1alpha1.OperationFailed, StartedAt: metav1.NewMicroTime(noon)}
			})}, PowerCycle, true, 0},
		"nothing where the number is none":    {budget("PowerOn", 0, ""), nil, PowerOn, false, askAgain},
		"a shutdown, which no budget counts":  {budget("ForcedOff", 0, ""), nil, Shutdown, true, 0},
		"its own former power-on is no other": {budget("PowerOn", 1, ""), []*v1alpha1.Server{newServer("s", "a", asked("On", time.Minute))}, PowerOn, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer("s", "a")
			v := permit(t, newGate(t, c.spec, append([]*v1alpha1.Server{s}, c.others...)...), s, c.action)
			if v.Allowed != c.allowed || v.Again != c.again {
				t.Errorf("allowed %v again in %v (%s), want %v and %v", v.Allowed, v.Again, v.Message, c.allowed, c.again)
			}
			if !c.allowed && v.Reason != v1alpha1.ReasonBudgetExhausted {
				t.Errorf("reason %q", v.Reason)
			}
		})
	}
}

func TestWhatIsAllowedCountsAtOnce(t *testing.T) {
	spec := &policyv1alpha1.FleetControlSpec{Budgets: []policyv1alpha1.Budget{{Name: "b", Action: "PowerOn", Max: ptr.To[int32](1)}}}
	a, b := newServer("a", "z"), newServer("b", "z")
	g := newGate(t, spec, a, b)
	if !permit(t, g, a, PowerOn).Allowed {
		t.Fatal("the first is not allowed")
	}
	if permit(t, g, b, PowerOn).Allowed {
		t.Error("the second is allowed before the first is recorded")
	}
	g.Now = func() time.Time { return noon.Add(2 * time.Minute) }
	if !permit(t, g, b, PowerOn).Allowed {
		t.Error("a grant that nobody recorded counts for ever")
	}
}

func TestNothingIsAllowedBeforeEveryServerIsKnown(t *testing.T) {
	s := newServer("s", "a")
	g := newGate(t, &policyv1alpha1.FleetControlSpec{}, s)
	g.complete = func() bool { return false }
	if permit(t, g, s, PowerOn).Allowed {
		t.Error("allowed")
	}
}

func TestTheBreaker(t *testing.T) {
	fleet := func(failed, fine int, ago time.Duration) []*v1alpha1.Server {
		var all []*v1alpha1.Server
		for i := range failed + fine {
			s := newServer(string(rune('a'+i)), "z")
			if i < failed {
				entered(v1alpha1.StateError, ago)(s)
			}
			all = append(all, s)
		}
		return all
	}
	ack := metav1.NewMicroTime(noon.Add(-30 * time.Second))
	for name, c := range map[string]struct {
		breaker policyv1alpha1.Breaker
		servers []*v1alpha1.Server
		trips   bool
	}{
		"trips beyond its share":                               {policyv1alpha1.Breaker{MaxPercent: 40}, fleet(5, 5, time.Minute), true},
		"holds at its share":                                   {policyv1alpha1.Breaker{MaxPercent: 50}, fleet(5, 5, time.Minute), false},
		"holds while few servers failed":                       {policyv1alpha1.Breaker{MaxPercent: 10}, fleet(4, 1, time.Minute), false},
		"trips over few where it says so":                      {policyv1alpha1.Breaker{MaxPercent: 10, MinServers: ptr.To[int32](1)}, fleet(1, 4, time.Minute), true},
		"forgets what happened before its window":              {policyv1alpha1.Breaker{MaxPercent: 10}, fleet(5, 5, 11*time.Minute), false},
		"looks back as far as it says":                         {policyv1alpha1.Breaker{MaxPercent: 10, WindowSeconds: ptr.To[int32](3600)}, fleet(5, 5, 11*time.Minute), true},
		"counts the states that it names":                      {policyv1alpha1.Breaker{MaxPercent: 10, States: []string{"Parked"}}, fleet(5, 5, time.Minute), false},
		"does not count again what was acknowledged":           {policyv1alpha1.Breaker{MaxPercent: 10, AcknowledgedAt: &ack}, fleet(5, 5, time.Minute), false},
		"trips again over what came after the acknowledgement": {policyv1alpha1.Breaker{MaxPercent: 10, AcknowledgedAt: &ack}, fleet(5, 5, time.Second), true},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGate(t, &policyv1alpha1.FleetControlSpec{Breaker: &c.breaker}, c.servers...)
			told := false
			g.tripped = func() { told = true }
			v := permit(t, g, c.servers[len(c.servers)-1], Wipe)
			if v.Allowed == c.trips || told != c.trips {
				t.Errorf("allowed %v, told %v, want it to trip: %v (%s)", v.Allowed, told, c.trips, v.Message)
			}
			if c.trips && v.Reason != v1alpha1.ReasonBreakerTripped {
				t.Errorf("reason %q", v.Reason)
			}
			if !permit(t, g, c.servers[0], PowerOn).Allowed {
				t.Error("a breaker holds back a power-on")
			}
		})
	}
}

func TestAServerThatPassedThroughAStateEnteredIt(t *testing.T) {
	passed := func(ago time.Duration) func(*v1alpha1.Server) {
		return func(s *v1alpha1.Server) {
			entered(v1alpha1.StateAvailable, ago-time.Second)(s)
			s.Status.Lifecycle.History = []v1alpha1.LifecycleMove{
				{From: "Reserved", To: "Cleanup", At: metav1.NewMicroTime(noon.Add(-ago))},
				{From: "Cleanup", To: "Available", At: metav1.NewMicroTime(noon.Add(-ago + time.Second))},
			}
		}
	}
	for name, c := range map[string]struct {
		ago   time.Duration
		trips bool
	}{
		"within the window": {9 * time.Minute, true},
		"before the window": {11 * time.Minute, false},
	} {
		t.Run(name, func(t *testing.T) {
			var servers []*v1alpha1.Server
			for _, name := range []string{"a", "b", "c", "d", "e"} {
				servers = append(servers, newServer(name, "z", passed(c.ago)))
			}
			g := newGate(t, &policyv1alpha1.FleetControlSpec{Breaker: &policyv1alpha1.Breaker{MaxPercent: 50}}, servers...)
			if v := permit(t, g, servers[0], Wipe); v.Allowed == c.trips {
				t.Errorf("allowed %v, want it to trip: %v", v.Allowed, c.trips)
			}
		})
	}
}

func TestWhatAMachineUnderwentCountsAlsoWhenItIsAskedForSomethingElse(t *testing.T) {
	spec := &policyv1alpha1.FleetControlSpec{Budgets: []policyv1alpha1.Budget{{Name: "b", Action: "PowerOn", Max: ptr.To[int32](1)}}}
	b := newServer("b", "z")
	g := newGate(t, spec, newServer("a", "z", asked("On", 2*time.Minute)), b)
	g.counters.see(newServer("a", "z", asked("ForceOff", time.Minute)))
	if permit(t, g, b, PowerOn).Allowed {
		t.Error("the power-on is forgotten with the next request")
	}
	g.counters.forget("a")
	if !permit(t, g, b, PowerOn).Allowed {
		t.Error("a server that is gone counts")
	}
}

func TestSeveralGrantsOfOneMachineCountEach(t *testing.T) {
	spec := &policyv1alpha1.FleetControlSpec{Budgets: []policyv1alpha1.Budget{
		{Name: "on", Action: "PowerOn", Max: ptr.To[int32](1)}, {Name: "off", Action: "ForcedOff", Max: ptr.To[int32](1)},
	}}
	a, b := newServer("a", "z"), newServer("b", "z")
	g := newGate(t, spec, a, b)
	if !permit(t, g, a, PowerOn).Allowed || !permit(t, g, a, ForcedOff).Allowed {
		t.Fatal("the first are not allowed")
	}
	if permit(t, g, b, PowerOn).Allowed || permit(t, g, b, ForcedOff).Allowed {
		t.Error("the later grant took the place of the former")
	}
}

func TestAWipeThatHasEndedCountsNoMore(t *testing.T) {
	spec := &policyv1alpha1.FleetControlSpec{Budgets: []policyv1alpha1.Budget{{Name: "b", Action: "Wipe", Max: ptr.To[int32](1)}}}
	a, b := newServer("a", "z", beingWiped), newServer("b", "z")
	g := newGate(t, spec, a, b)
	if !permit(t, g, a, Wipe).Allowed { // it goes on
		t.Fatal("its own wipe stands in its way")
	}
	g.counters.see(newServer("a", "z"))
	if v := permit(t, g, b, Wipe); !v.Allowed {
		t.Error(v.Message)
	}
}

func TestWhichFreezesHoldMaintenancesBack(t *testing.T) {
	for level, want := range map[policyv1alpha1.FreezeLevel][]Action{
		policyv1alpha1.FreezeNone:        nil,
		policyv1alpha1.FreezeMaintenance: {Maintenance},
		policyv1alpha1.FreezeDestructive: {Shutdown, ForcedOff, AgentOff, PowerCycle, Wipe, Maintenance},
		policyv1alpha1.FreezeAll:         {Setting, PowerOn, Shutdown, ForcedOff, AgentOff, PowerCycle, Wipe, BMCRestart, Maintenance},
	} {
		t.Run(string(level), func(t *testing.T) {
			var got []Action
			for a := Record; a <= Maintenance; a++ {
				if a.HeldBy(level) {
					got = append(got, a)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestABudgetOfMaintenancesCountsTheServersThatAreInOne(t *testing.T) {
	named := newServer("named", "a", func(s *v1alpha1.Server) {
		s.Spec.ServerMaintenanceRef = &v1alpha1.ObjectReference{Namespace: "ops", Name: "disks"}
	})
	leaving := newServer("leaving", "a", func(s *v1alpha1.Server) { s.Status.State = v1alpha1.StateMaintenance })
	budget := policyv1alpha1.Budget{Name: "b", Action: policyv1alpha1.ActionMaintenance, Max: ptr.To[int32](3)}
	got := Count([]policyv1alpha1.Budget{budget}, []v1alpha1.Server{*named, *leaving, *newServer("free", "a")}, nil, noon)
	want := []Use{{BudgetUsage: policyv1alpha1.BudgetUsage{Name: "b", Used: 2}, Max: 3}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
