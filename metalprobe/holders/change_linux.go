// SPDX-License-Identifier: Apache-2.0

package holders

import (
	"fmt"
	"os"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// dmDeviceRemove is DM_DEV_REMOVE of linux/dm-ioctl.h.
const dmDeviceRemove = 0xc138fd04

// dmRequest is struct dm_ioctl of linux/dm-ioctl.h.
type dmRequest struct {
	version             [3]uint32
	dataSize, dataStart uint32
	targets             uint32
	opened              int32
	flags, event, _     uint32
	device              uint64
	name                [128]byte
	uuid                [129]byte
	_                   [7]byte
}

// Kernel changes the kernel of this machine.
type Kernel struct{}

// Write implements Changer.
func (Kernel) Write(name, value string) error {
	file, err := os.OpenFile("/"+strings.TrimPrefix(name, "/"), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteString(value)
	if closed := file.Close(); err == nil {
		err = closed
	}
	return err
}

// RemoveMapping implements Changer.
func (Kernel) RemoveMapping(name string) error {
	request := dmRequest{version: [3]uint32{4, 0, 0}}
	if len(name) >= len(request.name) {
		return fmt.Errorf("mapping %.64q: its name is too long", name)
	}
	request.dataSize = uint32(unsafe.Sizeof(request))
	copy(request.name[:], name)
	control, err := os.OpenFile("/dev/mapper/control", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { _ = control.Close() }() // the kernel has done what it was asked, or said why not
	//nolint:gosec // ioctl takes the address of the request, which outlives the call
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, control.Fd(), dmDeviceRemove,
		uintptr(unsafe.Pointer(&request))); errno != 0 {
		return errno
	}
	return nil
}
