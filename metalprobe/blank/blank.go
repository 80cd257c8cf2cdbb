// SPDX-License-Identifier: Apache-2.0

// Package blank reads whether a disk holds data. It never writes. A disk counts as blank when both ends and samples between them hold
// nothing but zeros, or nothing but ones: data that stands only between the samples is not found.
package blank

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"unsafe"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/metalprobe/erasure"
)

const (
	// endBytes is what is read at each end; all signatures that are known stand there.
	endBytes = 1 << 20
	// sampleBytes is read at once between the ends, and sampleCount is how often.
	sampleBytes = 64 << 10
	sampleCount = 256
	// page is what reads past the page cache are aligned to.
	page = 4096
)

// Medium is a disk that can be read.
type Medium interface {
	io.ReaderAt
	Size() int64
}

// Read says what a disk holds, and where data was found or could not be read. It reads at most 18 MiB. pick(n) gives a number below n.
func Read(ctx context.Context, disk Medium, pick func(n int64) int64) (content policyv1alpha1.DiskContent, found string) {
	buffer := aligned(endBytes + page) // the last place begins at a page
	for _, p := range places(disk.Size(), pick) {
		if err := ctx.Err(); err != nil {
			return policyv1alpha1.ContentUnreadable, fmt.Sprintf("not read to its end: %v", context.Cause(ctx))
		}
		part := buffer[:p.length]
		if n, err := disk.ReadAt(part, p.offset); n < len(part) {
			if err == nil || errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return policyv1alpha1.ContentUnreadable, fmt.Sprintf("reading at byte %d: %v", p.offset+int64(n), err)
		}
		if at := firstData(part); at >= 0 {
			return policyv1alpha1.ContentData, describe(p, part, at)
		}
	}
	return policyv1alpha1.ContentBlank, ""
}

// ReadDisk reads whether a disk of this machine holds data, and where.
func ReadDisk(ctx context.Context, path string) (content policyv1alpha1.DiskContent, found string) {
	disk, err := erasure.Open(path, os.O_RDONLY)
	if err != nil {
		return policyv1alpha1.ContentUnreadable, err.Error()
	}
	defer func() { _ = disk.Close() }() // nothing was written
	return Read(ctx, disk, rand.Int64N)
}

// place is what is read at once.
type place struct {
	offset, length int64
	// begin and end say that the place is an end of the disk.
	begin, end bool
}

// places lists both ends, and one random place in each stripe between them; all of a disk that is smaller than that.
func places(size int64, pick func(n int64) int64) []place {
	tail := max(0, size-endBytes) / page * page
	list := []place{{offset: 0, length: min(size, endBytes), begin: true, end: size <= endBytes}}
	if !list[0].end {
		list = append(list, place{offset: tail, length: size - tail, end: true})
	}
	middle := tail - endBytes
	if middle <= sampleBytes*sampleCount {
		for offset := int64(endBytes); offset < tail; offset += endBytes {
			list = append(list, place{offset: offset, length: min(endBytes, tail-offset)})
		}
		return list
	}
	stripe := middle / sampleCount
	for i := range int64(sampleCount) {
		offset := (endBytes + i*stripe + pick(stripe-sampleBytes+1)) / page * page
		list = append(list, place{offset: offset, length: sampleBytes})
	}
	return list
}

// firstData finds the first byte that differs from the first of a part that should hold nothing but zeros or ones; -1 is none.
func firstData(part []byte) int {
	if len(part) == 0 || bytes.Count(part, part[:1]) == len(part) && (part[0] == 0 || part[0] == 0xff) {
		return -1
	}
	if part[0] != 0 && part[0] != 0xff {
		return 0
	}
	for i, b := range part {
		if b != part[0] {
			return i
		}
	}
	return 0 // one byte value throughout, which is neither
}

// describe names what was found: a signature where one is known.
func describe(p place, part []byte, at int) string {
	var name string
	if p.begin {
		name = signature(part)
	}
	if name == "" && p.end {
		name = erasure.Signature(part, false)
	}
	switch {
	case name != "" && p.begin:
		return name + " at the begin"
	case name != "":
		return name + " at the end"
	}
	return fmt.Sprintf("data at byte %d", p.offset+int64(at))
}

// signature knows what erasure knows, and what only a reader of whole disks meets.
func signature(part []byte) string {
	const (
		bcacheMagic = "\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81"
		bcacheAt    = 0x1018
		// The uberblocks of ZFS begin at 128 KiB; each holds this number first, in the byte order of the host that wrote it.
		uberblocks, uberblock = 128 << 10, 1 << 10
	)
	if name := erasure.Signature(part, true); name != "" {
		return name
	}
	if len(part) >= bcacheAt+len(bcacheMagic) && string(part[bcacheAt:bcacheAt+len(bcacheMagic)]) == bcacheMagic {
		return "bcache"
	}
	for at := uberblocks; at+8 <= len(part) && at < 2*uberblocks; at += uberblock {
		if word := string(part[at : at+8]); word == "\x0c\xb1\xba\x00\x00\x00\x00\x00" || word == "\x00\x00\x00\x00\x00\xba\xb1\x0c" {
			return "ZFS"
		}
	}
	return ""
}

// aligned gives memory that begins at a page, as reads past the page cache need it.
func aligned(size int) []byte {
	memory := make([]byte, size+page)
	skip := page - int(uintptr(unsafe.Pointer(&memory[0]))%page) //nolint:gosec // only the address is looked at
	return memory[skip : skip+size]
}
