// SPDX-License-Identifier: Apache-2.0

package emulator

import (
	"context"
	"testing"
)

// lastingGuest runs until its machine is switched off or the test ends it, and hears the power button.
type lastingGuest struct {
	running chan context.Context
	pressed chan struct{}
}

func newLastingGuest() lastingGuest {
	return lastingGuest{running: make(chan context.Context, 8), pressed: make(chan struct{}, 8)}
}

func (g lastingGuest) PoweredOn(ctx context.Context, _ *Machine, _ BootSelection) { g.running <- ctx }

func (lastingGuest) PoweredOff(*Machine) {}

func (g lastingGuest) Press(*Machine) { g.pressed <- struct{}{} }

func TestAGuestThatHearsThePowerButtonEndsByItself(t *testing.T) {
	for name, c := range map[string]struct {
		kind     ResetType
		rebooted bool
		want     PowerState
		boots    int
	}{
		"a graceful shutdown ends with the guest":       {kind: ResetGracefulShutdown, want: PowerOff, boots: 1},
		"a graceful restart boots again":                {kind: ResetGracefulRestart, want: PowerOn, boots: 2},
		"a guest that reboots after all":                {kind: ResetGracefulShutdown, rebooted: true, want: PowerOn, boots: 2},
		"the power button of a machine that runs":       {kind: ResetPushPowerButton, want: PowerOff, boots: 1},
		"a guest that ends unasked switches off itself": {want: PowerOff, boots: 1},
	} {
		t.Run(name, func(t *testing.T) {
			guest := newLastingGuest()
			f, m := startFleet(t, Options{InMemory: true, Guest: guest}, MachineSpec{Power: PowerOn})
			life := <-guest.running
			if c.kind != "" {
				call(t, f, m).reset(m, c.kind)
				<-guest.pressed
			}
			if m.Power() != PowerOn {
				t.Errorf("power is %s while the guest runs", m.Power())
			}
			m.GuestEnded(life, c.rebooted)
			if c.want == PowerOn {
				<-guest.running
			}
			if err := m.WaitPower(short(t), c.want); err != nil || m.Boots() != c.boots {
				t.Errorf("%v, %d boots, want %d", err, m.Boots(), c.boots)
			}
			// The former life is over: its end is no news.
			m.GuestEnded(life, false)
			if m.Power() != c.want {
				t.Errorf("power is %s, want %s", m.Power(), c.want)
			}
		})
	}
}

func TestMemoryModulesAreShownAsDescribed(t *testing.T) {
	f, m := startFleet(t, Options{InMemory: true}, MachineSpec{Hardware: Hardware{MemoryBytes: 512 << 20, DIMMs: []DIMM{
		{Locator: "DIMM_A", Manufacturer: "Testron", SerialNumber: "D1", PartNumber: "P1", SizeBytes: 512 << 20},
	}}})
	c := call(t, f, m)
	if got := field(c.get(m.systemPath()+"/Memory"), "Members@odata.count"); got != float64(1) {
		t.Errorf("%v modules", got)
	}
	dimm := c.get(m.systemPath() + "/Memory/1")
	for name, want := range map[string]any{
		"DeviceLocator": "DIMM_A", "Manufacturer": "Testron", "SerialNumber": "D1", "PartNumber": "P1", "CapacityMiB": float64(512),
	} {
		if dimm[name] != want {
			t.Errorf("%s is %v, want %v", name, dimm[name], want)
		}
	}
}
