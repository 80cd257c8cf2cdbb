// SPDX-License-Identifier: Apache-2.0

package emulator

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"
)

func TestResetsTakeTheirTimeAndPassThroughTransitions(t *testing.T) {
	delays := Delays{Power: 5 * time.Second, Boot: 30 * time.Second, Shutdown: 20 * time.Second}
	for name, c := range map[string]struct {
		start PowerState
		kind  ResetType
		// states after 0, 6, 12, 26 and 60 seconds
		want    [5]PowerState
		running string
	}{
		"on: five seconds of PoweringOn":             {PowerOff, ResetOn, [5]PowerState{"PoweringOn", "On", "On", "On", "On"}, "Hdd"},
		"force off: five seconds of PoweringOff":     {PowerOn, ResetForceOff, [5]PowerState{"PoweringOff", "Off", "Off", "Off", "Off"}, ""},
		"graceful: as long as the shutdown takes":    {PowerOn, ResetGracefulShutdown, [5]PowerState{"PoweringOff", "PoweringOff", "PoweringOff", "Off", "Off"}, ""},
		"power cycle: off and on again":              {PowerOn, ResetPowerCycle, [5]PowerState{"PoweringOff", "PoweringOn", "On", "On", "On"}, "Hdd"},
		"force restart: never off":                   {PowerOn, ResetForceRestart, [5]PowerState{"On", "On", "On", "On", "On"}, "Hdd"},
		"power button of a machine that is off":      {PowerOff, ResetPushPowerButton, [5]PowerState{"PoweringOn", "On", "On", "On", "On"}, "Hdd"},
		"power button of a machine that runs":        {PowerOn, ResetPushPowerButton, [5]PowerState{"PoweringOff", "PoweringOff", "PoweringOff", "Off", "Off"}, ""},
		"non-maskable interrupt: nothing to be seen": {PowerOn, ResetNmi, [5]PowerState{"On", "On", "On", "On", "On"}, "Hdd"},
	} {
		t.Run(name, func(t *testing.T) {
			clock := NewManualClock(time.Unix(1_700_000_000, 0))
			f, m := startFleet(t, Options{Delays: delays, Clock: clock, InMemory: true}, MachineSpec{Power: c.start})
			client := call(t, f, m)
			if res := client.reset(m, c.kind); res.status != http.StatusNoContent {
				t.Fatalf("status %d: %s", res.status, res.raw)
			}
			var got [5]PowerState
			for i, step := range []int{0, 6, 6, 14, 34} {
				clock.Advance(time.Duration(step) * time.Second)
				got[i] = m.Power()
				if shown := client.get(m.SystemURI())["PowerState"]; shown != string(got[i]) {
					t.Errorf("the BMC shows %v, the machine is %s", shown, got[i])
				}
			}
			if got != c.want {
				t.Errorf("states %v, want %v", got, c.want)
			}
			if sel, _ := m.Running(); sel.Target != c.running {
				t.Errorf("running %q, want %q", sel.Target, c.running)
			}
		})
	}
}

func TestResetsThatCannotBe(t *testing.T) {
	for name, c := range map[string]struct {
		spec   MachineSpec
		before ResetType
		kind   ResetType
		status int
	}{
		"on when on, by a make that does not mind":    {MachineSpec{Power: PowerOn}, "", ResetOn, 204},
		"on when on, by a make that minds":            {MachineSpec{Power: PowerOn, Profile: ProfileDell}, "", ResetOn, 409},
		"restart of a machine that is off":            {MachineSpec{Profile: ProfileDell}, "", ResetForceRestart, 409},
		"on while it powers off":                      {MachineSpec{Power: PowerOn}, ResetForceOff, ResetOn, 409},
		"restart while it powers on":                  {MachineSpec{}, ResetOn, ResetForceRestart, 409},
		"a type that the make does not offer":         {MachineSpec{Profile: ProfileDell}, "", ResetForceOn, 400},
		"a type that does not exist":                  {MachineSpec{}, "", "Explode", 400},
		"force off ends a graceful shutdown":          {MachineSpec{Power: PowerOn}, ResetGracefulShutdown, ResetForceOff, 204},
		"a make that answers by a task":               {MachineSpec{Profile: ProfileAMI}, "", ResetOn, 202},
		"a make that refuses resets in its self test": {MachineSpec{Power: PowerOn, Tweak: func(p *Profile) { p.RefusesInPOST = true }}, ResetForceRestart, ResetForceOff, 409},
	} {
		t.Run(name, func(t *testing.T) {
			clock := NewManualClock(time.Unix(1_700_000_000, 0))
			f, m := startFleet(t, Options{Clock: clock, InMemory: true}, c.spec)
			client := call(t, f, m)
			if c.before != "" {
				client.reset(m, c.before)
			}
			if res := client.reset(m, c.kind); res.status != c.status {
				t.Errorf("status %d, want %d: %s", res.status, c.status, res.raw)
			}
		})
	}
}

func TestAnOperatingSystemMayIgnoreGracefulRequests(t *testing.T) {
	f, m := startFleet(t, Options{Delays: instant, InMemory: true}, MachineSpec{Power: PowerOn, IgnoresShutdown: true})
	c := call(t, f, m)
	for _, kind := range []ResetType{ResetGracefulShutdown, ResetGracefulRestart} {
		c.reset(m, kind)
	}
	if m.Power() != PowerOn || m.Boots() != 1 {
		t.Errorf("power %s after %d boots: it reacted", m.Power(), m.Boots())
	}
	m.IgnoreShutdown(false)
	c.reset(m, ResetGracefulShutdown)
	if m.Power() != PowerOff {
		t.Errorf("power %s: it did not react", m.Power())
	}
	if want := []ResetType{ResetGracefulShutdown, ResetGracefulRestart, ResetGracefulShutdown}; !slices.Equal(m.Resets(), want) {
		t.Errorf("resets %v, want %v", m.Resets(), want)
	}
}

func TestHandsAndOperatingSystemsChangePowerWithoutARequest(t *testing.T) {
	f, m := startFleet(t, Options{Delays: instant, InMemory: true}, MachineSpec{})
	m.PowerBehindBack(true)
	m.SetOverride("Once", "Pxe")
	m.OSReboot()
	if sel, _ := m.Running(); sel.Target != "Pxe" || sel.Boot != 2 {
		t.Errorf("the override did not hijack the reboot: %+v", sel)
	}
	m.OSPowerOff()
	if m.Power() != PowerOff {
		t.Errorf("power %s", m.Power())
	}
	if n := len(f.Writes(Filter{})); n != 0 {
		t.Errorf("%d writes were logged", n)
	}
}

// recorder is a guest that runs until it is switched off and tells what happens.
type recorder chan string

func (r recorder) PoweredOn(ctx context.Context, m *Machine, boot BootSelection) {
	r <- "boot " + boot.Target
	<-ctx.Done()
	r <- "end"
}

func (r recorder) PoweredOff(*Machine) { r <- "off" }

func TestAGuestLivesFromBootToPowerOff(t *testing.T) {
	guest := make(recorder)
	f, m := startFleet(t, Options{Delays: instant, InMemory: true, Guest: guest}, MachineSpec{})
	c := call(t, f, m)
	c.do("PATCH", m.SystemURI(), boot{"Boot": boot{"BootSourceOverrideEnabled": "Once", "BootSourceOverrideTarget": "Pxe"}}, 200)
	for _, step := range []struct {
		kind ResetType
		want []string
	}{
		{ResetOn, []string{"boot Pxe"}},
		{ResetForceRestart, []string{"end", "boot Hdd"}},
		{ResetPowerCycle, []string{"end", "off", "boot Hdd"}},
		{ResetForceOff, []string{"end", "off"}},
	} {
		c.reset(m, step.kind)
		for _, want := range step.want {
			select {
			case got := <-guest:
				if got != want {
					t.Fatalf("%s: %s, want %s", step.kind, got, want)
				}
			case <-short(t).Done():
				t.Fatalf("%s: no %s", step.kind, want)
			}
		}
	}
}

func TestAStandInAgentErasesDrivesAndAPowerOffSavesTheData(t *testing.T) {
	clock := NewManualClock(time.Unix(1_700_000_000, 0))
	_, m := startFleet(t, Options{Clock: clock, InMemory: true, Delays: Delays{Erase: time.Minute}}, MachineSpec{
		Drives: []DriveSpec{{Name: "nvme0n1", Contents: "tenant data"}, {Name: "sda", Rotational: true, Contents: "more"}},
	})
	drive := m.Drives()[0]
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := drive.Erase(ctx); err == nil || drive.Contents() != "tenant data" || drive.Erased() {
		t.Errorf("broken off: err %v, contents %q, erased %v", err, drive.Contents(), drive.Erased())
	}
	done := make(chan error)
	go func() { done <- drive.Erase(context.Background()) }()
	for running := true; running; {
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			running = false
		default:
			clock.Advance(time.Minute)
		}
	}
	if drive.Contents() != "" || !drive.Erased() || drive.Erasures() != 1 {
		t.Errorf("contents %q, erased %v, erasures %d", drive.Contents(), drive.Erased(), drive.Erasures())
	}
	drive.Write("next tenant")
	if drive.Erased() {
		t.Error("a drive with new data still counts as erased")
	}
	if other := m.Drives()[1]; other.Contents() != "more" {
		t.Errorf("the other drive holds %q", other.Contents())
	}
}

func TestABMCShowsOnlyTheDrivesInTheMachine(t *testing.T) {
	f, m := startFleet(t, Options{InMemory: true}, MachineSpec{Drives: []DriveSpec{
		{Name: "nvme0n1", Transport: TransportTCP}, {Name: "nvme1n1"}, {Name: "sda", Transport: TransportISCSI}, {Name: "sdb", Transport: TransportSAS, Rotational: true},
	}})
	c := call(t, f, m)
	storage := c.get(m.systemPath() + "/Storage/1")
	if got := field(storage, "Drives@odata.count"); got != float64(2) {
		t.Errorf("%v drives", got)
	}
	for id, want := range map[string]string{"0": "nvme1n1 NVMe SSD", "1": "sdb SAS HDD"} {
		d := c.get(m.systemPath() + "/Storage/1/Drives/" + id)
		if got := fmt.Sprint(d["Name"], " ", d["Protocol"], " ", d["MediaType"]); got != want {
			t.Errorf("drive %s is %s, want %s", id, got, want)
		}
	}
	c.do("GET", m.systemPath()+"/Storage/1/Drives/2", nil, http.StatusNotFound)
	m.Drives()[1].TakeOut()
	c.do("GET", m.systemPath()+"/Storage/1/Drives/1", nil, http.StatusNotFound)
}

func TestABMCListsDrivesThatTheMachineDoesNotSee(t *testing.T) {
	f, m := startFleet(t, Options{InMemory: true}, MachineSpec{Drives: []DriveSpec{{Name: "nvme0n1"}}, Unseen: []DriveSpec{{Name: "Bay 7", Serial: "HIDDEN", Transport: TransportSAS}}})
	c := call(t, f, m)
	if got := field(c.get(m.systemPath()+"/Storage/1"), "Drives@odata.count"); got != float64(2) {
		t.Errorf("%v drives", got)
	}
	if d := c.get(m.systemPath() + "/Storage/1/Drives/1"); d["SerialNumber"] != "HIDDEN" || d["Protocol"] != "SAS" {
		t.Errorf("got %v", d)
	}
	if len(m.Drives()) != 1 {
		t.Errorf("the machine sees %d drives", len(m.Drives()))
	}
	hidden := m.Unseen()[0]
	hidden.TakeOut()
	c.do("GET", m.systemPath()+"/Storage/1/Drives/1", nil, http.StatusNotFound)
	hidden.PutIn()
	c.get(m.systemPath() + "/Storage/1/Drives/1")
}

func TestABMCMayListDrivesOnlyOnceTheMachineHasBooted(t *testing.T) {
	f, m := startFleet(t, Options{InMemory: true, Delays: instant}, MachineSpec{LateDrives: true})
	c := call(t, f, m)
	count := func() any { return field(c.get(m.systemPath()+"/Storage/1"), "Drives@odata.count") }
	if got := count(); got != float64(0) {
		t.Errorf("%v drives before the first boot", got)
	}
	m.PowerBehindBack(true)
	if got := count(); got != float64(1) {
		t.Errorf("%v drives after it", got)
	}
}

func TestStorageMayBeMissingEmptyOrBroken(t *testing.T) {
	for name, c := range map[string]struct {
		fault  Fault
		path   string
		status int
	}{
		"missing": {StorageMissing(), "/Storage", http.StatusNotFound},
		"empty":   {StorageEmpty(), "/Storage", http.StatusOK},
		"broken":  {DriveBroken(), "/Storage/1/Drives/0", http.StatusInternalServerError},
	} {
		t.Run(name, func(t *testing.T) {
			f, m := startFleet(t, Options{InMemory: true}, MachineSpec{})
			client := call(t, f, m)
			m.Inject(c.fault)
			res := client.try(short(t), "GET", m.systemPath()+c.path, nil)
			members, _ := res.doc["Members"].([]any)
			if res.status != c.status || len(members) != 0 {
				t.Errorf("status %d, %v", res.status, res.doc)
			}
		})
	}
}
