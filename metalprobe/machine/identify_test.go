// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/metalprobe"
)

// dmiTable is a BIOS structure with two texts, then a system structure with the UUID that SMBIOS 2.6 spells
// 44454c4c-4200-1035-8054-b7c04f4d4d32, then the end.
const dmiTable = "\x00\x05\x00\x00\x01ACME\x001.0\x00\x00" +
	"\x01\x1b\x01\x00\x01\x02\x03\x04" + "\x4c\x4c\x45\x44\x00\x42\x35\x10\x80\x54\xb7\xc0\x4f\x4d\x4d\x32" + "\x06\x05\x06" + "a\x00\x00" +
	"\x7f\x04\x02\x00\x00\x00"

func TestFirmwareUUID(t *testing.T) {
	const (
		file  = "sys/class/dmi/id/product_uuid"
		table = "sys/firmware/dmi/tables/DMI"
	)
	for name, c := range map[string]struct {
		root fstest.MapFS
		want string
	}{
		"as the kernel shows it":                {fstest.MapFS{file: {Data: []byte("44454C4C-4200-1035-8054-B7C04F4D4D32\n")}}, "44454c4c-4200-1035-8054-b7c04f4d4d32"},
		"from the table":                        {fstest.MapFS{table: {Data: []byte(dmiTable)}}, "44454c4c-4200-1035-8054-b7c04f4d4d32"},
		"a table that is cut":                   {fstest.MapFS{table: {Data: []byte(dmiTable[:30])}}, ""},
		"all zeros identify none":               {fstest.MapFS{file: {Data: []byte("00000000-0000-0000-0000-000000000000")}}, ""},
		"a default of a vendor identifies none": {fstest.MapFS{file: {Data: []byte("03000200-0400-0500-0006-000700080009")}}, ""},
		"no DMI":                                {fstest.MapFS{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := FirmwareUUID(c.root); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func FuzzTableUUID(f *testing.F) {
	f.Add([]byte(dmiTable))
	f.Add([]byte(dmiTable[:25]))
	f.Fuzz(func(t *testing.T, table []byte) {
		if got := tableUUID(table); got != "" {
			if _, err := metalprobe.NormalizeUUID(got); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestIdentify(t *testing.T) {
	const (
		own, swapped = "44454c4c-4200-1035-8054-b7c04f4d4d32", "4c4c4544-0042-3510-8054-b7c04f4d4d32"
		other        = "11111111-2222-3333-4444-555555555555"
	)
	for name, c := range map[string]struct {
		purpose       metalprobe.Purpose
		config, shown string
		want, err     string
		problem       string
	}{
		"the configuration names none":          {metalprobe.PurposeWipe, "", own, own, "", ""},
		"both say the same":                     {metalprobe.PurposeWipe, own, own, own, "", ""},
		"the firmware has the other byte order": {metalprobe.PurposeWipe, swapped, own, swapped, "", ""},
		"in any case":                           {metalprobe.PurposeWipe, strings.ToUpper(swapped), own, strings.ToUpper(swapped), "", ""},
		"the firmware shows none":               {metalprobe.PurposeWipe, own, "", own, "", ""},
		"nothing names the machine":             {metalprobe.PurposeProbe, "", "", "", "--server-uuid", ""},
		"a wipe for another machine is refused": {metalprobe.PurposeWipe, other, own, other, "nothing is erased", ""},
		"a probe of another machine says so":    {metalprobe.PurposeProbe, other, own, other, "", "for server 1111"},
	} {
		t.Run(name, func(t *testing.T) {
			early := policyv1alpha1.ProbeProblem{Source: "module", Message: "early"}
			options := Options{Config: metalprobe.Config{Purpose: c.purpose, ServerUUID: c.config},
				Problems: func() []policyv1alpha1.ProbeProblem { return []policyv1alpha1.ProbeProblem{early} }}
			err := options.Identify(c.shown)
			if (err == nil) != (c.err == "") || (err != nil && !strings.Contains(err.Error(), c.err)) {
				t.Fatalf("got %v, want %q", err, c.err)
			}
			if options.Config.ServerUUID != c.want {
				t.Errorf("got %s, want %s", options.Config.ServerUUID, c.want)
			}
			found := options.Problems()
			if found[0] != early || (len(found) == 2) != (c.problem != "") || (len(found) == 2 && !strings.Contains(found[1].Message, c.problem)) {
				t.Errorf("problems %+v, want %q after the early one", found, c.problem)
			}
		})
	}
}

func TestBootKeyIsOneForABoot(t *testing.T) {
	file := filepath.Join(t.TempDir(), "run", "key")
	first := BootKey(file)
	if !metalprobe.ValidKey(first) || BootKey(file) != first {
		t.Errorf("got %q and %q, want one key", first, BootKey(file))
	}
	if other := BootKey(filepath.Join(file, "not a folder")); !metalprobe.ValidKey(other) || other == first {
		t.Errorf("got %q where no file can be kept", other)
	}
}
