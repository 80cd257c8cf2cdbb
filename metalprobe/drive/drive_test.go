// SPDX-License-Identifier: Apache-2.0

package drive

import (
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/metalaw/metalaw/metalprobe/erasure"
)

// fake is a drive that answers questions by their number.
type fake struct {
	erasure.Commands
	// pages answer NVMe's Identify by what is asked, and commands of ATA and SCSI by their first bytes.
	pages map[uint32][]byte
	lba   uint64
	sense []byte
	// asked are the commands that were sent.
	asked []byte
}

var errSilent = errors.New("timed out")

func (f *fake) NamespaceID() (uint32, error) { return 1, nil }

func (f *fake) NVMe(c erasure.NVMeCommand) (uint32, error) {
	f.asked = append(f.asked, c.Opcode)
	page, known := f.pages[c.CDW10]
	if !known {
		return 0, errSilent
	}
	copy(c.Data, page)
	return 0, nil
}

func (f *fake) SCSI(c erasure.SCSICommand) ([]byte, error) {
	f.asked = append(f.asked, c.CDB[0])
	page, known := f.pages[uint32(c.CDB[1])]
	if !known {
		return f.sense, errSilent
	}
	copy(c.In, page)
	return nil, nil
}

func (f *fake) ATA(c erasure.ATACommand) (erasure.ATAResult, error) {
	f.asked = append(f.asked, c.Command)
	page, known := f.pages[uint32(c.Command)]
	if !known {
		return erasure.ATAResult{}, errSilent
	}
	copy(c.In, page)
	return erasure.ATAResult{LBA: f.lba}, nil
}

// bytesAt is a page with bytes at places.
func bytesAt(size int, at map[int]byte) []byte {
	page := make([]byte, size)
	for where, value := range at {
		page[where] = value
	}
	return page
}

func TestReservationsOfNVMe(t *testing.T) {
	reserving := map[uint32][]byte{1: bytesAt(pageSize, map[int]byte{520: 1 << 5}), 0: bytesAt(pageSize, map[int]byte{31: 1})}
	for name, c := range map[string]struct {
		pages  map[uint32][]byte
		report ReadReport
		want   Reservation
	}{
		"a drive that does not answer":     {nil, nil, ReservationUnknown},
		"a drive without reservations":     {map[uint32][]byte{1: bytesAt(pageSize, nil)}, nil, ReservationNone},
		"a namespace without reservations": {map[uint32][]byte{1: reserving[1], 0: bytesAt(pageSize, nil)}, nil, ReservationNone},
		"a namespace that does not answer": {map[uint32][]byte{1: reserving[1]}, nil, ReservationUnknown},
		"nobody has reserved it":           {reserving, func(bool, []byte) error { return nil }, ReservationNone},
		"a host has reserved it":           {reserving, func(_ bool, p []byte) error { p[4] = 1; return nil }, ReservationHeld},
		"a host is registered":             {reserving, func(_ bool, p []byte) error { p[5] = 1; return nil }, ReservationHeld},
		"a drive that reports long host identifiers only": {reserving, func(long bool, p []byte) error {
			if !long {
				return errSilent
			}
			p[4] = 3
			return nil
		}, ReservationHeld},
		"a report that fails": {reserving, func(bool, []byte) error { return errSilent }, ReservationUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			if got := NVMe(&fake{pages: c.pages}, c.report); got.Reservation != c.want {
				t.Errorf("got %d, want %d", got.Reservation, c.want)
			}
		})
	}
}

func TestDetachedNamespaces(t *testing.T) {
	list := func(numbers ...uint32) []byte {
		page := make([]byte, pageSize)
		for i, n := range numbers {
			binary.LittleEndian.PutUint32(page[4*i:], n)
		}
		return page
	}
	managing := bytesAt(pageSize, map[int]byte{256: 1 << 3})
	for name, c := range map[string]struct {
		pages map[uint32][]byte
		want  string
		err   bool
	}{
		"a drive that does not manage namespaces": {map[uint32][]byte{1: bytesAt(pageSize, nil)}, "", false},
		"all are attached":                        {map[uint32][]byte{1: managing, 0x10: list(1, 2), 2: list(1, 2)}, "", false},
		"two are not":                             {map[uint32][]byte{1: managing, 0x10: list(1, 2, 7), 2: list(1)}, "2, 7", false},
		"a drive that does not answer":            {nil, "", true},
		"a drive that does not list them":         {map[uint32][]byte{1: managing}, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			allocated, active, err := Namespaces(&fake{pages: c.pages})
			got := Detached(allocated, active)
			if !strings.Contains(got, c.want) || (c.want == "") != (got == "") || (err != nil) != c.err {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

func TestReservationsOfSCSI(t *testing.T) {
	none, key := bytesAt(24, nil), bytesAt(24, map[int]byte{7: 8})
	for name, c := range map[string]struct {
		pages map[uint32][]byte
		sense []byte
		want  Reservation
	}{
		"nobody has reserved it":                {map[uint32][]byte{0: none, 1: none}, nil, ReservationNone},
		"a host has reserved it":                {map[uint32][]byte{0: none, 1: key}, nil, ReservationHeld},
		"a host has registered its key":         {map[uint32][]byte{0: key, 1: none}, nil, ReservationHeld},
		"a disk that knows no reservations":     {nil, bytesAt(18, map[int]byte{0: 0x70, 2: 5, 12: 0x20}), ReservationNone},
		"the same, in the other format":         {nil, bytesAt(8, map[int]byte{0: 0x72, 1: 5, 2: 0x20}), ReservationNone},
		"a disk that does not answer":           {nil, nil, ReservationUnknown},
		"a disk that is not ready":              {nil, bytesAt(18, map[int]byte{0: 0x70, 2: 2, 12: 4}), ReservationUnknown},
		"a disk that answers only one question": {map[uint32][]byte{1: none}, nil, ReservationUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			if got := SCSI(&fake{pages: c.pages, sense: c.sense}); got.Reservation != c.want {
				t.Errorf("got %d, want %d", got.Reservation, c.want)
			}
		})
	}
}

// identity is a page of IDENTIFY DEVICE: a disk of 1,000 sectors with addresses of 48 bits, and words that a case changes.
func identity(change map[int]uint16) []byte {
	words := map[int]uint16{60: 1000, 83: 1<<14 | 1<<10, 100: 1000, 120: 1 << 14}
	maps.Copy(words, change)
	page := make([]byte, ataBlock)
	for n, value := range words {
		binary.LittleEndian.PutUint16(page[2*n:], value)
	}
	return page
}

func TestHiddenSectors(t *testing.T) {
	overlay := func(last byte) []byte { return bytesAt(ataBlock, map[int]byte{6: last, 7: 0x03}) }
	const with = 1<<14 | 1<<10 | 1<<11
	for name, c := range map[string]struct {
		pages           map[uint32][]byte
		lba             uint64
		hidden, unknown string
	}{
		"a disk that can hide nothing":           {map[uint32][]byte{ataIdentify: identity(nil)}, 0, "", ""},
		"a disk that does not answer":            {nil, 0, "", "IDENTIFY DEVICE"},
		"no protected area":                      {map[uint32][]byte{ataIdentify: identity(map[int]uint16{82: 1 << 10}), ataReadNativeMax: nil}, 999, "", ""},
		"a protected area":                       {map[uint32][]byte{ataIdentify: identity(map[int]uint16{82: 1 << 10}), ataReadNativeMax: nil}, 1099, "a host protected area hides 100 of its 1100 sectors", ""},
		"a disk that hides whether there is one": {map[uint32][]byte{ataIdentify: identity(map[int]uint16{82: 1 << 10})}, 0, "", "did not say whether a host protected area"},
		"a lower address of a newer disk":        {map[uint32][]byte{ataIdentify: identity(map[int]uint16{119: 1 << 8}), ataGetNativeMax: nil}, 1099, "hides 100 of", ""},
		"an old disk with addresses of 28 bits":  {map[uint32][]byte{ataIdentify: identity(map[int]uint16{82: 1 << 10, 83: 1 << 14})}, 0, "", "28 bits"},
		"an overlay that hides nothing":          {map[uint32][]byte{ataIdentify: identity(map[int]uint16{83: with}), ataConfiguration: overlay(0xe7)}, 0, "", ""},
		"an overlay that hides sectors":          {map[uint32][]byte{ataIdentify: identity(map[int]uint16{83: with}), ataConfiguration: overlay(0xf1)}, 0, "a device configuration overlay hides 10 of its 1010", ""},
		"an overlay that the BIOS locked":        {map[uint32][]byte{ataIdentify: identity(map[int]uint16{83: with})}, 0, "", "device configuration overlay"},
		"an address that the adapter cut off":    {map[uint32][]byte{ataIdentify: identity(map[int]uint16{82: 1 << 10}), ataReadNativeMax: nil}, 231, "", "it shows 1000 sectors, and names 232"},
		"an overlay of an empty answer":          {map[uint32][]byte{ataIdentify: identity(map[int]uint16{83: with}), ataConfiguration: nil}, 0, "", "it shows 1000 sectors, and names 1"},
		"a word of support that does not count":  {map[uint32][]byte{ataIdentify: identity(map[int]uint16{82: 1 << 10, 83: 1<<15 | 1<<14})}, 0, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{pages: c.pages, lba: c.lba}
			got := ATA(f)
			if !strings.Contains(got.Hidden, c.hidden) || (c.hidden == "") != (got.Hidden == "") {
				t.Errorf("hidden: got %q, want %q", got.Hidden, c.hidden)
			}
			if !strings.Contains(got.HiddenUnknown, c.unknown) || (c.unknown == "") != (got.HiddenUnknown == "") {
				t.Errorf("not known: got %q, want %q", got.HiddenUnknown, c.unknown)
			}
			reads := []byte{ataIdentify, ataReadNativeMax, ataGetNativeMax, ataConfiguration}
			if slices.ContainsFunc(f.asked, func(command byte) bool { return !slices.Contains(reads, command) }) {
				t.Errorf("commands %x, of which one does not only read", f.asked)
			}
		})
	}
}

func FuzzHiddenSectors(f *testing.F) {
	f.Add(identity(map[int]uint16{82: 1 << 10, 83: 1<<14 | 1<<10 | 1<<11}), bytesAt(ataBlock, nil), uint64(999))
	f.Fuzz(func(t *testing.T, page, overlay []byte, lba uint64) {
		ATA(&fake{pages: map[uint32][]byte{ataIdentify: page, ataReadNativeMax: nil, ataGetNativeMax: nil, ataConfiguration: overlay}, lba: lba})
		unsupported(page)
	})
}
