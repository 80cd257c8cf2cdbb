// SPDX-License-Identifier: Apache-2.0

package server

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish"
)

// TestAMachineWithoutABootOverride follows Cray EX, whose nodes show a boot order and no override.
func TestAMachineWithoutABootOverride(t *testing.T) {
	for name, c := range map[string]struct {
		allowed bool
		heard   []string
		says    string
	}{
		"it stays off":                          {false, nil, "set boot.withoutOverride: true in the bundle"},
		"it boots by its boot order if allowed": {true, []string{"On"}, "is never wiped"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(redfish.PowerOff)
				m.shows.Boot.Missing = true
				w := inWorld(t, m, reserved(v1alpha1.PowerOn)...)
				w.withoutOverride(c.allowed)
				w.manager.run(2 * time.Minute)
				if got := m.asked(); strings.Join(got, " ") != strings.Join(c.heard, " ") {
					t.Errorf("its BMC heard %v, want %v", got, c.heard)
				}
				if m.shows.Boot.Enabled != "" {
					t.Errorf("an override was set: %+v", m.shows.Boot)
				}
				condition := meta.FindStatusCondition(w.server().Status.Conditions, v1alpha1.ConditionBootOverrideMissing)
				if condition == nil || !strings.Contains(condition.Message, c.says) {
					t.Errorf("condition: %+v", condition)
				}
			})
		})
	}
}

func TestAWipeThatCannotBeBootedForSureFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(redfish.PowerOff)
		m.shows.Boot.Missing = true
		w := inWorld(t, m, serverIn(v1alpha1.StateCleanup, holdsWeb, released, func(s *v1alpha1.Server) {
			s.Spec.ServerClaimRef = nil
			s.Status.Lifecycle.Marks = []string{"Dirty", "Managed"}
			s.Status.Lifecycle.EnteredAt = metav1.NewMicroTime(time.Now())
		}), inventoryOfA())
		w.withoutOverride(true)
		w.manager.run(10 * time.Second)
		boot := &v1alpha1.ServerBootConfiguration{}
		if err := w.api.Get(t.Context(), types.NamespacedName{Namespace: "metalaw-system", Name: "a-wipe"}, boot); err == nil {
			boot.Status.State = v1alpha1.ServerBootConfigurationStateReady
			if err := w.api.Status().Update(t.Context(), boot); err != nil {
				t.Fatal(err)
			}
			w.manager.wake("a")
		}
		w.manager.run(5 * time.Minute)
		s := w.server()
		ready := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionReady)
		if s.Status.State != v1alpha1.StateError || s.Status.Lifecycle.Rule != "WipeFailed" || !strings.Contains(strings.Join(s.Status.Lifecycle.Marks, " "), "Dirty") {
			t.Errorf("it is in %s by %s with %v", s.Status.State, s.Status.Lifecycle.Rule, s.Status.Lifecycle.Marks)
		}
		if ready == nil || !strings.Contains(ready.Message, "BootOverrideMissing") {
			t.Errorf("Ready: %+v", ready)
		}
		if got := m.asked(); len(got) != 0 {
			t.Errorf("its BMC heard %v", got)
		}
	})
}

// withoutOverride sets boot.withoutOverride in the policy.
func (w *world) withoutOverride(allowed bool) {
	b := *w.manager.Bundles.Active()
	b.Settings.Boot.WithoutOverride = allowed
	w.manager.Bundles = governed{&b}
}
