// SPDX-License-Identifier: Apache-2.0

package server

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish"
)

// TestAMachineWithoutInterfaces follows GB200, GH200 and Intel S2600, whose BMCs report no NIC of the host.
func TestAMachineWithoutInterfaces(t *testing.T) {
	for name, c := range map[string]struct {
		target, annotation string
		boots              bool
		condition          string // what it contains; empty for none
	}{
		"it boots over PXE":                             {target: "Pxe", boots: true},
		"it does not boot over UEFI HTTP, and says why": {target: "UefiHttp", condition: `Set annotation policy.metalaw.dev/host-macs of BMC b to {"/redfish/v1/Systems/1": [MAC]}.`},
		"it boots once its MAC address is given":        {target: "UefiHttp", annotation: `{"/redfish/v1/Systems/1": ["02:00:00:00:00:0a"]}`, boots: true},
		"it says that the annotation cannot be read":    {target: "UefiHttp", annotation: "02:00:00:00:00:0a", condition: "Correct annotation policy.metalaw.dev/host-macs of BMC b: it is no YAML object"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				bmc := &v1alpha1.BMC{ObjectMeta: metav1.ObjectMeta{Name: "b", UID: "uid-b", Annotations: map[string]string{}}}
				bmc.Spec.Access = &v1alpha1.InlineEndpoint{IP: "10.0.0.1"}
				if c.annotation != "" {
					bmc.Annotations[v1alpha1.HostMACsAnnotation] = c.annotation
				}
				w := inWorld(t, newMachine(redfish.PowerOff), bmc, serverIn(v1alpha1.StateDiscovery, func(s *v1alpha1.Server) {
					s.Spec.BMC, s.Spec.BMCRef = nil, &corev1.LocalObjectReference{Name: "b"}
					s.Status.NetworkInterfaces = nil
					s.Status.Lifecycle.EnteredAt = metav1.NewMicroTime(time.Now())
				}))
				w.manager.BootTarget = c.target
				w.manager.run(2 * time.Minute)
				boot := &v1alpha1.ServerBootConfiguration{}
				err := w.api.Get(t.Context(), types.NamespacedName{Namespace: "metalaw-system", Name: "a"}, boot)
				if client.IgnoreNotFound(err) != nil || (err == nil) != c.boots {
					t.Errorf("a boot configuration: %v", err)
				}
				condition := meta.FindStatusCondition(w.server().Status.Conditions, v1alpha1.ConditionInterfacesUnknown)
				if (condition != nil) != (c.condition != "") || condition != nil && !strings.Contains(condition.Message, c.condition) {
					t.Errorf("condition: %+v", condition)
				}
			})
		})
	}
}
