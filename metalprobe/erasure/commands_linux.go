// SPDX-License-Identifier: Apache-2.0

package erasure

import (
	"fmt"
	"runtime"
	"syscall"
	"time"
	"unsafe"
)

// Requests of linux/nvme_ioctl.h and scsi/sg.h.
const (
	nvmeIoctlID    = 0x4e40
	nvmeIoctlAdmin = 0xc0484e41
	sgIO           = 0x2285

	sgNone       = -1
	sgToDevice   = -2
	sgFromDevice = -3
	senseLength  = 64
)

// nvmePassthrough is struct nvme_passthru_cmd.
type nvmePassthrough struct {
	opcode, _       uint8
	_               uint16
	nsid            uint32
	_, _            uint32
	_               uint64
	address         uint64
	_               uint32
	length          uint32
	cdw10, cdw11    uint32
	_               [4]uint32
	timeout, result uint32
}

// sgHeader is struct sg_io_hdr.
type sgHeader struct {
	interfaceID, direction                int32
	commandLength, maxSense               uint8
	_                                     uint16
	length                                uint32
	data, command, sense                  unsafe.Pointer
	timeout, _                            uint32
	_                                     int32
	_                                     unsafe.Pointer
	status, masked, message, senseWritten uint8
	hostStatus, driverStatus              uint16
	residual                              int32
	duration, info                        uint32
}

func (d *Disk) ioctl(request uintptr, argument unsafe.Pointer) (result uintptr, err error) {
	result, _, errno := syscall.Syscall(syscall.SYS_IOCTL, d.file.Fd(), request, uintptr(argument))
	if errno != 0 {
		return 0, errno
	}
	return result, nil
}

// NamespaceID implements Commands.
func (d *Disk) NamespaceID() (uint32, error) {
	nsid, err := d.ioctl(nvmeIoctlID, nil)
	return uint32(nsid), err
}

// NVMe implements Commands.
func (d *Disk) NVMe(c NVMeCommand) (uint32, error) {
	passthrough := &nvmePassthrough{opcode: c.Opcode, nsid: c.NSID, cdw10: c.CDW10, cdw11: c.CDW11, timeout: milliseconds(c.Timeout)}
	var pinner runtime.Pinner
	defer pinner.Unpin()
	if len(c.Data) > 0 {
		pinner.Pin(&c.Data[0])
		passthrough.address, passthrough.length = uint64(uintptr(unsafe.Pointer(&c.Data[0]))), uint32(len(c.Data)) //nolint:gosec // pinned
	}
	status, err := d.ioctl(nvmeIoctlAdmin, unsafe.Pointer(passthrough)) //nolint:gosec // ioctl takes the address of the command
	if err == nil && status != 0 {
		err = fmt.Errorf("NVMe status %#x", status)
	}
	return passthrough.result, err
}

// SCSI implements Commands.
func (d *Disk) SCSI(c SCSICommand) ([]byte, error) {
	sense := make([]byte, senseLength)
	header := &sgHeader{interfaceID: 'S', direction: sgNone, commandLength: uint8(len(c.CDB)), maxSense: senseLength}
	header.timeout = milliseconds(c.Timeout)
	var pinner runtime.Pinner
	defer pinner.Unpin()
	pin := func(part []byte) unsafe.Pointer {
		pinner.Pin(&part[0])
		return unsafe.Pointer(&part[0]) //nolint:gosec // the kernel reads or writes the part, which is pinned
	}
	header.command, header.sense = pin(c.CDB), pin(sense)
	switch {
	case len(c.In) > 0:
		header.direction, header.length, header.data = sgFromDevice, uint32(len(c.In)), pin(c.In)
	case len(c.Out) > 0:
		header.direction, header.length, header.data = sgToDevice, uint32(len(c.Out)), pin(c.Out)
	}
	if _, err := d.ioctl(sgIO, unsafe.Pointer(header)); err != nil { //nolint:gosec // ioctl takes the address of the header
		return nil, err
	}
	sense = sense[:min(len(sense), int(header.senseWritten))]
	return sense, scsiAnswer(header.status, header.hostStatus, header.driverStatus, sense)
}

// ATA implements Commands.
func (d *Disk) ATA(c ATACommand) (ATAResult, error) {
	sense, err := d.SCSI(SCSICommand{CDB: ataCDB(c), In: c.In, Out: c.Out, Timeout: c.Timeout})
	return ataAnswer(c, sense, err)
}

// milliseconds bounds a time to what the kernel takes.
func milliseconds(d time.Duration) uint32 {
	return uint32(min(d.Milliseconds(), 1<<31-1))
}
