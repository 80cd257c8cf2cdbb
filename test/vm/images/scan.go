// SPDX-License-Identifier: Apache-2.0

package images

import (
	"bytes"
	"errors"
	"io"
	"os"
)

// Scan reads every byte of a disk's image. It says whether the workload's marker is in it, and where the first byte is that is not
// zero; -1 where there is none.
func Scan(path string) (marked bool, firstUsed int64, err error) {
	file, err := os.Open(path)
	if err != nil {
		return false, 0, err
	}
	defer func() { _ = file.Close() }()
	const piece = 1 << 20
	zeros, buffer := make([]byte, piece), make([]byte, piece)
	firstUsed = -1
	for at := int64(0); ; at += piece {
		n, err := io.ReadFull(file, buffer)
		if !bytes.Equal(buffer[:n], zeros[:n]) {
			if firstUsed < 0 {
				firstUsed = at + int64(bytes.IndexFunc(buffer[:n], func(r rune) bool { return r != 0 }))
			}
			// The workload writes whole sectors, so no marker lies across two pieces.
			marked = marked || bytes.Contains(buffer[:n], []byte(Marker))
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return marked, firstUsed, nil
		}
		if err != nil {
			return marked, firstUsed, err
		}
	}
}
