// SPDX-License-Identifier: Apache-2.0

package status

import (
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/rollout"
	"github.com/metalaw/metalaw/controllers/server/gates"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/policies"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func TestWhatReadySaysOfAServer(t *testing.T) {
	b, err := policies.Default()
	if err != nil {
		t.Fatal(err)
	}
	stays := engine.Decision{From: "Available", To: "Available", Stable: true, Message: "It rests."}
	silent := metav1.Condition{Type: v1alpha1.ConditionBMCReachable, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonConnectionFailed}
	held := metav1.Condition{Type: v1alpha1.ConditionWithheld, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonFrozen}
	waits := gates.Output{Gate: gates.FreshReading, Postponed: true}
	parks := engine.Decision{From: "Available", To: "Parked", Rule: "ParkedAvailable"}
	for name, c := range map[string]struct {
		decision engine.Decision
		gated    gates.Output
		told     []metav1.Condition
		want     string
	}{
		"that rests":                       {stays, gates.Output{}, nil, "True Stable"},
		"that rests behind a BMC":          {stays, gates.Output{}, []metav1.Condition{silent}, "True Stable"},
		"that moves":                       {parks, gates.Output{}, nil, "False Moving Moving"},
		"that moves without its BMC":       {parks, gates.Output{}, []metav1.Condition{silent}, "False Moving Moving"},
		"that a gate holds":                {stays, waits, nil, "False Moving FreshReading"},
		"that waits for its BMC":           {stays, waits, []metav1.Condition{silent}, "False BMCUnreachable FreshReading"},
		"that a freeze holds":              {stays, waits, []metav1.Condition{held}, "False Frozen FreshReading"},
		"that a freeze holds behind a BMC": {stays, waits, []metav1.Condition{silent, held}, "False BMCUnreachable FreshReading"},
		"whose policy halts it":            {engine.Decision{From: "Available", To: "Available", Halt: &engine.Halt{Cause: engine.HaltSafety}}, gates.Output{}, nil, "False SafetyRule"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &v1alpha1.Server{}
			s.Status.State, s.Status.Conditions = "Available", c.told
			s.Status.Lifecycle = &v1alpha1.LifecycleStatus{Entry: 7, EnteredAt: metav1.NewMicroTime(noon), Revision: b.Revision.Name}
			in := Input{Observation: policies.Observation{Server: s, Now: noon, Settings: b.Settings}, Decision: c.decision, Gated: c.gated, Governance: rollout.Governance{Bundle: b},
				Facts: &policies.Facts{}}
			before := s.DeepCopy()
			got := Decide(in)
			ready := meta.FindStatusCondition(got.Server.Status.Conditions, v1alpha1.ConditionReady)
			text := string(ready.Status) + " " + ready.Reason
			if r := meta.FindStatusCondition(got.Server.Status.Conditions, v1alpha1.ConditionReconciling); r != nil {
				text += " " + r.Reason
			}
			if text != c.want || got.Settled != (text == "True Stable") {
				t.Errorf("%s, settled %t", text, got.Settled)
			}
			if diff := cmp.Diff(got, Decide(in)); diff != "" {
				t.Errorf("a second decision is another:\n%s", diff)
			}
			if diff := cmp.Diff(before, s); diff != "" {
				t.Errorf("the server that it was given was changed:\n%s", diff)
			}
		})
	}
}

func TestTheMarkerOfAParkedServerGoesWithItsState(t *testing.T) {
	b, err := policies.Default()
	if err != nil {
		t.Fatal(err)
	}
	stays := engine.Decision{From: "Parked", To: "Parked"}
	for name, c := range map[string]struct {
		state    v1alpha1.ServerState
		before   map[string]string
		decision engine.Decision
		want     map[string]string
	}{
		"it comes with the move":              {"Parked", nil, engine.Decision{From: "Error", To: "Parked", Rule: "ParkedError"}, map[string]string{v1alpha1.ParkedAnnotation: "true", v1alpha1.PreParkStateAnnotation: "Error"}},
		"it stays":                            {"Parked", map[string]string{v1alpha1.ParkedAnnotation: "x", v1alpha1.PreParkStateAnnotation: "Error"}, stays, map[string]string{v1alpha1.ParkedAnnotation: "x", v1alpha1.PreParkStateAnnotation: "Error"}},
		"it tells a lost status where it was": {"Parked", map[string]string{v1alpha1.ParkedAnnotation: "true", v1alpha1.PreParkStateAnnotation: "Released"}, engine.Decision{To: "Parked", Rule: "StillParked"}, map[string]string{v1alpha1.ParkedAnnotation: "true", v1alpha1.PreParkStateAnnotation: "Released"}},
		"one that was adopted gets it":        {"Parked", nil, stays, map[string]string{v1alpha1.ParkedAnnotation: "true"}},
		"the state before outlives the move back": {"Error", map[string]string{v1alpha1.ParkedAnnotation: "true", v1alpha1.PreParkStateAnnotation: "Error"},
			engine.Decision{From: "Parked", To: "Error", Rule: "UnparkedToError"}, map[string]string{v1alpha1.PreParkStateAnnotation: "Error"}},
		"and goes at the look after it":  {"Error", map[string]string{v1alpha1.PreParkStateAnnotation: "Error"}, engine.Decision{From: "Error", To: "Error"}, nil},
		"what another program left goes": {"Available", map[string]string{v1alpha1.PreParkStateAnnotation: "Error"}, engine.Decision{From: "Available", To: "Available"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := &v1alpha1.Server{}
			s.Annotations, s.Status.State = maps.Clone(c.before), c.state
			s.Status.Lifecycle = &v1alpha1.LifecycleStatus{Entry: 7, EnteredAt: metav1.NewMicroTime(noon), Revision: b.Revision.Name}
			got := Decide(Input{Observation: policies.Observation{Server: s, Now: noon, Settings: b.Settings}, Decision: c.decision,
				Governance: rollout.Governance{Bundle: b}, Facts: &policies.Facts{}})
			if diff := cmp.Diff(c.want, got.Server.Annotations, cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
		})
	}
}
