// SPDX-License-Identifier: Apache-2.0

package erasure

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
)

const (
	// endBytes is what is searched for signatures at each end.
	endBytes = 1 << 20
	// maxSamples bounds the samples, so that a small disk is not read whole.
	maxSamples = verifySamples + 2
)

// sample is one block of a disk before a drive erases it.
type sample struct {
	offset int64
	length int
	sum    [sha256.Size]byte
}

// takeSamples reads blocks at both ends and at random places. A block that holds one byte value throughout could be the same
// before and after an erase, so it is filled with random bytes first: the disk is about to be erased anyway. So is a block that cannot be
// read, as after an erase that was cut off: what cannot be written either fails the disk.
func takeSamples(ctx context.Context, disk Medium, pick func(n int64) int64) ([]sample, error) {
	block, free, err := buffer(Block)
	if err != nil {
		return nil, err
	}
	defer free()
	size := disk.Size()
	var samples []sample
	for _, offset := range sparse(sampleOffsets(size, Block, pick)) {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("taking samples: %w", context.Cause(ctx))
		}
		part := block[:min(Block, size-offset)]
		if err := readFull(disk, part, offset); err != nil || constant(part) {
			_, _ = rand.Read(part) // never fails
			if _, err := disk.WriteAt(part, offset); err != nil {
				return nil, fmt.Errorf("writing a sample at byte %d: %w; replace the disk", offset, err)
			}
		}
		samples = append(samples, sample{offset: offset, length: len(part), sum: sha256.Sum256(part)})
	}
	if err := disk.Flush(); err != nil {
		return nil, fmt.Errorf("flushing the samples: %w; replace the disk", err)
	}
	return samples, nil
}

// sparse keeps at most maxSamples of the offsets, the first and the last among them.
func sparse(offsets []int64) []int64 {
	if len(offsets) <= maxSamples {
		return offsets
	}
	var kept []int64
	for i := range maxSamples {
		kept = append(kept, offsets[i*(len(offsets)-1)/(maxSamples-1)])
	}
	return kept
}

// constant says whether all bytes are the same.
func constant(part []byte) bool {
	return len(part) == 0 || bytes.Count(part, part[:1]) == len(part)
}

// samplesGone reads the samples again, and both ends for signatures. zeros says that it read nothing but zeros.
func samplesGone(ctx context.Context, disk Medium, samples []sample) (read int64, zeros bool, err error) {
	block, free, err := buffer(endBytes + Block) // the last end begins at a block
	if err != nil {
		return 0, false, err
	}
	defer free()
	zeros = true
	found := 0
	for _, s := range samples {
		if err := ctx.Err(); err != nil {
			return read, false, fmt.Errorf("reading the samples again: %w", context.Cause(ctx))
		}
		part := block[:s.length]
		if err := readFull(disk, part, s.offset); err != nil {
			return read, false, err
		}
		read += int64(len(part))
		if sha256.Sum256(part) == s.sum {
			found++
		}
		zeros = zeros && part[0] == 0 && constant(part)
	}
	if found > 0 {
		return read, false, fmt.Errorf("%d of %d samples from before the erase were found again", found, len(samples))
	}
	size := disk.Size()
	tail := max(0, size-endBytes) / Block * Block
	for _, end := range []struct{ offset, length int64 }{{0, min(endBytes, size)}, {tail, size - tail}} {
		offset, part := end.offset, block[:end.length]
		if err := readFull(disk, part, offset); err != nil {
			return read, false, err
		}
		read += int64(len(part))
		zeros = zeros && part[0] == 0 && constant(part)
		if name := Signature(part, offset == 0); name != "" {
			return read, false, fmt.Errorf("a signature of %s was found after the erase", name)
		}
	}
	return read, zeros, nil
}

// signatures are what file systems, partition tables and volume managers write at fixed places from the begin of a disk.
var signatures = []struct {
	offset int
	magic  string
	name   string
}{
	{0x200, "EFI PART", "GPT"}, {0x1000, "EFI PART", "GPT"},
	{0, "XFSB", "XFS"}, {0x10040, "_BHRfS_M", "Btrfs"}, {0, "LUKS\xba\xbe", "LUKS"},
	{0x18, "LVM2 001", "LVM"}, {0x218, "LVM2 001", "LVM"}, {0x418, "LVM2 001", "LVM"}, {0x618, "LVM2 001", "LVM"},
	{0, "\xfc\x4e\x2b\xa9", "md"}, {0x1000, "\xfc\x4e\x2b\xa9", "md"}, {3, "NTFS    ", "NTFS"}, {0x8001, "CD001", "ISO 9660"},
	{0xff6, "SWAPSPACE2", "swap"}, {0x52, "FAT32   ", "FAT"}, {0x36, "FAT16   ", "FAT"},
}

// Signature names the file system, partition table or volume manager whose mark stands in one end of a disk: its first or its last
// bytes. Empty means that none was found.
func Signature(part []byte, begin bool) string {
	if !begin {
		return tailSignature(part)
	}
	for _, s := range signatures {
		if len(part) >= s.offset+len(s.magic) && string(part[s.offset:s.offset+len(s.magic)]) == s.magic {
			return s.name
		}
	}
	switch {
	case isMBR(part):
		return "MBR"
	case isExt(part):
		return "ext2, ext3 or ext4"
	}
	return ""
}

// tailSignature knows the backup header of GPT, which is in the last sector of 512 or 4096 bytes, and md's superblocks of formats
// 0.90 and 1.0. The part begins at a block of the disk.
func tailSignature(part []byte) string {
	for _, sector := range []int{512, Block} {
		if len(part) >= sector && bytes.HasPrefix(part[len(part)-sector:], []byte("EFI PART")) {
			return "GPT"
		}
	}
	for offset := len(part)/Block*Block - Block; offset >= max(0, len(part)-(128<<10)); offset -= Block {
		if bytes.HasPrefix(part[offset:], []byte("\xfc\x4e\x2b\xa9")) {
			return "md"
		}
	}
	return ""
}

// isMBR wants the mark and four entries with valid flags, one of them used: the mark alone is two bytes, which chance writes.
func isMBR(part []byte) bool {
	if len(part) < 512 || part[510] != 0x55 || part[511] != 0xaa {
		return false
	}
	used := false
	for entry := 446; entry < 510; entry += 16 {
		if part[entry]&0x7f != 0 {
			return false
		}
		used = used || part[entry+4] != 0
	}
	return used
}

// isExt wants the mark, and a state and a block size that exist.
func isExt(part []byte) bool {
	const super = 1024
	if len(part) < super+0x40 || binary.LittleEndian.Uint16(part[super+0x38:]) != 0xef53 {
		return false
	}
	return binary.LittleEndian.Uint16(part[super+0x3a:]) <= 7 && binary.LittleEndian.Uint32(part[super+0x18:]) <= 6
}
