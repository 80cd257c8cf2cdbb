// SPDX-License-Identifier: Apache-2.0

package metalprobe

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strconv"
	"strings"
	"time"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/metalprobe/drive"
	"github.com/metalaw/metalaw/metalprobe/erasure"
)

// Host reads the hardware of a Linux machine from its /sys and /proc.
//
// The functions ask what /sys does not tell; each may be nil, and then that part is left out. NewHost sets all of them. A Host must not
// be copied after its first use.
type Host struct {
	// Root is the root of the file system that holds sys and proc, such as os.DirFS("/").
	Root fs.FS
	// Addresses lists the IP addresses of an interface; nil lists none.
	Addresses func(name string) ([]string, error)
	// Link tells what a driver says of an interface.
	Link func(name string) (Link, error)
	// Neighbors lists what was heard by LLDP so far.
	Neighbors func() ([]policyv1alpha1.LLDPInterface, error)
	// Sharing asks an NVMe drive whether other hosts may use a namespace; nil leaves that unknown, and the disk is refused.
	Sharing func(name string) NVMeSharing
	// Drive asks a drive whether a host has reserved it, and what it hides; nil leaves that unknown, and the disk is refused.
	Drive func(name string, protocol erasure.Protocol) drive.Answers
	// Namespaces lists the namespaces of an NVMe controller: those that are allocated, and those that it shows.
	Namespaces func(controller string) (allocated, active []uint32, err error)
	// Content reads whether a disk holds data, and where. It is asked once for each disk.
	Content func(ctx context.Context, path string) (content policyv1alpha1.DiskContent, found string)
	// Allowed are disks that are erased in spite of a doubt, by wwid, serial number or model.
	Allowed []string
	// Problems tells what went wrong outside of the collectors, such as a module that did not load.
	Problems func() []policyv1alpha1.ProbeProblem
	// Limit bounds each collector; zero means DefaultLimit.
	Limit time.Duration
	// Now stamps the data; nil leaves the stamp out.
	Now func() time.Time

	running  running
	contents contents
}

// Link is what a driver says of a network interface.
type Link struct {
	Driver, Firmware string
	// Modes are the link modes that it can do, Ports the kinds of port.
	Modes, Ports []string
}

// InterfaceAddresses lists the IP addresses of an interface of this machine, link-local ones left out.
func InterfaceAddresses(name string) ([]string, error) {
	device, err := net.InterfaceByName(name)
	if err != nil {
		return nil, err
	}
	addresses, err := device.Addrs()
	if err != nil {
		return nil, err
	}
	var found []string
	for _, address := range addresses {
		prefix, isPrefix := address.(*net.IPNet)
		if isPrefix && !prefix.IP.IsLinkLocalUnicast() {
			found = append(found, prefix.IP.String())
		}
	}
	return found, nil
}

// word reads a file of one value; empty where there is none.
func (h *Host) word(name string) string {
	content, err := fs.ReadFile(h.Root, name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(strings.Trim(string(content), "\x00\n"))
}

func (h *Host) number(name string) int64 {
	value, err := strconv.ParseInt(h.word(name), 10, 64)
	if err != nil {
		return 0
	}
	return value
}

func (h *Host) exists(name string) bool {
	_, err := fs.Stat(h.Root, name)
	return err == nil
}

// list names the entries of a directory; none where it does not exist.
func (h *Host) list(name string) ([]string, error) {
	entries, err := fs.ReadDir(h.Root, name)
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

// dmi reads what the kernel shows of the firmware's tables.
func (h *Host) dmi(data *Data) error {
	const dir = "sys/class/dmi/id/"
	data.SystemInfo = policyv1alpha1.SystemInfo{
		BIOSInformation: policyv1alpha1.BIOSInformation{
			Vendor:  h.word(dir + "bios_vendor"),
			Version: h.word(dir + "bios_version"),
			Date:    h.word(dir + "bios_date"),
		},
		SystemInformation: policyv1alpha1.SystemInformation{
			Manufacturer: h.word(dir + "sys_vendor"),
			ProductName:  h.word(dir + "product_name"),
			Version:      h.word(dir + "product_version"),
			SerialNumber: h.word(dir + "product_serial"),
			UUID:         strings.ToLower(h.word(dir + "product_uuid")),
			SKUNumber:    h.word(dir + "product_sku"),
			Family:       h.word(dir + "product_family"),
		},
		BoardInformation: policyv1alpha1.BoardInformation{
			Manufacturer: h.word(dir + "board_vendor"),
			Product:      h.word(dir + "board_name"),
			Version:      h.word(dir + "board_version"),
			SerialNumber: h.word(dir + "board_serial"),
			AssetTag:     h.word(dir + "board_asset_tag"),
		},
	}
	return nil
}

// uevent reads one key of a device's uevent file.
func (h *Host) uevent(device, key string) string {
	for line := range strings.Lines(h.word(device + "/uevent")) {
		if value, found := strings.CutPrefix(line, key+"="); found {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
