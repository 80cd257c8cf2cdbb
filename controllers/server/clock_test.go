// SPDX-License-Identifier: Apache-2.0

package server

import (
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/server/plan"
	"github.com/metalaw/metalaw/redfish"
)

func TestAClaimThatIsSwitchedOffAndOnAgainNeedNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(redfish.PowerOff)
		m.obeys = deaf
		w := inWorld(t, m, reserved(v1alpha1.PowerOn)...)
		w.manager.run(40 * time.Minute) // half an hour from one power-on to the next by now
		w.claims(v1alpha1.PowerOff)
		w.manager.run(2 * time.Minute)
		before := len(m.gaps("On"))
		w.claims(v1alpha1.PowerOn)
		w.manager.run(30 * time.Second)
		if again := len(m.gaps("On")) - before; again != 1 {
			t.Errorf("asked %d times in half a minute", again)
		}
	})
}

func TestARequestRecordedByAClockThatIsAheadIsWaitedForNoLongerThanAnyOther(t *testing.T) {
	ahead := func(action v1alpha1.PowerAction) func(*v1alpha1.Server) {
		return func(s *v1alpha1.Server) {
			s.Status.Lifecycle.Request = &v1alpha1.PowerRequest{Action: action, AskedAt: metav1.NewMicroTime(time.Now().Add(time.Hour)), Attempts: 1}
		}
	}
	for name, c := range map[string]struct {
		power   redfish.PowerState
		wanted  v1alpha1.Power
		action  v1alpha1.PowerAction
		within  time.Duration
		nothing time.Duration
		asked   []string
	}{
		"a power-on is asked for again after the grace": {redfish.PowerOff, v1alpha1.PowerOn, v1alpha1.PowerActionOn,
			testPowerGrace + 30*time.Second, testPowerGrace - time.Second, []string{"On"}},
		"a shutdown is asked for again, and then the power is cut": {redfish.PowerOn, v1alpha1.PowerOff, v1alpha1.PowerActionGracefulShutdown,
			plan.ShutdownGrace + 30*time.Second, testPowerGrace - time.Second, []string{"GracefulShutdown", "ForceOff"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(c.power)
				m.obeys = deaf
				w := inWorld(t, m, reserved(c.wanted, ahead(c.action))...)
				w.manager.run(c.nothing)
				m.wants(t, "within the grace since it was first seen")
				w.manager.run(c.within - c.nothing)
				m.wants(t, "after that", c.asked...)
				if m.readings() > 60 {
					t.Errorf("the BMC was read %d times", m.readings())
				}
			})
		})
	}
}
