// SPDX-License-Identifier: Apache-2.0

package server

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/controllers/rollout"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/internal/counted"
	"github.com/metalaw/metalaw/policies"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// newScope is a scope of a server in a state, in entry 7, under the default bundle.
func newScope(t *testing.T, state v1alpha1.ServerState, change ...func(*scope)) *scope {
	t.Helper()
	b, err := defaultBundle()
	if err != nil {
		t.Fatal(err)
	}
	s := newSubject(Options{Cache: newCache(nil, func(string) {}), Now: func() time.Time { return noon }})
	v := s.scope(&v1alpha1.Server{})
	v.governs, v.seen.Bundle, v.seen.Facts, v.seen.Settings = rollout.Governance{Bundle: b}, b, &policies.Facts{}, b.Settings
	v.server.Annotations = map[string]string{}
	v.server.Status.State = state
	v.server.Status.Lifecycle = &v1alpha1.LifecycleStatus{Entry: 7, EnteredAt: metav1.NewMicroTime(noon.Add(-time.Hour)), Marks: []string{"Managed"}}
	for _, c := range change {
		c(v)
	}
	return v
}

func TestRecordMove(t *testing.T) {
	type outcome struct {
		State   v1alpha1.ServerState
		Entry   int64
		Rule    string
		Retries int32
		Marks   []string
		Moves   int
	}
	never := func(v *scope) { v.server.Status = v1alpha1.ServerStatus{} }
	for name, c := range map[string]struct {
		scope    *scope
		decision engine.Decision
		want     outcome
	}{
		"nothing changes without a move": {
			newScope(t, "Available"), engine.Decision{From: "Available", To: "Available", Stable: true},
			outcome{"Available", 7, "", 0, []string{"Managed"}, 0}},
		"a move is one more entry and one more line of history": {
			newScope(t, "Available"), engine.Decision{From: "Available", To: "Reserved", Rule: "Claimed", Stable: true},
			outcome{"Reserved", 8, "Claimed", 0, []string{"Managed"}, 1}},
		"a move sets and clears marks": {
			newScope(t, "Cleanup"), engine.Decision{From: "Cleanup", To: "Available", Rule: "Wiped", Clears: []string{"Managed"}, Marks: []string{"Tested", "Dirty"}},
			outcome{"Available", 8, "Wiped", 0, []string{"Dirty", "Tested"}, 1}},
		"a retry is counted": {
			newScope(t, "Discovery"), engine.Decision{From: "Discovery", To: "Initial", Rule: "ProbeRetried", Retry: true},
			outcome{"Initial", 8, "ProbeRetried", 1, []string{"Managed"}, 1}},
		"a stable state forgets the retries": {
			newScope(t, "Discovery", func(v *scope) { v.server.Status.Lifecycle.Retries = 2 }),
			engine.Decision{From: "Discovery", To: "Available", Rule: "ProbeReported", ResetRetries: true},
			outcome{"Available", 8, "ProbeReported", 0, []string{"Managed"}, 1}},
		"the first state begins the lifecycle": {
			newScope(t, "", never), engine.Decision{To: "Initial"},
			outcome{"Initial", 1, "Started", 0, nil, 1}},
		"a lifecycle that begins anew counts on from what the inventory speaks of": {
			newScope(t, "", never, func(v *scope) {
				v.seen.Inventory = &policyv1alpha1.ServerInventory{Wipe: &policyv1alpha1.WipeReport{Entry: 12}, Report: &policyv1alpha1.ProbeReport{Entry: 9}}
			}),
			engine.Decision{To: "Error", Rule: "DataUnreleased"},
			outcome{"Error", 13, "DataUnreleased", 0, nil, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			c.scope.record(c.decision, loop.Outcome{})
			l := c.scope.server.Status.Lifecycle
			got := outcome{c.scope.server.Status.State, l.Entry, l.Rule, l.Retries, l.Marks, len(l.History)}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestAHaltBeginsNoLifecycle(t *testing.T) {
	v := newScope(t, "Strange", func(v *scope) { v.server.Status.Lifecycle = nil })
	v.record(engine.Decision{From: "Strange", To: "Strange", Halt: &engine.Halt{Cause: engine.HaltUnknownState}}, loop.Outcome{})
	if v.server.Status.Lifecycle != nil {
		t.Errorf("got %+v", v.server.Status.Lifecycle)
	}
}

func TestAMachineWasNotSeenOnInAnEntryThatBegins(t *testing.T) {
	v := newScope(t, "Initial")
	v.server.Status.Lifecycle.SeenOnAt = &metav1.MicroTime{Time: noon}
	v.record(engine.Decision{From: "Initial", To: "Initial"}, loop.Outcome{})
	if v.server.Status.Lifecycle.SeenOnAt == nil {
		t.Error("forgotten within the entry")
	}
	v.record(engine.Decision{From: "Initial", To: "Discovery", Rule: "ProbeDue"}, loop.Outcome{})
	if v.server.Status.Lifecycle.SeenOnAt != nil {
		t.Error("it counts for the next entry as well")
	}
}

func TestHistoryKeepsTheLastTenMoves(t *testing.T) {
	v := newScope(t, "Initial")
	for range 25 {
		v.record(engine.Decision{From: "Initial", To: "Discovery", Rule: "ProbeDue"}, loop.Outcome{})
	}
	h := v.server.Status.Lifecycle.History
	if len(h) != 10 || h[9].Entry != 32 || h[0].Entry != 23 {
		t.Errorf("%d moves, from entry %d to %d", len(h), h[0].Entry, h[len(h)-1].Entry)
	}
}

func TestRecordOperation(t *testing.T) {
	asks := func(operation string) func(*scope) {
		return func(v *scope) { v.server.Annotations[v1alpha1.OperationAnnotation] = operation }
	}
	under := func(name string, state v1alpha1.OperationState) func(*scope) {
		return func(v *scope) {
			v.server.Status.Operation = &v1alpha1.OperationStatus{ID: "1", Name: name, State: state, Entry: 7}
		}
	}
	// seen makes the facts such that the rule of the decision fires whether or not anything was asked for.
	seen := func(state string, change func(*policies.Facts)) func(*scope) {
		return func(v *scope) {
			v.seen.Facts = &policies.Facts{}
			v.seen.Facts.Lifecycle.State, v.seen.Facts.Lifecycle.Marks = state, []string{"Managed"}
			v.seen.Facts.BMC.Power, v.seen.Facts.BMC.Health, v.seen.Facts.BMC.Identity = "Off", "OK", "Same"
			change(v.seen.Facts)
		}
	}
	ended := seen("Reserved", func(f *policies.Facts) { f.Claim.Released = true })
	taken := seen("Available", func(f *policies.Facts) { f.Server.ClaimRefSet = true })
	stay := engine.Decision{}
	for name, c := range map[string]struct {
		scope      *scope
		decision   engine.Decision
		operation  string // name and state
		annotation string
		notes      []string
	}{
		"what the state can use is recorded while the annotation still stands": {
			newScope(t, "Reserved", asks("hard-restart-server")), stay, "hard-restart-server Pending", "hard-restart-server", nil},
		"what is recorded is taken off": {
			newScope(t, "Reserved", asks("hard-restart-server"), under("hard-restart-server", v1alpha1.OperationPending)), stay,
			"hard-restart-server Pending", "", nil},
		"a second request waits until the first has ended": {
			newScope(t, "Reserved", asks("force-off-server"), under("park", v1alpha1.OperationInProgress)), stay, "park InProgress", "force-off-server", nil},
		"an old spelling is understood": {
			newScope(t, "Error", asks("retry-failed-state-resource")), stay, "retry Pending", "retry-failed-state-resource", nil},
		"what the state cannot use is refused and does not occupy the slot": {
			newScope(t, "Available", asks("retry")), stay, "", "", []string{"OperationRefused"}},
		"what nobody knows is refused": {
			newScope(t, "Available", asks("explode")), stay, "", "", []string{"UnknownOperation"}},
		"what names nothing is refused": {
			newScope(t, "Available", asks("")), stay, "", "", []string{"UnknownOperation"}},
		"a move that reads the operation ends it well": {
			newScope(t, "Available", under("park", v1alpha1.OperationPending)),
			engine.Decision{From: "Available", To: "Parked", Rule: "ParkedAvailable", Groups: []string{"operation"}}, "park Succeeded", "", nil},
		"a move to a state that cannot use it ends it badly": {
			newScope(t, "Reserved", under("park", v1alpha1.OperationPending), ended),
			engine.Decision{From: "Reserved", To: "Cleanup", Rule: "ClaimEnded", Groups: []string{"claim"}}, "park Failed", "", nil},
		"a move to a state that can use it leaves it": {
			newScope(t, "Available", under("park", v1alpha1.OperationPending), taken),
			engine.Decision{From: "Available", To: "Reserved", Rule: "Claimed", Groups: []string{"server"}}, "park Pending", "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			c.scope.record(c.decision, loop.Outcome{})
			operation := ""
			if op := c.scope.server.Status.Operation; op != nil {
				operation = op.Name + " " + string(op.State)
			}
			var notes []string
			for _, n := range c.scope.recorded.Notes {
				notes = append(notes, n.Reason)
			}
			if operation != c.operation || c.scope.server.Annotations[v1alpha1.OperationAnnotation] != c.annotation || !cmp.Equal(notes, c.notes) {
				t.Errorf("operation %q, annotation %q, notes %v; want %q, %q, %v", operation,
					c.scope.server.Annotations[v1alpha1.OperationAnnotation], notes, c.operation, c.annotation, c.notes)
			}
		})
	}
}

func TestAReleaseIsToldWhereItCanBeRecorded(t *testing.T) {
	for state, want := range map[v1alpha1.ServerState]string{
		"Available": "release cannot be used in state Available; it can in Reserved, Released, Error",
		"Observing": "release cannot be used in state Observing; it can in Reserved, Released, Error; a machine that was found running is " +
			"taken over first, by annotation policy.metalaw.dev/consent=take-over, which may switch it off",
	} {
		v := newScope(t, state, func(v *scope) { v.server.Annotations[v1alpha1.OperationAnnotation] = v1alpha1.OperationRelease })
		v.record(engine.Decision{}, loop.Outcome{})
		if len(v.recorded.Notes) != 1 || v.recorded.Notes[0].Message != want {
			t.Errorf("got  %v\nwant %s", v.recorded.Notes, want)
		}
	}
}

func TestAReleaseThatTookEffectIsToldToBeTooLateToUndo(t *testing.T) {
	at := noon.Add(-10 * time.Minute)
	for name, c := range map[string]struct {
		state  v1alpha1.ServerState
		change func(*v1alpha1.Server)
		want   string
	}{
		"in Cleanup it is being erased": {"Cleanup", func(*v1alpha1.Server) {},
			"undo-release: too late: the release took effect at 2026-05-01T11:55:00Z; the machine is being erased"},
		"without its reference it may have been": {"Reserved", func(*v1alpha1.Server) {},
			"too late: the release took effect at 2026-05-01T11:55:00Z; its reference to the claim is cleared already, so that its disks may have been erased"},
		"without a record nothing took effect": {"Reserved", func(s *v1alpha1.Server) { delete(s.Annotations, v1alpha1.ReleasedClaimAnnotation) },
			"no release of its claim is recorded"},
		"one that was erased is told where it can": {"Available", func(s *v1alpha1.Server) { delete(s.Annotations, v1alpha1.ReleasedClaimAnnotation) },
			"undo-release cannot be used in state Available; it can in Reserved, Released, until a wipe is prepared: what was erased does not come back"},
	} {
		t.Run(name, func(t *testing.T) {
			v := newScope(t, c.state, func(v *scope) {
				v.seen.Now, v.seen.Now, v.seen.Settings.ReleaseGrace = noon, noon, 5*time.Minute
				v.server.Annotations[v1alpha1.OperationAnnotation] = v1alpha1.OperationUndoRelease
				v.server.Annotations[v1alpha1.ClaimUIDAnnotation], v.server.Annotations[v1alpha1.ReleasedClaimAnnotation] = "u1", "u1"
				v.server.Annotations[v1alpha1.ReleasedAtAnnotation] = at.Format(time.RFC3339)
				v.server.Annotations[v1alpha1.ReleasedCountedAnnotation] = "9h"
				v.seen.CountedNow, v.seen.CountedNow = counted.Time(10*time.Hour), counted.Time(10*time.Hour)
				c.change(v.server)
			})
			v.record(engine.Decision{}, loop.Outcome{})
			got := ""
			if op := v.server.Status.Operation; op != nil {
				got = op.Message
			} else if len(v.recorded.Notes) == 1 {
				got = v.recorded.Notes[0].Message
			}
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestAnOperationOfAnotherKindIsToldWhereItBelongs(t *testing.T) {
	for operation, want := range map[string]string{
		"graceful-restart-bmc": "graceful-restart-bmc is no operation of a Server: set it on the BMC that spec.bmcRef names",
		"rotate-credentials": "rotate-credentials is no operation of a Server: it belongs on a BMC, and is not available in this version; " +
			"change the password at the BMC and in its BMCSecret",
		"allow-in-progress-delete": "allow-in-progress-delete is no operation of a Server: it allows to delete a server in maintenance, and this one is in none",
		"retry":                    "retry cannot be used in state Available",
	} {
		v := newScope(t, "Available", func(v *scope) { v.server.Annotations[v1alpha1.OperationAnnotation] = operation })
		v.record(engine.Decision{}, loop.Outcome{})
		if len(v.recorded.Notes) != 1 || v.recorded.Notes[0].Message != want {
			t.Errorf("got  %v\nwant %s", v.recorded.Notes, want)
		}
	}
}

// It has to be there still when the server is deleted.
func TestWhatAllowsADeletionStaysWhileTheServerIsInMaintenance(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.Server){
		"in state Maintenance": func(s *v1alpha1.Server) { s.Status.State = v1alpha1.StateMaintenance },
		"on its way there": func(s *v1alpha1.Server) {
			s.Spec.ServerMaintenanceRef = &v1alpha1.ObjectReference{Namespace: "ops", Name: "m"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := newScope(t, "Available", func(v *scope) {
				v.server.Annotations[v1alpha1.OperationAnnotation] = v1alpha1.OperationAllowInProgressDelete
				change(v.server)
			})
			v.record(engine.Decision{}, loop.Outcome{})
			if v.server.Annotations[v1alpha1.OperationAnnotation] != v1alpha1.OperationAllowInProgressDelete || v.recorded.Notes != nil || v.server.Status.Operation != nil {
				t.Error(v.server.Annotations, v.recorded.Notes, v.server.Status.Operation)
			}
		})
	}
}
