// SPDX-License-Identifier: Apache-2.0

package erasure

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// goDirect makes reads and writes go past the page cache. Where a file system does not offer that, nothing changes.
func (d *Disk) goDirect() {
	flags, err := unix.FcntlInt(d.file.Fd(), unix.F_GETFL, 0)
	if err == nil {
		_, _ = unix.FcntlInt(d.file.Fd(), unix.F_SETFL, flags|unix.O_DIRECT)
	}
}

// Discard implements Medium.
func (d *Disk) Discard(secure bool) error {
	request := uintptr(unix.BLKDISCARD)
	if secure {
		request = unix.BLKSECDISCARD
	}
	span := [2]uint64{0, uint64(d.size)}
	_, err := d.ioctl(request, unsafe.Pointer(&span))               //nolint:gosec // ioctl takes the address of the span, which outlives the call
	if errors.Is(err, unix.ENOTTY) || errors.Is(err, unix.EINVAL) { // a regular file; a disk that takes none of this size
		return fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
	}
	return err
}

// dropCache makes what is read next come from the disk. Where the kernel cannot (a regular file) it changes nothing.
func (d *Disk) dropCache() {
	_, _ = d.ioctl(unix.BLKFLSBUF, nil)
}

// nonBlocking lets a disk be opened whose medium is not ready.
const nonBlocking = unix.O_NONBLOCK
