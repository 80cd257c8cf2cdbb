// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/internal/running"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(noon.Add(-d)) }

func condition(kind string, status metav1.ConditionStatus, reason, message string, since time.Duration) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: ago(since)}
}

// is and isNot are conditions that hold, and that do not, for an hour.
func is(kind, reason string) metav1.Condition {
	return condition(kind, metav1.ConditionTrue, reason, "", time.Hour)
}
func isNot(kind, reason string) metav1.Condition {
	return condition(kind, metav1.ConditionFalse, reason, "", time.Hour)
}

func server(name string, state v1alpha1.ServerState, conditions ...metav1.Condition) v1alpha1.Server {
	s := v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: ago(24 * time.Hour)}}
	s.Spec.BMCRef = &corev1.LocalObjectReference{Name: "bmc-" + name}
	s.Status.State, s.Status.Conditions = state, conditions
	s.Status.Lifecycle = &v1alpha1.LifecycleStatus{Revision: "default-1.0.0"}
	return s
}

// leads are the Leases of a manager that leads and acts.
func leads(flags running.Flags) []coordinationv1.Lease {
	beat := coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: running.HeartbeatLease}}
	beat.Spec.HolderIdentity, beat.Spec.RenewTime = ptr.To("x"), &metav1.MicroTime{Time: noon}
	replica := coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "metalaw-replica-a",
		Labels:      map[string]string{policyv1alpha1.ReplicaLabel: "true"},
		Annotations: map[string]string{policyv1alpha1.FlagsAnnotation: flags.Text()}}}
	replica.Spec.HolderIdentity, replica.Spec.RenewTime = ptr.To("a"), &metav1.MicroTime{Time: noon}
	replica.Spec.LeaseDurationSeconds = ptr.To(int32(90))
	return []coordinationv1.Lease{beat, replica}
}

func governs() policyv1alpha1.PolicyRevision {
	r := policyv1alpha1.PolicyRevision{ObjectMeta: metav1.ObjectMeta{Name: "default-1.0.0"}}
	r.Status.Stage = policyv1alpha1.StageActive
	r.Status.Conditions = []metav1.Condition{is(policyv1alpha1.ConditionActive, policyv1alpha1.ReasonInForce)}
	return r
}

// well is a fleet of one server in which nothing needs a person.
func well() Input {
	return Input{Now: noon, Leases: leads(running.Flags{Maintenance: "off"}), Revisions: []policyv1alpha1.PolicyRevision{governs()},
		Servers: []v1alpha1.Server{server("a", v1alpha1.StateAvailable, is(v1alpha1.ConditionReady, v1alpha1.ReasonStable))},
		BMCs: []v1alpha1.BMC{{ObjectMeta: metav1.ObjectMeta{Name: "bmc-a"}, Status: v1alpha1.BMCStatus{
			Conditions: []metav1.Condition{is(v1alpha1.ConditionReady, v1alpha1.ReasonConnected)}}}}}
}

func TestWhatNeedsAPerson(t *testing.T) {
	set := func(conditions ...metav1.Condition) func(*Input) {
		return func(in *Input) { in.Servers[0].Status.Conditions = conditions }
	}
	bmc := func(conditions ...metav1.Condition) func(*Input) {
		return func(in *Input) { in.BMCs[0].Status.Conditions = conditions }
	}
	claim := func(conditions ...metav1.Condition) func(*Input) {
		return func(in *Input) {
			c := v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "t", Name: "c", CreationTimestamp: ago(time.Hour)}}
			c.Status.Conditions = conditions
			in.Claims = []v1alpha1.ServerClaim{c}
		}
	}
	maintenance := func(state v1alpha1.ServerMaintenanceState, conditions ...metav1.Condition) func(*Input) {
		return func(in *Input) {
			m := v1alpha1.ServerMaintenance{ObjectMeta: metav1.ObjectMeta{Namespace: "t", Name: "m"}}
			m.Status.State, m.Status.Conditions = state, conditions
			in.Maintenances = []v1alpha1.ServerMaintenance{m}
		}
	}
	pending := v1alpha1.ServerMaintenanceStatePending
	ready, withheld := v1alpha1.ConditionReady, v1alpha1.ConditionWithheld
	for name, c := range map[string]struct {
		change  func(*Input)
		verdict Verdict
		person  []string
	}{
		"nothing is wrong": {func(*Input) {}, Well, []string{}},
		"no manager leads": {func(in *Input) { in.Leases = nil }, NeedsPerson, []string{"no manager leads"}},
		"the Leases may not be read, so that it is not known whether a manager leads": {func(in *Input) {
			in.Leases, in.Unread = nil, []Unread{{Leases, "forbidden"}}
		}, Unknown, []string{}},
		"a server needs a person, whatever could not be read": {func(in *Input) {
			in.Leases, in.Unread = nil, []Unread{{Leases, "forbidden"}}
			set(is(v1alpha1.ConditionStalled, "WipeFailed"))(in)
		}, NeedsPerson, []string{"1 server"}},
		"no revision is in force": {func(in *Input) { in.Revisions = nil }, NeedsPerson, []string{"no policy revision is in force"}},
		"a canary paused itself": {func(in *Input) {
			r := policyv1alpha1.PolicyRevision{ObjectMeta: metav1.ObjectMeta{Name: "fleet-2"}}
			r.Status.Stage, r.Status.Canary = policyv1alpha1.StageCanary, &policyv1alpha1.CanaryStatus{Paused: true}
			in.Revisions = append(in.Revisions, r)
		}, NeedsPerson, []string{"policy revision fleet-2 is a canary that paused itself"}},
		"the breaker has tripped": {func(in *Input) {
			in.Control = &policyv1alpha1.FleetControl{}
			in.Control.Spec.Breaker = &policyv1alpha1.Breaker{MaxPercent: 5}
			in.Control.Status.Trip = &policyv1alpha1.BreakerTrip{At: metav1.NewMicroTime(noon), Servers: 6, Of: 20}
		}, NeedsPerson, []string{"the breaker has tripped"}},
		"a freeze was meant": {func(in *Input) {
			in.Control = &policyv1alpha1.FleetControl{}
			in.Control.Spec.Freezes = []policyv1alpha1.Freeze{{Name: "f", Level: policyv1alpha1.FreezeAll}}
			set(isNot(ready, v1alpha1.ReasonMoving), is(withheld, v1alpha1.ReasonFrozen))(in)
		}, Well, []string{}},
		"a server is in Error":            {set(isNot(ready, "WipeFailed"), is(v1alpha1.ConditionStalled, "WipeFailed")), NeedsPerson, []string{"1 server"}},
		"a server is on its way":          {set(isNot(ready, v1alpha1.ReasonMoving)), Well, []string{}},
		"a server has lost its claim":     {set(is(v1alpha1.ConditionClaimMissing, v1alpha1.ReasonClaimNotFound)), NeedsPerson, []string{"1 server"}},
		"another machine answers":         {set(is(v1alpha1.ConditionIdentityMismatch, v1alpha1.ReasonOtherSystem)), NeedsPerson, []string{"1 server"}},
		"a server is to go out of use":    {set(is(ready, v1alpha1.ReasonStable), is(v1alpha1.ConditionFaultyHardware, v1alpha1.ReasonFaultProposed)), NeedsPerson, []string{"1 server"}},
		"a person keeps it in service":    {set(is(ready, v1alpha1.ReasonStable), is(v1alpha1.ConditionFaultyHardware, v1alpha1.ReasonFaultKept)), Well, []string{}},
		"a request is tried for an hour":  {set(isNot(ready, v1alpha1.ReasonRequestFailed)), NeedsPerson, []string{"1 server"}},
		"a request is tried for a minute": {set(condition(ready, metav1.ConditionFalse, v1alpha1.ReasonRequestFailed, "", time.Minute)), Well, []string{}},
		"a server without a status":       {set(), NeedsPerson, []string{"1 server"}},
		"a BMC refuses its password":      {bmc(isNot(ready, v1alpha1.ReasonAuthenticationFailed)), NeedsPerson, []string{"1 BMC"}},
		"a BMC is being reset": {bmc(isNot(ready, v1alpha1.ReasonConnectionFailed),
			condition(v1alpha1.ConditionReset, metav1.ConditionTrue, v1alpha1.ReasonUserRequested, "", time.Minute)), Well, []string{}},
		"a BMC shows a system that waits": {bmc(is(ready, v1alpha1.ReasonConnected),
			isNot(v1alpha1.ConditionSystemsAccepted, v1alpha1.ReasonSystemUnaccepted)), NeedsPerson, []string{"1 BMC"}},
		"a claim waits for a free server":  {claim(isNot(v1alpha1.ConditionBound, v1alpha1.ReasonNoneClaimable)), Well, []string{}},
		"waiting alone helps no claim":     {claim(isNot(v1alpha1.ConditionBound, v1alpha1.ReasonInvalidSelector), is(v1alpha1.ConditionStalled, v1alpha1.ReasonInvalidSelector)), NeedsPerson, []string{"1 claim"}},
		"a claim waits for a BMC":          {claim(isNot(v1alpha1.ConditionBound, v1alpha1.ReasonBMCUnreachable)), NeedsPerson, []string{"1 claim"}},
		"a claim without a status":         {claim(), NeedsPerson, []string{"1 claim"}},
		"the boot service reports errors":  {claim(is(v1alpha1.ConditionBound, v1alpha1.ReasonBound), isNot(ready, v1alpha1.ReasonBootError)), NeedsPerson, []string{"1 claim"}},
		"a maintenance lacks approval":     {maintenance(pending, isNot(v1alpha1.ConditionGranted, v1alpha1.ReasonWaitsForApproval)), NeedsPerson, []string{"1 maintenance"}},
		"a maintenance waits for a window": {maintenance(pending, isNot(v1alpha1.ConditionGranted, v1alpha1.ReasonWindowClosed)), Well, []string{}},
		"a maintenance is overdue":         {maintenance(v1alpha1.ServerMaintenanceStateInMaintenance, is(v1alpha1.ConditionOverdue, "Overdue")), NeedsPerson, []string{"1 maintenance"}},
		"a maintenance runs":               {maintenance(v1alpha1.ServerMaintenanceStateInMaintenance), Well, []string{}},
		"a decommission waits for disks":   {set(is(ready, v1alpha1.ReasonStable), isNot(v1alpha1.ConditionDecommission, v1alpha1.ReasonWaitsForDisks)), NeedsPerson, []string{"1 decommission"}},
	} {
		t.Run(name, func(t *testing.T) {
			in := well()
			c.change(&in)
			got := Of(in)
			if got.Verdict != c.verdict {
				t.Errorf("%s, want %s", got.Verdict, c.verdict)
			}
			if diff := cmp.Diff(c.person, got.Person); diff != "" {
				t.Errorf("- want, + got:\n%s", diff)
			}
		})
	}
}

func TestTheCauseGoesBeforeWhatFollowsFromIt(t *testing.T) {
	moving := isNot(v1alpha1.ConditionReady, v1alpha1.ReasonMoving)
	unreachable := isNot(v1alpha1.ConditionBMCReachable, v1alpha1.ReasonConnectionFailed)
	stalled := is(v1alpha1.ConditionStalled, "WipeFailed")
	withheld := is(v1alpha1.ConditionWithheld, v1alpha1.ReasonFrozen)
	missing := is(v1alpha1.ConditionClaimMissing, v1alpha1.ReasonClaimNotFound)
	for name, c := range map[string]struct {
		conditions    []metav1.Condition
		cause, reason string
	}{
		"a BMC that does not answer":   {[]metav1.Condition{moving, missing, withheld, stalled, unreachable}, v1alpha1.ConditionBMCReachable, v1alpha1.ReasonConnectionFailed},
		"a stop":                       {[]metav1.Condition{moving, missing, withheld, stalled}, v1alpha1.ConditionStalled, "WipeFailed"},
		"what is held back":            {[]metav1.Condition{moving, missing, withheld}, v1alpha1.ConditionWithheld, v1alpha1.ReasonFrozen},
		"a missing claim":              {[]metav1.Condition{moving, missing}, v1alpha1.ConditionClaimMissing, v1alpha1.ReasonClaimNotFound},
		"a server that is on its way":  {[]metav1.Condition{moving}, "", ""},
		"what is asked for once more":  {[]metav1.Condition{isNot(v1alpha1.ConditionReady, v1alpha1.ReasonRequestFailed)}, v1alpha1.ConditionReady, v1alpha1.ReasonRequestFailed},
		"a server that the BMC serves": {[]metav1.Condition{is(v1alpha1.ConditionReady, v1alpha1.ReasonStable)}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := server("a", v1alpha1.StateReserved, c.conditions...)
			got, wrong := ofServer(&s, noon)
			if wrong != (c.cause != "") || wrong && (got.Cause != c.cause || got.Reason != c.reason) {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestAClaimNamesTheBMCOfItsServer(t *testing.T) {
	in := well()
	in.Servers[0].Status.Conditions = []metav1.Condition{condition(v1alpha1.ConditionBMCReachable, metav1.ConditionFalse,
		v1alpha1.ReasonConnectionFailed, "no answer", time.Minute)}
	in.Servers[0].Spec.ServerClaimRef = &v1alpha1.ObjectReference{Namespace: "t", Name: "c"}
	in.BMCs[0].Status.Conditions = []metav1.Condition{isNot(v1alpha1.ConditionReady, v1alpha1.ReasonConnectionFailed)}
	in.Claims = []v1alpha1.ServerClaim{{ObjectMeta: metav1.ObjectMeta{Namespace: "t", Name: "c"}}}
	in.Claims[0].Spec.ServerRef = &corev1.LocalObjectReference{Name: "a"}
	in.Claims[0].Status.Phase = v1alpha1.PhaseBound
	in.Claims[0].Status.Conditions = []metav1.Condition{isNot(v1alpha1.ConditionReady, v1alpha1.ReasonBooting)}
	got := Of(in)
	want := []ClaimWait{{Namespace: "t", Name: "c", Cause: v1alpha1.ConditionBMCReachable, Reason: v1alpha1.ReasonConnectionFailed,
		Message: "the BMC of its server a cannot be used: no answer", Since: noon.Add(-time.Minute), Server: "a", Behind: "bmc-a", NeedsPerson: true}}
	if diff := cmp.Diff(want, got.Claims.Waiting); diff != "" {
		t.Errorf("- want, + got:\n%s", diff)
	}
	groups := Groups(got.NotWell)
	if len(groups) != 1 || groups[0].Kind != kindBMC || groups[0].Behind != 2 {
		t.Errorf("the server and the claim count behind the BMC: %+v", groups)
	}
}

func TestTheNewestOfWhatHappenedComesFirst(t *testing.T) {
	a, b := server("a", v1alpha1.StateReserved), server("b", v1alpha1.StateError)
	at := func(d time.Duration) metav1.MicroTime { return metav1.NewMicroTime(noon.Add(-d)) }
	a.Status.Lifecycle.History = []v1alpha1.LifecycleMove{
		{From: "Initial", To: "Available", Rule: "Inspected", At: at(2 * time.Hour)},
		{From: "Available", To: "Reserved", Rule: "Claimed", Revision: "default-1.0.0", At: at(time.Minute)}}
	a.Status.Lifecycle.Request = &v1alpha1.PowerRequest{Action: v1alpha1.PowerActionOn, AskedAt: at(30 * time.Second), Refusal: "no"}
	b.Status.Lifecycle.History = []v1alpha1.LifecycleMove{{From: "Cleanup", To: "Error", Rule: "Forced", By: "jo", Reason: "test", At: at(time.Second)}}
	b.Status.Operation = &v1alpha1.OperationStatus{Name: "retry", State: v1alpha1.OperationRefused, StartedAt: at(10 * time.Second), By: "jo", Message: "nothing to retry"}
	got := happenedOf([]v1alpha1.Server{a, b}, noon)
	want := Happened{Moves: 2, Rules: []Count{{"Claimed", 1}, {"Forced", 1}}, Last: []Event{
		{At: noon.Add(-time.Second), Server: "b", What: Move, From: "Cleanup", To: "Error", Rule: "Forced", By: "jo", Reason: "test"},
		{At: noon.Add(-10 * time.Second), Server: "b", What: "retry", State: "Refused", By: "jo", Reason: "nothing to retry"},
		{At: noon.Add(-30 * time.Second), Server: "a", What: "On", Reason: "no"},
		{At: noon.Add(-time.Minute), Server: "a", What: Move, From: "Available", To: "Reserved", Rule: "Claimed", Revision: "default-1.0.0"},
		{At: noon.Add(-2 * time.Hour), Server: "a", What: Move, From: "Initial", To: "Available", Rule: "Inspected"}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("- want, + got:\n%s", diff)
	}
	many := make([]v1alpha1.Server, 0, 50)
	for i := range 50 {
		s := server(fmt.Sprintf("s%02d", i), v1alpha1.StateAvailable)
		s.Status.Lifecycle.History = []v1alpha1.LifecycleMove{{To: "Available", Rule: "R", At: at(time.Duration(50-i) * time.Second)}}
		many = append(many, s)
	}
	if got := happenedOf(many, noon).Last; len(got) != newest || got[0].Server != "s49" || got[newest-1].Server != "s30" {
		t.Errorf("of 50 moves: %+v", got)
	}
}

func TestWhatIsHeldBackAndByWhichMode(t *testing.T) {
	in := well()
	in.Leases = leads(running.Flags{ObserveOnly: true, Maintenance: "plan"})
	in.Servers[0].Labels = map[string]string{"rack": "r1"}
	in.Servers[0].Status.Conditions = []metav1.Condition{is(v1alpha1.ConditionWithheld, v1alpha1.ReasonObserveOnly)}
	in.Control = &policyv1alpha1.FleetControl{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
	in.Control.Spec.Freezes = []policyv1alpha1.Freeze{
		{Name: "over", Level: policyv1alpha1.FreezeAll, Until: ptr.To(ago(time.Minute))},
		{Name: "r2", Level: policyv1alpha1.FreezeDestructive, By: "jo", Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"rack": "r2"}}}}
	in.Control.Spec.Budgets = []policyv1alpha1.Budget{
		{Name: "on", Action: policyv1alpha1.ActionPowerOn, Max: ptr.To(int32(4))}, {Name: "wipes", Action: policyv1alpha1.ActionWipe, Max: ptr.To(int32(2))}}
	in.Control.Status.Conditions = []metav1.Condition{is(policyv1alpha1.ConditionBudgetExhausted, "NoRoom")}
	in.Control.Status.Usage = []policyv1alpha1.BudgetUsage{{Name: "wipes", Used: 2}}
	got := Of(in).Held
	if f := got.Running.Flags(); f == nil || !f.ObserveOnly || f.Maintenance != "plan" {
		t.Errorf("mode: %+v", got.Running)
	}
	got.Running = running.State{}
	want := Held{NotAcknowledged: true, Withheld: []Count{{v1alpha1.ReasonObserveOnly, 1}},
		Freezes: []Freeze{{Name: "r2", Level: "Destructive", By: "jo", Selector: "rack=r2"}},
		Budgets: []Budget{{Name: "wipes", Action: "Wipe", Used: 2, Max: 2, Exhausted: true}, {Name: "on", Action: "PowerOn", Max: 4}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("- want, + got:\n%s", diff)
	}
}

func TestAMaintenanceSaysForWhomItWaitsAndWhatFillsTheLimit(t *testing.T) {
	in := well()
	in.Servers[0].Spec.ServerClaimRef = &v1alpha1.ObjectReference{Namespace: "team", Name: "web"}
	held := server("b", v1alpha1.StateMaintenance, is(v1alpha1.ConditionReady, v1alpha1.ReasonStable))
	held.Spec.ServerMaintenanceRef = &v1alpha1.ObjectReference{Namespace: "ops", Name: "bios"}
	in.Servers = append(in.Servers, held)
	m := v1alpha1.ServerMaintenance{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "disk"}}
	m.Spec.ServerRef.Name, m.Status.State = "a", v1alpha1.ServerMaintenanceStatePending
	m.Status.Conditions = []metav1.Condition{isNot(v1alpha1.ConditionGranted, v1alpha1.ReasonLimitReached)}
	in.Maintenances = []v1alpha1.ServerMaintenance{m}
	want := Waits{Holding: []string{"b"}, Waiting: []Wait{{Namespace: "ops", Name: "disk", Server: "a", State: "Pending",
		Reason: v1alpha1.ReasonLimitReached, Since: noon.Add(-time.Hour), For: "team/web"}}}
	if diff := cmp.Diff(want, Of(in).Maintenance); diff != "" {
		t.Errorf("- want, + got:\n%s", diff)
	}
}

func TestRacksWithTroubleComeFirst(t *testing.T) {
	rack := func(name, r string, state v1alpha1.ServerState, conditions ...metav1.Condition) v1alpha1.Server {
		s := server(name, state, conditions...)
		s.Annotations = map[string]string{"metadata.metal.ironcore.dev/rack": r}
		s.Status.Lifecycle.Rule = "WipeFailed"
		return s
	}
	ready := is(v1alpha1.ConditionReady, v1alpha1.ReasonStable)
	in := well()
	in.Servers = []v1alpha1.Server{rack("a", "r1", v1alpha1.StateAvailable, ready), rack("b", "r2", v1alpha1.StateAvailable, ready),
		rack("c", "r2", v1alpha1.StateError, is(v1alpha1.ConditionStalled, "WipeFailed"))}
	got := Of(in).Where
	want := Where{Servers: 3, States: []Count{{"Available", 2}, {"Error", 1}}, Errors: []Count{{"WipeFailed", 1}}, Power: []Count{{"unknown", 3}},
		Racks: []Rack{{Name: "r2", Servers: 2, States: []Count{{"Available", 1}, {"Error", 1}}, NeedPerson: 1},
			{Name: "r1", Servers: 1, States: []Count{{"Available", 1}}}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("- want, + got:\n%s", diff)
	}
}

// large is a fleet of a size in which every twentieth server is not well, with a BMC and a claim for each.
func large(size int) Input {
	in := well()
	in.Servers, in.BMCs = nil, nil
	for i := range size {
		name := fmt.Sprintf("s%05d", i)
		s := server(name, v1alpha1.StateReserved, is(v1alpha1.ConditionReady, v1alpha1.ReasonStable), is(v1alpha1.ConditionBMCReachable, v1alpha1.ReasonConnected))
		s.Labels = map[string]string{"rack": fmt.Sprintf("r%03d", i/48)}
		s.Spec.ServerClaimRef = &v1alpha1.ObjectReference{Namespace: "t", Name: name}
		for j := range 10 {
			s.Status.Lifecycle.History = append(s.Status.Lifecycle.History, v1alpha1.LifecycleMove{To: "Reserved", Rule: "Claimed",
				At: metav1.NewMicroTime(noon.Add(-time.Duration(i*10+10-j) * time.Second))})
		}
		b := v1alpha1.BMC{ObjectMeta: metav1.ObjectMeta{Name: "bmc-" + name}}
		b.Status.Conditions = []metav1.Condition{is(v1alpha1.ConditionReady, v1alpha1.ReasonConnected)}
		if i%20 == 0 {
			s.Status.State = v1alpha1.StateError
			s.Status.Conditions[1] = isNot(v1alpha1.ConditionBMCReachable, v1alpha1.ReasonConnectionFailed)
			b.Status.Conditions[0] = isNot(v1alpha1.ConditionReady, v1alpha1.ReasonConnectionFailed)
		}
		c := v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "t", Name: name}}
		c.Spec.ServerRef = &corev1.LocalObjectReference{Name: name}
		c.Status.Conditions = []metav1.Condition{isNot(v1alpha1.ConditionReady, v1alpha1.ReasonBooting)}
		in.Servers, in.BMCs, in.Claims = append(in.Servers, s), append(in.BMCs, b), append(in.Claims, c)
	}
	in.Control = &policyv1alpha1.FleetControl{}
	in.Control.Spec.Budgets = []policyv1alpha1.Budget{{Name: "on", Action: policyv1alpha1.ActionPowerOn, Max: ptr.To(int32(4)), Per: "rack"}}
	return in
}

func BenchmarkTwentyThousandServers(b *testing.B) {
	in := large(20_000)
	b.ReportAllocs()
	for b.Loop() {
		if a := Of(in); len(Groups(a.NotWell)) != 1 {
			b.Fatal(a.Person)
		}
	}
}
