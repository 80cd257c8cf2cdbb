// SPDX-License-Identifier: Apache-2.0

package shown

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/redfish"
)

func TestSystem(t *testing.T) {
	const uuid = "4c4c4544-0042-3510-8054-b7c04f4d4d32"
	disk, lid := redfish.HealthPart{Name: "Storage", Hardware: true}, redfish.HealthPart{Name: "Intrusion"}
	for name, c := range map[string]struct {
		shows redfish.SystemSnapshot
		want  policies.SystemReading
	}{
		"a part of the hardware is faulty": {redfish.SystemSnapshot{Identity: redfish.Identity{UUID: uuid}, Power: redfish.PowerOff, Critical: []redfish.HealthPart{disk, lid}},
			policies.SystemReading{Reachable: true, Power: "Off", Identity: policies.IdentitySame, Faulty: []string{"Storage"}}},
		"an open lid is harmless": {redfish.SystemSnapshot{Identity: redfish.Identity{UUID: uuid}, Critical: []redfish.HealthPart{lid}},
			policies.SystemReading{Reachable: true, Identity: policies.IdentitySame, Harmless: true}},
		"an override is set, of another machine": {redfish.SystemSnapshot{Identity: redfish.Identity{UUID: "11111111-1111-1111-1111-111111111111"}, Boot: redfish.BootOverride{Enabled: "Once"}},
			policies.SystemReading{Reachable: true, Identity: policies.IdentityOther, OverrideSet: true}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, System(redfish.Identity{UUID: uuid}, c.shows)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWithoutURI(t *testing.T) {
	s := &v1alpha1.Server{}
	if got := WithoutURI(s); !strings.Contains(got, "beside spec.bmc") {
		t.Error(got)
	}
	s.Spec.BMCRef = &corev1.LocalObjectReference{Name: "b"}
	if got := WithoutURI(s); !strings.Contains(got, "BMC b shows a system") {
		t.Error(got)
	}
}
