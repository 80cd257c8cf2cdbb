// SPDX-License-Identifier: Apache-2.0

package erasure

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// buffer gives memory that begins at a page, as reads and writes past the page cache need it.
func buffer(size int) (memory []byte, free func(), err error) {
	memory, err = unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, nil, fmt.Errorf("%d bytes of memory: %w", size, err)
	}
	return memory, func() { _ = unix.Munmap(memory) }, nil
}
