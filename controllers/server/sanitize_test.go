// SPDX-License-Identifier: Apache-2.0

package server

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish"
)

// inspected is the inventory of a new machine whose report in the present entry shows a disk with data.
func inspected() *policyv1alpha1.ServerInventory {
	i := inventoryOfA()
	i.Custody = &policyv1alpha1.Custody{}
	i.Report = &policyv1alpha1.ProbeReport{Entry: 7, Data: policyv1alpha1.ProbeData{Storage: []policyv1alpha1.BlockDevice{
		{Path: "/dev/sda", WWID: "w", Content: policyv1alpha1.ContentData, ContentFound: "a GPT"}}}}
	return i
}

func (w *world) inventory() *policyv1alpha1.ServerInventory {
	w.t.Helper()
	i := &policyv1alpha1.ServerInventory{}
	if err := w.api.Get(w.t.Context(), types.NamespacedName{Name: machineUUID}, i); err != nil {
		w.t.Fatal(err)
	}
	return i
}

func TestAMachineWithDataOnItsDisksIsErasedOnlyByASanitize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := inWorld(t, newMachine(redfish.PowerOn), serverIn(v1alpha1.StateDiscovery, func(s *v1alpha1.Server) {
			s.Status.Lifecycle.EnteredAt = ago(time.Minute)
		}), inspected())
		w.manager.run(time.Minute)
		s := w.server()
		ready := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionReady)
		if s.Status.State != v1alpha1.StateError || s.Status.Lifecycle.Rule != "DataOnDisks" || !slices.Contains(s.Status.Lifecycle.Marks, "Dirty") {
			t.Fatalf("it is in %s by %s with marks %v", s.Status.State, s.Status.Lifecycle.Rule, s.Status.Lifecycle.Marks)
		}
		if ready == nil || !strings.HasSuffix(ready.Message, "Found: /dev/sda (a GPT).") {
			t.Errorf("it says %+v", ready)
		}
		if c := w.inventory().Custody; !slices.Contains(c.Marks, "Dirty") || c.DataFound == nil || len(c.DataFound.Disks) != 1 {
			t.Errorf("custody is %+v", c)
		}

		ask := func(operation string) {
			edit(w, "a", &v1alpha1.Server{}, func(s *v1alpha1.Server) {
				metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.OperationAnnotation, operation)
				metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.OperationReasonAnnotation, "bought used")
			})
			w.manager.run(time.Minute)
		}
		if ask(v1alpha1.OperationRelease); w.operation() != "release Refused" || w.server().Annotations[v1alpha1.ReleasedClaimAnnotation] != "" {
			t.Errorf("a release has it erased: %s", w.operation())
		}
		if ask(v1alpha1.OperationRetry); w.server().Status.State != v1alpha1.StateError || w.server().Status.Lifecycle.Rule != "DataUnreleased" {
			t.Errorf("a retry leads to %s by %s", w.server().Status.State, w.server().Status.Lifecycle.Rule)
		}
		ask(v1alpha1.OperationSanitize)
		w.manager.run(5 * time.Minute)
		if got := w.server(); w.operation() != "sanitize Succeeded" || got.Status.State != v1alpha1.StateCleanup {
			t.Errorf("sanitize leads to %s: %+v", got.Status.State, got.Status.Operation)
		}
	})
}

func TestAServerThatAClaimHoldsIsNotSanitized(t *testing.T) {
	for name, c := range map[string]struct {
		server func(*v1alpha1.Server)
		want   string
	}{
		"a claim is written on it": {holdsWeb, "sanitize Refused"},
		"it holds no data":         {func(s *v1alpha1.Server) { s.Status.Lifecycle.Marks = []string{"Managed"} }, "sanitize Refused"},
		"nobody holds it":          {func(*v1alpha1.Server) {}, "sanitize Succeeded"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := inWorld(t, newMachine(redfish.PowerOff), serverIn(v1alpha1.StateError, operates(v1alpha1.OperationSanitize),
					func(s *v1alpha1.Server) { s.Status.Lifecycle.Marks = []string{"Dirty", "Managed"} }, c.server), dirtyInventory(nil))
				w.manager.run(30 * time.Second)
				if got := w.operation(); got != c.want {
					t.Errorf("it is %s: %+v", got, w.server().Status.Operation)
				}
				if refused := c.want == "sanitize Refused"; refused && w.server().Annotations[v1alpha1.ReleasedClaimAnnotation] != "" {
					t.Error("a release is recorded")
				}
			})
		})
	}
}

func TestTheProbeThatIsNotHeardIsPoweredOffAndTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := inWorld(t, newMachine(redfish.PowerOff), serverIn(v1alpha1.StateDiscovery, func(s *v1alpha1.Server) {
			s.Status.Lifecycle.EnteredAt = ago(0)
		}), inventoryOfA())
		w.boots()
		w.manager.run(19 * time.Minute)
		if got := w.server(); got.Status.State != v1alpha1.StateDiscovery || w.machine.now() != redfish.PowerOn {
			t.Fatalf("after 19 minutes it is in %s, %s (%v)", got.Status.State, w.machine.now(), got.Status.Conditions)
		}
		w.manager.run(4 * time.Minute)
		if got := w.server(); got.Status.State != v1alpha1.StateDiscovery || w.machine.now() != redfish.PowerOff {
			t.Errorf("after 23 minutes it is in %s, %s", got.Status.State, w.machine.now())
		}
		w.manager.run(15 * time.Minute)
		if l := w.server().Status.Lifecycle; l.Retries != 1 {
			t.Errorf("there were %d retries: %+v", l.Retries, l.History)
		}
	})
}

func TestThePhaseOfAnAgentIsACondition(t *testing.T) {
	since := metav1.NewMicroTime(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC))
	for name, c := range map[string]struct {
		entry        int64
		phase        string
		want, reason string
	}{
		"of this entry":         {7, "network", "The agent is in phase network, eth0, 25 %; since 2026-05-01T12:00:00Z", "network"},
		"whose name is no word": {7, "3 disks/now", "The agent is in phase 3 disks/now, eth0, 25 %; since 2026-05-01T12:00:00Z", "Phase_3_disks_now"},
		"not of a former entry": {6, "network", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				i := inventoryOfA()
				i.Phase = &policyv1alpha1.AgentPhase{Entry: c.entry, Name: c.phase, Detail: "eth0", Percent: 25, Since: since, ReceivedAt: since}
				w := inWorld(t, newMachine(redfish.PowerOn), serverIn(v1alpha1.StateDiscovery, func(s *v1alpha1.Server) {
					s.Status.Lifecycle.EnteredAt = ago(time.Minute)
				}), i)
				w.manager.run(10 * time.Second)
				got := meta.FindStatusCondition(w.server().Status.Conditions, v1alpha1.ConditionInBandPhase)
				if got == nil && c.want != "" || got != nil && (got.Message != c.want || got.Reason != c.reason) {
					t.Errorf("got %+v", got)
				}
			})
		})
	}
}

func TestErrorNamesTheLastPhaseOfAProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		since := metav1.NewMicroTime(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC))
		i := inventoryOfA()
		i.Phase = &policyv1alpha1.AgentPhase{Entry: 7, Name: "network", Detail: "no address on eth0", Since: since, ReceivedAt: since}
		w := inWorld(t, newMachine(redfish.PowerOn), serverIn(v1alpha1.StateDiscovery, func(s *v1alpha1.Server) {
			s.Status.Lifecycle.EnteredAt, s.Status.Lifecycle.Retries = ago(0), 3
		}), i)
		w.boots()
		w.manager.run(40 * time.Minute)
		ready := meta.FindStatusCondition(w.server().Status.Conditions, v1alpha1.ConditionReady)
		if got := w.server().Status.Lifecycle.Rule; got != "ProbeLost" || ready == nil ||
			!strings.HasSuffix(ready.Message, "The last phase heard was network (no address on eth0), since 2026-05-01T12:00:00Z.") {
			t.Errorf("by %s it says %+v", got, ready)
		}
	})
}

// boots has the boot operator say Ready of the boot that is prepared.
func (w *world) boots() {
	w.t.Helper()
	w.manager.run(5 * time.Second)
	boot := &v1alpha1.ServerBootConfiguration{}
	if err := w.api.Get(w.t.Context(), types.NamespacedName{Namespace: "metalaw-system", Name: "a"}, boot); err != nil {
		w.t.Fatal(err)
	}
	boot.Status.State = v1alpha1.ServerBootConfigurationStateReady
	if err := w.api.Status().Update(w.t.Context(), boot); err != nil {
		w.t.Fatal(err)
	}
	w.manager.wake("a")
}

// now is the power that the machine shows.
func (m *machine) now() redfish.PowerState {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.shows.Power
}
