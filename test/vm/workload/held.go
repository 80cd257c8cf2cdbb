// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// heldDrivers put a RAID array and a mapping on a disk.
var heldDrivers = []string{"virtio_pci", "virtio_blk", "raid1", "dm_mod"}

// Requests of linux/raid/md_u.h and linux/dm-ioctl.h.
const (
	mdSetArrayInfo  = 0x40480923
	mdAddNewDisk    = 0x40140921
	mdRunArray      = 0x400c0930
	dmDeviceCreate  = 0xc138fd03
	dmTableLoad     = 0xc138fd09
	dmDeviceSuspend = 0xc138fd06
	dmSize          = 312
)

// holdByArray puts a RAID array of one disk on the machine's virtio disk, and a mapping on the array. Then it becomes
// the agent.
func holdByArray(console func(string, ...any)) {
	if err := errors.Join(prepare(heldDrivers), array("/dev/vda", "/dev/md0"), mapping("/dev/md0",
		"tenant")); err != nil {
		console("failed: %v", err)
	} else {
		console("a mapping on an array holds the disk")
	}
	becomeAgent(console)
}

// array builds a RAID array without a superblock.
func array(disk, device string) error {
	held, err := waitFor(disk)
	if err != nil {
		return err
	}
	if err := unix.Mknod(device, unix.S_IFBLK|0o600, int(unix.Mkdev(9, 0))); err != nil && !errors.Is(err,
		unix.EEXIST) {
		return fmt.Errorf("mknod %s: %w", device, err)
	}
	md, err := os.OpenFile(device, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { _ = md.Close() }()
	// struct mdu_array_info_s: version 0.90, level 1 with one disk, not persistent.
	info := [18]int32{4: 1, 6: 1, 7: 1, 9: 1}
	info[1] = 90
	// struct mdu_disk_info_s: number, major, minor, place, and the state active and in sync.
	member := [5]int32{0, int32(unix.Major(held)), int32(unix.Minor(held)), 0, 1<<1 | 1<<2}
	var run [3]int32
	for _, step := range []struct {
		request uintptr
		data    unsafe.Pointer
	}{
		{mdSetArrayInfo, unsafe.Pointer(&info)}, //nolint:gosec // the kernel takes a pointer
		{mdAddNewDisk, unsafe.Pointer(&member)}, //nolint:gosec // the same
		{mdRunArray, unsafe.Pointer(&run)},      //nolint:gosec // the same
	} {
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, md.Fd(), step.request, uintptr(step.data)); errno != 0 {
			return fmt.Errorf("RAID request %#x: %w", step.request, errno)
		}
	}
	return nil
}

// mapping maps the whole of a device.
func mapping(device, name string) error {
	below, err := waitFor(device)
	if err != nil {
		return err
	}
	disk, err := os.Open(device)
	if err != nil {
		return err
	}
	size, err := disk.Seek(0, 2)
	if err := errors.Join(err, disk.Close()); err != nil {
		return err
	}
	control, err := os.OpenFile("/dev/mapper/control", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { _ = control.Close() }()
	// struct dm_target_spec: the whole, of type linear, and its parameters.
	spec := make([]byte, 40)
	binary.LittleEndian.PutUint64(spec[8:], uint64(size/sector))
	copy(spec[24:], "linear")
	target := slices.Concat(spec, fmt.Appendf(nil, "%d:%d 0\x00", unix.Major(below), unix.Minor(below)))
	for _, step := range []struct {
		request uintptr
		data    []byte
		targets uint32
	}{{dmDeviceCreate, nil, 0}, {dmTableLoad, target, 1}, {dmDeviceSuspend, nil, 0}} {
		request := make([]byte, 4096)
		binary.LittleEndian.PutUint32(request, 4) // version 4.0.0
		binary.LittleEndian.PutUint32(request[12:], uint32(len(request)))
		binary.LittleEndian.PutUint32(request[16:], dmSize)
		binary.LittleEndian.PutUint32(request[20:], step.targets)
		copy(request[48:], name)
		copy(request[dmSize:], step.data)
		argument := uintptr(unsafe.Pointer(&request[0])) //nolint:gosec // the kernel takes a pointer
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, control.Fd(), step.request, argument); errno != 0 {
			return fmt.Errorf("mapping request %#x: %w", step.request, errno)
		}
	}
	return nil
}
