// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/metalaw/metalaw/redfish/emulator"
)

func TestAnOverrideThatDoesNotShowKeepsTheSystemOff(t *testing.T) {
	const pxe = `"BootSourceOverrideEnabled":"Once","BootSourceOverrideTarget":"Pxe"`
	for name, c := range map[string]struct {
		answer int
		shows  string // what the system shows after the override was accepted
		says   string // in the error; empty where the system is switched on
	}{
		"it shows as asked":                    {204, pxe, ""},
		"it shows as asked in small letters":   {204, `"BootSourceOverrideEnabled":"once","BootSourceOverrideTarget":"pxe"`, ""},
		"it shows as Continuous":               {204, `"BootSourceOverrideEnabled":"Continuous","BootSourceOverrideTarget":"Pxe"`, ""},
		"only its target shows":                {204, `"BootSourceOverrideTarget":"Pxe"`, ""},
		"a task that has ended":                {202, pxe, ""},
		"nothing changed":                      {204, `"BootSourceOverrideEnabled":"Disabled","BootSourceOverrideTarget":"None"`, "Once Pxe was accepted, but Disabled None is read back"},
		"another target shows":                 {204, `"BootSourceOverrideEnabled":"Once","BootSourceOverrideTarget":"Hdd"`, "but Once Hdd is read back"},
		"the target shows and is not enabled":  {204, `"BootSourceOverrideEnabled":"Disabled","BootSourceOverrideTarget":"Pxe"`, "but Disabled Pxe is read back"},
		"nothing is said of it":                {204, `"BootSourceOverrideEnabled":null`, "but nothing is read back"},
		"a task that has not ended":            {202, `"BootSourceOverrideEnabled":"Disabled","BootSourceOverrideTarget":"None"`, "as a task, and Disabled None is read back so far"},
		"somebody else switched the system on": {0, pxe, "reads On"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			client := f.warm(t)
			f.on("PATCH "+systemURI, func(w http.ResponseWriter, _ *http.Request) {
				if f.set(systemURI, booting("Off", c.shows)); c.answer == 0 {
					f.set(systemURI, booting("On", c.shows))
					c.answer = 204
				}
				w.WriteHeader(c.answer)
			})
			err := client.PowerOnOnce(t.Context(), systemURI, self, "Pxe")
			resets := f.seen("POST")
			if c.says == "" && (err != nil || len(resets) != 1) {
				t.Errorf("error %v, asked for %q", err, resets)
			}
			if c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says) || MayHaveHappened(err) || len(resets) != 0) {
				t.Errorf("error %v, want %q; asked for %q", err, c.says, resets)
			}
		})
	}
}

func TestAnOverrideThatShowsLateIsNotWrittenAgain(t *testing.T) {
	f := newFake(t)
	client := f.warm(t)
	f.on("PATCH "+systemURI, status(http.StatusAccepted))
	var override *OverrideError
	if err := client.PowerOnOnce(t.Context(), systemURI, self, "Pxe"); !errors.As(err, &override) || !override.Later {
		t.Fatalf("error %v", err)
	}
	f.set(systemURI, booting("Off", `"BootSourceOverrideEnabled":"Once","BootSourceOverrideTarget":"Pxe"`))
	if err := client.PowerOnOnce(t.Context(), systemURI, self, "Pxe"); err != nil {
		t.Fatal(err)
	}
	wantLines(t, f.seen("PATCH", "POST"), patchSystem+fullOverride, "POST "+resetURI+` {"ResetType":"On"}`)
}

func TestAnOverrideThatCannotBeReadBackKeepsTheSystemOff(t *testing.T) {
	f := newFake(t)
	client := f.warm(t)
	f.on("PATCH "+systemURI, func(http.ResponseWriter, *http.Request) {
		f.on("GET "+systemURI, status(http.StatusServiceUnavailable))
	})
	err := client.PowerOnOnce(t.Context(), systemURI, self, "Pxe")
	var never *NotAskedError
	if !errors.As(err, &never) || !statusIs(err, 503) || MayHaveHappened(err) || len(f.seen("POST")) != 0 {
		t.Errorf("error %v", err)
	}
}

func TestAnOverrideIsReadBackWhereItWasWritten(t *testing.T) {
	const pxe, none = `"BootSourceOverrideEnabled":"Once","BootSourceOverrideTarget":"Pxe"`, `"BootSourceOverrideEnabled":"Disabled"`
	sd := systemURI + "/SD"
	for name, c := range map[string]struct {
		pending, current string
		switchesOn       bool
	}{
		"pending and not yet current": {pxe, none, true},
		"current and pending no more": {none, pxe, true},
		"neither pending nor current": {none, none, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			system := strings.TrimSuffix(booting("Off", c.current), "}") + `,"@Redfish.Settings":{"SettingsObject":{"@odata.id":"` + sd + `"}}}`
			f.set(systemURI, system)
			f.set(sd, `{"Id":"SD","Boot":{`+c.pending+`}}`)
			client := f.warm(t)
			f.on("PATCH "+sd, status(http.StatusNoContent))
			err := client.PowerOnOnce(t.Context(), systemURI, self, "Pxe")
			if on := len(f.seen("POST")) == 1; on != c.switchesOn || (err == nil) != c.switchesOn {
				t.Errorf("error %v, switched on: %t", err, on)
			}
		})
	}
}

// overridingProfiles are the makes that show a boot override. A Cray shows none, and has tests of its own.
func overridingProfiles() []string {
	return slices.DeleteFunc(emulator.ProfileNames(), func(name string) bool { return name == emulator.ProfileCray })
}

func TestAMachineWhoseBMCIgnoresTheOverrideNeverBoots(t *testing.T) {
	for _, profile := range overridingProfiles() {
		for _, ignored := range []bool{true, false} {
			f := emulator.New(emulator.Options{Network: "127.68.0.0/16"})
			m := f.Add(emulator.MachineSpec{Profile: profile})
			if err := f.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(f.Close)
			if ignored {
				m.Inject(emulator.PatchIgnored())
			}
			e := endpointOf(m.URL())
			e.CABundle, e.InsecureSkipVerify = f.CA(), true
			user, password := m.Credentials()
			bmc := poolOf(t).Get("bmc", e, Credentials{Username: user, Password: password})
			err := bmc.PowerOnOnce(t.Context(), m.SystemURI(), Identity{UUID: m.Identity().UUID, SerialNumber: m.Identity().SerialNumber}, "Pxe")
			var override *OverrideError
			if errors.As(err, &override) != ignored || (err == nil) == ignored || (len(m.Resets()) == 0) != ignored {
				t.Errorf("%s: ignored %t: error %v, resets %v", profile, ignored, err, m.Resets())
			}
		}
	}
}

// Each make takes the override at the first write, boots by it, and has the manager of its host restarted.
func TestEveryMakeIsSwitchedOnAndItsOwnManagerRestarted(t *testing.T) {
	for _, profile := range overridingProfiles() {
		t.Run(profile, func(t *testing.T) {
			f := emulator.New(emulator.Options{Network: "127.69.0.0/16", Delays: emulator.Delays{Power: -1, Boot: -1, BMCReset: -1}})
			m := f.Add(emulator.MachineSpec{Profile: profile})
			if err := f.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(f.Close)
			e := endpointOf(m.URL())
			e.CABundle, e.InsecureSkipVerify = f.CA(), true
			user, password := m.Credentials()
			bmc := poolOf(t).Get("bmc", e, Credentials{Username: user, Password: password})
			want := Identity{UUID: m.Identity().UUID, SerialNumber: m.Identity().SerialNumber}
			if err := bmc.PowerOnOnce(t.Context(), m.SystemURI(), want, "Pxe"); err != nil {
				t.Error(err)
			}
			if booted, running := m.Running(); !running || booted.Target != "Pxe" || booted.Mode != "UEFI" {
				t.Errorf("booted %+v", booted)
			}
			patches, restarted := 0, ""
			manager := ManagerIdentity{Systems: []SystemAt{{URI: m.SystemURI(), Identity: want}}}
			err := bmc.ResetManager(t.Context(), manager, true)
			var unsupported *UnsupportedError
			if errors.As(err, &unsupported) {
				err = bmc.ResetManager(t.Context(), manager, false)
			}
			for _, w := range m.Writes() {
				if w.Method == http.MethodPatch {
					patches++
				}
				if strings.HasSuffix(w.Path, "/Manager.Reset") {
					restarted += w.Path
				}
			}
			if err != nil || strings.Contains(restarted, "HGX") || strings.Count(restarted, "/Managers/") != 1 {
				t.Errorf("restarted %q, %v", restarted, err)
			}
			if patches != 1 {
				t.Errorf("%d writes for one override", patches)
			}
		})
	}
}

func TestAnOverrideThatReadsBackLateCostsSecondsAndNoSecondWrite(t *testing.T) {
	for name, c := range map[string]struct {
		late int // reads that still show the former one
		on   bool
	}{
		"at once":                      {0, true},
		"at the second look":           {1, true},
		"at the last look":             {4, true},
		"later than anybody looks for": {5, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			client := f.warm(t)
			written, late := false, c.late
			f.on("PATCH "+systemURI, func(http.ResponseWriter, *http.Request) { written = true })
			f.on("GET "+systemURI, func(w http.ResponseWriter, r *http.Request) {
				if written {
					if late--; late < 0 {
						f.set(systemURI, booting("Off", `"BootSourceOverrideEnabled":"Once","BootSourceOverrideTarget":"Pxe"`))
					}
				}
				f.usual(w, r)
			})
			err := client.PowerOnOnce(t.Context(), systemURI, self, "Pxe")
			patches, resets := 0, 0
			for _, line := range f.seen("PATCH", "POST") {
				if strings.HasPrefix(line, "PATCH") {
					patches++
				} else {
					resets++
				}
			}
			if (err == nil) != c.on || patches != 1 || resets == 1 != c.on {
				t.Errorf("error %v, %d writes, %d power-ons", err, patches, resets)
			}
		})
	}
}
