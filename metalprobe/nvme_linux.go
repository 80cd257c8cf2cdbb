// SPDX-License-Identifier: Apache-2.0

package metalprobe

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"unsafe"

	"github.com/metalaw/metalaw/metalprobe/drive"
	"github.com/metalaw/metalaw/metalprobe/erasure"
)

// Requests of linux/nvme_ioctl.h, and what the NVMe specification says of Identify.
const (
	nvmeIoctlID       = 0x4e40
	nvmeIoctlAdmin    = 0xc0484e41
	nvmeIoctlIO       = 0xc0484e43
	nvmeReport        = 0x0e // Reservation Report
	nvmeIdentify      = 0x06
	identifyNamespace = 0
	identifyDrive     = 1
	identifyTimeout   = 10_000 // milliseconds
)

// nvmeCommand is struct nvme_passthru_cmd of linux/nvme_ioctl.h.
type nvmeCommand struct {
	opcode, _  uint8
	_          uint16
	nsid       uint32
	_, _       uint32
	_          uint64
	address    uint64
	_          uint32
	length     uint32
	cdw10      uint32
	cdw11      uint32
	_          [4]uint32
	timeout, _ uint32
}

// SharingOf asks the drive whether other hosts may use a namespace, because /sys does not say. It only reads.
func SharingOf(name string) NVMeSharing {
	file, err := os.Open("/dev/" + filepath.Base(name))
	if err != nil {
		return SharingUnknown
	}
	defer func() { _ = file.Close() }() // nothing was written
	nsid, _, errno := syscall.Syscall(syscall.SYS_IOCTL, file.Fd(), nvmeIoctlID, 0)
	if errno != 0 {
		return SharingUnknown
	}
	controller, namespace := identify(file, 0, identifyDrive), identify(file, uint32(nsid), identifyNamespace)
	if controller == nil || namespace == nil {
		return SharingUnknown
	}
	return sharing(controller[cmicByte], namespace[nmicByte])
}

// identify gives one page of what a drive says of itself; nil where it does not answer.
func identify(file *os.File, nsid, what uint32) *[4096]byte {
	var page [4096]byte
	var pinner runtime.Pinner
	pinner.Pin(&page)
	defer pinner.Unpin()
	command := nvmeCommand{opcode: nvmeIdentify, nsid: nsid, cdw10: what, length: uint32(len(page)), timeout: identifyTimeout,
		address: uint64(uintptr(unsafe.Pointer(&page)))} //nolint:gosec // the kernel writes to the page, which is pinned
	if ioctl(file, nvmeIoctlAdmin, unsafe.Pointer(&command)) != 0 { //nolint:gosec // ioctl takes the address of the command
		return nil
	}
	return &page
}

// reservationReport reads who holds a namespace, with host identifiers of 64 or of 128 bits.
func reservationReport(name string, long bool, page []byte) error {
	file, err := os.Open("/dev/" + filepath.Base(name))
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // nothing was written
	nsid, _, errno := syscall.Syscall(syscall.SYS_IOCTL, file.Fd(), nvmeIoctlID, 0)
	if errno != 0 {
		return errno
	}
	var pinner runtime.Pinner
	pinner.Pin(&page[0])
	defer pinner.Unpin()
	command := nvmeCommand{opcode: nvmeReport, nsid: uint32(nsid), cdw10: uint32(len(page)/4 - 1), length: uint32(len(page)),
		timeout: identifyTimeout, address: uint64(uintptr(unsafe.Pointer(&page[0])))} //nolint:gosec // the kernel writes to the page, which is pinned
	if long {
		command.cdw11 = 1
	}
	//nolint:gosec // ioctl takes the address of the command
	status, _, errno := syscall.Syscall(syscall.SYS_IOCTL, file.Fd(), nvmeIoctlIO, uintptr(unsafe.Pointer(&command)))
	switch {
	case errno != 0:
		return errno
	case status != 0:
		return fmt.Errorf("NVMe status %#x", status)
	}
	return nil
}

// controllerOnly sends a controller the commands that concern no namespace.
type controllerOnly struct {
	erasure.Commands
	file *os.File
}

// NVMe implements erasure.Commands for Identify, which is all that is asked of a controller.
func (c controllerOnly) NVMe(command erasure.NVMeCommand) (uint32, error) {
	page := identify(c.file, command.NSID, command.CDW10)
	if page == nil || command.Opcode != nvmeIdentify {
		return 0, errNoAnswer
	}
	copy(command.Data, page[:])
	return 0, nil
}

// NamespacesOf lists the namespaces of an NVMe controller of this machine: those that are allocated, and those that it shows.
func NamespacesOf(controller string) (allocated, active []uint32, err error) {
	file, err := os.Open("/dev/" + filepath.Base(controller))
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = file.Close() }() // nothing was written
	return drive.Namespaces(controllerOnly{file: file})
}
