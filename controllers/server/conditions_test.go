// SPDX-License-Identifier: Apache-2.0

package server

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/controllers/server/status"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/redfish"
)

// recordReady records the conditions, where a move has been put off since a time.
func (v *scope) recordReady(d engine.Decision, postponed time.Time) {
	v.seen.Memory.Held = postponed
	v.record(d, loop.Outcome{})
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
			v := newScope(t, "Available", func(v *scope) { v.gated.Postponed = true })
			if c.told != "" {
				v.server.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: "True", Reason: "Stable", Message: c.told}}
			}
			v.recordReady(engine.Decision{From: "Available", To: "Available", Stable: true, Message: waits}, v.seen.Now.Add(-c.held))
			if got := meta.FindStatusCondition(v.server.Status.Conditions, v1alpha1.ConditionReady).Message; got != c.want {
				t.Errorf("Ready says %q, want %q", got, c.want)
			}
			if c.want == before && v.x.wake != status.WorthTelling-c.held {
				t.Errorf("looks again in %s", v.x.wake)
			}
		})
	}
}

func TestWhatIsToldOfABootThatIsPreparedLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(redfish.PowerOff)
		w := inWorld(t, m, newcomer())
		var told []string
		w.refuses = func(s *v1alpha1.Server) error {
			message := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionReady).Message
			if len(told) == 0 || told[len(told)-1] != message {
				told = append(told, message)
			}
			return nil
		}
		w.manager.run(time.Minute)
		bootIsPrepared(w)
		w.manager.run(10 * time.Second)
		m.wants(t, "in the end", "On")
		want := []string{
			"Booting the probe image and waiting for its report.",
			"Booting the probe image and waiting for its report. Waits in PowerOn: the boot operator to prepare metalaw-system/a, which is Pending",
			"Booting the probe image and waiting for its report.",
		}
		if diff := cmp.Diff(want, told); diff != "" {
			t.Errorf("Ready said (-want +got):\n%s", diff)
		}
	})
}

// A manager that starts hears from some BMC of a large fleet minutes later. Until then nothing is known that was not told before.
func TestAServerAtRestIsNotToldToMoveBeforeANewManagerHeardFromItsBMC(t *testing.T) {
	for name, c := range map[string]struct {
		change func(m *machine, s *v1alpha1.Server)
		want   []string
	}{
		"its BMC answers late": {func(m *machine, _ *v1alpha1.Server) { m.takes = 50 * time.Second }, []string{"True"}},
		"there is no room for minutes to ask its BMC": {func(m *machine, _ *v1alpha1.Server) {
			m.takes = time.Hour
			time.AfterFunc(5*time.Minute, func() { m.mu.Lock(); defer m.mu.Unlock(); m.takes = 0 })
		}, []string{"True"}},
		"its BMC does not answer": {func(m *machine, _ *v1alpha1.Server) { m.takes, m.silent = 30*time.Second, errDown }, []string{"True", "False"}},
		"it names no BMC":         {func(_ *machine, s *v1alpha1.Server) { s.Spec.BMC = nil }, []string{"True", "False"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(redfish.PowerOff)
				w := inWorld(t, m, serverIn(v1alpha1.StateAvailable))
				w.manager.run(10 * time.Minute)
				var told []string
				tell := func(s *v1alpha1.Server) error {
					if reachable := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionBMCReachable); len(c.want) == 1 && reachable.Status != metav1.ConditionTrue {
						t.Errorf("the BMC is told to be out of reach: %s", reachable.Message)
					}
					ready := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionReady)
					if status := string(ready.Status); len(told) == 0 || told[len(told)-1] != status {
						told = append(told, status)
					}
					return nil
				}
				if err := tell(w.server()); err != nil {
					t.Fatal(err)
				}
				s := w.server()
				c.change(m, s)
				if err := w.api.Update(t.Context(), s); err != nil {
					t.Fatal(err)
				}
				w.refuses = tell
				w.start().run(10 * time.Minute)
				if diff := cmp.Diff(c.want, told); diff != "" {
					t.Errorf("Ready was (-want +got)\n%s", diff)
				}
			})
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
			v := newScope(t, v1alpha1.StateError, func(v *scope) {
				v.server.Status.Lifecycle.Rule = "WipeFailed"
				v.seen.Inventory = &policyv1alpha1.ServerInventory{Wipe: c.wipe}
			})
			v.recordReady(engine.Decision{From: "Error", To: "Error", Stable: true}, time.Time{})
			for _, kind := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionStalled} {
				if got := meta.FindStatusCondition(v.server.Status.Conditions, kind).Message; got != c.want {
					t.Errorf("%s says %q, want %q", kind, got, c.want)
				}
			}
		})
	}
}
