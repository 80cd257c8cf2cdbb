// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"cmp"

	"github.com/metalaw/metalaw/redfish/emulator"
)

// GuestHost is the host's loopback address as a guest reaches it.
const GuestHost = "10.0.2.2"

// biosVersion is what the SMBIOS table and the BMC say of the firmware.
const biosVersion = "metalaw-vm-1"

// Description is one virtual machine.
type Description struct {
	// Name is the machine's name in its fleet; it names files too.
	Name string
	// UUID is the system UUID as Redfish spells it.
	UUID         string
	SerialNumber string
	Manufacturer string
	Model        string
	// SKU is what Redfish shows; of a Dell it is the service tag.
	SKU string
	// SystemSerial and BoardSerial are what the SMBIOS table says; empty for what a machine of the make says.
	SystemSerial, BoardSerial string
	// MemoryMiB is the memory (default 512). It is one module, which DIMM describes.
	MemoryMiB int
	DIMM      emulator.DIMM
	NICs      []NIC
	Disks     []Disk
	// Unseen are drives that the BMC lists and that QEMU does not attach: their Bus, Serial and SizeBytes.
	Unseen []Disk
	// Adapters are further devices of QEMU, such as a megasas without a volume.
	Adapters []string
	// Chain is how it boots from the network.
	Chain Chain
	// Profile names the make of the BMC; empty takes the fleet's.
	Profile string
}

// NIC is a network interface of a virtual machine. The first one boots.
type NIC struct {
	MACAddress string
	// Model is a device of QEMU (default virtio-net-pci).
	Model string
	// Neighbour announces itself by LLDP on that interface; nil: no switch does.
	Neighbour *Neighbour
}

// Bus is how a disk is attached.
type Bus string

// The buses of disks.
const (
	NVMe   Bus = "nvme"
	Virtio Bus = "virtio"
	// SATA is a disk at the AHCI controller of the chipset.
	SATA Bus = "sata"
	// ATA is a disk at a PIIX3 controller, whose driver is in Debian's cloud kernel, which has none for AHCI.
	ATA Bus = "ata"
	// SCSI is a disk at a virtio SCSI controller.
	SCSI Bus = "scsi"
	// USB is a stick, which can be removed.
	USB Bus = "usb"
	// LSI is a disk at an LSI 53C895A, for which Debian's cloud kernel has no driver.
	LSI Bus = "lsi"
	// NVMeZoned is a zoned namespace whose zones have a size that Linux refuses: it shows a disk without a capacity.
	NVMeZoned Bus = "nvme-zoned"
	// NVMeDetached is a namespace that is attached to no controller.
	NVMeDetached Bus = "nvme-detached"
)

// Disk is a disk of a virtual machine. Either Path or NBD holds its content.
type Disk struct {
	Bus    Bus
	Serial string
	// SizeBytes is what the BMC shows.
	SizeBytes int64
	// Path is a raw image, see CreateDisk.
	Path string
	// NBD is the socket of a Server.
	NBD string
	// IgnoreDiscard lets the disk report success for a discard that it does not carry out.
	IgnoreDiscard bool
	// ReadOnly is what the guest's kernel says of the disk.
	ReadOnly bool
}

func (d Description) memoryMiB() int { return cmp.Or(d.MemoryMiB, 512) }

func (d Description) dimm() emulator.DIMM {
	dimm := d.DIMM
	dimm.Locator = cmp.Or(dimm.Locator, "DIMM_A")
	dimm.SizeBytes = int64(d.memoryMiB()) << 20
	return dimm
}

// drives are disks as the BMC shows them.
func drives(disks []Disk) []emulator.DriveSpec {
	transports := map[Bus]emulator.Transport{NVMe: emulator.TransportPCIe, SATA: emulator.TransportSATA, ATA: emulator.TransportSATA,
		SCSI: emulator.TransportSAS, USB: emulator.TransportUSBStick, Virtio: emulator.TransportVirtio,
		LSI: emulator.TransportSAS, NVMeZoned: emulator.TransportPCIe, NVMeDetached: emulator.TransportPCIe}
	shown := []emulator.DriveSpec{}
	for _, disk := range disks {
		shown = append(shown, emulator.DriveSpec{Name: string(disk.Bus) + "-" + disk.Serial, Serial: disk.Serial, Vendor: "QEMU",
			Model: "QEMU disk", SizeBytes: disk.SizeBytes, Transport: transports[disk.Bus]})
	}
	return shown
}

// spec is the machine as the emulator shows it, without its guest.
func (d Description) spec() emulator.MachineSpec {
	nics := []emulator.NIC{}
	for i, nic := range d.NICs {
		nics = append(nics, emulator.NIC{Name: "nic" + string(rune('0'+i)), MACAddress: nic.MACAddress, LinkUp: true})
	}
	return emulator.MachineSpec{
		Name: d.Name, Profile: d.Profile, NICs: nics, Drives: drives(d.Disks), Unseen: drives(d.Unseen),
		Identity: emulator.Identity{UUID: d.UUID, SerialNumber: d.SerialNumber, Manufacturer: d.Manufacturer, Model: d.Model, SKU: d.SKU},
		Hardware: emulator.Hardware{CPUModel: "QEMU virtual CPU", Sockets: 1, CoresPerSocket: 1, BIOSVersion: biosVersion,
			MemoryBytes: int64(d.memoryMiB()) << 20, DIMMs: []emulator.DIMM{d.dimm()}},
	}
}
