// SPDX-License-Identifier: Apache-2.0

package emulator

import "testing"

func TestABootFromCdCarriesTheImageOfTheDrive(t *testing.T) {
	const image = "https://192.0.2.9/media/a.iso"
	for name, c := range map[string]struct {
		profile, slot string
		patch         bool
		target        string
		wants         string
	}{
		"an action below the system":   {ProfileGeneric, "/redfish/v1/Systems/1/VirtualMedia/CD1", false, "Cd", image},
		"an action below the manager":  {ProfileHPE, "/redfish/v1/Managers/1/VirtualMedia/2", false, "Cd", image},
		"a change of Image":            {ProfileLenovo, "/redfish/v1/Systems/1/VirtualMedia/EXT1", true, "Cd", image},
		"Supermicro, as a USB drive":   {ProfileSupermicro, "/redfish/v1/Managers/1/VirtualMedia/VirtualMedia1", false, "UsbCd", image},
		"Supermicro boots no Cd":       {ProfileSupermicro, "/redfish/v1/Managers/1/VirtualMedia/VirtualMedia1", false, "Cd", ""},
		"a boot from the network":      {ProfileGeneric, "/redfish/v1/Systems/1/VirtualMedia/CD1", false, "Pxe", ""},
		"a USB stick is no CD":         {ProfileGeneric, "/redfish/v1/Systems/1/VirtualMedia/USB1", false, "Cd", ""},
		"one of iDRAC's other devices": {ProfileDell, "/redfish/v1/Managers/iDRAC.Embedded.1/VirtualMedia/CD", false, "Cd", image},
	} {
		t.Run(name, func(t *testing.T) {
			f, m := startFleet(t, Options{Delays: instant, InMemory: true}, MachineSpec{Profile: c.profile})
			client := call(t, f, m)
			if c.patch {
				client.do("PATCH", c.slot, map[string]any{"Image": image}, 200)
			} else {
				client.do("POST", c.slot+"/Actions/VirtualMedia.InsertMedia", map[string]any{"Image": image}, m.bmc.profile.ResetStatus)
			}
			if got := client.get(c.slot); got["ConnectedVia"] != "URI" || got["Image"] != image {
				t.Errorf("shows %v", got)
			}
			m.SetOverride("Once", c.target)
			client.reset(m, ResetOn)
			if sel, _ := m.Running(); sel.MediaURL != c.wants {
				t.Errorf("booted with %q, want %q", sel.MediaURL, c.wants)
			}
			if c.patch {
				client.do("PATCH", c.slot, map[string]any{"Image": nil}, 200)
			} else {
				client.do("POST", c.slot+"/Actions/VirtualMedia.EjectMedia", map[string]any{}, m.bmc.profile.ResetStatus)
			}
			if got := client.get(c.slot); got["ConnectedVia"] != "NotConnected" || len(m.Media()) != 0 {
				t.Errorf("after the eject it shows %v", got)
			}
		})
	}
}
