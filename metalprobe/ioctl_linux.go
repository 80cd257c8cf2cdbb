// SPDX-License-Identifier: Apache-2.0

package metalprobe

import (
	"os"
	"syscall"
	"unsafe"
)

// Requests of linux/fs.h.
const (
	blkDiscard       = 0x1277
	blkSecureDiscard = 0x127d
	blkFlushBuffers  = 0x1261
)

// discard tells the disk that nothing on it is needed any more, and says how. Empty means that the disk, or the file,
// knows no discard.
func discard(file *os.File, size int64) string {
	span := [2]uint64{0, uint64(size)}
	argument := unsafe.Pointer(&span) //nolint:gosec // ioctl takes the address of the span, which outlives both calls
	if ioctl(file, blkSecureDiscard, argument) == 0 {
		return "secure-discard"
	}
	if ioctl(file, blkDiscard, argument) == 0 {
		return "discard"
	}
	return ""
}

// dropCache makes what is read next come from the disk. Where the kernel cannot (a regular file) it changes nothing.
func dropCache(file *os.File) {
	_ = ioctl(file, blkFlushBuffers, nil)
}

func ioctl(file *os.File, request uintptr, argument unsafe.Pointer) syscall.Errno {
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, file.Fd(), request, uintptr(argument))
	return errno
}
