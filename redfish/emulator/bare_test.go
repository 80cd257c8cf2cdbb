// SPDX-License-Identifier: Apache-2.0

package emulator

import (
	"testing"
	"time"
)

func TestAMakeWithoutHostInterfacesShowsNone(t *testing.T) {
	f, m := startFleet(t, Options{Delays: instant, InMemory: true}, MachineSpec{Profile: ProfileGB200})
	system := call(t, f, m).get(m.SystemURI())
	if field(system, "EthernetInterfaces") != nil || field(system, "SerialNumber") != nil || field(system, "UUID") != m.Identity().UUID {
		t.Errorf("got %v", system)
	}
}

func TestNodesWithoutUUIDShareASerialNumberAndHaveNoOverride(t *testing.T) {
	f, first := startFleet(t, Options{Delays: instant, InMemory: true}, MachineSpec{Profile: ProfileCray})
	second := f.Add(MachineSpec{Behind: first})
	c := call(t, f, first)
	for _, m := range []*Machine{first, second} {
		system := c.get(m.SystemURI())
		if field(system, "UUID") != nil || field(system, "SerialNumber") != first.Identity().SerialNumber ||
			field(system, "Boot", "BootSourceOverrideEnabled") != nil || field(system, "Boot", "BootOrder") == nil {
			t.Errorf("%s: got %v", m.SystemURI(), system)
		}
	}
	c.do("PATCH", first.SystemURI(), boot{"Boot": boot{"BootSourceOverrideEnabled": "Once", "BootSourceOverrideTarget": "Pxe"}}, 400)
	c.reset(first, ResetOn)
	if running, err := first.WaitRunning(t.Context()); err != nil || running.Override || running.Target != "Pxe" {
		t.Errorf("it boots %+v, %v", running, err)
	}
	c.reset(first, ResetOff)
	if err := first.WaitPower(t.Context(), PowerOff); err != nil {
		t.Error(err)
	}
}

func TestAUUIDIsNullForAWhileAfterARestartOfTheBMC(t *testing.T) {
	clock := NewManualClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	f, m := startFleet(t, Options{Delays: instant, InMemory: true, Clock: clock}, MachineSpec{Profile: ProfileHPE})
	c := call(t, f, m)
	uuid := func() any { return field(c.get(m.SystemURI()), "UUID") }
	if uuid() != m.Identity().UUID {
		t.Error("it is null before any restart")
	}
	m.ResetBMC()
	clock.Advance(time.Second)
	c = call(t, f, m)
	if got := uuid(); got != nil {
		t.Errorf("a second after the restart it is %v", got)
	}
	clock.Advance(2 * time.Second)
	if uuid() != m.Identity().UUID {
		t.Error("it stays null")
	}
}

func TestCriticalPartsShowWhereTheMakeNamesThem(t *testing.T) {
	for name, c := range map[string]struct {
		part string
		path []any
		want any
	}{
		ProfileHPE:        {"Memory", []any{"Oem", "Hpe", "AggregateHealthStatus", "Memory", "Status", "Health"}, "Critical"},
		ProfileDell:       {"SEL", []any{"Oem", "Dell", "DellSystem", "SELRollupStatus"}, "Critical"},
		ProfileSupermicro: {"Processor", []any{"ProcessorSummary", "Status", "Health"}, "Critical"},
		ProfileLenovo:     {"Memory", []any{"MemorySummary", "Status", "Health"}, "OK"}, // it names none
	} {
		t.Run(name, func(t *testing.T) {
			f, m := startFleet(t, Options{Delays: instant, InMemory: true}, MachineSpec{Profile: name})
			m.SetCritical(c.part, PartIntrusion)
			client := call(t, f, m)
			system := client.get(m.SystemURI())
			if field(system, "Status", "HealthRollup") != "Critical" || field(system, c.path...) != c.want {
				t.Errorf("got %v", system)
			}
			chassis := client.get(root + "/Chassis/" + m.bmc.profileNow().ChassisID)
			if field(chassis, "PhysicalSecurity", "IntrusionSensor") != "HardwareIntrusion" {
				t.Errorf("got %v", chassis)
			}
		})
	}
}
