// SPDX-License-Identifier: Apache-2.0

package metalprobe

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"path"
	"strings"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

// pciNames is the list of PCI vendors and products, where the image has it.
const pciNames = "usr/share/misc/pci.ids"

// pci reads the PCI devices. A GPU is one whose class begins with 03.
func (h *Host) pci(data *Data) error {
	addresses, err := h.list("sys/bus/pci/devices")
	if err != nil {
		return err
	}
	for _, address := range addresses {
		dir := path.Join("sys/bus/pci/devices", address)
		number := func(file string) string { return strings.TrimPrefix(h.word(dir+"/"+file), "0x") }
		data.PCIDevices = append(data.PCIDevices, policyv1alpha1.PCIDevice{
			Address:    address,
			VendorID:   number("vendor"),
			ProductID:  number("device"),
			Class:      number("class"),
			Driver:     h.uevent(dir, "DRIVER"),
			NumaNodeID: int32(h.number(dir + "/numa_node")),
		})
	}
	file, err := h.Root.Open(pciNames)
	if errors.Is(err, fs.ErrNotExist) || len(data.PCIDevices) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	namePCI(data.PCIDevices, file)
	return file.Close()
}

// namePCI fills in names from a list in which a vendor's line is followed by those of its products, which begin with a tab.
func namePCI(devices []policyv1alpha1.PCIDevice, list io.Reader) {
	wanted := map[string][]*policyv1alpha1.PCIDevice{}
	for i := range devices {
		wanted[devices[i].VendorID] = append(wanted[devices[i].VendorID], &devices[i])
	}
	var vendor []*policyv1alpha1.PCIDevice
	lines := bufio.NewScanner(list) // a line that is too long ends the list: the rest has no names
	for lines.Scan() {
		line := lines.Text()
		switch {
		case strings.HasPrefix(line, "C "): // classes follow, and nothing else
			return
		case line == "", strings.HasPrefix(line, "#"), strings.HasPrefix(line, "\t\t"):
		case strings.HasPrefix(line, "\t"):
			number, name, _ := strings.Cut(line[1:], " ")
			for _, device := range vendor {
				if device.ProductID == number {
					device.Product = strings.TrimSpace(name)
				}
			}
		default:
			number, name, _ := strings.Cut(line, " ")
			vendor = wanted[number]
			for _, device := range vendor {
				device.Vendor = strings.TrimSpace(name)
			}
		}
	}
}
