// SPDX-License-Identifier: Apache-2.0

package emulator

import (
	"testing"

	"github.com/stmcginnis/gofish"
	"github.com/stmcginnis/gofish/schemas"
)

func TestACommonClientLibraryFindsWhatItExpects(t *testing.T) {
	for _, name := range ProfileNames() {
		t.Run(name, func(t *testing.T) {
			f, m := startFleet(t, Options{InMemory: true, TLS: true, Delays: instant}, MachineSpec{Profile: name})
			user, password := m.Credentials()
			client := f.Client()
			defer client.CloseIdleConnections()
			api, err := gofish.ConnectContext(t.Context(), gofish.ClientConfig{
				Endpoint: m.URL(), Username: user, Password: password, HTTPClient: client,
			})
			if err != nil {
				t.Fatal(err)
			}
			systems, err := api.Service.Systems()
			if err != nil || len(systems) != 1+len(m.bmc.profileNow().ExtraSystems) {
				t.Fatalf("systems %v, %v", systems, err)
			}
			system := systems[0]
			if shows := m.bmc.profileNow().UUID == Present; shows && system.UUID != m.Identity().UUID || system.PowerState != schemas.OffPowerState {
				t.Errorf("system %s is %s", system.UUID, system.PowerState)
			}
			nics, err := system.EthernetInterfaces()
			if bare := m.bmc.profileNow().NoSystemNICs; err != nil || len(nics) < 2 && !bare {
				t.Errorf("NICs %v, %v", nics, err)
			}
			storage, err := system.Storage()
			if err != nil || len(storage) != 1 {
				t.Fatalf("storage %v, %v", storage, err)
			}
			drives, err := storage[0].Drives()
			if err != nil || len(drives) != 1 || drives[0].SerialNumber != m.Drives()[0].Serial {
				t.Errorf("drives %v, %v", drives, err)
			}
			if cpus, err := system.Processors(); err != nil || len(cpus) != 2 {
				t.Errorf("processors %v, %v", cpus, err)
			}
			managers, err := api.Service.Managers()
			extra := len(m.bmc.profileNow().ExtraManagers)
			if err != nil || len(managers) != 1+extra || managers[extra].FirmwareVersion != m.bmc.profileNow().FirmwareVersion {
				t.Errorf("managers %v, %v", managers, err)
			}
			if _, err := system.Reset(schemas.OnResetType); err != nil {
				t.Errorf("reset: %v", err)
			}
			if m.Power() != PowerOn {
				t.Errorf("power %s", m.Power())
			}
			if len(m.Sessions()) != 1 {
				t.Errorf("sessions %v", m.Sessions())
			}
			api.Logout()
			if len(m.Sessions()) != 0 {
				t.Errorf("sessions after logout %v", m.Sessions())
			}
		})
	}
}
