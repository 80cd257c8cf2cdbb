// SPDX-License-Identifier: Apache-2.0

// Package kernel reads what a Linux kernel shows of its machine in /sys and /proc, as far as no device has to be asked.
package kernel

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

// Tree is the root of the file system that holds sys and proc.
type Tree struct{ Root fs.FS }

// Word reads a file of one value; empty where there is none.
func (t Tree) Word(name string) string {
	content, err := fs.ReadFile(t.Root, name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(strings.Trim(string(content), "\x00\n"))
}

// Number reads a file that holds one number; zero where there is none.
func (t Tree) Number(name string) int64 {
	value, err := strconv.ParseInt(t.Word(name), 10, 64)
	if err != nil {
		return 0
	}
	return value
}

// Exists says whether a file or directory is there.
func (t Tree) Exists(name string) bool {
	_, err := fs.Stat(t.Root, name)
	return err == nil
}

// List names the entries of a directory; none where it does not exist.
func (t Tree) List(name string) ([]string, error) {
	entries, err := fs.ReadDir(t.Root, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing /%s: %w", name, err)
	}
	names := make([]string, 0, len(entries))
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names, nil
}

// Uevent reads one key of a device's uevent file.
func (t Tree) Uevent(device, key string) string {
	for line := range strings.Lines(t.Word(device + "/uevent")) {
		if value, found := strings.CutPrefix(line, key+"="); found {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// Resolve follows the link that a name of /sys is; a name that is no link stays as it is. What a link of /sys names
// contains no further link.
func (t Tree) Resolve(name string) string {
	target, err := fs.ReadLink(t.Root, name)
	if err != nil || path.IsAbs(target) {
		return name
	}
	return path.Join(path.Dir(name), target)
}

// Firmware reads what the kernel shows of the firmware's tables.
func (t Tree) Firmware() policyv1alpha1.SystemInfo {
	const dir = "sys/class/dmi/id/"
	return policyv1alpha1.SystemInfo{
		BIOSInformation: policyv1alpha1.BIOSInformation{
			Vendor:  t.Word(dir + "bios_vendor"),
			Version: t.Word(dir + "bios_version"),
			Date:    t.Word(dir + "bios_date"),
		},
		SystemInformation: policyv1alpha1.SystemInformation{
			Manufacturer: t.Word(dir + "sys_vendor"),
			ProductName:  t.Word(dir + "product_name"),
			Version:      t.Word(dir + "product_version"),
			SerialNumber: t.Word(dir + "product_serial"),
			UUID:         strings.ToLower(t.Word(dir + "product_uuid")),
			SKUNumber:    t.Word(dir + "product_sku"),
			Family:       t.Word(dir + "product_family"),
		},
		BoardInformation: policyv1alpha1.BoardInformation{
			Manufacturer: t.Word(dir + "board_vendor"),
			Product:      t.Word(dir + "board_name"),
			Version:      t.Word(dir + "board_version"),
			SerialNumber: t.Word(dir + "board_serial"),
			AssetTag:     t.Word(dir + "board_asset_tag"),
		},
	}
}

var pciFunction = regexp.MustCompile(`^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$`)

// PCIAddress finds the PCI function that a device hangs below, by its path; empty where there is none.
func PCIAddress(device string) string {
	for _, part := range slices.Backward(strings.Split(device, "/")) {
		if pciFunction.MatchString(part) {
			return part
		}
	}
	return ""
}
