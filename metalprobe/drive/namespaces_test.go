// SPDX-License-Identifier: Apache-2.0

package drive

import (
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"github.com/metalaw/metalaw/metalprobe/erasure"
)

// pages answers Identify by the number of its page, and by the namespace where page is 0.
type pages struct {
	erasure.Commands
	pages      map[uint32][]byte
	namespaces map[uint32]uint64
}

func (p pages) NVMe(c erasure.NVMeCommand) (uint32, error) {
	if c.CDW10 == 0 {
		binary.LittleEndian.PutUint64(c.Data, p.namespaces[c.NSID])
		return 0, nil
	}
	page, known := p.pages[c.CDW10]
	if !known {
		return 0, errors.New("NVMe status 0x2002")
	}
	copy(c.Data, page)
	return 0, nil
}

func TestNamespaces(t *testing.T) {
	controller := func(manages bool, count uint32) []byte {
		page := make([]byte, pageSize)
		if manages {
			page[256] = 1 << 3
		}
		binary.LittleEndian.PutUint32(page[516:], count)
		return page
	}
	list := func(nsids ...uint32) []byte {
		page := make([]byte, pageSize)
		for i, nsid := range nsids {
			binary.LittleEndian.PutUint32(page[4*i:], nsid)
		}
		return page
	}
	for _, test := range []struct {
		name              string
		drive             pages
		allocated, active []uint32
		err               error
	}{
		{"a drive that manages namespaces", pages{pages: map[uint32][]byte{1: controller(true, 8), 0x02: list(1), 0x10: list(1, 2)}}, []uint32{1, 2}, []uint32{1}, nil},
		{"a drive that manages none", pages{pages: map[uint32][]byte{1: controller(false, 1), 0x02: list(1)}}, nil, []uint32{1}, nil},
		{"a drive without a namespace", pages{pages: map[uint32][]byte{1: controller(false, 1), 0x02: list()}}, nil, nil, nil},
		{"a drive of NVMe 1.0", pages{pages: map[uint32][]byte{1: controller(false, 3)}, namespaces: map[uint32]uint64{1: 8, 3: 8}}, nil, []uint32{1, 3}, nil},
		{"a drive that lists nothing of many", pages{pages: map[uint32][]byte{1: controller(false, 1024)}}, nil, nil, ErrActiveUnknown},
	} {
		t.Run(test.name, func(t *testing.T) {
			allocated, active, err := Namespaces(test.drive)
			if !slices.Equal(allocated, test.allocated) || !slices.Equal(active, test.active) || !errors.Is(err, test.err) {
				t.Errorf("got %v %v %v", allocated, active, err)
			}
		})
	}
	if _, _, err := Namespaces(pages{}); err == nil || errors.Is(err, ErrActiveUnknown) {
		t.Errorf("a drive that does not answer: %v", err)
	}
}
