// SPDX-License-Identifier: Apache-2.0

package server

import (
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/redfish"
)

// servesIgnition sets boot.ignition in the policy.
func (w *world) servesIgnition(word string) {
	b := *w.manager.Bundles.Active()
	b.Settings.Boot.Ignition = word
	w.manager.Bundles = governed{&b}
	w.manager.wake("a")
}

// A running machine keeps its power and its Ready boot while the policy says another time.
func TestThePolicySaysHowLongAnIgnitionIsServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(redfish.PowerOn)
		w := inWorld(t, m, reserved(v1alpha1.PowerOn)...)
		for _, step := range []struct{ word, want string }{
			{bundle.IgnitionAlways, ""},
			{bundle.IgnitionUntilFirstSign, v1alpha1.IgnitionUntilFirstSign},
			{bundle.IgnitionAlways, ""},
		} {
			w.servesIgnition(step.word)
			w.manager.run(time.Minute)
			boot := &v1alpha1.ServerBootConfiguration{}
			if err := w.api.Get(t.Context(), types.NamespacedName{Namespace: "shop", Name: "web"}, boot); err != nil {
				t.Fatal(err)
			}
			if got := boot.Annotations[v1alpha1.BootIgnitionAnnotation]; got != step.want || boot.Status.State != v1alpha1.ServerBootConfigurationStateReady {
				t.Errorf("under %s: %q, %s", step.word, got, boot.Status.State)
			}
		}
		m.wants(t, "for its power")
	})
}
