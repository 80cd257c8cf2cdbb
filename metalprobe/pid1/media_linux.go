// SPDX-License-Identifier: Apache-2.0

package pid1

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/metalaw/metalaw/metalprobe"
)

const (
	blockDir, devDir = "/sys/class/block", "/dev"
	// mountPoint is where a medium is mounted while it is read.
	mountPoint = runDir + "/medium"
	// mediaTry bounds how long one medium may take.
	mediaTry = 20 * time.Second
)

// media reads each medium that may hold a configuration: CDs, and where the command line names no URL also removable USB media that
// are labelled. Other disks are never asked: their tenants write them.
func media(withUSB bool) func(ctx context.Context) (metalprobe.Config, error) {
	return func(ctx context.Context) (config metalprobe.Config, err error) {
		entries, err := os.ReadDir(blockDir)
		if err != nil {
			return config, errNone
		}
		var problem error
		for _, entry := range entries {
			name := entry.Name()
			if !strings.HasPrefix(name, "sr") && (!withUSB || !isLabelledUSB(name)) {
				continue
			}
			config, err := readDevice(ctx, name)
			if err == nil {
				return config, nil
			}
			if !errors.Is(err, errNone) {
				problem = fmt.Errorf("/dev/%s: %w", name, err)
			}
		}
		return config, cmp.Or(problem, errNone)
	}
}

// isLabelledUSB says that a disk or partition is on a removable USB medium and labelled as ours.
func isLabelledUSB(name string) bool {
	device, err := filepath.EvalSymlinks(filepath.Join(blockDir, name))
	if err != nil || !strings.Contains(device, "/usb") {
		return false
	}
	if _, err := os.Stat(filepath.Join(device, "partition")); err == nil {
		device = filepath.Dir(device)
	}
	removable, err := os.ReadFile(filepath.Join(device, "removable"))
	if err != nil || !bytes.HasPrefix(removable, []byte("1")) {
		return false
	}
	f, err := os.Open(filepath.Join(devDir, name))
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	head := make([]byte, 34<<10)
	n, err := f.ReadAt(head, 0)
	return err == nil && labelled(head[:n])
}

// readDevice mounts a device, reads it and unmounts it, within mediaTry. An empty drive holds none.
func readDevice(ctx context.Context, name string) (metalprobe.Config, error) {
	size, err := os.ReadFile(filepath.Join(blockDir, name, "size"))
	if err != nil || strings.TrimSpace(string(size)) == "0" {
		return metalprobe.Config{}, errNone
	}
	type outcome struct {
		config metalprobe.Config
		err    error
	}
	ended := make(chan outcome, 1)
	go func() {
		config, err := mountAndRead(filepath.Join(devDir, name), filepath.Join(mountPoint, name))
		ended <- outcome{config, err}
	}()
	ctx, cancel := context.WithTimeout(ctx, mediaTry)
	defer cancel()
	select {
	case o := <-ended:
		return o.config, o.err
	case <-ctx.Done():
		return metalprobe.Config{}, fmt.Errorf("the medium does not answer within %s", mediaTry)
	}
}

func mountAndRead(device, target string) (config metalprobe.Config, err error) {
	if err := os.MkdirAll(target, 0o700); err != nil {
		return config, err
	}
	for _, kind := range []string{"iso9660", "vfat"} {
		if err = unix.Mount(device, target, kind, quietly|unix.MS_RDONLY, ""); err == nil {
			config, err = readMedium(os.DirFS(target))
			_ = unix.Unmount(target, unix.MNT_DETACH) // it is read-only, and mounted over at the next look
			return config, err
		}
		err = fmt.Errorf("mounting it as %s: %w", kind, err)
	}
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOMEDIUM) || errors.Is(err, unix.EIO) {
		return config, errNone // it holds something else, or nothing
	}
	return config, err
}
