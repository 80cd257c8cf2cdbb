// SPDX-License-Identifier: Apache-2.0

package erasure

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// Medium is a disk that was opened exclusively for writing. Reads and writes go past the page cache: offsets and lengths that this
// package uses are multiples of Block, and its buffers begin at a page.
type Medium interface {
	io.ReaderAt
	io.WriterAt
	// Size is the capacity in bytes.
	Size() int64
	// Flush makes the disk store what was written.
	Flush() error
	// Discard tells the disk that nothing on it is needed any more. A disk that knows no discard returns an error.
	Discard(secure bool) error
}

const (
	// Block is what offsets and lengths are multiples of, except at the end of a disk with smaller sectors.
	Block = 4096
	// eraseChunk is written at once; ctx is looked at in between.
	eraseChunk = 4 << 20
	// errorPiece is written at once to find the place of an error.
	errorPiece = 64 << 10
	// verifyChunk is read back at once.
	verifyChunk = 256 << 10
	// verifySamples is how many places between the ends are read back of a disk that is too big to read whole.
	verifySamples = 256
)

// overwrite writes zeros to every byte and flushes. An error names the place.
func overwrite(ctx context.Context, disk Medium, progress func(done int64)) error {
	zeros, free, err := buffer(eraseChunk)
	if err != nil {
		return err
	}
	defer free()
	size := disk.Size()
	for offset := int64(0); offset < size; offset += eraseChunk {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("stopped at byte %d of %d: %w", offset, size, context.Cause(ctx))
		}
		if err := writeZeros(disk, zeros[:min(eraseChunk, size-offset)], offset); err != nil {
			return err
		}
		progress(min(size, offset+eraseChunk))
	}
	if err := disk.Flush(); err != nil {
		return fmt.Errorf("flushing: %w; replace the disk", err)
	}
	return nil
}

// writeZeros writes a chunk. Where that fails it writes the chunk again in pieces, to name the place, or to get past an error that does
// not come again.
func writeZeros(disk Medium, zeros []byte, offset int64) error {
	if _, err := disk.WriteAt(zeros, offset); err == nil {
		return nil
	}
	for begin := 0; begin < len(zeros); begin += errorPiece {
		piece := zeros[begin:min(len(zeros), begin+errorPiece)]
		if n, err := disk.WriteAt(piece, offset+int64(begin)); err != nil {
			return fmt.Errorf("writing at byte %d of %d: %w; replace the disk", offset+int64(begin+n), disk.Size(), err)
		}
	}
	return nil
}

// readZeros reads both ends and random places between them, a small disk whole, and fails at the first byte that is not zero.
func readZeros(ctx context.Context, disk Medium, pick func(n int64) int64) (read int64, err error) {
	chunk, free, err := buffer(verifyChunk)
	if err != nil {
		return 0, err
	}
	defer free()
	size := disk.Size()
	for _, offset := range sampleOffsets(size, verifyChunk, pick) {
		if err := ctx.Err(); err != nil {
			return read, fmt.Errorf("reading back: %w", context.Cause(ctx))
		}
		part := chunk[:min(verifyChunk, size-offset)]
		if err := readFull(disk, part, offset); err != nil {
			return read, err
		}
		read += int64(len(part))
		for i, b := range part {
			if b != 0 {
				return read, fmt.Errorf("data was found at byte %d after the erase; the disk does not keep what is written to it", offset+int64(i))
			}
		}
	}
	return read, nil
}

func readFull(disk io.ReaderAt, part []byte, offset int64) error {
	n, err := disk.ReadAt(part, offset)
	if n == len(part) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("reading back at byte %d: %w", offset+int64(n), err)
}

// sampleOffsets picks where to read: everything where that is little, else both ends and one random place in each of
// verifySamples stripes. pick(n) gives a number below n.
func sampleOffsets(size, chunk int64, pick func(n int64) int64) []int64 {
	var offsets []int64
	if size <= chunk*(verifySamples+2) {
		for offset := int64(0); offset < size; offset += chunk {
			offsets = append(offsets, offset)
		}
		return offsets
	}
	stripe := size / verifySamples
	offsets = append(offsets, 0)
	for i := range int64(verifySamples) {
		offsets = append(offsets, (i*stripe+pick(stripe-chunk+1))/Block*Block)
	}
	return append(offsets, size-chunk)
}
