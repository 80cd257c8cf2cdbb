// SPDX-License-Identifier: Apache-2.0

package power

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/internal/counted"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/redfish"
)

const tenHours = counted.Time(10 * time.Hour)

// inspected is a server in entry 7, which a report of the probe that was switched on in entry 6 led to a second ago.
func inspected(change ...func(*v1alpha1.Server)) *v1alpha1.Server {
	at := metav1.NewMicroTime(noon.Add(-time.Second))
	before := metav1.NewMicroTime(noon.Add(-time.Minute))
	s := &v1alpha1.Server{}
	s.Status.Lifecycle = &v1alpha1.LifecycleStatus{Entry: 7, EnteredAt: at, EnteredCounted: (tenHours - counted.Time(time.Second)).Stored(),
		Request: &v1alpha1.PowerRequest{Action: v1alpha1.PowerActionOn, Entry: 6, Attempts: 1, AskedAt: before, ShownAt: &before},
		History: []v1alpha1.LifecycleMove{{From: "Discovery", To: "Available", Rule: "ProbeReported", Entry: 7, At: at}}}
	for _, c := range change {
		c(s)
	}
	return s
}

func TestWhichMachinesSurelyRunAnAgentOfOurs(t *testing.T) {
	reported := &policies.Facts{Probe: policies.ProbeFacts{Entry: 6, Complete: true}, Wipe: policies.WipeFacts{Entry: -1}}
	request := func(change func(*v1alpha1.PowerRequest)) *v1alpha1.Server {
		return inspected(func(s *v1alpha1.Server) { change(s.Status.Lifecycle.Request) })
	}
	status := func(change func(*v1alpha1.LifecycleStatus)) *v1alpha1.Server {
		return inspected(func(s *v1alpha1.Server) { change(s.Status.Lifecycle) })
	}
	operated := func(ago time.Duration) *v1alpha1.Server {
		return inspected(func(s *v1alpha1.Server) {
			at := metav1.NewMicroTime(noon.Add(-ago))
			s.Status.Operation = &v1alpha1.OperationStatus{BegunAt: &at}
		})
	}
	for name, c := range map[string]struct {
		server *v1alpha1.Server
		facts  *policies.Facts
		want   bool
	}{
		"one whose probe has just reported": {inspected(), reported, true},
		"one whose wipe was verified":       {inspected(), &policies.Facts{Wipe: policies.WipeFacts{Entry: 6, Verified: true}}, true},
		"one whose wipe failed":             {inspected(), &policies.Facts{Wipe: policies.WipeFacts{Entry: 6, Failed: true}}, true},
		"not one whose agent was not heard": {inspected(), &policies.Facts{Probe: policies.ProbeFacts{Entry: 5, Complete: true}}, false},
		"not one whose report is not accepted": {inspected(), &policies.Facts{Probe: policies.ProbeFacts{Entry: 6}},
			false},
		"not one without a lifecycle":                     {&v1alpha1.Server{}, reported, false},
		"not one of which no power change is recorded":    {status(func(l *v1alpha1.LifecycleStatus) { l.Request = nil }), reported, false},
		"not one that was switched on for an older entry": {request(func(r *v1alpha1.PowerRequest) { r.Entry = 5 }), reported, false},
		"not one that was switched on for a claim": {request(func(r *v1alpha1.PowerRequest) { r.Entry = 7 }),
			&policies.Facts{Probe: policies.ProbeFacts{Entry: 7, Complete: true}}, false},
		"not one that does not show the power-on": {request(func(r *v1alpha1.PowerRequest) { r.ShownAt = nil }), reported, false},
		"not one that was seen off since":         {request(func(r *v1alpha1.PowerRequest) { r.Attempts = 0 }), reported, false},
		"not one that was powered off before":     {request(func(r *v1alpha1.PowerRequest) { r.Action = v1alpha1.PowerActionForceOff }), reported, false},
		"one whose power-off is asked for once more": {request(func(r *v1alpha1.PowerRequest) {
			r.Action, r.Entry, r.Uncounted, r.ShownAt = v1alpha1.PowerActionForceOff, 7, true, nil
		}), reported, true},
		"not one that came on after its power-off": {request(func(r *v1alpha1.PowerRequest) {
			r.Action, r.Entry, r.Uncounted = v1alpha1.PowerActionForceOff, 7, true
		}), reported, false},
		"not one that a user has restarted since":        {operated(30 * time.Second), reported, false},
		"one that a user had restarted before":           {operated(time.Hour), reported, true},
		"not one that a user has moved":                  {status(func(l *v1alpha1.LifecycleStatus) { l.History[0].By = "jane" }), reported, false},
		"not one whose move is not on record":            {status(func(l *v1alpha1.LifecycleStatus) { l.History = nil }), reported, false},
		"not one that was taken over":                    {status(func(l *v1alpha1.LifecycleStatus) { l.History[0].Rule = v1alpha1.RuleAdopted }), reported, false},
		"not one that has run for a while since":         {status(func(l *v1alpha1.LifecycleStatus) { l.EnteredCounted.Duration = 9 * time.Hour }), reported, false},
		"not one that ran on while no manager was there": {status(func(l *v1alpha1.LifecycleStatus) { l.EnteredAt = metav1.NewMicroTime(noon.Add(-time.Hour)) }), reported, false},
		"not one whose entry no count tells of":          {status(func(l *v1alpha1.LifecycleStatus) { l.EnteredCounted.Duration = 0 }), reported, false},
	} {
		if got := RunsAgent(c.server, c.facts, policies.Instant{Now: noon, Counted: tenHours}); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestThePowerOffOfAnAgentIsNoForcedPowerOffForBudgets(t *testing.T) {
	for agent, want := range map[bool]string{true: "asks ForceOff [power-off of our agent]", false: "asks ForceOff [forced power-off]"} {
		out := Decide(reserved(redfish.PowerOn, func(in *Input) { in.Want.Agent = agent }))
		if got := text(out); got != want || out.Request.Uncounted != agent {
			t.Errorf("%s, uncounted %t; want %s", got, out.Request.Uncounted, want)
		}
	}
}
