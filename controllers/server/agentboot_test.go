// SPDX-License-Identifier: Apache-2.0

package server

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish"
)

func TestNoBootIsPreparedForAMachineThatSomebodySwitchedOnSinceItWasRead(t *testing.T) {
	for name, c := range map[string]struct {
		power redfish.PowerState
		want  int
	}{
		"it is still off":     {redfish.PowerOff, 1},
		"it was switched on":  {redfish.PowerOn, 0},
		"it does not say now": {redfish.PowerUnknown, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(redfish.PowerOff)
				entered := func(s *v1alpha1.Server) {
					s.Status.Lifecycle.EnteredAt, s.Status.Lifecycle.Marks = metav1.NewMicroTime(time.Now()), nil
				}
				others := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "metalaw-system", Name: "a"}}
				w := inWorld(t, m, serverIn(v1alpha1.StateDiscovery, entered), others)
				w.manager.run(2*time.Minute + 10*time.Second)
				boots := func() int {
					var all v1alpha1.ServerBootConfigurationList
					if err := w.api.List(t.Context(), &all); err != nil {
						t.Fatal(err)
					}
					return len(all.Items)
				}
				if got := boots(); got != 0 {
					t.Fatalf("%d boots are prepared while the Secret is another's", got)
				}
				for read := m.readings(); m.readings() == read; {
					w.manager.run(time.Second)
				}
				w.manager.run(moveFreshness + time.Second)
				if err := w.api.Delete(t.Context(), others); err != nil {
					t.Fatal(err)
				}
				m.will(0, c.power)
				w.manager.wake("a")
				w.manager.run(5 * time.Second)
				if got := boots(); got != c.want {
					t.Errorf("%d boots are prepared, want %d", got, c.want)
				}
			})
		})
	}
}
