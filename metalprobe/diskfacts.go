// SPDX-License-Identifier: Apache-2.0

package metalprobe

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/metalaw/metalaw/metalprobe/bmcmedia"
	"github.com/metalaw/metalaw/metalprobe/erasure"
	"github.com/metalaw/metalaw/metalprobe/twins"
)

var (
	controllerName = regexp.MustCompile(`^nvme\d+$`)
	namespaceName  = regexp.MustCompile(`^nvme(\d+)n(\d+)$`)
	scsiHost       = regexp.MustCompile(`^host\d+$`)
)

// hypervisors begin a field of the firmware's tables on a virtual machine. Clouds that offer bare metal under the same
// name (Amazon EC2, Google) are left out: there a virtio or NVMe disk may be a remote volume.
var hypervisors = []string{"QEMU", "KVM", "Bochs", "VMware", "innotek GmbH", "VirtualBox", "Xen", "Parallels", "BHYVE"}

// judge decides about one disk by what the kernel and the drive say now.
func (h *Host) judge(name string) Verdict {
	return h.judgeWith(name, h.Policy.Removable == RemovableErase)
}

// judgeWith decides as judge does, for a policy that asks to erase removable media or does not.
func (h *Host) judgeWith(name string, eraseRemovable bool) Verdict {
	facts := h.facts(name)
	facts.EraseRemovable = eraseRemovable
	dir := "sys/block/" + name
	facts.Allowed = named(h.Policy.Allowed, h.sys().WWID(dir), h.sys().Serial(dir), h.sys().Model(dir))
	if isNVMe(name) && h.Sharing != nil {
		facts.Sharing = h.Sharing(name)
	}
	switch protocol := h.protocol(name, facts); {
	case protocol == erasure.NoProtocol:
	case h.Drive == nil:
		facts.HiddenUnknown = "the drive was not asked whether it hides anything"
	default:
		answers := h.Drive(name, protocol)
		facts.Reservation, facts.Hidden, facts.HiddenUnknown = answers.Reservation, answers.Hidden, answers.HiddenUnknown
		facts.Sanitizing = answers.Sanitizing
	}
	return JudgeDisk(facts)
}

// protocol tells in what language a disk can be asked. Removable and remote disks are not asked, nor is what is behind
// a USB bridge.
func (h *Host) protocol(name string, facts DiskFacts) erasure.Protocol {
	transport := transportOf(facts)
	switch {
	case notFixed(facts, transport) != "", refusal(facts, transport) != "", transport == transportUSB:
		return erasure.NoProtocol
	case isNVMe(name):
		return erasure.NVMe
	case !strings.HasPrefix(name, "sd"):
		return erasure.NoProtocol
	case transport == transportSATA, transport == transportSAS && h.sys().Word("sys/block/"+name+"/device/vendor") == "ATA":
		return erasure.ATA
	}
	return erasure.SCSI
}

// named says whether a policy's list holds the wwid, the serial number or the model of a disk.
func named(list []string, identities ...string) bool {
	return slices.ContainsFunc(identities, func(id string) bool { return id != "" && slices.Contains(list, id) })
}

// facts reads what /sys tells of one disk.
func (h *Host) facts(name string) DiskFacts {
	dir := h.sys().Resolve("sys/block/" + name)
	facts := DiskFacts{
		Name:           name,
		Device:         strings.TrimPrefix(dir, "sys/"),
		Removable:      h.sys().Word(dir+"/removable") == "1",
		ReadOnly:       h.sys().Word(dir+"/ro") == "1",
		Twins:          h.twins(name),
		Multipath:      h.multipath(dir),
		VirtualMachine: h.VirtualMachine(),
		Enclosure:      h.sys().ForeignEnclosure(name),
	}
	if isNVMe(name) {
		facts.Controllers = h.controllers(name, dir)
	}
	if facts.Removable {
		facts.BMCMedium = bmcmedia.Whose(bmcmedia.Read(h.sys(), dir))
	}
	if strings.HasPrefix(name, "mmcblk") {
		facts.CardType = h.sys().Word(dir + "/device/type")
	}
	for part := range strings.SplitSeq(dir, "/") {
		if scsiHost.MatchString(part) {
			facts.HostDriver = h.sys().HostDriver(dir, part)
		}
	}
	return facts
}

// controllers finds every controller of a namespace's subsystem. With native multipath the disk hangs below the
// subsystem, and its paths are hidden disks (nvme0c1n1 is the path of nvme0n1 by controller nvme1); else it hangs below
// its controller, and only the subsystem names both. It returns none where it cannot tell.
func (h *Host) controllers(name, dir string) []NVMeController {
	parent := path.Base(h.sys().Resolve(dir + "/device"))
	var names []string
	if controllerName.MatchString(parent) {
		names = append(names, parent)
	}
	subsystems, _ := h.sys().List("sys/class/nvme-subsystem") // none is an answer: the disk is refused
	known := false
	for _, subsystem := range subsystems {
		entries, _ := h.sys().List("sys/class/nvme-subsystem/" + subsystem)
		if subsystem != parent && !slices.Contains(entries, parent) {
			continue
		}
		known = true
		names = append(names, slices.DeleteFunc(entries, func(entry string) bool { return !controllerName.MatchString(entry) })...)
	}
	if !known {
		return nil
	}
	names = append(names, h.hiddenPaths(name)...)
	slices.Sort(names)
	var found []NVMeController
	for _, controller := range slices.Compact(names) {
		base := "sys/class/nvme/" + controller
		found = append(found, NVMeController{
			Name: controller, Transport: h.sys().Word(base + "/transport"), PCIVendor: h.sys().Word(base + "/device/vendor"),
		})
	}
	return found
}

// hiddenPaths names the controllers by which native multipath reaches a namespace.
func (h *Host) hiddenPaths(name string) []string {
	numbers := namespaceName.FindStringSubmatch(name)
	disks, err := h.sys().List("sys/block")
	if numbers == nil || err != nil {
		return nil
	}
	hidden := regexp.MustCompile(`^nvme` + numbers[1] + `c(\d+)n` + numbers[2] + `$`)
	var names []string
	for _, disk := range disks {
		if by := hidden.FindStringSubmatch(disk); by != nil {
			names = append(names, "nvme"+by[1])
		}
	}
	return names
}

// twins names the other visible disks that may be paths to the same disk.
func (h *Host) twins(name string) []string {
	if h.sys().WWID("sys/block/"+name) == "" {
		return nil
	}
	disks, err := h.sys().List("sys/block")
	if err != nil {
		return nil
	}
	var all []twins.Disk
	for _, disk := range disks {
		dir := "sys/block/" + disk
		if disk == name || h.sys().Word(dir+"/hidden") != "1" && h.sys().Exists(dir+"/device") &&
			h.sys().WWID(dir) == h.sys().WWID("sys/block/"+name) {
			all = append(all, twins.Disk{Name: disk, WWID: h.sys().WWID(dir), Serial: h.sys().Serial(dir),
				Private: h.private(disk)})
		}
	}
	at := slices.IndexFunc(all, func(d twins.Disk) bool { return d.Name == name })
	if at < 0 {
		return nil
	}
	return twins.Of(all[at], all)
}

// private says that a disk is a SATA drive, also behind a SAS adapter, or NVMe over PCIe.
func (h *Host) private(name string) bool {
	dir := h.sys().Resolve("sys/block/" + name)
	facts := DiskFacts{Name: name, Device: strings.TrimPrefix(dir, "sys/")}
	if isNVMe(name) {
		facts.Controllers = h.controllers(name, dir)
		return transportOf(facts) == "nvme/pcie"
	}
	transport := transportOf(facts)
	return transport == transportSATA || transport == transportSAS && h.sys().Word(dir+"/device/vendor") == "ATA"
}

// multipath names the device-mapper multipath device on top of a disk.
func (h *Host) multipath(dir string) string {
	holders, _ := h.sys().List(dir + "/holders") // other holders are for InUse
	for _, holder := range holders {
		if strings.HasPrefix(h.sys().Word("sys/block/"+holder+"/dm/uuid"), "mpath-") {
			return holder
		}
	}
	return ""
}

// VirtualMachine is true where the firmware's tables name a hypervisor. What they do not say is a real machine.
func (h *Host) VirtualMachine() bool {
	const dir = "sys/class/dmi/id/"
	for _, field := range []string{"sys_vendor", "product_name", "chassis_vendor", "bios_vendor"} {
		word := h.sys().Word(dir + field)
		if slices.ContainsFunc(hypervisors, func(begin string) bool { return strings.HasPrefix(word, begin) }) {
			return true
		}
	}
	return h.sys().Word(dir+"sys_vendor") == "Microsoft Corporation" && h.sys().Word(dir+"product_name") == "Virtual Machine"
}
