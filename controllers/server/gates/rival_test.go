// SPDX-License-Identifier: Apache-2.0

package gates

import (
	"strings"
	"testing"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

func TestRivalHolds(t *testing.T) {
	const nic = "70:b5:e8:00:00:01"
	rival := []policyv1alpha1.RivalBMC{{Name: "twin", Serials: []string{"Z9Y8X7"}}}
	machine := func(change func(*policyv1alpha1.ServerInventory)) *policyv1alpha1.ServerInventory {
		i := &policyv1alpha1.ServerInventory{Identity: &policyv1alpha1.MachineIdentity{
			BMC: &policyv1alpha1.BMCIdentity{Serials: []string{"A1B2C3"}, PhysicalAddresses: []string{nic}}}}
		if change != nil {
			change(i)
		}
		return i
	}
	reports := func(serial, mac string) func(*policyv1alpha1.ServerInventory) {
		return func(i *policyv1alpha1.ServerInventory) {
			i.Report = &policyv1alpha1.ProbeReport{Data: policyv1alpha1.ProbeData{
				SystemInfo:        policyv1alpha1.SystemInfo{SystemInformation: policyv1alpha1.SystemInformation{SerialNumber: serial}},
				NetworkInterfaces: []policyv1alpha1.ProbeNetworkInterface{{MACAddress: mac}}}}
		}
	}
	for name, c := range map[string]struct {
		inventory *policyv1alpha1.ServerInventory
		rivals    []policyv1alpha1.RivalBMC
		holds     bool
	}{
		"no rival holds nothing":                       {nil, nil, false},
		"a new machine waits":                          {nil, rival, true},
		"one that never reported waits":                {machine(nil), rival, true},
		"one that its BMC proves goes on":              {machine(reports("A1B2C3", "")), rival, false},
		"one whose report its BMC does not show waits": {machine(reports("Z9Y8X7", "94:40:c9:00:00:01")), rival, true},
		"a lie about the serial number stops none that its address proves": {machine(reports("A1B2C3", nic)),
			[]policyv1alpha1.RivalBMC{{Name: "liar", Serials: []string{"A1B2C3"}}}, false},
		"one serial number that both show proves nothing": {machine(reports("A1B2C3", "")),
			[]policyv1alpha1.RivalBMC{{Name: "twin", Serials: []string{"A1B2C3"}}}, true},
		"one for which a person answers goes on": {machine(func(i *policyv1alpha1.ServerInventory) {
			i.Identity.Settled = &policyv1alpha1.SettledIdentity{By: "eve"}
		}), rival, false},
		"one that a person settled goes on": {machine(func(i *policyv1alpha1.ServerInventory) {
			i.Identity.BMC = &policyv1alpha1.BMCIdentity{}
			reports("Q", nic)(i)
			i.Identity.Proved = &policyv1alpha1.ProvedIdentity{By: "eve", ReportedIdentity: policyv1alpha1.ReportedIdentity{PhysicalAddresses: []string{nic}}}
		}), rival, false},
	} {
		t.Run(name, func(t *testing.T) {
			got := RivalHolds("own", c.inventory, c.rivals)
			if (got != "") != c.holds || c.holds && !strings.Contains(got, "BMC own and BMC "+c.rivals[0].Name) {
				t.Errorf("%q", got)
			}
		})
	}
}
