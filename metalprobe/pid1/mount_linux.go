// SPDX-License-Identifier: Apache-2.0

package pid1

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

const quietly = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC

// mounts are what every program expects. Debian's kernels do not mount devtmpfs themselves.
var mounts = []struct {
	kind, target string
	flags        uintptr
	data         string
	must         bool
}{
	{"proc", "/proc", quietly, "", true},
	{"sysfs", "/sys", quietly, "", true},
	{"devtmpfs", "/dev", unix.MS_NOSUID, "mode=0755", true},
	{"tmpfs", "/run", unix.MS_NOSUID | unix.MS_NODEV, "mode=0755", true},
	{"tmpfs", "/tmp", unix.MS_NOSUID | unix.MS_NODEV, "mode=1777", false},
}

// mountAll mounts the file systems of the kernel. It returns what failed that must not.
func mountAll() error {
	var problems []error
	if err := os.MkdirAll("/etc", 0o755); err != nil { //nolint:gosec // as on every Linux
		problems = append(problems, err)
	}
	for _, m := range mounts {
		if err := os.MkdirAll(m.target, 0o755); err != nil { //nolint:gosec // as on every Linux
			if m.must {
				problems = append(problems, err)
			}
			continue
		}
		err := unix.Mount(m.kind, m.target, m.kind, m.flags, m.data)
		if err != nil && !errors.Is(err, unix.EBUSY) && m.must {
			problems = append(problems, fmt.Errorf("mounting %s on %s: %w", m.kind, m.target, err))
		}
	}
	return errors.Join(problems...)
}

// mountVariables mounts the variables of UEFI firmware read-only, where there are some. Its module may have to be loaded first.
func mountVariables() error {
	const target = "/sys/firmware/efi/efivars"
	if _, err := os.Stat(target); err != nil {
		return nil //nolint:nilerr // the machine has none
	}
	err := unix.Mount("efivarfs", target, "efivarfs", quietly|unix.MS_RDONLY, "")
	if err != nil && !errors.Is(err, unix.EBUSY) {
		return fmt.Errorf("mounting the variables of the firmware: %w", err)
	}
	return nil
}

// helper is where the kernel finds the program that loads modules for it.
const helper = "/run/metalprobe/modprobe"

// offerHelper tells the kernel to ask this program for modules that it wants itself, such as character sets and checksums.
func offerHelper(self string) error {
	if err := os.MkdirAll(runDir, 0o700); err != nil {
		return err
	}
	if err := os.Symlink(self, helper); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return os.WriteFile("/proc/sys/kernel/modprobe", []byte(helper), 0o600)
}

// help loads a module for the kernel, which calls "modprobe -q -- ALIAS".
func help(args []string) error {
	alias := args[len(args)-1]
	if len(args) < 2 || strings.HasPrefix(alias, "-") {
		return errors.New("the kernel names no module")
	}
	dir := modulesDir()
	m, err := readModules(os.DirFS(dir))
	if err != nil {
		return err
	}
	insert := inserter(dir)
	for _, name := range m.resolve(alias) {
		for _, s := range m.order(name) {
			if err := insert(m.files[s.name]); err != nil && !s.soft {
				return fmt.Errorf("%s: %w", s.name, err)
			}
		}
	}
	return nil
}
