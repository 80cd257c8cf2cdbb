// SPDX-License-Identifier: Apache-2.0

package metalprobe

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"path"
	"strconv"
	"strings"
	"time"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

// Host reads the hardware of a Linux machine from its /sys and /proc.
//
// What it does not tell: LLDP neighbours (the kernel keeps none; the list is empty), names of PCI vendors and products
// (only their numbers), and single memory devices (one entry holds the total).
type Host struct {
	// Root is the root of the file system that holds sys and proc, such as os.DirFS("/").
	Root fs.FS
	// Addresses lists the IP addresses of an interface; nil lists none.
	Addresses func(name string) ([]string, error)
	// Sharing asks an NVMe drive whether other hosts may use a namespace; nil leaves that unknown, and the disk is refused.
	Sharing func(name string) NVMeSharing
	// Now stamps the data; nil leaves the stamp out.
	Now func() time.Time
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

// Collect reads everything. It returns what could be read together with what went wrong; a file that is not there is
// only something that this machine does not tell.
func (h *Host) Collect(ctx context.Context) (Data, error) {
	var data Data
	if h.Now != nil {
		data.Timestamp = Timestamp{h.Now()}
	}
	var problems []error
	for _, part := range []func(*Data) error{h.dmi, h.cpus, h.memory, h.disks, h.interfaces, h.pci} {
		if err := ctx.Err(); err != nil {
			return data, err
		}
		if err := part(&data); err != nil {
			problems = append(problems, err)
		}
	}
	return data, errors.Join(problems...)
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

// memory reads the total; kernels count in kibibytes and leave out what they keep for themselves.
func (h *Host) memory(data *Data) error {
	for line := range strings.Lines(h.word("proc/meminfo")) {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] != "MemTotal:" {
			continue
		}
		kib, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil || kib < 0 || kib > 1<<50 {
			return fmt.Errorf("/proc/meminfo: MemTotal %.32q is no size", fields[1])
		}
		data.Memory = []policyv1alpha1.MemoryDevice{{SizeBytes: kib << 10, DeviceLocator: "total"}}
	}
	return nil
}

// interfaces reads the ports that have hardware behind them.
func (h *Host) interfaces(data *Data) error {
	names, err := h.list("sys/class/net")
	if err != nil {
		return err
	}
	var problems []error
	for _, name := range names {
		dir := path.Join("sys/class/net", name)
		if !h.exists(dir + "/device") {
			continue
		}
		port := policyv1alpha1.ProbeNetworkInterface{Name: name, MACAddress: h.word(dir + "/address"), CarrierStatus: h.word(dir + "/operstate")}
		if h.Addresses != nil {
			if port.IPAddresses, err = h.Addresses(name); err != nil {
				problems = append(problems, fmt.Errorf("addresses of %s: %w", name, err))
			}
		}
		data.NetworkInterfaces = append(data.NetworkInterfaces, port)
		data.NICs = append(data.NICs, policyv1alpha1.NIC{
			Name:       name,
			MAC:        port.MACAddress,
			PCIAddress: h.uevent(dir+"/device", "PCI_SLOT_NAME"),
			Speed:      speed(h.number(dir + "/speed")),
		})
	}
	return errors.Join(problems...)
}

// speed words a link speed; a port without a link says -1.
func speed(megabits int64) string {
	if megabits <= 0 {
		return ""
	}
	return strconv.FormatInt(megabits, 10) + "Mb/s"
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

func (h *Host) pci(data *Data) error {
	addresses, err := h.list("sys/bus/pci/devices")
	if err != nil {
		return err
	}
	for _, address := range addresses {
		dir := path.Join("sys/bus/pci/devices", address)
		data.PCIDevices = append(data.PCIDevices, policyv1alpha1.PCIDevice{
			Address:    address,
			VendorID:   strings.TrimPrefix(h.word(dir+"/vendor"), "0x"),
			ProductID:  strings.TrimPrefix(h.word(dir+"/device"), "0x"),
			NumaNodeID: int32(h.number(dir + "/numa_node")),
		})
	}
	return nil
}
