// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/fleet"
	"github.com/metalaw/metalaw/controllers/server/power"
	"github.com/metalaw/metalaw/controllers/server/status"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/redfish"
)

// operation is one that was taken in.
func operation(name string, state v1alpha1.OperationState) func(*Seen) {
	return func(s *Seen) {
		s.Server.Status.Operation = &v1alpha1.OperationStatus{ID: "op", Name: name, State: state, Entry: 7, StartedAt: micro(time.Minute)}
	}
}

func TestAResetIsPermittedThenRecordedAsBegunAndAskedForOnceThatIsStored(t *testing.T) {
	const pending, begun, hard = v1alpha1.OperationPending, v1alpha1.OperationInProgress, v1alpha1.OperationHardRestartServer
	ask := "ask op call.Reset{Action:ForceRestart} as power cycle, once it is stored"
	begins := func(s *v1alpha1.Server) {
		s.Status.Operation.State, s.Status.Operation.BegunAt = begun, microPtr(0)
		fleet.Begin(s.Status.Lifecycle, fleet.PowerCycle, micro(0), metav1.Duration{})
	}
	ended := func(state v1alpha1.OperationState, message string) func(*v1alpha1.Server) {
		return func(s *v1alpha1.Server) {
			o := s.Status.Operation
			o.State, o.Message, o.FinishedAt = state, message, microPtr(0)
			is := metav1.ConditionFalse
			if state == v1alpha1.OperationSucceeded {
				is = metav1.ConditionTrue
			}
			status.SetCondition(s, noon, v1alpha1.ConditionOperationDone, is, string(state), hard+": "+message)
		}
	}
	for name, c := range map[string]struct {
		seen Seen
		want want
	}{
		"one that was taken in":         {seenIn(v1alpha1.StateReserved, operation(hard, pending)), want{acts: []string{"set", "permit power cycle", "set", ask}, then: "waits OperationRunning", records: begins}},
		"one that waits for a busy BMC": {seenIn(v1alpha1.StateReserved, operation(hard, pending), job("x", power.Job{Running: true})), want{acts: []string{"set"}, then: "waits OperationWaits"}},
		"one that was postponed":        {seenIn(v1alpha1.StateReserved, operation(hard, begun), job("op", power.Job{Err: frozen, EndedAt: noon})), want{acts: []string{"set", "permit power cycle", "set", ask}, then: "waits OperationRunning", records: begins}},
		"one that is under way":         {seenIn(v1alpha1.StateReserved, operation(hard, begun), job("op", power.Job{Running: true})), want{acts: []string{"set"}, then: "waits OperationRunning"}},
		"one that succeeded, told in a condition": {seenIn(v1alpha1.StateReserved, operation(hard, begun), job("op", power.Job{EndedAt: noon})), want{
			acts: []string{"set"}, records: ended(v1alpha1.OperationSucceeded, "accepted by the BMC")}},
		"one that failed, told in a condition": {seenIn(v1alpha1.StateReserved, operation(hard, begun), job("op", failed(0))), want{
			acts: []string{"set"}, records: ended(v1alpha1.OperationFailed, "no")}},
		"one that another process began": {seenIn(v1alpha1.StateReserved, operation(hard, begun)), want{acts: []string{"set"},
			records: ended(v1alpha1.OperationFailed, "interrupted; whether it was carried out cannot be told, and it is not repeated")}},
	} {
		t.Run(name, func(t *testing.T) { check(t, c.seen, effect(policies.EffectResetAsAsked), c.want) })
	}
}

func TestAPostponedResetThatIsNotPermittedIsNotBegun(t *testing.T) {
	s := seenIn(v1alpha1.StateReserved, operation(v1alpha1.OperationHardRestartServer, v1alpha1.OperationInProgress), job("op", power.Job{Err: frozen}))
	s.Server.Status.Operation.BegunAt = microPtr(time.Minute)
	server := s.Server.DeepCopy()
	for _, a := range effect(policies.EffectResetAsAsked)(s).Acts {
		if _, asks := a.(Permit); asks {
			break
		}
		a.(Set).To(server)
	}
	if o := server.Status.Operation; o.State != v1alpha1.OperationPending || o.BegunAt != nil {
		t.Errorf("before permission: %+v", o)
	}
}

// one has the only steps of a list checked.
func one(of func(Seen) []Steps) func(Seen) Steps {
	return func(s Seen) Steps {
		if all := of(s); len(all) > 0 {
			return all[0]
		}
		return Steps{}
	}
}

func TestWhatAPersonAnswersForIsKeptBeforeTheOperationEnds(t *testing.T) {
	governed := func(s *Seen) { s.Bundle = &bundle.Bundle{} }
	asks := func(operation, reason string) func(*Seen) {
		return func(s *Seen) {
			for name, value := range map[string]string{v1alpha1.OperationAnnotation: operation, v1alpha1.OperationByAnnotation: "jane",
				v1alpha1.OperationReasonAnnotation: reason, v1alpha1.AttestDiskAnnotation: "sda", v1alpha1.AttestMethodAnnotation: "destroy"} {
				annotated(name, value)(s)
			}
		}
	}
	disk := custody(policyv1alpha1.Custody{Marks: []string{"Dirty"}, Disks: []policyv1alpha1.CustodyDisk{{Name: "sda", Serial: "S"}}})
	const attests, proves = v1alpha1.OperationAttestDisk, v1alpha1.OperationProve
	rivals := []policyv1alpha1.RivalBMC{{Name: "rack8"}}
	stored := keeps(func(i *policyv1alpha1.ServerInventory) { i.Identity = &policyv1alpha1.MachineIdentity{Rivals: rivals} })
	noted := want{acts: []string{"confirm record", "keep"}, keeps: func(i *policyv1alpha1.ServerInventory) {
		i.Identity = &policyv1alpha1.MachineIdentity{Rivals: rivals}
	}}
	for name, c := range map[string]struct {
		seen Seen
		want want
	}{
		"a disk":                            {seenIn(v1alpha1.StateReserved, governed, marks("Dirty"), disk, asks(attests, "drilled")), want{acts: []string{"attest sda"}}},
		"no disk without a reason":          {seenIn(v1alpha1.StateReserved, governed, marks("Dirty"), disk, asks(attests, "")), want{}},
		"no disk of what was not read anew": {seenIn(v1alpha1.StateReserved, governed, marks("Dirty"), disk, asks(attests, "drilled"), func(s *Seen) { s.Unconfirmed = true }), want{}},
		"no disk while another operation is on": {seenIn(v1alpha1.StateReserved, governed, marks("Dirty"), disk, asks(attests, "drilled"),
			operation("retry", v1alpha1.OperationPending)), want{}},
		"no disk while nothing governs":       {seenIn(v1alpha1.StateReserved, marks("Dirty"), disk, asks(attests, "drilled")), want{}},
		"no disk before there is a lifecycle": {seenIn("", governed, unborn, disk, asks(attests, "drilled")), want{}},
		"a machine":                           {seenIn(v1alpha1.StateReserved, governed, asks(proves, "saw it")), want{acts: []string{"prove by jane"}}},
		"no machine without a reason":         {seenIn(v1alpha1.StateReserved, governed, asks(proves, "")), want{}},
		"rivals outlive the process":          {seenIn(v1alpha1.StateReserved, governed, keeps(func(*policyv1alpha1.ServerInventory) {}), rival), noted},
		"not twice":                           {seenIn(v1alpha1.StateReserved, governed, stored, rival), want{}},
		"those that went are forgotten": {seenIn(v1alpha1.StateReserved, governed, stored), want{acts: []string{"confirm record", "keep"},
			keeps: func(i *policyv1alpha1.ServerInventory) { i.Identity.Rivals = nil }}},
		"not while nothing governs":           {seenIn(v1alpha1.StateReserved, keeps(func(*policyv1alpha1.ServerInventory) {}), rival), want{}},
		"not where there is no inventory yet": {seenIn(v1alpha1.StateReserved, governed, rival), want{}},
	} {
		t.Run(name, func(t *testing.T) {
			if n := len(Besides(c.seen)); n > 1 || n > 0 != (c.want.acts != nil) {
				t.Fatalf("%d steps", n)
			}
			check(t, c.seen, one(Besides), c.want)
		})
	}
	both := seenIn(v1alpha1.StateReserved, governed, marks("Dirty"), disk, asks(attests, "drilled"), rival)
	if n := len(Besides(both)); n != 2 {
		t.Errorf("a disk and rivals take %d steps of their own", n)
	}
}

func TestAnEffectWaitsForASafetyRuleOnWordOfTheMachine(t *testing.T) {
	for name, c := range map[string]struct {
		seen Seen
		rule string
		want want
	}{
		"on a fresh reading it is read again": {seenIn(v1alpha1.StateReserved), "OffForMaintenance", want{acts: []string{"poll 0s"}, then: "waits OffForMaintenance 15s"}},
		"on an old one it is refreshed":       {seenIn(v1alpha1.StateReserved, stale), "OffForMaintenance", want{acts: []string{"refresh"}, then: "waits WaitsForReading"}},
		"an unsure power is waited for": {seenIn(v1alpha1.StateReserved, func(s *Seen) { s.BMC.System.Power = redfish.PowerUnknown }), "EarnedByBoot", want{
			acts: []string{"poll 0s"}, then: "waits WaitsForPower 15s"}},
		"no word of it ends a missing consent": {seenIn(v1alpha1.StateReserved, stale), policies.RuleNoRebootWithoutConsent, want{then: "waits " + policies.RuleNoRebootWithoutConsent}},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, c.seen, func(s Seen) Steps { return Await(s, engine.Awaited{Rule: c.rule, Message: "m"}) }, c.want)
		})
	}
}
