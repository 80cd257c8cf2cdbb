// SPDX-License-Identifier: Apache-2.0

package pid1

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// mountPoint is where a medium is mounted while it is read.
	mountPoint = runDir + "/medium"
	// mediaTry bounds how long one medium may take.
	mediaTry = 20 * time.Second
)

// media reads each medium that may hold a configuration: CDs, and where the command line names no URL also removable USB media that
// are labelled. Other disks are never asked: their tenants write them.
func media(withUSB bool) func(ctx context.Context, read func(fs.FS) error) error {
	return func(ctx context.Context, read func(fs.FS) error) error {
		entries, err := os.ReadDir("/sys/class/block")
		if err != nil {
			return errNone
		}
		var problem error
		for _, entry := range entries {
			name := entry.Name()
			if !strings.HasPrefix(name, "sr") && (!withUSB || !isLabelledUSB(name)) {
				continue
			}
			err := readDevice(ctx, name, read)
			if err == nil {
				return nil
			}
			if !errors.Is(err, errNone) {
				problem = fmt.Errorf("/dev/%s: %w", name, err)
			}
		}
		if problem != nil {
			return problem
		}
		return errNone
	}
}

// isLabelledUSB says that a disk or partition is on a removable USB medium and labelled as ours.
func isLabelledUSB(name string) bool {
	device, err := filepath.EvalSymlinks(filepath.Join("/sys/class/block", name))
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
	f, err := os.Open(filepath.Join("/dev", name))
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	head := make([]byte, 34<<10)
	n, err := f.ReadAt(head, 0)
	return err == nil && labelled(head[:n])
}

// readDevice mounts a device, reads it and unmounts it, within mediaTry. An empty drive holds none.
func readDevice(ctx context.Context, name string, read func(fs.FS) error) error {
	size, err := os.ReadFile(filepath.Join("/sys/class/block", name, "size"))
	if err != nil || strings.TrimSpace(string(size)) == "0" {
		return errNone
	}
	ended := make(chan error, 1)
	go func() { ended <- mountAndRead(filepath.Join("/dev", name), filepath.Join(mountPoint, name), read) }()
	ctx, cancel := context.WithTimeout(ctx, mediaTry)
	defer cancel()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return fmt.Errorf("the medium does not answer within %s", mediaTry)
	}
}

func mountAndRead(device, target string, read func(fs.FS) error) error {
	if err := os.MkdirAll(target, 0o700); err != nil {
		return err
	}
	var problem error
	for _, kind := range []string{"iso9660", "vfat"} {
		err := unix.Mount(device, target, kind, quietly|unix.MS_RDONLY, "")
		if err != nil {
			problem = fmt.Errorf("mounting it as %s: %w", kind, err)
			continue
		}
		defer func() { _ = unix.Unmount(target, unix.MNT_DETACH) }() //nolint:revive // the loop ends here
		return read(os.DirFS(target))
	}
	if errors.Is(problem, unix.EINVAL) || errors.Is(problem, unix.ENOMEDIUM) || errors.Is(problem, unix.EIO) {
		return errNone // it holds something else, or nothing
	}
	return problem
}
