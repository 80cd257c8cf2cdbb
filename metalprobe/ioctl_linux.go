// SPDX-License-Identifier: Apache-2.0

package metalprobe

import (
	"os"
	"syscall"
	"unsafe"
)

func ioctl(file *os.File, request uintptr, argument unsafe.Pointer) syscall.Errno {
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, file.Fd(), request, uintptr(argument))
	return errno
}
