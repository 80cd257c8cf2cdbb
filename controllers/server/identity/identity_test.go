// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/controllers/hardware"
	"github.com/metalaw/metalaw/redfish"
)

const uuid = "4c4c4544-0042-3510-8054-b7c04f4d4d32"

func TestShown(t *testing.T) {
	nics := []redfish.NIC{{MACAddress: "b4:96:91:00:00:01"}, {MACAddress: "02:00:00:00:00:01"}}
	for name, c := range map[string]struct {
		system     redfish.SystemSnapshot
		incomplete bool
		want       Shown
	}{
		"the service tag of a Dell is a serial number": {
			system: redfish.SystemSnapshot{Identity: redfish.Identity{UUID: uuid, SerialNumber: "CNIVC0014M0001", Manufacturer: "Dell Inc.", SKU: "F54P1X0"}, NICs: nics},
			want:   Shown{UUID: uuid, Serials: []string{"CNIVC0014M0001", "F54P1X0"}, Addresses: []string{"b4:96:91:00:00:01"}}},
		"the SKU of another make is none": {
			system: redfish.SystemSnapshot{Identity: redfish.Identity{SerialNumber: "MXQ9990001", Manufacturer: "HPE", SKU: "P18606-B21"}},
			want:   Shown{Serials: []string{"MXQ9990001"}}},
		"a BMC may show nothing":     {want: Shown{}},
		"interfaces may be unread":   {incomplete: true, want: Shown{Incomplete: true}},
		"an interface may be unread": {system: redfish.SystemSnapshot{NICsIncomplete: true}, want: Shown{Incomplete: true}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, shown(c.system, c.incomplete), cmp.Comparer(func(a, b []string) bool { return strings.Join(a, " ") == strings.Join(b, " ") })); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDecide(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	read := func(s Shown) hardware.Reading[Shown] { return hardware.Reading[Shown]{Value: s, At: now, Tried: true} }
	stored := func(ago time.Duration, serials ...string) *policyv1alpha1.BMCIdentity {
		return &policyv1alpha1.BMCIdentity{Serials: serials, ReadAt: metav1.NewMicroTime(now.Add(-ago))}
	}
	for name, c := range map[string]struct {
		in     Input
		waits  string
		stores bool
	}{
		"nothing boots before the BMC was read": {in: Input{}, waits: "to show the serial number"},
		"nor while it does not answer":          {in: Input{Reading: hardware.Reading[Shown]{Tried: true, Err: errors.New("gone")}, Fresh: true}, waits: "to show"},
		"nor on an old reading":                 {in: Input{Reading: read(Shown{})}, waits: "to show"},
		"nor while it shows another machine":    {in: Input{Reading: read(Shown{UUID: "11111111-1111-1111-1111-111111111111"}), Fresh: true}, waits: "it shows 1111"},
		"what it shows is stored first":         {in: Input{Reading: read(Shown{UUID: strings.ToUpper(uuid), Serials: []string{"A"}}), Fresh: true}, stores: true},
		"that it shows nothing is stored too":   {in: Input{Reading: read(Shown{}), Fresh: true}, stores: true},
		"the same is not stored again at once":  {in: Input{Stored: stored(time.Minute, "A"), Reading: read(Shown{Serials: []string{"A"}}), Fresh: true}},
		"the same is stored again later":        {in: Input{Stored: stored(time.Hour, "A"), Reading: read(Shown{Serials: []string{"A"}}), Fresh: true}, stores: true},
		"and after a clock that went back":      {in: Input{Stored: stored(-time.Hour, "A"), Reading: read(Shown{Serials: []string{"A"}}), Fresh: true}, stores: true},
		"other hardware is stored at once":      {in: Input{Stored: stored(time.Minute, "A"), Reading: read(Shown{Serials: []string{"B"}}), Fresh: true}, stores: true},
	} {
		t.Run(name, func(t *testing.T) {
			c.in.UUID, c.in.Now = uuid, now
			got := Decide(c.in)
			if !strings.Contains(got.Waits, c.waits) || (got.Waits == "") != (c.waits == "") || (got.Store != nil) != c.stores {
				t.Errorf("%+v", got)
			}
		})
	}
}
