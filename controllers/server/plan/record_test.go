// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/fleet"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/controllers/rollout"
	"github.com/metalaw/metalaw/controllers/server/gates"
	"github.com/metalaw/metalaw/controllers/server/operations"
	"github.com/metalaw/metalaw/controllers/server/power"
	"github.com/metalaw/metalaw/controllers/server/status"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/internal/counted"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/redfish"
)

var errDown = errors.New("the API server is down")

// defaultBundle is compiled once for all tests.
var defaultBundle = sync.OnceValues(policies.Default)

// seenAt is a server in a state of the default bundle, in entry 7, of which nothing else is known.
func seenAt(t *testing.T, state v1alpha1.ServerState, change ...func(*Seen)) Seen {
	t.Helper()
	b, err := defaultBundle()
	if err != nil {
		t.Fatal(err)
	}
	s := Seen{Bundle: b, Facts: &policies.Facts{}, NewID: "new-id",
		Observation: policies.Observation{Server: &v1alpha1.Server{}, Now: noon, Settings: b.Settings}}
	s.Server.Annotations = map[string]string{}
	s.Server.Status.State = state
	s.Server.Status.Lifecycle = &v1alpha1.LifecycleStatus{Entry: 7, EnteredAt: metav1.NewMicroTime(entered), Marks: []string{"Managed"}}
	for _, c := range change {
		c(&s)
	}
	return s
}

// record is what a reconcile leaves behind that came to a decision.
func record(s Seen, d engine.Decision, change ...func(*Answers)) Recorded {
	a := Answers{Decision: d, Governance: rollout.Governance{Bundle: s.Bundle}}
	for _, c := range change {
		c(&a)
	}
	return Record(s, a)
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
	never := func(s *Seen) { s.Server.Status = v1alpha1.ServerStatus{} }
	for name, c := range map[string]struct {
		seen     Seen
		decision engine.Decision
		want     outcome
	}{
		"nothing changes without a move": {
			seenAt(t, "Available"), engine.Decision{From: "Available", To: "Available", Stable: true},
			outcome{"Available", 7, "", 0, []string{"Managed"}, 0}},
		"a move is one more entry and one more line of history": {
			seenAt(t, "Available"), engine.Decision{From: "Available", To: "Reserved", Rule: "Claimed", Stable: true},
			outcome{"Reserved", 8, "Claimed", 0, []string{"Managed"}, 1}},
		"a move sets and clears marks": {
			seenAt(t, "Cleanup"), engine.Decision{From: "Cleanup", To: "Available", Rule: "Wiped", Clears: []string{"Managed"}, Marks: []string{"Tested", "Dirty"}},
			outcome{"Available", 8, "Wiped", 0, []string{"Dirty", "Tested"}, 1}},
		"a retry is counted": {
			seenAt(t, "Discovery"), engine.Decision{From: "Discovery", To: "Initial", Rule: "ProbeRetried", Retry: true},
			outcome{"Initial", 8, "ProbeRetried", 1, []string{"Managed"}, 1}},
		"a stable state forgets the retries": {
			seenAt(t, "Discovery", func(s *Seen) { s.Server.Status.Lifecycle.Retries = 2 }),
			engine.Decision{From: "Discovery", To: "Available", Rule: "ProbeReported", ResetRetries: true},
			outcome{"Available", 8, "ProbeReported", 0, []string{"Managed"}, 1}},
		"the first state begins the lifecycle": {
			seenAt(t, "", never), engine.Decision{To: "Initial"},
			outcome{"Initial", 1, "Started", 0, nil, 1}},
		"a lifecycle that begins anew counts on from what the inventory speaks of": {
			seenAt(t, "", never, func(s *Seen) {
				s.Inventory = &policyv1alpha1.ServerInventory{Wipe: &policyv1alpha1.WipeReport{Entry: 12}, Report: &policyv1alpha1.ProbeReport{Entry: 9}}
			}),
			engine.Decision{To: "Error", Rule: "DataUnreleased"},
			outcome{"Error", 13, "DataUnreleased", 0, nil, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			recorded := record(c.seen, c.decision)
			l := recorded.Server.Status.Lifecycle
			got := outcome{recorded.Server.Status.State, l.Entry, l.Rule, l.Retries, l.Marks, len(l.History)}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestAHaltBeginsNoLifecycle(t *testing.T) {
	s := seenAt(t, "Strange", func(s *Seen) { s.Server.Status.Lifecycle = nil })
	s.Server = record(s, engine.Decision{From: "Strange", To: "Strange", Halt: &engine.Halt{Cause: engine.HaltUnknownState}}).Server
	if s.Server.Status.Lifecycle != nil {
		t.Errorf("got %+v", s.Server.Status.Lifecycle)
	}
}

func TestAMachineWasNotSeenOnInAnEntryThatBegins(t *testing.T) {
	s := seenAt(t, "Initial")
	s.Server.Status.Lifecycle.SeenOnAt = &metav1.MicroTime{Time: noon}
	s.Server = record(s, engine.Decision{From: "Initial", To: "Initial"}).Server
	if s.Server.Status.Lifecycle.SeenOnAt == nil {
		t.Error("forgotten within the entry")
	}
	s.Server = record(s, engine.Decision{From: "Initial", To: "Discovery", Rule: "ProbeDue"}).Server
	if s.Server.Status.Lifecycle.SeenOnAt != nil {
		t.Error("it counts for the next entry as well")
	}
}

func TestHistoryKeepsTheLastTenMoves(t *testing.T) {
	s := seenAt(t, "Initial")
	for range 25 {
		s.Server = record(s, engine.Decision{From: "Initial", To: "Discovery", Rule: "ProbeDue"}).Server
	}
	h := s.Server.Status.Lifecycle.History
	if len(h) != 10 || h[9].Entry != 32 || h[0].Entry != 23 {
		t.Errorf("%d moves, from entry %d to %d", len(h), h[0].Entry, h[len(h)-1].Entry)
	}
}

func TestRecordOperation(t *testing.T) {
	asks := func(operation string) func(*Seen) {
		return func(s *Seen) { s.Server.Annotations[v1alpha1.OperationAnnotation] = operation }
	}
	under := func(name string, state v1alpha1.OperationState) func(*Seen) {
		return func(s *Seen) {
			s.Server.Status.Operation = &v1alpha1.OperationStatus{ID: "1", Name: name, State: state, Entry: 7}
		}
	}
	// seen makes the facts such that the rule of the decision fires whether or not anything was asked for.
	seen := func(state string, change func(*policies.Facts)) func(*Seen) {
		return func(s *Seen) {
			s.Facts = &policies.Facts{}
			s.Facts.Lifecycle.State, s.Facts.Lifecycle.Marks = state, []string{"Managed"}
			s.Facts.BMC.Power, s.Facts.BMC.Health, s.Facts.BMC.Identity = "Off", "OK", "Same"
			change(s.Facts)
		}
	}
	ended := seen("Reserved", func(f *policies.Facts) { f.Claim.Released = true })
	taken := seen("Available", func(f *policies.Facts) { f.Server.ClaimRefSet = true })
	stay := engine.Decision{}
	for name, c := range map[string]struct {
		seen       Seen
		decision   engine.Decision
		operation  string // name and state
		annotation string
		notes      []string
	}{
		"what the state can use is recorded while the annotation still stands": {
			seenAt(t, "Reserved", asks("hard-restart-server")), stay, "hard-restart-server Pending", "hard-restart-server", nil},
		"what is recorded is taken off": {
			seenAt(t, "Reserved", asks("hard-restart-server"), under("hard-restart-server", v1alpha1.OperationPending)), stay,
			"hard-restart-server Pending", "", nil},
		"a second request waits until the first has ended": {
			seenAt(t, "Reserved", asks("force-off-server"), under("park", v1alpha1.OperationInProgress)), stay, "park InProgress", "force-off-server", nil},
		"an old spelling is understood": {
			seenAt(t, "Error", asks("retry-failed-state-resource")), stay, "retry Pending", "retry-failed-state-resource", nil},
		"what the state cannot use is refused and does not occupy the slot": {
			seenAt(t, "Available", asks("retry")), stay, "", "", []string{"OperationRefused"}},
		"what is no operation is refused": {
			seenAt(t, "Available", asks("explode")), stay, "", "", []string{"UnknownOperation"}},
		"what names nothing is refused": {
			seenAt(t, "Available", asks("")), stay, "", "", []string{"UnknownOperation"}},
		"a move that reads the operation ends it well": {
			seenAt(t, "Available", under("park", v1alpha1.OperationPending)),
			engine.Decision{From: "Available", To: "Parked", Rule: "ParkedAvailable", Groups: []string{"operation"}}, "park Succeeded", "", nil},
		"a move to a state that cannot use it ends it badly": {
			seenAt(t, "Reserved", under("park", v1alpha1.OperationPending), ended),
			engine.Decision{From: "Reserved", To: "Cleanup", Rule: "ClaimEnded", Groups: []string{"claim"}}, "park Failed", "", nil},
		"a move to a state that can use it leaves it": {
			seenAt(t, "Available", under("park", v1alpha1.OperationPending), taken),
			engine.Decision{From: "Available", To: "Reserved", Rule: "Claimed", Groups: []string{"server"}}, "park Pending", "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			recorded := record(c.seen, c.decision)
			operation := ""
			if op := recorded.Server.Status.Operation; op != nil {
				operation = op.Name + " " + string(op.State)
			}
			var notes []string
			for _, n := range recorded.Notes {
				notes = append(notes, n.Reason)
			}
			if operation != c.operation || recorded.Server.Annotations[v1alpha1.OperationAnnotation] != c.annotation || !cmp.Equal(notes, c.notes) {
				t.Errorf("operation %q, annotation %q, notes %v; want %q, %q, %v", operation,
					recorded.Server.Annotations[v1alpha1.OperationAnnotation], notes, c.operation, c.annotation, c.notes)
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
		s := seenAt(t, state, func(s *Seen) { s.Server.Annotations[v1alpha1.OperationAnnotation] = v1alpha1.OperationRelease })
		recorded := record(s, engine.Decision{})
		if len(recorded.Notes) != 1 || recorded.Notes[0].Message != want {
			t.Errorf("got  %v\nwant %s", recorded.Notes, want)
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
			s := seenAt(t, c.state, func(s *Seen) {
				s.Now, s.Now, s.Settings.ReleaseGrace = noon, noon, 5*time.Minute
				s.Server.Annotations[v1alpha1.OperationAnnotation] = v1alpha1.OperationUndoRelease
				s.Server.Annotations[v1alpha1.ClaimUIDAnnotation], s.Server.Annotations[v1alpha1.ReleasedClaimAnnotation] = "u1", "u1"
				s.Server.Annotations[v1alpha1.ReleasedAtAnnotation] = at.Format(time.RFC3339)
				s.Server.Annotations[v1alpha1.ReleasedCountedAnnotation] = "9h"
				s.CountedNow, s.CountedNow = counted.Time(10*time.Hour), counted.Time(10*time.Hour)
				c.change(s.Server)
			})
			recorded := record(s, engine.Decision{})
			got := ""
			if op := recorded.Server.Status.Operation; op != nil {
				got = op.Message
			} else if len(recorded.Notes) == 1 {
				got = recorded.Notes[0].Message
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
		s := seenAt(t, "Available", func(s *Seen) { s.Server.Annotations[v1alpha1.OperationAnnotation] = operation })
		recorded := record(s, engine.Decision{})
		if len(recorded.Notes) != 1 || recorded.Notes[0].Message != want {
			t.Errorf("got  %v\nwant %s", recorded.Notes, want)
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
			s := seenAt(t, "Available", func(s *Seen) {
				s.Server.Annotations[v1alpha1.OperationAnnotation] = v1alpha1.OperationAllowInProgressDelete
				change(s.Server)
			})
			recorded := record(s, engine.Decision{})
			if recorded.Server.Annotations[v1alpha1.OperationAnnotation] != v1alpha1.OperationAllowInProgressDelete || recorded.Notes != nil || recorded.Server.Status.Operation != nil {
				t.Error(recorded.Server.Annotations, recorded.Notes, recorded.Server.Status.Operation)
			}
		})
	}
}

func TestWhatWasAskedForIsSeenOnlyByAReadingTakenSince(t *testing.T) {
	asked := noon.Add(-10 * time.Second)
	off := func(change ...func(*Seen)) Seen {
		return seenAt(t, "Reserved", append([]func(*Seen){func(s *Seen) {
			s.Server.Status.Lifecycle.Request = &v1alpha1.PowerRequest{Action: v1alpha1.PowerActionForceOff, AskedAt: metav1.NewMicroTime(asked)}
			s.Memory.Asked = asked
			s.BMC = BMC{Tried: true, Begun: asked.Add(time.Second), At: noon}
			s.BMC.System.Power = redfish.PowerOff
			s.Facts.BMC.Identity = policies.IdentitySame
		}}, change...)...)
	}
	for name, c := range map[string]struct {
		seen Seen
		want bool
	}{
		"a reading begun since shows it":                 {off(), true},
		"a reading begun at the same time shows nothing": {off(func(s *Seen) { s.BMC.Begun = asked }), false},
		"a reading begun before shows nothing":           {off(func(s *Seen) { s.BMC.Begun = asked.Add(-time.Millisecond) }), false},
		"a reading of this process shows what another asked, whose clock is ahead": {off(func(s *Seen) {
			s.Server.Status.Lifecycle.Request.AskedAt = metav1.NewMicroTime(noon.Add(10 * time.Minute))
		}), true},
		"a reading that failed shows nothing":               {off(func(s *Seen) { s.BMC.Err = errDown }), false},
		"another machine shows nothing":                     {off(func(s *Seen) { s.Facts.BMC.Identity = policies.IdentityOther }), false},
		"the opposite shows nothing":                        {off(func(s *Seen) { s.BMC.System.Power = redfish.PowerOn }), false},
		"an unknown power state shows nothing":              {off(func(s *Seen) { s.BMC.System.Power = redfish.PowerUnknown }), false},
		"a power state on the way to Off is not Off":        {off(func(s *Seen) { s.BMC.System.Power = redfish.PowerPoweringOff }), false},
		"a shutdown is shown by the same reading as a cut":  {off(asksFor(v1alpha1.PowerActionGracefulShutdown)), true},
		"a power-on is not shown by a machine which is Off": {off(asksFor(v1alpha1.PowerActionOn)), false},
	} {
		t.Run(name, func(t *testing.T) {
			recorded := record(c.seen, engine.Decision{})
			at := recorded.Server.Status.Lifecycle.Request.ShownAt
			if got := at != nil; got != c.want {
				t.Errorf("shown %t, want %t", got, c.want)
			}
			if at != nil && !at.Time.Equal(noon) {
				t.Errorf("shown at %s, want %s", at, noon)
			}
		})
	}
}

func asksFor(action v1alpha1.PowerAction) func(*Seen) {
	return func(s *Seen) { s.Server.Status.Lifecycle.Request.Action = action }
}

func TestWhenSomethingWasFirstShownIsKept(t *testing.T) {
	s := seenAt(t, "Reserved", func(s *Seen) {
		at, first := metav1.NewMicroTime(noon.Add(-time.Hour)), metav1.NewMicroTime(noon.Add(-30*time.Minute))
		s.Server.Status.Lifecycle.Request = &v1alpha1.PowerRequest{Action: v1alpha1.PowerActionOn, AskedAt: at, ShownAt: &first}
		s.BMC = BMC{Tried: true, Begun: noon, At: noon}
		s.BMC.System.Power = redfish.PowerOn
		s.Facts.BMC.Identity = policies.IdentitySame
	})
	recorded := record(s, engine.Decision{})
	if got := recorded.Server.Status.Lifecycle.Request.ShownAt.Time; !got.Equal(noon.Add(-30 * time.Minute)) {
		t.Errorf("shown at %s", got)
	}
}

func TestAnAgentMayRunOnAMachineOnceItWasSeenOn(t *testing.T) {
	entered := noon.Add(-time.Hour)
	in := func(change ...func(*Seen)) Seen {
		return seenAt(t, "Discovery", append([]func(*Seen){func(s *Seen) {
			s.Memory.Enter(s.Server, entered)
			s.BMC = BMC{Tried: true, Begun: entered.Add(time.Second), At: noon}
			s.BMC.System.Power = redfish.PowerOn
			s.Facts.BMC.Identity = policies.IdentitySame
		}}, change...)...)
	}
	for name, c := range map[string]struct {
		seen Seen
		want bool
	}{
		"On":                             {in(), true},
		"not while on its way there":     {in(func(s *Seen) { s.BMC.System.Power = redfish.PowerPoweringOn }), false},
		"not while Off":                  {in(func(s *Seen) { s.BMC.System.Power = redfish.PowerOff }), false},
		"not while its power is unknown": {in(func(s *Seen) { s.BMC.System.Power = redfish.PowerUnknown }), false},
		"not when the BMC is silent":     {in(func(s *Seen) { s.BMC.Err = errDown }), false},
		"in an entry that another process began, whose clock is ahead": {in(func(s *Seen) {
			s.Memory = Memory{}
			s.Server.Status.Lifecycle.EnteredAt = metav1.NewMicroTime(noon.Add(10 * time.Minute))
		}), true},
		"not before the entry began": {in(func(s *Seen) { s.BMC.Begun = entered.Add(-time.Second) }), false},
		"not when it is another":     {in(func(s *Seen) { s.Facts.BMC.Identity = policies.IdentityOther }), false},
	} {
		t.Run(name, func(t *testing.T) {
			recorded := record(c.seen, engine.Decision{})
			if got := recorded.Server.Status.Lifecycle.SeenOnAt != nil; got != c.want {
				t.Errorf("seen on: %t, want %t", got, c.want)
			}
		})
	}
}

// rests is a decision that leaves a server in its state.
func rests(state engine.State) engine.Decision {
	return engine.Decision{From: state, To: state, Stable: true, Message: "m"}
}

// ready is a server in a state of the default bundle whose machine was read.
func ready(t *testing.T, state v1alpha1.ServerState, change ...func(*Seen)) Seen {
	t.Helper()
	b, err := defaultBundle()
	if err != nil {
		t.Fatal(err)
	}
	return seenIn(state, append([]func(*Seen){func(s *Seen) { s.Bundle, s.Settings = b, b.Settings }}, change...)...)
}

func TestARecordChangesNothingThatIsSeen(t *testing.T) {
	s := ready(t, v1alpha1.StateAvailable, on, asked(v1alpha1.PowerActionOn, 10*time.Second), annotated(v1alpha1.OperationAnnotation, "park"))
	before := s.Server.DeepCopy()
	first := record(s, engine.Decision{From: "Available", To: "Reserved", Rule: "Claimed"})
	if diff := diffOf(before, s.Server); diff != "" {
		t.Errorf("the server that is seen (-before +after)\n%s", diff)
	}
	if diff := diffOf(first, record(s, engine.Decision{From: "Available", To: "Reserved", Rule: "Claimed"})); diff != "" {
		t.Errorf("the same is recorded otherwise (-first +second)\n%s", diff)
	}
}

func TestWhatBecameOfAPowerRequestIsRecorded(t *testing.T) {
	const id = "On/2026-05-01T11:59:50Z"
	on10 := asked(v1alpha1.PowerActionOn, 10*time.Second)
	request := func(change ...func(*v1alpha1.PowerRequest)) *v1alpha1.PowerRequest {
		r := &v1alpha1.PowerRequest{Action: v1alpha1.PowerActionOn, AskedAt: micro(10 * time.Second), Entry: 7, Attempts: 1}
		for _, c := range change {
			c(r)
		}
		return r
	}
	refusal := func(r *v1alpha1.PowerRequest) { r.Refusal, r.Refusals, r.RefusedAt = "no", 1, microPtr(0) }
	for name, c := range map[string]struct {
		seen   Seen
		want   *v1alpha1.PowerRequest
		booted bool
	}{
		"nothing of one that is under way":   {ready(t, v1alpha1.StateReserved, on10, job(id, power.Job{Running: true})), request(), false},
		"that it shows, and what booted":     {ready(t, v1alpha1.StateReserved, on10, on, job(id, power.Job{EndedAt: noon.Add(-8 * time.Second)})), request(func(r *v1alpha1.PowerRequest) { r.ShownAt = microPtr(0) }), true},
		"that it shows, for a former entry":  {ready(t, v1alpha1.StateReserved, on10, on, lifecycle(func(l *v1alpha1.LifecycleStatus) { l.Request.Entry = 6 })), request(func(r *v1alpha1.PowerRequest) { r.Entry, r.ShownAt = 6, microPtr(0) }), false},
		"that the BMC refused it":            {ready(t, v1alpha1.StateReserved, on10, job(id, failed(8*time.Second))), request(refusal), false},
		"and how often it said the same":     {ready(t, v1alpha1.StateReserved, on10, lifecycle(func(l *v1alpha1.LifecycleStatus) { l.Request.Refusal, l.Request.Refusals = "no", 2 }), job(id, failed(8*time.Second))), request(refusal, func(r *v1alpha1.PowerRequest) { r.Refusals = 3 }), false},
		"not that it was not even asked":     {ready(t, v1alpha1.StateReserved, on10, job(id, power.Job{Err: frozen, EndedAt: noon})), request(), false},
		"a refusal is forgotten once it did": {ready(t, v1alpha1.StateReserved, on10, lifecycle(func(l *v1alpha1.LifecycleStatus) { l.Request.Refusal, l.Request.Refusals = "no", 2 }), job(id, power.Job{EndedAt: noon})), request(), false},
	} {
		t.Run(name, func(t *testing.T) {
			l := record(c.seen, rests("Reserved")).Server.Status.Lifecycle
			if diff := cmp.Diff(c.want, l.Request); diff != "" {
				t.Errorf("the request (-want +got)\n%s", diff)
			}
			if booted := l.BootedAt != nil; booted != c.booted {
				t.Errorf("booted: %t", booted)
			}
		})
	}
}

func TestAFinalizerFollowsALifecycleThatIsStored(t *testing.T) {
	moves := engine.Decision{To: "Initial"}
	for name, c := range map[string]struct {
		seen      Seen
		decision  engine.Decision
		finalizer bool
	}{
		"not in the write that begins the lifecycle": {ready(t, "", unborn), moves, false},
		"in the next one":        {ready(t, v1alpha1.StateInitial), rests("Initial"), true},
		"not where it is halted": {ready(t, "Strange", unborn), engine.Decision{From: "Strange", To: "Strange", Halt: &engine.Halt{Cause: engine.HaltUnknownState}}, false},
		"once alone":             {ready(t, v1alpha1.StateInitial, func(s *Seen) { s.Server.Finalizers = []string{v1alpha1.FinalizerServer} }), rests("Initial"), true},
	} {
		t.Run(name, func(t *testing.T) {
			var want []string
			if c.finalizer {
				want = []string{v1alpha1.FinalizerServer}
			}
			if diff := cmp.Diff(want, record(c.seen, c.decision).Server.Finalizers); diff != "" {
				t.Errorf("finalizers (-want +got)\n%s", diff)
			}
		})
	}
}

func TestLabelsOfTheHardwareTakeTheirTurnUnlessTheMetadataIsWrittenAnyway(t *testing.T) {
	model := func(s *Seen) { s.Server.Status.Manufacturer, s.Server.Status.Model = "Contoso", "X1" }
	final := func(s *Seen) { s.Server.Finalizers = []string{v1alpha1.FinalizerServer} }
	labelled := func(s *Seen) {
		s.Server.Labels = policies.LabelsFor(nil, policies.CandidateOf(s.Server, policies.HardwareOf(nil)), s.Settings)
	}
	waits := func(a *Answers) {
		a.Outcome = loop.Outcome{Effect: "PowerOff", Progress: loop.Waiting("WaitsForPower", "m", 0)}
	}
	unbooted := func(a *Answers) { a.Unbooted = true }
	for name, c := range map[string]struct {
		seen         Seen
		change       []func(*Answers)
		written, due bool
	}{
		"they wait while the server rests":         {ready(t, v1alpha1.StateAvailable, model, final), nil, false, true},
		"not in a state that is a step on its way": {ready(t, v1alpha1.StateDiscovery, model, final), nil, false, false},
		"but in Error, which it may not leave":     {ready(t, v1alpha1.StateError, model, final), nil, false, true},
		"not while it is on its way":               {ready(t, v1alpha1.StateAvailable, model, final), []func(*Answers){waits}, false, false},
		"they go with a finalizer":                 {ready(t, v1alpha1.StateAvailable, model), []func(*Answers){waits}, true, false},
		"they go with a reference to a boot":       {ready(t, v1alpha1.StateAvailable, model, final), []func(*Answers){waits, unbooted}, true, false},
		"they are due once":                        {ready(t, v1alpha1.StateAvailable, model, final, labelled), nil, true, false},
		"not before there is a lifecycle":          {ready(t, "Strange", model, unborn), []func(*Answers){unbooted, func(a *Answers) { a.Decision.Halt = &engine.Halt{} }}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := record(c.seen, rests(engine.State(c.seen.Server.Status.State)), c.change...)
			if written := len(r.Server.Labels) > 0; written != c.written {
				t.Errorf("written: %v", r.Server.Labels)
			}
			if due := r.Labels != nil; due != c.due {
				t.Errorf("due: %v", r.Labels)
			}
		})
	}
}

func TestWhatARecordLeavesInMemory(t *testing.T) {
	at := noon.Add(-time.Minute)
	waiting := func(s *Seen) { s.Memory.Waits, s.Memory.Reads, s.Memory.Held = at, at, at }
	reads := func(a *Answers) {
		a.Outcome = loop.Outcome{Effect: "PowerOn", Progress: loop.Waiting(power.WaitsForReading, "m", 0)}
	}
	for name, c := range map[string]struct {
		seen     Seen
		decision engine.Decision
		change   []func(*Answers)
		want     Memory
	}{
		"nothing of a server that rests on a fresh reading": {ready(t, v1alpha1.StateAvailable, waiting), rests("Available"), nil, Memory{}},
		"since when an effect waits for a reading": {ready(t, v1alpha1.StateDiscovery, stale), rests("Discovery"), []func(*Answers){reads},
			Memory{Unsettled: true, Reads: noon}},
		"and since when it did before": {ready(t, v1alpha1.StateDiscovery, stale, func(s *Seen) { s.Memory.Reads, s.Memory.Waits = at, noon }), rests("Discovery"), []func(*Answers){reads},
			Memory{Unsettled: true, Reads: at, Waits: noon}},
		"not while the BMC is silent": {ready(t, v1alpha1.StateDiscovery, silent, func(s *Seen) { s.Memory.Reads = at }), rests("Discovery"), []func(*Answers){reads},
			Memory{Unsettled: true}},
		"since when a move is put off": {ready(t, v1alpha1.StateDiscovery), rests("Discovery"), []func(*Answers){func(a *Answers) { a.Gated = gates.Output{Postponed: true} }},
			Memory{Unsettled: true, Held: noon}},
		"that something waits for the BMC": {ready(t, v1alpha1.StateAvailable), rests("Available"), []func(*Answers){func(a *Answers) { a.AwaitsBMC = true }}, Memory{AwaitsBMC: true}},
		"when this process moved it, and into which entry": {ready(t, v1alpha1.StateAvailable, stale, func(s *Seen) { s.Memory.Waits = noon }), engine.Decision{From: "Available", To: "Parked", Rule: "ParkedAvailable"}, nil,
			Memory{Unsettled: true, Entered: noon, Entry: 8, UID: "uid-a"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := diffOf(c.want, record(c.seen, c.decision, c.change...).Memory); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestAServerIsSettledWhereItsDecisionWantsIt(t *testing.T) {
	waits := func(a *Answers) {
		a.Outcome = loop.Outcome{Effect: "PowerOff", Progress: loop.Waiting("WaitsForPower", "m", 0)}
	}
	for name, c := range map[string]struct {
		seen     Seen
		decision engine.Decision
		change   []func(*Answers)
		want     string
	}{
		"at rest":                     {ready(t, v1alpha1.StateAvailable), rests("Available"), nil, "settled rested"},
		"without word of its machine": {ready(t, v1alpha1.StateAvailable, other), rests("Available"), nil, "settled"},
		"while an effect waits":       {ready(t, v1alpha1.StateAvailable), rests("Available"), []func(*Answers){waits}, "rested"},
		"while it moves":              {ready(t, v1alpha1.StateAvailable), engine.Decision{From: "Available", To: "Reserved", Rule: "Claimed"}, nil, ""},
		"while it is halted":          {ready(t, v1alpha1.StateAvailable), engine.Decision{From: "Available", To: "Available", Halt: &engine.Halt{}}, nil, ""},
		"while its move is put off":   {ready(t, v1alpha1.StateAvailable), rests("Available"), []func(*Answers){func(a *Answers) { a.Gated.Postponed = true }}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r, got := record(c.seen, c.decision, c.change...), ""
			for word, is := range map[string]bool{"settled": r.Settled, "rested": r.Rested} {
				if is {
					got += word
				}
			}
			want := map[string]bool{"settled rested": r.Settled && r.Rested, "settled": r.Settled && !r.Rested, "rested": !r.Settled && r.Rested, "": !r.Settled && !r.Rested}
			if !want[c.want] {
				t.Errorf("it is %q, want %q", got, c.want)
			}
		})
	}
}

func TestAnOperationEndsOnceTheInventoryHasWhatAPersonAnswersFor(t *testing.T) {
	asks := func(operation string) func(*Seen) {
		return func(s *Seen) {
			for name, value := range map[string]string{v1alpha1.OperationAnnotation: operation, v1alpha1.OperationByAnnotation: "jane",
				v1alpha1.OperationReasonAnnotation: "saw it", v1alpha1.AttestDiskAnnotation: "sda", v1alpha1.AttestMethodAnnotation: "destroy"} {
				annotated(name, value)(s)
			}
		}
	}
	disk := custody(policyv1alpha1.Custody{Marks: []string{"Dirty"}, Disks: []policyv1alpha1.CustodyDisk{{Name: "sda", Serial: "S"}}})
	answer := operations.Answer{AttestedDisk: policyv1alpha1.AttestedDisk{CustodyDisk: policyv1alpha1.CustodyDisk{Name: "sda", Serial: "S"}}}
	for name, c := range map[string]struct {
		operation string
		change    func(*Answers)
		want      string
	}{
		"a disk":            {v1alpha1.OperationAttestDisk, func(a *Answers) { a.Attested = &answer }, "attest-disk Succeeded"},
		"no disk before":    {v1alpha1.OperationAttestDisk, func(*Answers) {}, ""},
		"a machine":         {v1alpha1.OperationProve, func(a *Answers) { a.Proved = &policyv1alpha1.MachineIdentity{} }, "prove Succeeded"},
		"no machine before": {v1alpha1.OperationProve, func(*Answers) {}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := record(ready(t, v1alpha1.StateReserved, marks("Dirty", "Managed"), disk, asks(c.operation)), rests("Reserved"), c.change).Server
			got := ""
			if op := s.Status.Operation; op != nil {
				got = fmt.Sprintf("%s %s", op.Name, op.State)
			}
			if _, stands := s.Annotations[v1alpha1.OperationAnnotation]; got != c.want || stands == (c.want != "") {
				t.Errorf("the operation is %q, want %q; its annotation stands: %t", got, c.want, stands)
			}
		})
	}
}

func TestWhatHeldSomethingBackIsTold(t *testing.T) {
	held := func(a *Answers) {
		a.Verdict = &fleet.Verdict{Reason: v1alpha1.ReasonFrozen, Message: "the wipe is held back"}
		a.Outcome = loop.Outcome{Effect: "BootWipe", Progress: loop.Waiting(v1alpha1.ReasonFrozen, "the wipe is held back", 0)}
	}
	s := ready(t, v1alpha1.StateCleanup)
	s.Server = record(s, engine.Decision{From: "Cleanup", To: "Cleanup"}, held).Server
	told := meta.FindStatusCondition(s.Server.Status.Conditions, v1alpha1.ConditionWithheld)
	if told == nil || told.Status != metav1.ConditionTrue || told.Reason != v1alpha1.ReasonFrozen || told.Message != "the wipe is held back" {
		t.Errorf("Withheld: %+v", told)
	}
	s.Server = record(s, engine.Decision{From: "Cleanup", To: "Cleanup"}, func(a *Answers) { a.LetThrough = true }).Server
	if meta.IsStatusConditionTrue(s.Server.Status.Conditions, v1alpha1.ConditionWithheld) {
		t.Error("what was let through is told to be held back")
	}
}

func TestAMoveThatWaitsForAReadingIsToldOnceThatTakesLong(t *testing.T) {
	const before, waits = "Inspected, clean and free to claim.", "Claimed waits for a fresh reading of the BMC"
	for name, c := range map[string]struct {
		held time.Duration
		told string
		want string
	}{
		"not while it is read":      {time.Second, before, before},
		"after a while":             {status.WorthTelling, before, waits},
		"where nothing is told yet": {time.Second, "", waits},
	} {
		t.Run(name, func(t *testing.T) {
			s := seenAt(t, "Available", func(s *Seen) { s.Memory.Held = noon.Add(-c.held) })
			if c.told != "" {
				s.Server.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: "True", Reason: "Stable", Message: c.told}}
			}
			r := record(s, engine.Decision{From: "Available", To: "Available", Stable: true, Message: waits}, func(a *Answers) { a.Gated.Postponed = true })
			if got := meta.FindStatusCondition(r.Server.Status.Conditions, v1alpha1.ConditionReady).Message; got != c.want {
				t.Errorf("Ready says %q, want %q", got, c.want)
			}
			if c.want == before && r.Wake != status.WorthTelling-c.held {
				t.Errorf("looks again in %s", r.Wake)
			}
		})
	}
}

func TestAServerInErrorNamesTheDisksThatAWipeRefused(t *testing.T) {
	const policy = "A disk was not erased or not seen, or the machine cannot be booted to be wiped. " +
		"The ServerInventory or the condition BootOverrideMissing says which. Mend it, then retry."
	remote := policyv1alpha1.DiskWipe{Path: "/dev/nvme1n1", State: policyv1alpha1.DiskFailed, Message: "not erased: it is remote"}
	for name, c := range map[string]struct {
		wipe *policyv1alpha1.WipeReport
		want string
	}{
		"by the agent's summary": {&policyv1alpha1.WipeReport{Entry: 6, State: policyv1alpha1.WipeFailed, Message: "1 of 2 disks may still hold data"},
			policy + " The agent says: 1 of 2 disks may still hold data"},
		"disk by disk without a summary": {&policyv1alpha1.WipeReport{Entry: 6, State: policyv1alpha1.WipeFailed, Disks: []policyv1alpha1.DiskWipe{remote}},
			policy + " The agent says: /dev/nvme1n1: not erased: it is remote"},
		"not of a former wipe":      {&policyv1alpha1.WipeReport{Entry: 3, State: policyv1alpha1.WipeFailed, Message: "old"}, policy},
		"not of a wipe that worked": {&policyv1alpha1.WipeReport{Entry: 6, State: policyv1alpha1.WipeVerified, Message: "done"}, policy},
		"not without a wipe":        {nil, policy},
	} {
		t.Run(name, func(t *testing.T) {
			s := seenAt(t, v1alpha1.StateError, func(s *Seen) {
				s.Server.Status.Lifecycle.Rule = "WipeFailed"
				s.Inventory = &policyv1alpha1.ServerInventory{Wipe: c.wipe}
			})
			r := record(s, engine.Decision{From: "Error", To: "Error", Stable: true})
			for _, kind := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionStalled} {
				if got := meta.FindStatusCondition(r.Server.Status.Conditions, kind).Message; got != c.want {
					t.Errorf("%s says %q, want %q", kind, got, c.want)
				}
			}
		})
	}
}
