// SPDX-License-Identifier: Apache-2.0

package metalprobe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

const (
	// eraseChunk is written at once; ctx is looked at in between.
	eraseChunk = 4 << 20
	// verifyChunk is read back at once.
	verifyChunk = 256 << 10
	// verifySamples is how many places between the ends are read back of a disk that is too big to read whole.
	verifySamples = 256
)

// blockDisk is a real disk, reached through its device file.
type blockDisk struct {
	info    policyv1alpha1.BlockDevice
	verdict Verdict
	// guard returns an error where the disk must not be written, asked anew before each erase.
	guard func() error
	// flags are added when the file is opened for writing. On a block device O_EXCL makes the kernel itself refuse a
	// disk that is mounted or mapped.
	flags int
}

// Disks lists what a wipe has to erase, and what it leaves alone because it is no fixed disk. A fixed disk that is refused,
// in use or not writable is to be erased as well, and its Erase fails: it may hold data.
func (h *Host) Disks(_ context.Context) (disks []Disk, skipped []policyv1alpha1.SkippedDisk, err error) {
	names, err := h.blockDevices()
	for _, name := range names {
		info, verdict := h.storage(name), h.judge(name)
		if verdict.Standing == DiskNotFixed {
			skipped = append(skipped, Skip(info, verdict))
			continue
		}
		disks = append(disks, &blockDisk{info: info, verdict: verdict, flags: os.O_EXCL, guard: func() error { return h.mayErase(info) }})
	}
	return disks, skipped, err
}

// mayErase refuses a disk that is not ours to erase or is in use, as the machine says it now.
func (h *Host) mayErase(info policyv1alpha1.BlockDevice) error {
	if !h.exists("sys/block/" + info.Name) {
		return errors.New("it is gone; check its cabling")
	}
	if use := h.InUse(info.Name); use != "" {
		return fmt.Errorf("%s; the agent must run from memory", use)
	}
	if verdict := h.judge(info.Name); verdict.Standing != DiskOurs {
		return errors.New(verdict.Reason)
	}
	return nil
}

// Info implements Disk.
func (d *blockDisk) Info() policyv1alpha1.BlockDevice { return d.info }

// Verdict implements Disk.
func (d *blockDisk) Verdict() Verdict { return d.verdict }

// Erase implements Disk. It asks the disk to discard everything, securely where it can, which also reaches spare
// blocks; then, because a discard promises nothing, it overwrites every byte with zeros.
func (d *blockDisk) Erase(ctx context.Context) (method string, err error) {
	if err := d.guard(); err != nil {
		return "", fmt.Errorf("%s not erased: %w", d.info.Path, err)
	}
	file, size, err := d.open(os.O_RDWR | d.flags)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	method = "zero"
	if !d.verdict.OverwriteOnly {
		if how := discard(file, size); how != "" {
			method = how + "+zero"
		}
	}
	if err := overwrite(ctx, file, size); err != nil {
		return method, fmt.Errorf("%s: overwriting with zeros: %w", d.info.Path, err)
	}
	if err := file.Sync(); err != nil {
		return method, fmt.Errorf("%s: flushing: %w", d.info.Path, err)
	}
	return method, nil
}

// Verify implements Disk. It reads both ends and random places between them; a small disk it reads whole.
func (d *blockDisk) Verify(ctx context.Context) (err error) {
	file, size, err := d.open(os.O_RDONLY)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	dropCache(file)
	for _, offset := range sampleOffsets(size, rand.Int64N) {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("%s: reading back: %w", d.info.Path, err)
		}
		if err := onlyZeros(file, offset, min(verifyChunk, size-offset)); err != nil {
			return fmt.Errorf("%s: %w", d.info.Path, err)
		}
	}
	return nil
}

func (d *blockDisk) open(flags int) (file *os.File, size int64, err error) {
	if file, err = os.OpenFile(d.info.Path, flags, 0); err != nil {
		return nil, 0, err
	}
	if size, err = file.Seek(0, io.SeekEnd); err == nil && size <= 0 {
		err = fmt.Errorf("%s: its size is not known", d.info.Path)
	}
	if err != nil {
		return nil, 0, errors.Join(err, file.Close())
	}
	return file, size, nil
}

func overwrite(ctx context.Context, file io.WriterAt, size int64) error {
	zeros := make([]byte, eraseChunk)
	for offset := int64(0); offset < size; offset += eraseChunk {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("stopped at byte %d of %d: %w", offset, size, err)
		}
		if _, err := file.WriteAt(zeros[:min(eraseChunk, size-offset)], offset); err != nil {
			return err
		}
	}
	return nil
}

// sampleOffsets picks where to read back: everything where that is little, else both ends and one random place in each
// of verifySamples stripes. pick(n) gives a number below n.
func sampleOffsets(size int64, pick func(n int64) int64) []int64 {
	var offsets []int64
	if size <= verifyChunk*(verifySamples+2) {
		for offset := int64(0); offset < size; offset += verifyChunk {
			offsets = append(offsets, offset)
		}
		return offsets
	}
	stripe := size / verifySamples
	offsets = append(offsets, 0)
	for i := range int64(verifySamples) {
		offsets = append(offsets, i*stripe+pick(stripe-verifyChunk+1))
	}
	return append(offsets, size-verifyChunk)
}

func onlyZeros(file io.ReaderAt, offset, length int64) error {
	chunk := make([]byte, length)
	if _, err := file.ReadAt(chunk, offset); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("reading back at byte %d: %w", offset, err)
	}
	for i, b := range chunk {
		if b != 0 {
			return fmt.Errorf("data was found at byte %d after the erase; the disk does not keep what is written to it", offset+int64(i))
		}
	}
	return nil
}
