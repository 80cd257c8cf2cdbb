// SPDX-License-Identifier: Apache-2.0

package server

import (
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish"
)

func TestHowOftenABMCIsReadWithinAMinute(t *testing.T) {
	for name, c := range map[string]struct {
		power   redfish.PowerState
		objects func() []client.Object
		most    int
		least   int
	}{
		"of a server that rests, once": {
			power: redfish.PowerOff, objects: func() []client.Object { return reserved(v1alpha1.PowerOff) }, least: 1, most: 1},
		"of one that waits for the boot service, every 15 seconds": {
			power: redfish.PowerOff, objects: unprepared, least: 3, most: 6},
		"of one whose operating system shuts down, ever more seldom": {
			power: redfish.PowerOn, objects: func() []client.Object { return reserved(v1alpha1.PowerOff) }, least: 12, most: 30},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(c.power)
				m.obeys = deaf
				w := inWorld(t, m, c.objects()...)
				w.manager.run(time.Minute)
				if m.reads < c.least || m.reads > c.most {
					t.Errorf("read %d times, want %d to %d", m.reads, c.least, c.most)
				}
			})
		})
	}
}

// unprepared is a server whose claim asks for power, and whose boot configuration nobody has prepared yet.
func unprepared() []client.Object {
	objects := reserved(v1alpha1.PowerOn, func(s *v1alpha1.Server) { s.Status.Lifecycle.EnteredAt = metav1.NowMicro() })
	objects[2].(*v1alpha1.ServerBootConfiguration).Status.State = ""
	return objects
}
