// SPDX-License-Identifier: Apache-2.0

package server

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/server/plan"
	"github.com/metalaw/metalaw/redfish"
)

func TestAShutdownThatFailedIsAskedForAgainWithinAGraceThatIsAsShortAsThePauseBetweenRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(redfish.PowerOn)
		failed := false
		m.refuses = func(string) error {
			if failed {
				return nil
			}
			failed = true
			return &redfish.ResponseError{Method: "POST", Status: 503}
		}
		w := inWorld(t, m, reserved(v1alpha1.PowerOff)...)
		w.manager.PowerGrace = plan.ShutdownGrace
		w.manager.run(2 * plan.ShutdownGrace)
		m.wants(t, "in the end", "GracefulShutdown", "GracefulShutdown")
	})
}

// What failed may have been heard all the same, so it is asked for as seldom as what was accepted.
func TestAShutdownThatTheBMCFailedAtIsAskedForAgainBeforeThePowerIsCut(t *testing.T) {
	failing := &redfish.ResponseError{Method: "POST", Status: 503}
	for name, c := range map[string]struct {
		fails int
		asked []string
	}{
		"a BMC that is busy once":          {1, []string{"GracefulShutdown", "GracefulShutdown"}},
		"a BMC that never passes it on":    {1000, []string{"GracefulShutdown", "GracefulShutdown", "GracefulShutdown", "GracefulShutdown", "GracefulShutdown", "ForceOff"}},
		"a BMC that passes it on at first": {0, []string{"GracefulShutdown"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(redfish.PowerOn)
				left := c.fails
				m.refuses = func(asked string) error {
					if asked != "GracefulShutdown" || left == 0 {
						return nil
					}
					left--
					return failing
				}
				w := inWorld(t, m, reserved(v1alpha1.PowerOff)...)
				w.manager.run(testPowerGrace - time.Second)
				m.wants(t, "within the grace of a request", "GracefulShutdown")
				w.manager.run(plan.ShutdownGrace + testPowerGrace)
				m.wants(t, "in the end", c.asked...)
				for _, gap := range m.gaps("GracefulShutdown") {
					if gap < testPowerGrace {
						t.Errorf("asked again after %s", gap)
					}
				}
			})
		})
	}
}
