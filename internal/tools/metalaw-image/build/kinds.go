// SPDX-License-Identifier: Apache-2.0

package build

import (
	"maps"
	"slices"
)

// kind is a sort of boot image.
type kind struct {
	arch string
	// kernel is the meta package of Debian whose kernel it has.
	kernel string
	// console is where Linux and the agent write.
	console string
	modules []string
	// required modules must be there: a driver that moved to another folder shall fail the build, not a machine.
	required []string
	// test tells that the image is for tests, and no part of the boot artefact.
	test bool
}

// Kinds returns the names of all boot images.
func Kinds() []string { return slices.Sorted(maps.Keys(kinds)) }

var kinds = map[string]kind{
	"amd64": {
		arch:     "amd64",
		kernel:   "linux-image-amd64",
		console:  "console=tty0 console=ttyS0,115200",
		modules:  slices.Concat(machineModules, remoteDisks),
		required: append([]string{"hpsa", "vmd", "vfat", "igc", "usbhid"}, requiredModules...),
	},
	"arm64": {
		arch:     "arm64",
		kernel:   "linux-image-arm64",
		console:  "console=tty0 console=ttyAMA0,115200",
		modules:  slices.Concat(machineModules, remoteDisks),
		required: requiredModules,
	},
	// Debian's kernel for clouds starts fast and knows few devices: the tests boot it.
	"cloud": {
		arch:    "amd64",
		kernel:  "linux-image-cloud-amd64",
		console: "console=tty0 console=ttyS0,115200",
		// Tests make disks that are not local.
		modules: slices.Concat(machineModules, []string{
			"drivers/nvme/target/", "!drivers/nvme/*/*-rdma", "!drivers/nvme/*/*-fc", "!drivers/net/ethernet/mellanox/",
			"drivers/block/null_blk/", "drivers/block/brd", "drivers/block/loop",
			// They put something on top of a disk.
			"drivers/md/md-mod", "drivers/md/raid1", "drivers/md/dm-mod",
		}),
		required: []string{"nvme", "nvme-tcp", "nvmet-tcp", "virtio_net", "virtio_blk", "virtio_scsi", "virtio_pci", "sd_mod",
			"sr_mod", "ata_piix", "isofs", "button", "evdev", "qemu_fw_cfg", "af_packet",
			"raid1", "dm-mod"},
		test: true,
	},
}

// machineModules are the drivers of real machines: network, local disks, buses on the way to them, and what the agent
// reads or answers to. GPUs, sound and wireless are left out; the agent counts GPUs by their PCI class. The drivers of
// Hyper-V and Xen are left out, because their guests are no bare metal.
var machineModules = []string{
	// Network.
	"drivers/net/ethernet/", "drivers/net/phy/", "drivers/net/mdio/", "drivers/net/pcs/",
	"drivers/net/vmxnet3/", "drivers/net/virtio_net",
	"drivers/net/usb/ax88179_178a", "drivers/net/usb/asix", "drivers/net/usb/cdc_*", "drivers/net/usb/r8152",
	"drivers/net/usb/rndis_host",
	"net/packet/", "net/8021q/",
	// Disks.
	"drivers/nvme/host/",
	"drivers/ata/", "!drivers/ata/pata_*",
	"drivers/scsi/", "!drivers/scsi/pcmcia/", "!drivers/scsi/hv_storvsc", "!drivers/scsi/xen-scsifront",
	"drivers/message/fusion/",
	"drivers/block/virtio_blk", "drivers/block/mtip32xx/",
	"drivers/mmc/core/", "drivers/mmc/host/",
	"drivers/nvdimm/", "drivers/acpi/nfit/",
	"drivers/cdrom/", "fs/isofs/", "fs/fat/", "fs/nls/nls_ascii", "fs/nls/nls_cp437", "fs/nls/nls_iso8859-1", "fs/nls/nls_utf8",
	// Checksums that disk drivers ask for by name.
	"crypto/crc*", "arch/*/crypto/crc*",
	// Buses.
	"drivers/pci/controller/", "!drivers/pci/controller/pci-hyperv*", "drivers/virtio/",
	"drivers/usb/core/", "drivers/usb/common/", "drivers/usb/host/", "drivers/usb/storage/",
	// The machine itself: power button, keyboard, management controller, firmware, random numbers.
	"drivers/acpi/button", "drivers/input/evdev", "drivers/hid/hid", "drivers/hid/hid-generic", "drivers/hid/usbhid/",
	"drivers/char/ipmi/", "drivers/char/hw_random/", "drivers/char/tpm/",
	"drivers/firmware/qemu_fw_cfg", "drivers/firmware/dmi-sysfs", "fs/efivarfs/",
}

// remoteDisks keeps out what connects disks over a network: the agent of a machine never does.
var remoteDisks = []string{"!drivers/nvme/host/nvme-rdma", "!drivers/nvme/host/nvme-tcp", "!drivers/scsi/iscsi_tcp", "!drivers/scsi/scsi_debug"}

var requiredModules = []string{
	"nvme", "ahci", "sd_mod", "sr_mod", "ses", "isofs", "mmc_block", "usb-storage", "uas", "xhci-pci",
	"virtio_net", "virtio_blk", "virtio_scsi", "virtio_pci",
	"e1000e", "igb", "ixgbe", "i40e", "ice", "bnxt_en", "tg3", "mlx4_core", "mlx5_core", "qede", "cxgb4",
	"mpt3sas", "megaraid_sas", "smartpqi", "qla2xxx", "lpfc",
	"ipmi_si", "ipmi_devintf", "button", "evdev", "af_packet",
}
