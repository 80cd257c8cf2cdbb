// SPDX-License-Identifier: Apache-2.0

package erasure

import (
	"errors"
	"fmt"
	"syscall"
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
	//nolint:gosec // ioctl takes the address of the span, which outlives the call
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, d.file.Fd(), request, uintptr(unsafe.Pointer(&span)))
	switch {
	case errno == 0:
		return nil
	case errno == unix.ENOTTY, errno == unix.EINVAL, errno == unix.EOPNOTSUPP: // a regular file; a disk without it
		return fmt.Errorf("%w: %w", errors.ErrUnsupported, errno)
	}
	return errno
}

// dropCache makes what is read next come from the disk. Where the kernel cannot (a regular file) it changes nothing.
func (d *Disk) dropCache() {
	_, _, _ = syscall.Syscall(syscall.SYS_IOCTL, d.file.Fd(), unix.BLKFLSBUF, 0)
}
