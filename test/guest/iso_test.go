// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"encoding/binary"
	"testing"
)

// smallISO has one file in one folder: metalprobe/config.json.
func smallISO(content string) []byte {
	iso := make([]byte, 20*isoSector)
	record := func(name string, sector, size int) []byte {
		b := make([]byte, 34, 64)
		binary.LittleEndian.PutUint32(b[2:], uint32(sector))
		binary.LittleEndian.PutUint32(b[10:], uint32(size))
		b[32], b[33] = 1, 'X'
		b = append(b, 'P', 'X', 4, 1, 'N', 'M', byte(5+len(name)), 1, 0)
		b = append(b, name...)
		b[0] = byte(len(b))
		return b
	}
	copy(iso[16*isoSector:], "\x01CD001")
	copy(iso[isoRoot:], record("", 17, isoSector))
	copy(iso[17*isoSector:], record("metalprobe", 18, isoSector))
	copy(iso[18*isoSector:], record("config.json", 19, len(content)))
	copy(iso[19*isoSector:], content)
	return iso
}

func TestAFileIsFoundOnAnISOByItsLongName(t *testing.T) {
	for name, c := range map[string]struct {
		iso   []byte
		path  []string
		want  string
		fails bool
	}{
		"the file":               {smallISO("{}"), []string{"metalprobe", "config.json"}, "{}", false},
		"no such file":           {smallISO("{}"), []string{"metalprobe", "other"}, "", false},
		"no such folder":         {smallISO("{}"), []string{"openstack", "user_data"}, "", false},
		"what is no ISO":         {make([]byte, 20*isoSector), []string{"x"}, "", true},
		"an ISO that is cut off": {smallISO("{}")[:18*isoSector], []string{"metalprobe", "config.json"}, "", true},
	} {
		got, err := fileOnISO(c.iso, c.path...)
		if string(got) != c.want || (err != nil) != c.fails {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func FuzzFileOnISO(f *testing.F) {
	f.Add(smallISO("{}")[16*isoSector:])
	f.Fuzz(func(_ *testing.T, tail []byte) {
		iso := append(make([]byte, 16*isoSector), tail...)
		_, _ = fileOnISO(iso, "metalprobe", "config.json") // it must not panic
	})
}
