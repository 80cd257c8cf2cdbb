// SPDX-License-Identifier: Apache-2.0

package gates

import (
	"reflect"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/rollout"
	"github.com/metalaw/metalaw/controllers/server/power"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/internal/testkit"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/redfish"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// version is the default bundle under another version.
func version(t *testing.T, v string) *bundle.Bundle {
	t.Helper()
	files, err := policies.Shipped(policies.DefaultBundle)
	if err != nil {
		t.Fatal(err)
	}
	testkit.Rename(files, "", v)
	b, _, err := bundle.Compile(files, policies.Vocabulary())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// at is a server in a state, whose machine was read just now and is off.
func at(b *bundle.Bundle, state v1alpha1.ServerState, change ...func(*Input)) Input {
	s := &v1alpha1.Server{}
	s.Name, s.Spec.SystemUUID = "a", "1a2b3c4d-0000-0000-0000-000000000001"
	s.Annotations = map[string]string{}
	s.Status.State = state
	s.Status.Lifecycle = &v1alpha1.LifecycleStatus{Entry: 7, EnteredAt: metav1.NewMicroTime(noon.Add(-time.Minute)),
		Revision: b.Revision.Name, Marks: []string{policies.MarkManaged}}
	in := Input{Observation: policies.Observation{Server: s, Now: noon,
		System: policies.SystemReading{Reachable: true, Power: "Off", Health: "OK", Identity: policies.IdentitySame}},
		Governance: rollout.Governance{Bundle: b}, Active: rollout.Candidate{Bundle: b},
		Reading: power.Reading{Tried: true, Same: true, Fresh: true, Power: redfish.PowerOff}}
	for _, c := range change {
		c(&in)
	}
	return in
}

func TestTheFirstGateThatHoldsADecisionEndsIt(t *testing.T) {
	now, next := version(t, "1.0.0"), version(t, "2.0.0")
	never := func(in *Input) { in.Observation.Server.Status = v1alpha1.ServerStatus{} }
	parks := func(in *Input) {
		in.Observation.Server.Status.Operation = &v1alpha1.OperationStatus{ID: "1", Name: v1alpha1.OperationPark, State: v1alpha1.OperationPending, Entry: 7}
	}
	stale := func(in *Input) { in.Reading.Fresh = false }
	halted := func(in *Input) {
		in.Halted = true
		in.Governance = rollout.Governance{Unloaded: &engine.Halt{Cause: rollout.HaltRevisionHeld, Message: "refused"}, Successor: next}
	}
	canary := func(in *Input) { halted(in); in.Active = rollout.Candidate{Bundle: now, Refused: true} }
	active := func(in *Input) { halted(in); in.Active.Bundle = next }
	forced := func(in *Input) {
		in.Forced = &engine.Decision{From: "Available", To: "Error", Rule: v1alpha1.RuleForced}
	}
	stranger := func(in *Input) {
		in.Observation.Inventory = &policyv1alpha1.ServerInventory{Custody: &policyv1alpha1.Custody{Marks: []string{policies.MarkStranger}}}
	}
	for name, c := range map[string]struct {
		in   Input
		gate string
		to   engine.State
		want Wants
	}{
		"a server that rests":       {at(now, "Available"), "", "Available", Wants{}},
		"a move on a fresh reading": {at(now, "Available", parks), "", "Parked", Wants{}},
		"a move on an old reading":  {at(now, "Available", parks, stale), FreshReading, "Available", Wants{Reading: true}},
		"a move while a power-on may still come true": {at(now, "Available", parks, func(in *Input) { in.Machine.PowerOnFor = time.Second }),
			PowerOnUnderWay, "Available", Wants{Poll: true, Wake: time.Second}},
		"a server in the initial state before its BMC was heard": {at(now, "Initial", func(in *Input) {
			in.Reading, in.Observation.System = power.Reading{}, policies.SystemReading{}
			in.Observation.Server.Status.Lifecycle.Marks = []string{policies.MarkDirty, policies.MarkManaged}
		}), FirstWord, "Initial", Wants{}},
		"a lifecycle that begins on a machine with a past": {at(now, "", never, func(in *Input) {
			in.Observation.Server.Spec.ServerClaimRef = &v1alpha1.ObjectReference{Namespace: "shop", Name: "web"}
		}), InheritedData, "", Wants{}},
		"a mark that only the inventory has": {at(now, "Available", stranger, func(in *Input) { in.Observation.Server.Status.Lifecycle.Marks = []string{policies.MarkManaged} }),
			StrangerNoted, "Available", Wants{}},
		"a forced move of a machine that was found running": {at(now, "Available", stranger, forced), StrangerTaken, "Available", Wants{}},
		"a forced move":              {at(now, "Available", forced), "", "Error", Wants{}},
		"a halt that is not stored":  {at(now, "Available", active, func(in *Input) { in.Halted = false }), Halt, "Available", Wants{}},
		"a halt without a successor": {at(now, "Available", active, func(in *Input) { in.Governance.Successor = nil }), Halt, "Available", Wants{}},
		"a halt while the machine changes": {at(now, "Available", active, func(in *Input) { in.Machine = Machine{Changing: "it has", ChangingFor: time.Minute} }),
			MachineChanging, "Available", Wants{Wake: time.Minute}},
		"a halt in a state that boots an image of ours, on an old reading": {at(now, "Discovery", active, stale), PowerUnknown, "Discovery", Wants{Reading: true}},
		"a halt under a canary": {at(now, "Available", canary), CanaryPlace, "Available", Wants{Asks: rollout.Asks{Place: next}}},
		"a halt under a canary that has no place": {at(now, "Available", canary, func(in *Input) { in.Grants.Place = rollout.Denied }),
			CanaryPlace, "Available", Wants{}},
		"a halt under a canary whose BMC is silent": {at(now, "Available", canary, func(in *Input) {
			in.Observation.System, in.Reading = policies.SystemReading{}, power.Reading{Tried: true, Failure: "down"}
		}), CanaryPlace, "Available", Wants{}},
		"a halt that ends in its turn":   {at(now, "Available", active), AdoptionTurn, "Available", Wants{Asks: rollout.Asks{Turn: rollout.HaltedTurn}}},
		"a halt whose turn has not come": {at(now, "Available", active, func(in *Input) { in.Grants.Turn = rollout.Denied }), AdoptionTurn, "Available", Wants{}},
		"a halt that ends":               {at(now, "Available", active, func(in *Input) { in.Grants.Turn = rollout.Granted }), "", "Available", Wants{}},
		"a halt whose revision is lost":  {at(now, "Available", active, func(in *Input) { in.Governance.Lost, in.Halted = true, false }), "", "Available", Wants{}},
		"a revision that waits for its turn": {at(now, "Available", func(in *Input) { in.Governance.Asks.Turn = rollout.RestingTurn }), "", "Available",
			Wants{Asks: rollout.Asks{Turn: rollout.RestingTurn}}},
	} {
		t.Run(name, func(t *testing.T) {
			before := c.in.Observation.Server.DeepCopy()
			got := Decide(c.in)
			if got.Gate != c.gate || got.Decision.To != c.to || got.Wants != c.want {
				t.Errorf("gate %q, to %q, wants %+v", got.Gate, got.Decision.To, got.Wants)
			}
			if again := Decide(c.in); !reflect.DeepEqual(got, again) { //nolint:govet // an error is the same value both times
				t.Errorf("a second decision is another: %+v", again)
			}
			if !reflect.DeepEqual(before, c.in.Observation.Server) {
				t.Error("the server was changed")
			}
		})
	}
}

func TestEveryGateHasANameAndOneSentence(t *testing.T) {
	seen := map[string]bool{}
	for _, g := range List() {
		if g.Name == "" || seen[g.Name] || !strings.HasSuffix(g.Means, ".") || (g.holds == nil) != (g.When == OnAction) {
			t.Errorf("%+v", g)
		}
		seen[g.Name] = true
	}
}
