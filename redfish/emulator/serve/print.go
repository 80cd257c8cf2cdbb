// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"fmt"
	"strings"

	prettytable "github.com/jedib0t/go-pretty/v6/table"

	"github.com/metalaw/metalaw/redfish/emulator"
)

// table shows what a user needs to reach every machine.
func table(fleet *emulator.Fleet) string {
	t := prettytable.NewWriter()
	t.SetStyle(prettytable.StyleLight)
	t.AppendHeader(prettytable.Row{"Machine", "Profile", "BMC", "BMC MAC", "User", "Password", "System UUID", "NIC MAC"})
	for _, m := range fleet.Machines() {
		user, password := m.Credentials()
		nic := ""
		if nics := m.NICs(); len(nics) > 0 {
			nic = nics[0].MACAddress
		}
		t.AppendRow(prettytable.Row{m.Name(), m.ProfileName(), m.URL(), m.BMCMAC(), user, password, m.Identity().UUID, nic})
	}
	return t.Render()
}

// inventions says what the machines of captured trees need and those do not show.
func inventions(fleet *emulator.Fleet) string {
	var out strings.Builder
	for _, m := range fleet.Machines() {
		if invented := m.Invented(); len(invented) > 0 {
			fmt.Fprintf(&out, "\n%s: the captured tree does not show, and the emulator invents: %s", m.Name(), strings.Join(invented, "; "))
		}
	}
	return out.String()
}

// endpoints is one Endpoint manifest for each BMC.
func endpoints(fleet *emulator.Fleet) string {
	var out strings.Builder
	seen := map[string]bool{}
	for _, m := range fleet.Machines() {
		if seen[m.URL()] { // another host behind the same BMC
			continue
		}
		seen[m.URL()] = true
		fmt.Fprintf(&out, `---
apiVersion: metal.ironcore.dev/v1alpha1
kind: Endpoint
metadata:
  name: %s
spec:
  macAddress: %q
  ip: %s
`, m.Name(), m.BMCMAC(), m.Address())
	}
	return out.String()
}
