// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"testing"
	"time"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish"
)

// TestAnIdentityWithoutAUUIDIsNotRemembered follows iLO 5, which shows a null UUID for some seconds after it started.
func TestAnIdentityWithoutAUUIDIsNotRemembered(t *testing.T) {
	inWorld(t, func(w *world) {
		named := w.devices["b"].systems[uri1]
		w.devices["b"].change(func(d *device) { d.systems[uri1] = redfish.Identity{SerialNumber: "S1"} })
		w.rest("b")
		w.expect("b", v1alpha1.ConditionSystemsAccepted, "False SystemUnidentified")
		w.devices["b"].change(func(d *device) { d.systems[uri1] = named })
		w.pass("b", 4*time.Minute)
		w.expect("b", v1alpha1.ConditionSystemsAccepted, "True SystemsKnown")
		s := &v1alpha1.Server{}
		w.must(w.api.Get(t.Context(), request("b-system-0").NamespacedName, s))
		if s.Spec.SystemUUID != uuid1 || s.Spec.SystemURI != uri1 {
			t.Errorf("the Server stands for %s at %s", s.Spec.SystemUUID, s.Spec.SystemURI)
		}
	})
}

func TestARetryForgetsWhoTheSystemsAre(t *testing.T) {
	for name, again := range map[string]time.Time{"at once": {}, "while credentials are not tried again": time.Unix(1<<40, 0)} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.rest("b")
				w.expect("b", v1alpha1.ConditionSystemsAccepted, "True SystemsKnown")
				w.again = again
				w.devices["b"].change(func(d *device) { d.systems[uri1] = redfish.Identity{UUID: uuid2} })
				w.annotate("b", "retry")
				w.rest("b")
				w.expect("b", v1alpha1.ConditionSystemsAccepted, "False SystemUnaccepted")
				s := &v1alpha1.Server{}
				w.must(w.api.Get(t.Context(), request("b-system-0").NamespacedName, s))
				if s.Spec.SystemUUID != uuid1 {
					t.Errorf("the Server stands for %s now", s.Spec.SystemUUID)
				}
			})
		})
	}
}
