// SPDX-License-Identifier: Apache-2.0

package smbios

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

// module is a structure of type 17 of SMBIOS 2.8, whose fields a case changes.
func module(change map[int]byte, texts string) []byte {
	fields := make([]byte, 0x28)
	fields[0], fields[1] = memoryDevice, byte(len(fields))
	for at, value := range change {
		fields[at] = value
	}
	return slices.Concat(fields, []byte(texts+"\x00\x00"))
}

var end = []byte{endOfTable, 4, 0, 0, 0, 0}

func TestMemoryModules(t *testing.T) {
	full := module(map[int]byte{0x0c: 0x00, 0x0d: 0x40, 0x0f: 1, 0x10: 1, 0x11: 2, 0x12: 0x1a, 0x15: 0x80, 0x16: 0x0c, 0x17: 3, 0x18: 4, 0x19: 5, 0x1a: 6,
		0x20: 0x60, 0x21: 0x09, 0x22: 0xb0, 0x23: 0x04, 0x24: 0xb0, 0x25: 0x04, 0x26: 0xb0, 0x27: 0x04}, "A1\x00BANK 0\x00Acme \x00S1\x00tag\x00P-1")
	for name, c := range map[string]struct {
		table []byte
		want  []policyv1alpha1.MemoryDevice
		err   bool
	}{
		"a module with every field": {append(full, end...), []policyv1alpha1.MemoryDevice{{SizeBytes: 16 << 30, DeviceSet: "1", DeviceLocator: "A1", BankLocator: "BANK 0",
			MemoryType: "DDR4", Speed: "3200 MT/s", Vendor: "Acme", SerialNumber: "S1", AssetTag: "tag", PartNumber: "P-1",
			ConfiguredMemorySpeed: "2400 MT/s", MinimumVoltage: "1.2 V", MaximumVoltage: "1.2 V", ConfiguredVoltage: "1.2 V"}}, false},
		"an empty slot":                     {append(module(map[int]byte{0x10: 1}, "A2"), end...), nil, false},
		"a module of unknown size":          {append(module(map[int]byte{0x0c: 0xff, 0x0d: 0xff}, ""), end...), nil, false},
		"a size in kibibytes":               {append(module(map[int]byte{0x0c: 0x00, 0x0d: 0x82}, ""), end...), []policyv1alpha1.MemoryDevice{{SizeBytes: 512 << 10}}, false},
		"a module of 64 GiB":                {append(module(map[int]byte{0x0c: 0xff, 0x0d: 0x7f, 0x1d: 0, 0x1e: 1}, ""), end...), []policyv1alpha1.MemoryDevice{{SizeBytes: 64 << 30}}, false},
		"a string that does not exist":      {append(module(map[int]byte{0x0c: 1, 0x10: 9}, "A1"), end...), []policyv1alpha1.MemoryDevice{{SizeBytes: 1 << 20}}, false},
		"other structures before":           {append([]byte{0, 5, 0, 0, 1, 'v', 0, 0}, append(module(map[int]byte{0x0c: 1}, ""), end...)...), []policyv1alpha1.MemoryDevice{{SizeBytes: 1 << 20}}, false},
		"what follows the end is not read":  {append(end, module(map[int]byte{0x0c: 1}, "")...), nil, false},
		"a table without an end":            {module(map[int]byte{0x0c: 1}, ""), []policyv1alpha1.MemoryDevice{{SizeBytes: 1 << 20}}, false},
		"a table that breaks off":           {append(module(map[int]byte{0x0c: 1}, ""), memoryDevice, 40, 0), []policyv1alpha1.MemoryDevice{{SizeBytes: 1 << 20}}, true},
		"a structure shorter than a header": {[]byte{memoryDevice, 0, 0, 0, 0, 0}, nil, true},
		"strings without an end":            {[]byte{memoryDevice, 4, 0, 0, 'a', 'b'}, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := MemoryModules(c.table)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("modules (-want +got):\n%s", diff)
			}
			if (err != nil) != c.err {
				t.Errorf("got %v", err)
			}
		})
	}
}

func FuzzMemoryModules(f *testing.F) {
	f.Add(append(module(map[int]byte{0x0c: 1, 0x10: 1}, "A1"), end...))
	f.Fuzz(func(t *testing.T, table []byte) {
		modules, _ := MemoryModules(table)
		for _, m := range modules {
			if m.SizeBytes <= 0 {
				t.Errorf("a module of %d bytes", m.SizeBytes)
			}
		}
	})
}
