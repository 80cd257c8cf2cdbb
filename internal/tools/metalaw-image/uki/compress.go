// SPDX-License-Identifier: Apache-2.0

package uki

import (
	"fmt"

	"github.com/klauspost/compress/zstd"
)

// Zstd compresses an initramfs as Linux reads it. The same input gives the same bytes, whatever the number of cores.
func Zstd(content []byte) ([]byte, error) {
	encoder, err := zstd.NewWriter(nil,
		zstd.WithEncoderLevel(zstd.SpeedBetterCompression), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(8<<20))
	if err != nil {
		return nil, fmt.Errorf("compressing an initramfs: %w", err)
	}
	out := encoder.EncodeAll(content, nil)
	return out, encoder.Close()
}
