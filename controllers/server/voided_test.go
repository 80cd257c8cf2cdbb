// SPDX-License-Identifier: Apache-2.0

package server

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish"
)

// voids has two agents report for the present entry of a.
func (w *world) voids() {
	w.t.Helper()
	entry := w.server().Status.Lifecycle.Entry
	edit(w, machineUUID, &policyv1alpha1.ServerInventory{}, func(i *policyv1alpha1.ServerInventory) {
		i.Enrolment = &policyv1alpha1.Enrolment{Entry: entry, At: ago(0), Voided: true}
		if i.Wipe != nil && i.Wipe.Entry == entry {
			i.Wipe.State = policyv1alpha1.WipeFailed
		}
	})
}

func TestAVoidedEntryIsFollowedByAnotherAndThenByError(t *testing.T) {
	for name, found := range map[string]func() *v1alpha1.Server{
		"of a wipe":        inCleanup,
		"of an inspection": func() *v1alpha1.Server { return serverIn(v1alpha1.StateDiscovery) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server, inventory := found(), inventoryOfA()
				state := server.Status.State
				if state == v1alpha1.StateCleanup {
					inventory = wipedInventory()
				}
				w := inWorld(t, newMachine(redfish.PowerOff), server, inventory, wipeRecord())
				w.voids()
				w.manager.run(30 * time.Second)
				s := w.server()
				if s.Status.State != state || s.Status.Lifecycle.Entry != 9 {
					t.Fatalf("after the first conflict it is %s, entry %d, by %+v", s.Status.State, s.Status.Lifecycle.Entry, s.Status.Lifecycle.History)
				}
				w.voids()
				w.manager.run(30 * time.Second)
				s = w.server()
				if l := s.Status.Lifecycle; s.Status.State != v1alpha1.StateError || l.Rule != v1alpha1.RuleEntryVoided {
					t.Errorf("after the second it is %s by %s", s.Status.State, l.Rule)
				}
				ready := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionReady)
				if ready == nil || !strings.Contains(ready.Message, "who has the credential") {
					t.Errorf("Ready: %+v", ready)
				}
			})
		})
	}
}

func TestAnEntryInWhichAnAgentMayStillEraseIsNotEndedYet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := inWorld(t, newMachine(redfish.PowerOn), inCleanup(), wiping(policyv1alpha1.WipeRunning, 7))
		edit(w, machineUUID, &policyv1alpha1.ServerInventory{}, func(i *policyv1alpha1.ServerInventory) {
			i.Enrolment = &policyv1alpha1.Enrolment{Entry: 7, At: ago(0), Voided: true}
		})
		w.manager.run(time.Minute)
		if s := w.server(); s.Status.Lifecycle.Entry != 7 || len(w.machine.asked()) > 0 {
			t.Errorf("entry %d, asked %q", s.Status.Lifecycle.Entry, w.machine.asked())
		}
		w.manager.run(3 * time.Minute)
		if s := w.server(); s.Status.Lifecycle.Entry == 7 {
			t.Error("the entry goes on once the agent is silent")
		}
	})
}
