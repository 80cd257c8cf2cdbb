// SPDX-License-Identifier: Apache-2.0

package metalprobe

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/metalaw/metalaw/metalprobe/drive"
)

// DiskFacts is what the kernel says of one block device, as far as it decides whether a wipe may erase it.
type DiskFacts struct {
	// Name is the kernel's name, such as nvme0n1.
	Name string
	// Device is the device's own path below /sys, with all links resolved.
	Device string
	// Removable and ReadOnly are the kernel's flags of these names.
	Removable, ReadOnly bool
	// Controllers are those of the disk's NVMe subsystem, through whichever of them the disk is reached.
	Controllers []NVMeController
	// Sharing says whether other hosts may use the NVMe namespace as well.
	Sharing NVMeSharing
	// CardType is "MMC" for an eMMC and "SD" for a card; empty for other disks.
	CardType string
	// HostDriver is the driver of the disk's SCSI host, or of the adapter's PCI function.
	HostDriver string
	// Twins are other disks with the same wwid: paths to one disk.
	Twins []string
	// Multipath is the device-mapper multipath device that the disk is a path of.
	Multipath string
	// VirtualMachine is true where the firmware's tables name a hypervisor.
	VirtualMachine bool
	// Reservation says whether a host holds an NVMe or SCSI disk. It does not count for others, which know no reservations.
	Reservation drive.Reservation
	// Hidden says what the disk hides, and HiddenUnknown why that is not known; both are empty for a disk that hides nothing.
	Hidden, HiddenUnknown string
	// Sanitizing says that a sanitize runs in the drive, which until its end answers neither of the above.
	Sanitizing bool
	// Enclosure names the SES enclosure that the disk is in, where that is not known to be a part of this machine.
	Enclosure string
	// BMCMedium names the BMC whose virtual medium a USB device is known to be.
	BMCMedium string
	// EraseRemovable is true where the policy asks to erase removable media that are not the BMC's.
	EraseRemovable bool
	// Allowed is true where the policy names the disk as one to erase in spite of a doubt.
	Allowed bool
}

// NVMeController is one way to an NVMe namespace.
type NVMeController struct {
	Name string
	// Transport is the kernel's word: pcie, tcp, rdma, fc, loop.
	Transport string
	// PCIVendor is the vendor of the PCI function, such as 0x144d.
	PCIVendor string
}

// NVMeSharing says whether a namespace can be attached to more than one controller (CMIC and NMIC of NVMe).
type NVMeSharing int

const (
	// SharingUnknown means that the drive was not asked, or did not answer.
	SharingUnknown NVMeSharing = iota
	// SharingNone means that only this controller reaches the namespace.
	SharingNone
	// SharingPossible means that another host may use the namespace at the same time.
	SharingPossible
)

// Standing says what a wipe does with a disk.
type Standing string

const (
	// DiskOurs is a fixed disk of this machine: it is erased.
	DiskOurs Standing = "Ours"
	// DiskNotFixed is no fixed disk: it is left as it is, and the wipe does not fail.
	DiskNotFixed Standing = "NotFixed"
	// DiskRefused is a disk that may belong to somebody else: it is left as it is, and the wipe fails.
	DiskRefused Standing = "Refused"
)

// Verdict is what a wipe does with a disk, and why.
type Verdict struct {
	Standing Standing
	// Transport is how the disk is attached, such as nvme/pcie, sata or iscsi.
	Transport string
	// Reason says why the disk is not erased; for a disk that is, what the erase leaves.
	Reason string
	// OverwriteOnly says that the disk is a volume, where a discard reaches no disk.
	OverwriteOnly bool
	// Sanitizing says that a sanitize runs in the drive: the erase waits for its end, and then judges the disk anew.
	Sanitizing bool
}

// The transports that a verdict names, beside nvme/ and the kernel's word.
const (
	transportISCSI   = "iscsi"
	transportFC      = "fc"
	transportUSB     = "usb"
	transportVirtio  = "virtio"
	transportSATA    = "sata"
	transportSAS     = "sas"
	transportMMC     = "mmc"
	transportRAID    = "raid"
	transportUnknown = "unknown"
)

// transports tells the transport by a directory of the device's path. Remote ones come first, because their path begins
// with that of a local adapter.
var transports = []struct {
	directory *regexp.Regexp
	transport string
}{
	{regexp.MustCompile(`^session\d+$`), transportISCSI},
	{regexp.MustCompile(`^rport-\d+:`), transportFC},
	{regexp.MustCompile(`^usb\d+$`), transportUSB},
	{regexp.MustCompile(`^virtio\d+$`), transportVirtio},
	{regexp.MustCompile(`^mmc_host$`), transportMMC},
	{regexp.MustCompile(`^ata\d+$`), transportSATA},
	{regexp.MustCompile(`^end_device-\d+:`), transportSAS},
}

// raidDrivers are SCSI host drivers whose disks are volumes, or drives that the adapter hides, where the path shows no
// SAS end device: the kernel's names of the adapters of Broadcom, Microchip and HPE.
var raidDrivers = []string{"megaraid_sas", "mpi3mr", "mpt2sas", "mpt3sas", "smartpqi", "hpsa", "aacraid"}

// doubtfulRAIDDrivers are further drivers of RAID adapters, of Areca, HighPoint, Marvell, 3ware and Microchip. That
// their volumes are local is not proved, so the policy has to allow each disk.
var doubtfulRAIDDrivers = []string{"arcmsr", "hptiop", "mvumi", "3w-9xxx", "3w-sas", "3w-xxxx", "pm80xx"}

// dpuVendors are PCI vendors whose NVMe controllers show storage of elsewhere as a local drive: NVIDIA BlueField (its
// SNAP manual), AMD Pensando, Amazon Nitro (1d0f:8061 is EBS). The numbers are those of the PCI ID list. A DPU that is
// configured to show another vendor's number cannot be told.
var dpuVendors = map[string]string{
	"0x15b3": "NVIDIA BlueField",
	"0x1dd8": "AMD Pensando",
	"0x1d0f": "Amazon Nitro",
}

// eMMCArea matches the areas of an eMMC that hold firmware and keys.
var eMMCArea = regexp.MustCompile(`^mmcblk\d+(boot\d+|rpmb)$`)

// JudgeDisk decides what a wipe does with a disk. A disk is erased only where its transport is known to be local:
// what is unknown is refused, because an erased disk of somebody else does not come back. The policy can lift a doubt, but
// it cannot make a remote disk local.
func JudgeDisk(f DiskFacts) Verdict {
	verdict := Verdict{Standing: DiskRefused, Transport: transportOf(f)}
	if verdict.Reason = notFixed(f, verdict.Transport); verdict.Reason != "" {
		verdict.Standing = DiskNotFixed
		return verdict
	}
	if verdict.Reason = refusal(f, verdict.Transport); verdict.Reason != "" {
		return verdict
	}
	if verdict.Reason = doubt(f, verdict.Transport); verdict.Reason != "" {
		if !f.Allowed {
			return verdict
		}
		verdict.Reason = "the policy allows it, although " + verdict.Reason
	}
	verdict.Standing = DiskOurs
	if f.Sanitizing {
		verdict.Sanitizing = true
		verdict.Reason = strings.TrimPrefix(verdict.Reason+"; "+sanitizes, "; ")
	}
	if verdict.Transport == transportRAID {
		verdict.OverwriteOnly = true
		verdict.Reason = strings.TrimPrefix(verdict.Reason+"; "+raidLimit, "; ")
	}
	return verdict
}

// sanitizes says why a drive is not erased at once.
const sanitizes = "a sanitize that was started before runs in the drive, and the wipe waits for its end"

// raidLimit is what the erase of a volume leaves.
const raidLimit = "RAID volume: only its blocks were overwritten, not what the adapter keeps beside them"

// refusal says why a disk is never erased, whatever the policy says; empty where it may be.
func refusal(f DiskFacts, transport string) string {
	switch {
	case transport == transportISCSI, transport == transportFC:
		return fmt.Sprintf("it is remote: it is attached over %s; disconnect it", transport)
	case f.ReadOnly:
		return "it is read-only; release its write protection"
	case f.Multipath != "":
		return fmt.Sprintf("it is a path of the multipath device %s, and may be shared; disconnect it", f.Multipath)
	case len(f.Twins) > 0:
		return fmt.Sprintf("it has the same wwid as %s: both are paths to one disk that may be shared", strings.Join(f.Twins, ", "))
	case isNVMe(f.Name):
		if why := remoteNVMe(f.Controllers); why != "" {
			return why
		}
	case transport == transportUSB && !f.Removable:
		return "it is attached over usb and not removable; unplug it"
	case transport == transportMMC && f.CardType != "MMC" && !isCard(f, transport):
		return fmt.Sprintf("it is a card of unknown type %q", f.CardType)
	case transport == transportUnknown:
		return fmt.Sprintf("how it is attached is not known, so it may be remote (%s)", f.Device)
	}
	return f.Hidden
}

// doubt says why a disk may belong to somebody else or hide something; empty where nothing speaks for that. The policy can
// lift it for a disk.
func doubt(f DiskFacts, transport string) string {
	if isNVMe(f.Name) {
		if why := doubtfulNVMe(f); why != "" {
			return why
		}
	}
	switch {
	case transport == transportVirtio && !f.VirtualMachine:
		return "it is a virtio disk, and the firmware does not say that this machine is a virtual one; a DPU shows remote volumes so"
	case transport == transportRAID && slices.Contains(doubtfulRAIDDrivers, f.HostDriver):
		return fmt.Sprintf("its RAID driver %s is not known to show local volumes alone; name the disk in "+
			"wipe.allowed", f.HostDriver)
	case f.Enclosure != "":
		return fmt.Sprintf("it is in the enclosure %s, which is not known to be a part of this machine", f.Enclosure)
	case f.Sanitizing: // the other doubts are asked about when it has ended
		return ""
	}
	return cmp.Or(reserved(f, transport), f.HiddenUnknown)
}

// reserved says that a host has reserved the disk, or that this is not known; empty for a disk that knows no reservations.
func reserved(f DiskFacts, transport string) string {
	scsi := strings.HasPrefix(f.Name, "sd") && transport != transportSATA && transport != transportUSB
	switch {
	case !scsi && !isNVMe(f.Name), f.Reservation == drive.ReservationNone:
		return ""
	case f.Reservation == drive.ReservationHeld:
		return "a host holds a reservation of it, or is registered for one; release it"
	}
	return "the drive did not say whether a host has reserved it"
}

// notFixed says why a disk is left alone although nothing refuses it; empty for a fixed one. A SATA disk in a hot-swap
// bay is fixed all the same: Linux before 6.11 flags it as removable because its port is (ATA_PFLAG_EXTERNAL of
// libata). For cards the kernel never sets the flag, so their type decides.
func notFixed(f DiskFacts, transport string) string {
	if why := noDisk(f.Name); why != "" {
		return why
	}
	removable := removableMedium(f, transport)
	switch {
	case removable == "":
		return ""
	case f.BMCMedium != "":
		return "virtual medium of the BMC (" + f.BMCMedium + ")"
	case !f.EraseRemovable:
		return removable
	case f.ReadOnly && transport != transportUnknown:
		return removable + ", and read-only"
	}
	return ""
}

// removableMedium says of what kind a removable medium is; empty for a fixed disk.
func removableMedium(f DiskFacts, transport string) string {
	switch {
	case isCard(f, transport):
		return "removable SD card"
	case !f.Removable:
		return ""
	case transport == transportUSB:
		return "removable medium or virtual medium of the BMC"
	case transport == transportRAID && slices.Contains(doubtfulRAIDDrivers, f.HostDriver) && !f.EraseRemovable &&
		!f.Allowed:
		return fmt.Sprintf("the kernel calls it removable, as some RAID drivers call every volume (%s); name it "+
			"in wipe.allowed to erase it",
			f.HostDriver)
	case transport == transportUnknown:
		return "the kernel calls it removable, and how it is attached is not known; some RAID drivers call every " +
			"volume so"
	}
	return ""
}

// isCard finds an SD card, also one that has other functions besides.
func isCard(f DiskFacts, transport string) bool {
	return transport == transportMMC && strings.HasPrefix(f.CardType, "SD")
}

// noDisk says of what kind a block device is that is never a disk; empty for what may be one.
func noDisk(name string) string {
	switch {
	case strings.HasPrefix(name, "sr"), strings.HasPrefix(name, "fd"):
		return "optical or floppy drive"
	case eMMCArea.MatchString(name):
		return "firmware area of an eMMC"
	}
	return ""
}

// remoteNVMe says why a namespace that is reached through these controllers may lead out of the machine; empty where none does.
func remoteNVMe(controllers []NVMeController) string {
	if len(controllers) == 0 {
		return "its NVMe controllers are not known, so it may be remote"
	}
	for _, c := range controllers {
		switch c.Transport {
		case "pcie":
		case "":
			return fmt.Sprintf("the transport of its controller %s is not known, so it may be remote", c.Name)
		default:
			return fmt.Sprintf("it is remote: its controller %s is reached over %s; disconnect it", c.Name, c.Transport)
		}
	}
	return ""
}

// doubtfulNVMe says why a local namespace may be a volume that a DPU shows, or shared; empty where neither is so.
func doubtfulNVMe(f DiskFacts) string {
	for _, c := range f.Controllers {
		switch {
		case c.PCIVendor == "":
			return fmt.Sprintf("the PCI vendor of its controller %s is not known, so a DPU may show it", c.Name)
		case dpuVendors[c.PCIVendor] != "":
			return fmt.Sprintf("its controller %s is of a DPU (%s), which shows remote volumes as local ones", c.Name, dpuVendors[c.PCIVendor])
		}
	}
	switch f.Sharing {
	case SharingNone:
		return ""
	case SharingPossible:
		return "another host may use it: the drive has several controllers and the namespace is shared (NVMe CMIC, NMIC)"
	default:
		return "the drive did not say whether the namespace is shared (NVMe CMIC, NMIC)"
	}
}

// transportOf names how a disk is attached, for people and for JudgeDisk.
func transportOf(f DiskFacts) string {
	if isNVMe(f.Name) {
		var words []string
		for _, c := range f.Controllers {
			if !slices.Contains(words, c.Transport) && c.Transport != "" {
				words = append(words, c.Transport)
			}
		}
		if len(words) == 0 {
			return "nvme/" + transportUnknown
		}
		return "nvme/" + strings.Join(words, "+")
	}
	directories := strings.Split(f.Device, "/")
	for _, t := range transports {
		if slices.ContainsFunc(directories, t.directory.MatchString) {
			return t.transport
		}
	}
	if slices.Contains(raidDrivers, f.HostDriver) || slices.Contains(doubtfulRAIDDrivers, f.HostDriver) {
		return transportRAID
	}
	return transportUnknown
}

func isNVMe(name string) bool { return strings.HasPrefix(name, "nvme") }

// Where NVMe's Identify says whether several controllers (CMIC of the drive) may reach a namespace (NMIC).
const (
	cmicByte = 76
	nmicByte = 30
)

// sharing reads both: a namespace is shared where it may be attached to several controllers and the drive has several,
// by its ports or as virtual functions.
func sharing(cmic, nmic byte) NVMeSharing {
	const ports, controllers, virtualFunctions, attachable = 1 << 0, 1 << 1, 1 << 2, 1 << 0
	if nmic&attachable != 0 && cmic&(ports|controllers|virtualFunctions) != 0 {
		return SharingPossible
	}
	return SharingNone
}
