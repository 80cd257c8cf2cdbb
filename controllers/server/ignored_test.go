// SPDX-License-Identifier: Apache-2.0

package server

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish"
)

func TestAMachineWhoseBMCIgnoresTheOverrideStaysOffAndSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(redfish.PowerOff)
		ignores := true
		m.refuses = func(asked string) error {
			if ignores && asked == "SetBootOnce" {
				return &redfish.OverrideError{Address: "10.0.0.7", URI: "/s", Asked: "Pxe", Enabled: "Disabled", Target: "None"}
			}
			return nil
		}
		w := inWorld(t, m, reserved(v1alpha1.PowerOn)...)
		for range 22 {
			w.manager.run(30 * time.Second)
			ready := meta.FindStatusCondition(w.server().Status.Conditions, v1alpha1.ConditionReady)
			if ready == nil || ready.Reason != "BootOverrideIgnored" || ready.Status != "False" ||
				!strings.Contains(ready.Message, "/s at 10.0.0.7 was not switched on: the boot override Once Pxe was accepted, but Disabled None is read back") {
				t.Fatalf("Ready is %+v", ready)
			}
		}
		m.wants(t, "while the override did not show")
		if gaps := m.gaps("SetBootOnce"); len(gaps) < 3 || gaps[0] < time.Minute {
			t.Errorf("tried again after %v", gaps)
		}
		told := 0
		for _, reason := range w.events {
			if reason == "BootOverrideIgnored" {
				told++
			}
		}
		if told != 1 {
			t.Errorf("%d events of it", told)
		}
		ignores = false
		w.manager.run(20 * time.Minute)
		if got := strings.Join(m.asked(), ","); !strings.HasPrefix(got, "On") {
			t.Errorf("in the end the BMC was asked for %q", got)
		}
	})
}
