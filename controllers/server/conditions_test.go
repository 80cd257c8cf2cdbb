// SPDX-License-Identifier: Apache-2.0

package server

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish"
)

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
