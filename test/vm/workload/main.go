// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Command workload is the operating system of a tenant in the tests of virtual machines: it runs as /workload of the agent's own
// initramfs, writes markers to each disk that can be written, says so on the console, and stays until the power button is pressed. As
// /remote it connects a remote disk and becomes the agent, as /held it puts a RAID array and a mapping on a disk and
// becomes the agent.
package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/metalaw/metalaw/internal/tools/metalaw-image/uki"
)

// Marker is what the workload writes; a scan from outside looks for it.
const marker = "metalaw-tenant-marker"

const (
	// markers are written to each disk, besides the first and the last sector.
	markers = 200
	sector  = 512
	// settle is how long after the last disk appeared the workload waits for another.
	settle = 700 * time.Millisecond
	// most bounds the wait for disks.
	most = 20 * time.Second
)

// drivers are loaded with all that they need; those that are built in are not found, which is fine.
var drivers = []string{"virtio_pci", "nvme", "virtio_blk", "virtio_scsi", "ahci", "ata_piix", "sd_mod", "button", "evdev"}

func main() {
	console := func(format string, args ...any) { fmt.Fprintf(os.Stderr, "workload: "+format+"\n", args...) }
	switch os.Args[0] {
	case "/remote":
		connectRemote(console)
	case "/held":
		holdByArray(console)
	}
	if err := prepare(drivers); err != nil {
		console("failed: %v", err)
	}
	written := 0
	for _, disk := range disks() {
		size, err := mark(disk)
		if err != nil {
			console("failed: %s: %v", disk, err)
			continue
		}
		console("marked %s of %d bytes", disk, size)
		written++
	}
	unix.Sync()
	console("done, %d disks", written)
	awaitButton()
	console("power button, good bye")
	unix.Sync()
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
	select {}
}

// prepare mounts what the kernel shows and loads modules.
func prepare(modules []string) error {
	var errs []error
	for target, kind := range map[string]string{"/proc": "proc", "/sys": "sysfs", "/dev": "devtmpfs"} {
		errs = append(errs, os.MkdirAll(target, 0o755))
		if err := unix.Mount(kind, target, kind, 0, ""); err != nil && !errors.Is(err, unix.EBUSY) {
			errs = append(errs, fmt.Errorf("mount %s: %w", target, err))
		}
	}
	// Whatever the console is that the kernel chose, kmsg reaches the serial port.
	if log, err := os.OpenFile("/dev/kmsg", os.O_WRONLY, 0); err == nil {
		os.Stderr = log
	}
	errs = append(errs, loadAll(modules))
	return errors.Join(errs...)
}

func loadAll(modules []string) error {
	found, err := filepath.Glob("/lib/modules/*/modules.dep")
	if err != nil || len(found) == 0 {
		return errors.Join(err, errors.New("no modules.dep in the initramfs"))
	}
	file, err := os.Open(found[0])
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	needs, err := uki.ParseModulesDep(file)
	if err != nil {
		return err
	}
	byName := map[string]string{}
	for path := range needs {
		byName[strings.ReplaceAll(strings.TrimSuffix(filepath.Base(path), ".ko"), "-", "_")] = path
	}
	var errs []error
	for _, driver := range modules {
		path, there := byName[driver]
		if !there {
			continue
		}
		// modules.dep names what a module needs with the nearest first.
		list := needs[path]
		for i := len(list) - 1; i >= 0; i-- {
			errs = append(errs, load(filepath.Join(filepath.Dir(found[0]), list[i])))
		}
		errs = append(errs, load(filepath.Join(filepath.Dir(found[0]), path)))
	}
	return errors.Join(errs...)
}

func load(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	if err := unix.FinitModule(int(file.Fd()), "", 0); err != nil && !errors.Is(err, unix.EEXIST) && !errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("load %s: %w", path, err)
	}
	return nil
}

// disks waits until no more disks appear and returns their devices.
func disks() []string {
	var found []string
	began, last := time.Now(), time.Now()
	for time.Since(began) < most && (len(found) == 0 || time.Since(last) < settle) {
		time.Sleep(50 * time.Millisecond)
		entries, err := os.ReadDir("/sys/block")
		if err != nil {
			continue
		}
		var now []string
		for _, entry := range entries {
			if _, err := os.Stat("/sys/block/" + entry.Name() + "/device"); err == nil && !strings.HasPrefix(entry.Name(), "sr") {
				now = append(now, "/dev/"+entry.Name())
			}
		}
		if len(now) != len(found) {
			found, last = now, time.Now()
		}
	}
	return found
}

// mark writes the markers to a disk and reads one back.
func mark(path string) (size int64, err error) {
	disk, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, disk.Close()) }()
	if size, err = disk.Seek(0, 2); err != nil || size < 2*sector {
		return size, errors.Join(err, fmt.Errorf("%d bytes", size))
	}
	block := []byte(strings.Repeat(marker+" ", sector/len(marker)))[:sector]
	last := size/sector - 1
	offsets := []int64{0, last * sector}
	for range markers {
		offsets = append(offsets, rand.Int64N(last)*sector)
	}
	for _, offset := range offsets {
		if _, err := disk.WriteAt(block, offset); err != nil {
			return size, err
		}
	}
	return size, disk.Sync()
}

// awaitButton returns when the power button is pressed. Without a button it never returns.
func awaitButton() {
	devices, _ := filepath.Glob("/dev/input/event*")
	pressed := make(chan struct{})
	for _, device := range devices {
		go func() {
			events, err := os.Open(device)
			if err != nil {
				return
			}
			// struct input_event: a time of 16 bytes, then type, code and value.
			const keyPower = 116
			for event := make([]byte, 24); ; {
				if _, err := events.Read(event); err != nil {
					return
				}
				if event[16] == 1 && event[18] == keyPower && event[20] == 1 {
					pressed <- struct{}{}
				}
			}
		}()
	}
	<-pressed
}
