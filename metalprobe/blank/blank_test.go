// SPDX-License-Identifier: Apache-2.0

package blank

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

// memory is a disk: a fill byte, and pieces that were written. A read at or beyond broken fails, where that is set.
type memory struct {
	size   int64
	fill   byte
	pieces map[int64]string
	broken int64
	read   map[int64]bool
}

func (m *memory) Size() int64 { return m.size }

func (m *memory) ReadAt(part []byte, offset int64) (int, error) {
	if m.broken > 0 && offset+int64(len(part)) > m.broken {
		return 0, errors.New("input/output error")
	}
	copy(part, bytes.Repeat([]byte{m.fill}, len(part)))
	for at, piece := range m.pieces {
		for i := range len(piece) {
			if where := at + int64(i) - offset; where >= 0 && where < int64(len(part)) {
				part[where] = piece[i]
			}
		}
	}
	if m.read != nil {
		for at := offset; at < offset+int64(len(part)); at += page {
			m.read[at] = true
		}
	}
	return len(part), nil
}

func first(int64) int64 { return 0 }

func TestRead(t *testing.T) {
	const size = 4 << 30
	mbr := strings.Repeat("\x00", 446) + "\x80\x00\x00\x00\x83" + strings.Repeat("\x00", 59) + "\x55\xaa"
	for name, c := range map[string]struct {
		disk  memory
		want  policyv1alpha1.DiskContent
		found string
	}{
		"a disk of zeros":                      {memory{size: size}, policyv1alpha1.ContentBlank, ""},
		"a disk of ones, as some drives erase": {memory{size: size, fill: 0xff}, policyv1alpha1.ContentBlank, ""},
		"a disk that is full of one letter":    {memory{size: size, fill: 'x'}, policyv1alpha1.ContentData, "data at byte 0"},
		"GPT":                                  {memory{size: size, pieces: map[int64]string{512: "EFI PART"}}, policyv1alpha1.ContentData, "GPT at the begin"},
		"only the backup of a GPT":             {memory{size: size, pieces: map[int64]string{size - 512: "EFI PART"}}, policyv1alpha1.ContentData, "GPT at the end"},
		"an MBR":                               {memory{size: size, pieces: map[int64]string{0: mbr}}, policyv1alpha1.ContentData, "MBR at the begin"},
		"ext4":                                 {memory{size: size, pieces: map[int64]string{1024 + 0x38: "\x53\xef\x01"}}, policyv1alpha1.ContentData, "ext2, ext3 or ext4 at the begin"},
		"LUKS":                                 {memory{size: size, pieces: map[int64]string{0: "LUKS\xba\xbe"}}, policyv1alpha1.ContentData, "LUKS at the begin"},
		"LVM":                                  {memory{size: size, pieces: map[int64]string{0x218: "LVM2 001"}}, policyv1alpha1.ContentData, "LVM at the begin"},
		"md at the end":                        {memory{size: size, pieces: map[int64]string{size - 65536: "\xfc\x4e\x2b\xa9"}}, policyv1alpha1.ContentData, "md at the end"},
		"bcache":                               {memory{size: size, pieces: map[int64]string{0x1018: "\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81"}}, policyv1alpha1.ContentData, "bcache at the begin"},
		"ZFS":                                  {memory{size: size, pieces: map[int64]string{132 << 10: "\x0c\xb1\xba\x00\x00\x00\x00\x00"}}, policyv1alpha1.ContentData, "ZFS at the begin"},
		"a byte in the first MiB":              {memory{size: size, pieces: map[int64]string{5000: "x"}}, policyv1alpha1.ContentData, "data at byte 5000"},
		"the last byte":                        {memory{size: size, pieces: map[int64]string{size - 1: "x"}}, policyv1alpha1.ContentData, "data at byte 4294967295"},
		"the last byte of an odd size":         {memory{size: size + 512, pieces: map[int64]string{size + 511: "x"}}, policyv1alpha1.ContentData, "data at byte 4294967807"},
		"data where a sample is taken":         {memory{size: size, pieces: map[int64]string{endBytes + 7: "x"}}, policyv1alpha1.ContentData, "data at byte 1048583"},
		"a byte in a small disk":               {memory{size: 8 << 20, pieces: map[int64]string{5 << 20: "x"}}, policyv1alpha1.ContentData, "data at byte 5242880"},
		"a disk smaller than an end":           {memory{size: 4096, pieces: map[int64]string{4095: "x"}}, policyv1alpha1.ContentData, "data at byte 4095"},
		"a disk whose end cannot be read":      {memory{size: size, broken: size - 1}, policyv1alpha1.ContentUnreadable, "reading at byte 4293918720: input/output error"},
	} {
		t.Run(name, func(t *testing.T) {
			content, found := Read(t.Context(), &c.disk, first)
			if content != c.want || found != c.found {
				t.Errorf("got %s %q, want %s %q", content, found, c.want, c.found)
			}
		})
	}
}

func TestReadStopsWhenItsTimeIsOver(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if content, found := Read(ctx, &memory{size: 1 << 30}, first); content != policyv1alpha1.ContentUnreadable || !strings.Contains(found, "not read to its end") {
		t.Errorf("got %s %q", content, found)
	}
}

func TestASmallDiskIsReadWhole(t *testing.T) {
	for _, size := range []int64{page, endBytes, endBytes + page, 2 * endBytes, 3*endBytes + page, 2*endBytes + sampleBytes*sampleCount} {
		disk := &memory{size: size, read: map[int64]bool{}}
		Read(t.Context(), disk, first)
		if got := int64(len(disk.read)); got*page != size {
			t.Errorf("size %d: %d pages read", size, got)
		}
	}
}

func TestPlacesStayWithinTheDisk(t *testing.T) {
	last := func(n int64) int64 { return n - 1 }
	for _, size := range []int64{512, 4096 + 512, endBytes + 512, 64 << 20, 1<<30 + 512, 16 << 40} {
		for _, pick := range []func(int64) int64{first, last} {
			for _, p := range places(size, pick) {
				if p.offset < 0 || p.offset%page != 0 || p.length <= 0 || p.length > endBytes+page || p.offset+p.length > size {
					t.Errorf("size %d: %+v", size, p)
				}
			}
		}
	}
}
