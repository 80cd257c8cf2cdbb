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
	"github.com/metalaw/metalaw/internal/bmcsystems"
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

func TestAnAssignmentProvesAHeldMachineByItsRecordedHardware(t *testing.T) {
	const mac, otherMAC = "00:40:a6:00:00:01", "00:40:a6:00:00:02"
	recorded := bmcsystems.Record{SerialNumbers: []string{"S"}, MACs: []string{mac}}
	for name, c := range map[string]struct {
		assigned bmcsystems.Assignment
		recorded bmcsystems.Record
		holds    bool
		want     bmcsystems.Assignment
	}{
		"its own hardware":                        {bmcsystems.Assignment{SerialNumber: "S", MAC: mac}, recorded, true, bmcsystems.Assignment{SerialNumber: "S", MAC: mac}},
		"other hardware proves nothing":           {bmcsystems.Assignment{SerialNumber: "T", MAC: otherMAC}, recorded, true, bmcsystems.Assignment{}},
		"other hardware of a clean machine":       {bmcsystems.Assignment{SerialNumber: "T", MAC: otherMAC}, recorded, false, bmcsystems.Assignment{SerialNumber: "T", MAC: otherMAC}},
		"an exchanged card":                       {bmcsystems.Assignment{SerialNumber: "S", MAC: otherMAC}, recorded, true, bmcsystems.Assignment{SerialNumber: "S", MAC: otherMAC}},
		"a MAC address that only the BMC reports": {bmcsystems.Assignment{MAC: otherMAC}, recorded, true, bmcsystems.Assignment{SerialNumber: "S", MAC: otherMAC}},
		"nothing is recorded":                     {bmcsystems.Assignment{SerialNumber: "T"}, bmcsystems.Record{}, true, bmcsystems.Assignment{SerialNumber: "T"}},
	} {
		if got := provenBy(c.assigned, c.recorded, c.holds); got != c.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestADirtyServerWantsNoOtherMachine(t *testing.T) {
	const id = "0a000000-0000-4000-8000-00000000000a"
	s := &v1alpha1.Server{Spec: v1alpha1.ServerSpec{SystemUUID: id}, Status: v1alpha1.ServerStatus{SerialNumber: "S",
		Lifecycle: &v1alpha1.LifecycleStatus{Marks: []string{"Dirty"}}}}
	v := &scope{server: s, view: view{stated: stated{assigned: bmcsystems.Assignment{UUID: id, SerialNumber: "T"}}}}
	if other := (redfish.SystemSnapshot{Identity: redfish.Identity{SerialNumber: "T"}}); redfish.Shows(v.want(), other) {
		t.Error("another machine is taken for it")
	}
	v.stated.assigned.SerialNumber = "S"
	if own := (redfish.SystemSnapshot{Identity: redfish.Identity{SerialNumber: "S"}}); !redfish.Shows(v.want(), own) {
		t.Error("its own machine is not known")
	}
}
