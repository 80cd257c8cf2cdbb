// SPDX-License-Identifier: Apache-2.0

package server

import (
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/server/plan"
	"github.com/metalaw/metalaw/metalprobe"
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
				w.manager.run(plan.Freshness + time.Second)
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

func TestAnIgnitionOfAnOlderManagerLosesItsFormatAndKeepsItsToken(t *testing.T) {
	for name, c := range map[string]struct {
		// before is what the older manager had got to, and restart says that another process goes on.
		before  func(*world)
		restart bool
		want    []string
	}{
		"where its boot configuration stands": {func(*world) {}, true, []string{"ignition"}},
		"where it wrote no boot configuration yet": {func(w *world) {
			boot := &v1alpha1.ServerBootConfiguration{ObjectMeta: metav1.ObjectMeta{Namespace: "metalaw-system", Name: "a"}}
			if err := w.api.Delete(w.t.Context(), boot); err != nil {
				w.t.Fatal(err)
			}
		}, true, []string{"ignition"}},
		"but not where the Secret has become another's": {func(w *world) {
			secret := w.ignition()
			secret.OwnerReferences = nil
			if err := w.api.Update(w.t.Context(), secret); err != nil {
				w.t.Fatal(err)
			}
		}, true, []string{"format", "ignition"}},
		"and the process that wrote it does not look again": {func(*world) {}, false, []string{"format", "ignition"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := inWorld(t, newMachine(redfish.PowerOff), newcomer())
				w.manager.run(5 * time.Second)
				secret := w.ignition()
				written, err := metalprobe.ParseIgnition(secret.Data["ignition"])
				if err != nil || len(secret.Data) != 1 {
					t.Fatalf("a Secret with %d keys was written (%v)", len(secret.Data), err)
				}
				secret.Data["format"] = []byte("fcos")
				if err := w.api.Update(t.Context(), secret); err != nil {
					t.Fatal(err)
				}
				c.before(w)
				if c.restart {
					w.start()
				}
				w.manager.run(time.Minute)
				mended := w.ignition()
				if got := slices.Sorted(maps.Keys(mended.Data)); !slices.Equal(got, c.want) {
					t.Errorf("the Secret has the keys %q, want %q", got, c.want)
				}
				if config, err := metalprobe.ParseIgnition(mended.Data["ignition"]); err != nil || config != written {
					t.Errorf("the agent's configuration has changed (%v)", err)
				}
			})
		})
	}
}

// ignition is the Secret of the server's own boot.
func (w *world) ignition() *corev1.Secret {
	w.t.Helper()
	secret := &corev1.Secret{}
	if err := w.api.Get(w.t.Context(), types.NamespacedName{Namespace: "metalaw-system", Name: "a"}, secret); err != nil {
		w.t.Fatal(err)
	}
	return secret
}
