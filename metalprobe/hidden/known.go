// SPDX-License-Identifier: Apache-2.0

package hidden

import (
	"slices"
	"strings"
)

// stubs are drivers that keep a function for a program or a guest, and show no disk of it.
var stubs = []string{"vfio-pci", "pci-stub", "uio_pci_generic", "igb_uio", "xen-pciback"}

// raidDrivers are PCI drivers of adapters that show volumes: without a volume the drives behind the adapter are not
// seen. Drivers of plain adapters (ahci, mpt3sas, pm80xx, isci, mvsas) show each drive itself, so that an empty one has
// empty ports, and is not listed.
var raidDrivers = []string{
	"megaraid_sas", "mpi3mr", "smartpqi", "hpsa", "aacraid", "arcmsr", "hptiop", "mvumi", "3w-9xxx", "3w-sas",
	"3w-xxxx", "myrb", "myrs",
}

// harmless are functions of class 01 that hold no disk of this machine. device is the begin of the device number.
var harmless = []struct {
	vendor, device string
	why            string
	// source is where that stands.
	source string
}{
	{"1425", "45", "storage function of a Chelsio T4 network card",
		"pci.ids: T420-CR Unified Wire Storage Controller; function 5 of t4_pci_id_tbl.h"},
	{"1425", "46", "storage function of a Chelsio T4 network card",
		"pci.ids: T420-CR Unified Wire Storage Controller; function 6 of t4_pci_id_tbl.h"},
	{"1425", "55", "storage function of a Chelsio T5 network card",
		"pci.ids: T520-CR Unified Wire Storage Controller; function 5 of t4_pci_id_tbl.h"},
	{"1425", "56", "storage function of a Chelsio T5 network card",
		"pci.ids: T520-CR Unified Wire Storage Controller; function 6 of t4_pci_id_tbl.h"},
	{"1425", "65", "storage function of a Chelsio T6 network card", "pci.ids: T6225-CR Unified Wire Storage " +
		"Controller; function 5 of t4_pci_id_tbl.h"},
	{"1425", "66", "storage function of a Chelsio T6 network card", "pci.ids: T6225-CR Unified Wire Storage " +
		"Controller; function 6 of t4_pci_id_tbl.h"},
	{"1000", "00b2", "management endpoint of a PCIe switch", "pci.ids: PCIe Switch management endpoint; " +
		"MPI26_ATLAS_PCIe_SWITCH_DEVID of Linux mpt3sas"},
	{"1000", "02b0", "virtual endpoint of a PCIe switch", "pci.ids: Virtual Endpoint on PCIe Switch"},
	{"1000", "02b1", "virtual endpoint of a PCIe switch", "pci.ids: Virtual Endpoint on PCIe Switch (9749)"},
	{"8086", "09ab", "placeholder of a function that Intel VMD shows elsewhere", "pci.ids: RST VMD Managed Controller"},
}

// vmdDevices are the Volume Management Devices of Intel, by pci.ids and Linux drivers/pci/controller/vmd.c. One that
// its driver serves shows its drives as PCI functions of their own, and needs no row above.
var vmdDevices = []string{"201d", "28c0", "467f", "4c3d", "7d0b", "9a0b", "a77f", "ad0b", "b60b", "b06f", "b07f"}

// Harmless says what a function is that is known to hold no disk; empty for all others.
func (f Function) Harmless() string {
	for _, known := range harmless {
		if f.Vendor == known.vendor && strings.HasPrefix(f.Device, known.device) {
			return known.why
		}
	}
	return ""
}

func (f Function) vmd() bool { return f.Vendor == "8086" && slices.Contains(vmdDevices, f.Device) }
