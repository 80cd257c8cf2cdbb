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

// TestASystemWithAnAssignedUUIDIsProvenAtEachReading follows Cray EX, BlueField and stock OpenBMC, whose systems show no UUID.
func TestASystemWithAnAssignedUUIDIsProvenAtEachReading(t *testing.T) {
	const mac = "00:40:a6:00:00:01"
	serial := redfish.Identity{SerialNumber: "S1"}
	nic := []redfish.NIC{{Name: "1", MACAddress: mac}}
	for name, c := range map[string]struct {
		annotation string
		shows      redfish.Identity
		nics       []redfish.NIC
		power      v1alpha1.PowerState
	}{
		"serial number and MAC address prove it": {`serial: S1, mac: "` + mac + `"`, serial, nic, v1alpha1.PowerStateOff},
		"its serial number alone proves it":      {`serial: S1`, serial, nil, v1alpha1.PowerStateOff},
		"another MAC address does not":           {`serial: S1, mac: "` + mac + `"`, serial, []redfish.NIC{{MACAddress: "00:40:a6:00:00:02"}}, v1alpha1.PowerStateUnknown},
		"another serial number does not":         {`serial: S2`, serial, nil, v1alpha1.PowerStateUnknown},
		"without an assignment nothing does":     {"", serial, nic, v1alpha1.PowerStateUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				bmc := &v1alpha1.BMC{ObjectMeta: metav1.ObjectMeta{Name: "b", UID: "uid-b", Annotations: map[string]string{}}}
				bmc.Spec.Access = &v1alpha1.InlineEndpoint{IP: "10.0.0.1"}
				if c.annotation != "" {
					bmc.Annotations[v1alpha1.SystemUUIDsAnnotation] = "/redfish/v1/Systems/1: {uuid: " + machineUUID + ", " + c.annotation + "}"
				}
				m := newMachine(redfish.PowerOff)
				m.shows.Identity, m.shows.NICs = c.shows, c.nics
				w := inWorld(t, m, bmc, serverIn(v1alpha1.StateAvailable, func(s *v1alpha1.Server) {
					s.Spec.BMC, s.Spec.BMCRef = nil, &corev1.LocalObjectReference{Name: "b"}
				}))
				w.manager.run(time.Minute)
				if got := w.server().Status.PowerState; got != c.power {
					t.Errorf("power %s, want %s", got, c.power)
				}
			})
		})
	}
}
