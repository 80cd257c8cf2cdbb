// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// targetDrivers make this kernel both the target and the host of NVMe over TCP.
var targetDrivers = []string{"virtio_pci", "virtio_blk", "nvmet", "nvmet_tcp", "nvme_tcp"}

// connectRemote shows the machine's virtio disk to itself as a disk of another machine: over NVMe/TCP. Then it becomes the agent, which
// cannot open the virtio disk meanwhile.
func connectRemote(console func(string, ...any)) {
	if err := errors.Join(prepare(targetDrivers), remote()); err != nil {
		console("failed: %v", err)
	} else {
		console("a remote disk is connected")
	}
	becomeAgent(console)
}

func becomeAgent(console func(string, ...any)) {
	// The agent knows by this that it is the first process of a machine, not of a container.
	_ = unix.Unmount("/proc", unix.MNT_DETACH)
	console("failed: %v", unix.Exec("/init", []string{"/init"}, os.Environ()))
	select {}
}

// waitFor waits for a device file, and returns its number.
func waitFor(device string) (uint64, error) {
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		var found unix.Stat_t
		err := unix.Stat(device, &found)
		if err == nil || time.Since(began) > most {
			return found.Rdev, err
		}
	}
}

func remote() error {
	if err := loopback(); err != nil {
		return err
	}
	const device = "/dev/vda"
	if err := hold(device); err != nil {
		return err
	}
	const root = "/sys/kernel/config"
	if err := unix.Mount("configfs", root, "configfs", 0, ""); err != nil && !errors.Is(err, unix.EBUSY) {
		return fmt.Errorf("mount %s: %w", root, err)
	}
	subsystem, port := root+"/nvmet/subsystems/remote", root+"/nvmet/ports/1"
	for _, folder := range []string{subsystem, subsystem + "/namespaces/1", port} {
		if err := os.Mkdir(folder, 0o755); err != nil {
			return err
		}
	}
	for _, set := range [][2]string{
		{subsystem + "/attr_allow_any_host", "1"}, {subsystem + "/attr_serial", "REMOTE"},
		{subsystem + "/namespaces/1/device_path", device}, {subsystem + "/namespaces/1/enable", "1"},
		{port + "/addr_trtype", "tcp"}, {port + "/addr_adrfam", "ipv4"}, {port + "/addr_traddr", "127.0.0.1"}, {port + "/addr_trsvcid", "4420"},
	} {
		if err := os.WriteFile(set[0], []byte(set[1]), 0o600); err != nil {
			return err
		}
	}
	if err := os.Symlink(subsystem, port+"/subsystems/remote"); err != nil {
		return err
	}
	fabrics, err := os.OpenFile("/dev/nvme-fabrics", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	_, err = fabrics.WriteString("transport=tcp,traddr=127.0.0.1,trsvcid=4420,nqn=remote," +
		"hostnqn=nqn.2014-08.org.nvmexpress:uuid:4c4c4544-0042-4a10-8051-000000000000")
	return errors.Join(err, fabrics.Close())
}

// hold waits for a disk and claims it for this process, whatever that becomes.
func hold(device string) error {
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		_, err := unix.Open(device, unix.O_RDWR|unix.O_EXCL, 0)
		if err == nil || time.Since(began) > most {
			return err
		}
	}
}

// loopback switches lo on.
func loopback() error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(socket) }()
	request := struct {
		name  [unix.IFNAMSIZ]byte
		flags uint16
		rest  [22]byte
	}{flags: unix.IFF_UP}
	copy(request.name[:], "lo")
	//nolint:gosec // The kernel takes a struct ifreq.
	if _, _, code := unix.Syscall(unix.SYS_IOCTL, uintptr(socket), unix.SIOCSIFFLAGS, uintptr(unsafe.Pointer(&request))); code != 0 {
		return fmt.Errorf("interface lo: %w", code)
	}
	return nil
}
