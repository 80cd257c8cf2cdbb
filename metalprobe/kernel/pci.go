// SPDX-License-Identifier: Apache-2.0

package kernel

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

// PCIDevices reads the PCI devices. A GPU is one whose class begins with 03.
func (t Tree) PCIDevices() (found []policyv1alpha1.PCIDevice, err error) {
	addresses, err := t.List("sys/bus/pci/devices")
	if err != nil {
		return found, err
	}
	for _, address := range addresses {
		dir := path.Join("sys/bus/pci/devices", address)
		number := func(file string) string { return strings.TrimPrefix(t.Word(dir+"/"+file), "0x") }
		found = append(found, policyv1alpha1.PCIDevice{
			Address:    address,
			VendorID:   number("vendor"),
			ProductID:  number("device"),
			Class:      number("class"),
			Driver:     t.Uevent(dir, "DRIVER"),
			NumaNodeID: int32(t.Number(dir + "/numa_node")),
		})
	}
	file, err := t.Root.Open(pciNames)
	if errors.Is(err, fs.ErrNotExist) || len(found) == 0 {
		return found, nil
	}
	if err != nil {
		return found, err
	}
	namePCI(found, file)
	return found, file.Close()
}

// PCISlot names the slot of a PCI function; empty where the firmware names none.
func (t Tree) PCISlot(address string) string {
	device, _, _ := strings.Cut(address, ".")
	slots, _ := t.List("sys/bus/pci/slots") // none is an answer: the firmware names no slots
	for _, slot := range slots {
		if device != "" && t.Word("sys/bus/pci/slots/"+slot+"/address") == device {
			return slot
		}
	}
	return ""
}

// HostDriver names the driver of a SCSI host. Not every driver names itself there, but each names itself at the
// function of its adapter.
func (t Tree) HostDriver(dir, host string) string {
	name := t.Word("sys/class/scsi_host/" + host + "/proc_name")
	if name == "" || strings.HasPrefix(name, "(") || strings.HasPrefix(name,
		"<") { // so the kernel writes a name that is not there
		return t.Uevent("sys/bus/pci/devices/"+PCIAddress(dir), "DRIVER")
	}
	return name
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
