// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/metalaw/metalaw/redfish/emulator"
)

// files are what one run of a virtual machine reads and writes on the host.
type files struct {
	serial, qmp string
	// frames and guestFrames are the sockets of the wire to the neighbour of the NIC with that index.
	frames, guestFrames func(nic int) string
}

// flags are the arguments of QEMU for one boot. identity is what the machine's SMBIOS table says.
func (d Description) flags(identity emulator.Identity, accel string, f files, boot source) []string {
	args := []string{
		"-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-name", d.Name,
		"-machine", "q35,accel=" + accel + d.sata(), "-cpu", map[bool]string{true: "host",
			false: "max"}[accel == "kvm"],
		"-m", strconv.Itoa(d.memoryMiB()),
		"-serial", "file:" + f.serial, "-qmp", "unix:" + f.qmp + ",server=on,wait=off",
	}
	args = append(args, d.smbios(identity)...)
	args = append(args, d.networkFlags(f, boot)...)
	args = append(args, d.diskFlags(boot)...)
	for _, adapter := range d.Adapters {
		args = append(args, "-device", adapter)
	}
	return append(args, boot.flags...)
}

// sata leaves the SATA controller of the chipset out where no disk is attached to it: a kernel without its driver takes
// it for storage that it does not see.
func (d Description) sata() string {
	if slices.ContainsFunc(d.Disks, func(disk Disk) bool { return disk.Bus == SATA }) {
		return ""
	}
	return ",sata=off"
}

func (d Description) smbios(id emulator.Identity) []string {
	dimm := d.dimm()
	system, board := id.DMI()
	var ofBoard []string
	if board = cmp.Or(d.BoardSerial, board); board != "" {
		ofBoard = []string{"-smbios", options("type=2", "manufacturer", id.Manufacturer, "serial", board)}
	}
	return append([]string{
		"-smbios", options("type=0", "vendor", "metalaw", "version", biosVersion),
		"-smbios", options("type=1", "uuid", id.UUID, "serial", cmp.Or(d.SystemSerial, system), "manufacturer", id.Manufacturer,
			"product", id.Model),
		"-smbios", options("type=17", "loc_pfx", dimm.Locator, "manufacturer", dimm.Manufacturer,
			"serial", dimm.SerialNumber, "part", dimm.PartNumber),
	}, ofBoard...)
}

// options joins what is not empty as QEMU wants it: a comma in a value is doubled.
func options(first string, pairs ...string) string {
	text := []string{first}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			text = append(text, pairs[i]+"="+strings.ReplaceAll(pairs[i+1], ",", ",,"))
		}
	}
	return strings.Join(text, ",")
}

// networkFlags attach each NIC to QEMU's own network; one with a neighbour shares a hub with the neighbour's wire.
func (d Description) networkFlags(f files, boot source) []string {
	var args []string
	for i, nic := range d.NICs {
		user, bootFile := fmt.Sprintf("user%d", i), ""
		if i == 0 {
			bootFile = boot.bootFile
		}
		args = append(args, "-netdev", options("user,id="+user, "bootfile", bootFile))
		netdev := user
		if nic.Neighbour != nil {
			hub := fmt.Sprintf("hubid=%d", i)
			netdev = fmt.Sprintf("port%d", i)
			args = append(args,
				"-netdev", options(fmt.Sprintf("dgram,id=wire%d,local.type=unix,remote.type=unix", i),
					"local.path", f.guestFrames(i), "remote.path", f.frames(i)),
				"-netdev", fmt.Sprintf("hubport,id=hubuser%d,%s,netdev=%s", i, hub, user),
				"-netdev", fmt.Sprintf("hubport,id=hubwire%d,%s,netdev=wire%d", i, hub, i),
				"-netdev", fmt.Sprintf("hubport,id=%s,%s", netdev, hub))
		}
		device := options(cmp.Or(nic.Model, "virtio-net-pci")+",netdev="+netdev, "mac", nic.MACAddress)
		if i > 0 || boot.bootFile == "" {
			device += ",romfile="
		} else {
			device += ",bootindex=0"
		}
		args = append(args, "-device", device)
	}
	return args
}

// namespaceFlags make a namespace one that Linux shows no usable disk of. It refuses zones whose size is no power of two.
var namespaceFlags = map[Bus]string{NVMeZoned: "zoned=on,zoned.zone_size=3M,zoned.zone_capacity=3M",
	NVMeDetached: "detached=on"}

func (d Description) diskFlags(boot source) []string {
	var args []string
	scsi, usb, sata, ata := false, false, 0, 0
	for i, disk := range d.Disks {
		drive := fmt.Sprintf("if=none,id=disk%d,format=raw,discard=%s", i, map[bool]string{true: "ignore", false: "unmap"}[disk.IgnoreDiscard])
		if disk.ReadOnly {
			drive += ",readonly=on"
		}
		if disk.NBD != "" {
			drive = options(drive, "file", "nbd:unix:"+disk.NBD)
		} else {
			// The host does not fall with the guest: what QEMU has handed to it stays, and a flush costs nothing.
			drive = options(drive+",cache=unsafe", "file", disk.Path)
		}
		var device string
		switch disk.Bus {
		case Virtio:
			device = "virtio-blk-pci"
		case SATA:
			device = fmt.Sprintf("ide-hd,bus=ide.%d", sata)
			sata++
		case ATA:
			if ata == 0 {
				args = append(args, "-device", "piix3-ide,id=piix")
			}
			device = fmt.Sprintf("ide-hd,bus=piix.%d", ata)
			ata++
		case SCSI:
			device = "scsi-hd,bus=scsi0.0"
			if !scsi {
				args = append(args, "-device", "virtio-scsi-pci,id=scsi0")
			}
			scsi = true
		case USB:
			if !usb {
				args = append(args, "-device", "qemu-xhci,id=usb0")
			}
			usb, device = true, "usb-storage,bus=usb0.0,removable=on"
		case LSI:
			args = append(args, "-device", fmt.Sprintf("lsi53c895a,id=lsi%d", i))
			device = fmt.Sprintf("scsi-hd,bus=lsi%d.0", i)
		case NVMeZoned, NVMeDetached:
			args = append(args, "-device", fmt.Sprintf("nvme-subsys,id=subsys%d", i),
				"-device", options(fmt.Sprintf("nvme,id=nvme%d,subsys=subsys%d", i, i), "serial", disk.Serial),
				"-drive", drive,
				"-device", fmt.Sprintf("nvme-ns,bus=nvme%d,drive=disk%d,%s", i, i, namespaceFlags[disk.Bus]))
			continue
		default:
			device = "nvme"
		}
		device = options(fmt.Sprintf("%s,drive=disk%d", device, i), "serial", disk.Serial)
		if boot.disks {
			device += fmt.Sprintf(",bootindex=%d", i+1)
		}
		args = append(args, "-drive", drive, "-device", device)
	}
	return args
}
