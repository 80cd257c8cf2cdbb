// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// x11 is what Supermicro X10 and X11 offer.
var x11 = []string{"None", "Pxe", "Hdd", "Diags", "CD/DVD", "BiosSetup", "FloppyRemovableMedia", "UsbKey", "UsbHdd", "UsbFloppy", "UsbCd",
	"UefiUsbKey", "UefiCd", "UefiHdd", "UefiUsbHdd", "UefiUsbCd"}

func TestWhatABMCCallsACD(t *testing.T) {
	for name, c := range map[string]struct {
		target  string
		mode    BootMode
		offered []string
		want    string
		machine Identity
	}{
		"Cd goes before all others":            {"Cd", BootUEFI, []string{"UsbCd", "UefiUsbCd", "Cd"}, "Cd", Identity{}},
		"Supermicro X11 in mode UEFI":          {"Cd", BootUEFI, x11, "UefiUsbCd", Identity{}},
		"Supermicro X11 in mode Legacy":        {"Cd", BootLegacy, x11, "UsbCd", Identity{}},
		"UsbCd alone":                          {"Cd", BootUEFI, []string{"Pxe", "UsbCd"}, "UsbCd", Identity{}},
		"UefiCd alone":                         {"Cd", BootUEFI, []string{"Pxe", "UefiCd"}, "UefiCd", Identity{}},
		"CD/DVD alone, as the BMC spells it":   {"Cd", BootUEFI, []string{"Pxe", "Cd/Dvd"}, "Cd/Dvd", Identity{}},
		"a CD of UEFI is not booted as Legacy": {"Cd", BootLegacy, []string{"Pxe", "UefiCd"}, "Cd", Identity{}},
		"nothing offered":                      {"Cd", BootUEFI, nil, "Cd", Identity{}},
		"no CD offered":                        {"Cd", BootUEFI, []string{"Pxe", "Hdd"}, "Cd", Identity{}},
		"Supermicro with UsbCd beside Cd": {"Cd", BootUEFI, []string{"Pxe", "Cd", "UsbCd"}, "UsbCd",
			Identity{Manufacturer: "Supermicro", Model: "SYS-821GE-TNHR"}},
		"Supermicro's name in another case": {"Cd", BootLegacy, []string{"Pxe", "Cd", "UsbCd"}, "UsbCd", Identity{Manufacturer: "SUPERMICRO "}},
		"Supermicro without UsbCd":          {"Cd", BootUEFI, []string{"Pxe", "Cd", "Usb"}, "Cd", Identity{Manufacturer: "Supermicro"}},
		"the Supermicro that boots Cd": {"Cd", BootUEFI, []string{"Pxe", "Cd", "UsbCd"}, "Cd",
			Identity{Manufacturer: "Supermicro", Model: "ARS-111GL-NHR"}},
		"another make with UsbCd beside Cd": {"Cd", BootUEFI, []string{"Pxe", "Cd", "UsbCd"}, "Cd", Identity{Manufacturer: "Dell Inc."}},
		"another target is never replaced":  {"Pxe", BootUEFI, x11[4:], "Pxe", Identity{}},
	} {
		if got := bootWord(c.target, c.mode, c.offered, c.machine); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestAVirtualCDBootsByTheBMCsOwnWord(t *testing.T) {
	for word, offered := range map[string][]string{"UefiUsbCd": x11, "UsbCd": {"Pxe", "UsbCd"}, "UefiCd": {"Pxe", "UefiCd"}, "CD/DVD": {"Pxe", "CD/DVD"}} {
		f := newFake(t)
		f.set(systemURI, strings.Replace(systemJSON("Off"), `["None","Pxe","Hdd"]`, `["`+strings.Join(offered, `","`)+`"]`, 1))
		c := f.warm(t)
		if err := c.PowerOnOnce(t.Context(), systemURI, self, "Cd"); err != nil {
			t.Fatalf("%s: %v", word, err)
		}
		sent := f.seen(http.MethodPatch, http.MethodPost)
		if len(sent) != 2 || !strings.Contains(sent[0], `"BootSourceOverrideTarget":"`+word+`"`) || !strings.Contains(sent[1], `"ResetType":"On"`) {
			t.Errorf("%s: sent %q", word, sent)
		}
		if err := c.PowerOnOnce(t.Context(), systemURI, self, "Cd"); err != nil { // it shows, so that it is not written again
			t.Fatalf("%s: %v", word, err)
		}
		if sent := f.seen(http.MethodPatch); len(sent) != 0 {
			t.Errorf("%s: written again: %q", word, sent)
		}
	}
	f := newFake(t)
	var unsupported *UnsupportedError
	if err := f.warm(t).PowerOnOnce(t.Context(), systemURI, self, "Cd"); !errors.As(err, &unsupported) || unsupported.Wanted != "booting from Cd" ||
		!slices.Contains(unsupported.Offered, "Pxe") {
		t.Errorf("a BMC that boots no CD: %v", err)
	}
}
