// SPDX-License-Identifier: Apache-2.0

package emulator

import (
	"slices"
	"strings"
	"testing"
	"time"
)

type boot = map[string]any

func TestABootOverrideIsConsumedByTheBoot(t *testing.T) {
	for name, c := range map[string]struct {
		tweak  func(*Profile)
		set    boot
		boots  []string // what three boots boot
		after  string   // what BootSourceOverrideEnabled then shows
		during string   // and before the first
	}{
		"once: one boot":            {nil, boot{"BootSourceOverrideEnabled": "Once", "BootSourceOverrideTarget": "Pxe"}, []string{"Pxe", "Hdd", "Hdd"}, "Disabled", "Once"},
		"continuous: every boot":    {nil, boot{"BootSourceOverrideEnabled": "Continuous", "BootSourceOverrideTarget": "Pxe"}, []string{"Pxe", "Pxe", "Pxe"}, "Continuous", "Continuous"},
		"disabled: the boot order":  {nil, boot{"BootSourceOverrideEnabled": "Disabled"}, []string{"Hdd", "Hdd", "Hdd"}, "Disabled", "Disabled"},
		"target None disables":      {nil, boot{"BootSourceOverrideEnabled": "Once", "BootSourceOverrideTarget": "None"}, []string{"Hdd", "Hdd", "Hdd"}, "Disabled", "Disabled"},
		"a target alone means once": {nil, boot{"BootSourceOverrideTarget": "UefiHttp"}, []string{"UefiHttp", "Hdd", "Hdd"}, "Disabled", "Once"},
		"a make that never clears": {func(p *Profile) { p.OverrideNeverClears = true },
			boot{"BootSourceOverrideEnabled": "Once", "BootSourceOverrideTarget": "Pxe"}, []string{"Pxe", "Pxe", "Pxe"}, "Once", "Once"},
		"a make that shows Continuous": {func(p *Profile) { p.OnceReadsContinuous = true },
			boot{"BootSourceOverrideEnabled": "Once", "BootSourceOverrideTarget": "Pxe"}, []string{"Pxe", "Hdd", "Hdd"}, "Disabled", "Continuous"},
		"a boot order": {nil, boot{"BootOrder": []string{"Boot0002", "Boot0001"}}, []string{"Pxe", "Pxe", "Pxe"}, "Disabled", "Disabled"},
	} {
		t.Run(name, func(t *testing.T) {
			f, m := startFleet(t, Options{Delays: instant, InMemory: true}, MachineSpec{Tweak: c.tweak})
			client := call(t, f, m)
			client.do("PATCH", m.SystemURI(), boot{"Boot": c.set}, 200)
			enabled := func() any { return field(client.get(m.SystemURI()), "Boot", "BootSourceOverrideEnabled") }
			if got := enabled(); got != c.during {
				t.Errorf("shows %v before the boot, want %s", got, c.during)
			}
			var boots []string
			for range 3 {
				client.reset(m, ResetOn)
				sel, _ := m.Running()
				boots = append(boots, sel.Target)
				client.reset(m, ResetForceOff)
			}
			if !slices.Equal(boots, c.boots) {
				t.Errorf("booted %v, want %v", boots, c.boots)
			}
			if got := enabled(); got != c.after {
				t.Errorf("shows %v after the boots, want %s", got, c.after)
			}
		})
	}
}

func TestAPatchThatIsRefusedChangesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		profile string
		path    string // below the system
		body    any
		match   string
		status  int
		says    string
	}{
		"a target that is not offered":        {ProfileLenovo, "", boot{"Boot": boot{"BootSourceOverrideTarget": "UefiHttp"}}, "", 400, "BootSourceOverrideTarget"},
		"Continuous where only Once works":    {ProfileLenovo, "", boot{"Boot": boot{"BootSourceOverrideEnabled": "Continuous"}}, "", 400, "Once"},
		"HttpBootUri where it is not known":   {ProfileOpenBMC, "", boot{"Boot": boot{"HttpBootUri": "http://x/"}}, "", 400, "HttpBootUri"},
		"no mode where UEFI must be named":    {ProfileSupermicro, "", boot{"Boot": boot{"BootSourceOverrideEnabled": "Once", "BootSourceOverrideTarget": "Pxe"}}, "", 400, "UEFI"},
		"no If-Match where one is needed":     {ProfileAMI, "/SD", boot{"Boot": boot{"BootSourceOverrideTarget": "Pxe"}}, "", 428, "If-Match"},
		"boot beside the settings resource":   {ProfileAMI, "", boot{"Boot": boot{"BootSourceOverrideTarget": "Pxe"}}, "*", 400, "settings resource"},
		"the override beside the system":      {ProfileLenovo, "/Pending", boot{"Boot": boot{"BootSourceOverrideTarget": "Pxe"}}, "*", 400, "BootSourceOverrideTarget"},
		"a mode that there is not":            {ProfileGeneric, "", boot{"Boot": boot{"BootSourceOverrideMode": "BIOS"}}, "", 400, "Legacy"},
		"an entity tag of another day":        {ProfileGeneric, "", boot{"IndicatorLED": "Lit"}, `"0"`, 412, "entity tag"},
		"a property that nobody knows":        {ProfileGeneric, "", boot{"Colour": "red"}, "", 400, "Colour"},
		"a boot option that does not exist":   {ProfileGeneric, "", boot{"Boot": boot{"BootOrder": []string{"Boot0009"}}}, "", 400, "Boot0009"},
		"a good light with a bad target":      {ProfileGeneric, "", boot{"IndicatorLED": "Lit", "Boot": boot{"BootSourceOverrideTarget": "Moon"}}, "", 400, "BootSourceOverrideTarget"},
		"a light that the make does not have": {ProfileLenovo, "", boot{"LocationIndicatorActive": true}, "", 400, "LocationIndicatorActive"},
		"a number where a text belongs":       {ProfileGeneric, "", boot{"IndicatorLED": 5}, "", 400, "JSON"},
		"a list instead of an object":         {ProfileGeneric, "", []int{1}, "", 400, "JSON"},
		"JSON that ends too early":            {ProfileGeneric, "", `{"Boot":`, "", 400, "JSON"},
		"a settings resource of another make": {ProfileGeneric, "/SD", boot{}, "", 404, "not found"},
		"more than a BMC reads":               {ProfileGeneric, "", `{"Boot":"` + strings.Repeat("x", maxBody) + `"}`, "", 413, "too large"},
	} {
		t.Run(name, func(t *testing.T) {
			f, m := startFleet(t, Options{Delays: instant, InMemory: true}, MachineSpec{Profile: c.profile})
			client := call(t, f, m)
			if c.match != "" {
				client.header["If-Match"] = c.match
			}
			res := client.do("PATCH", strings.TrimRight(m.SystemURI(), "/")+c.path, c.body, c.status)
			if !strings.Contains(string(res.raw), c.says) {
				t.Errorf("%s does not say %s", res.raw, c.says)
			}
			enabled, target := m.Override()
			if enabled != "Disabled" || target != "None" || m.LED() != "Off" || m.BootOrder()[0] != "Boot0001" {
				t.Errorf("changed to %s %s %s %v", enabled, target, m.LED(), m.BootOrder())
			}
		})
	}
}

func TestEntityTagsGuardChanges(t *testing.T) {
	for _, profile := range []string{ProfileGeneric, ProfileHPE, ProfileAMI} {
		t.Run(profile, func(t *testing.T) {
			f, m := startFleet(t, Options{Delays: instant, InMemory: true}, MachineSpec{Profile: profile})
			c := call(t, f, m)
			res := c.do("GET", m.SystemURI(), nil, 200)
			tag := res.header.Get("ETag")
			if tag == "" || res.doc["@odata.etag"] != tag {
				t.Fatalf("header %q, body %v", tag, res.doc["@odata.etag"])
			}
			c.header["If-None-Match"] = tag
			c.do("GET", m.SystemURI(), nil, 304)
			delete(c.header, "If-None-Match")
			c.header["If-Match"] = tag
			first := c.try(t.Context(), "PATCH", m.SystemURI(), boot{"IndicatorLED": "Lit"})
			if first.status >= 300 {
				t.Fatalf("the right tag was refused: %d %s", first.status, first.raw)
			}
			c.do("PATCH", m.SystemURI(), boot{"IndicatorLED": "Blinking"}, 412)
			if m.LED() != "Lit" {
				t.Errorf("light %s", m.LED())
			}
		})
	}
}

func TestAnOverrideMayReadLate(t *testing.T) {
	clock := NewManualClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	f, m := startFleet(t, Options{Delays: instant, InMemory: true, Clock: clock},
		MachineSpec{Tweak: func(p *Profile) { p.OverrideShowsAfter = 20 * time.Second }})
	c := call(t, f, m)
	shown := func() any { return field(c.get(m.SystemURI()), "Boot", "BootSourceOverrideEnabled") }
	c.do("PATCH", m.SystemURI(), boot{"Boot": boot{"BootSourceOverrideEnabled": "Once", "BootSourceOverrideTarget": "Pxe"}}, 200)
	if got := shown(); got != "Disabled" {
		t.Errorf("at once %v", got)
	}
	clock.Advance(20 * time.Second)
	if got := shown(); got != "Once" {
		t.Errorf("later %v", got)
	}
}

func TestTheManagerOfAGPUBoardIsNotTheBMC(t *testing.T) {
	f, m := startFleet(t, Options{Delays: instant, InMemory: true}, MachineSpec{Profile: ProfileDGX})
	c := call(t, f, m)
	tray := field(c.get("/redfish/v1/Managers/HGX_BMC_0"), "Links", "ManagerForServers", 0, "@odata.id")
	host := field(c.get(m.SystemURI()), "Links", "ManagedBy", 0, "@odata.id")
	if tray != "/redfish/v1/Systems/HGX_Baseboard_0" || host != "/redfish/v1/Managers/BMC" ||
		field(c.get("/redfish/v1/Managers/BMC"), "Links", "ManagerForServers") != nil {
		t.Errorf("the board's manager lists %v, the host names %v", tray, host)
	}
	c.do("POST", "/redfish/v1/Managers/HGX_BMC_0/Actions/Manager.Reset", boot{"ResetType": "GracefulRestart"}, 400)
	c.do("POST", "/redfish/v1/Managers/HGX_BMC_0/Actions/Manager.Reset", boot{"ResetType": "ForceRestart"}, 202)
	c.do("GET", m.SystemURI(), nil, 200) // the BMC goes on
}

func TestARestartOfTheBMCLosesSessionsAndOverrides(t *testing.T) {
	f, m := startFleet(t, Options{Delays: instant, InMemory: true}, MachineSpec{Power: PowerOn})
	c := call(t, f, m)
	c.do("POST", "/redfish/v1/SessionService/Sessions", boot{"UserName": c.user, "Password": c.pass}, 201)
	m.SetOverride("Once", "Pxe")
	c.do("POST", "/redfish/v1/Managers/1/Actions/Manager.Reset", boot{"ResetType": "GracefulRestart"}, 204)
	// The restart begins when the answer is out, and its end is not announced: ask until the BMC answers again.
	for {
		if res := c.try(short(t), "GET", m.SystemURI(), nil); res.status == 200 && len(m.Sessions()) == 0 {
			break
		}
	}
	if enabled, _ := m.Override(); enabled != "Disabled" {
		t.Errorf("override %s survived", enabled)
	}
	if m.Power() != PowerOn || m.Boots() != 1 {
		t.Errorf("the machine noticed: %s, %d boots", m.Power(), m.Boots())
	}
}
