// SPDX-License-Identifier: Apache-2.0

package metalprobe

import (
	"cmp"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/metalaw/metalaw/metalprobe/erasure"
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
	facts := h.facts(name)
	dir := "sys/block/" + name
	facts.Allowed = named(h.Allowed, h.wwid(dir), h.serial(dir), h.model(dir))
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
	}
	return JudgeDisk(facts)
}

// protocol tells in what language a disk can be asked. Removable and remote disks are not asked.
func (h *Host) protocol(name string, facts DiskFacts) erasure.Protocol {
	transport := transportOf(facts)
	switch {
	case notFixed(facts, transport) != "" || refusal(facts, transport) != "":
		return erasure.NoProtocol
	case isNVMe(name):
		return erasure.NVMe
	case !strings.HasPrefix(name, "sd"):
		return erasure.NoProtocol
	case transport == transportSATA, transport == transportSAS && h.word("sys/block/"+name+"/device/vendor") == "ATA":
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
	dir := h.resolve("sys/block/" + name)
	facts := DiskFacts{
		Name:           name,
		Device:         strings.TrimPrefix(dir, "sys/"),
		Removable:      h.word(dir+"/removable") == "1",
		ReadOnly:       h.word(dir+"/ro") == "1",
		Twins:          h.twins(name),
		Multipath:      h.multipath(dir),
		VirtualMachine: h.virtualMachine(),
		Enclosure:      h.foreignEnclosure(name),
	}
	if isNVMe(name) {
		facts.Controllers = h.controllers(name, dir)
	}
	if strings.HasPrefix(name, "mmcblk") {
		facts.CardType = h.word(dir + "/device/type")
	}
	for part := range strings.SplitSeq(dir, "/") {
		if scsiHost.MatchString(part) {
			facts.HostDriver = h.word("sys/class/scsi_host/" + part + "/proc_name")
		}
	}
	return facts
}

// resolve follows the link that a name of /sys is; a name that is no link stays as it is. What a link of /sys names
// contains no further link.
func (h *Host) resolve(name string) string {
	target, err := fs.ReadLink(h.Root, name)
	if err != nil || path.IsAbs(target) {
		return name
	}
	return path.Join(path.Dir(name), target)
}

// controllers finds every controller of a namespace's subsystem. With native multipath the disk hangs below the
// subsystem, and its paths are hidden disks (nvme0c1n1 is the path of nvme0n1 by controller nvme1); else it hangs below
// its controller, and only the subsystem names both. It returns none where it cannot tell.
func (h *Host) controllers(name, dir string) []NVMeController {
	parent := path.Base(h.resolve(dir + "/device"))
	var names []string
	if controllerName.MatchString(parent) {
		names = append(names, parent)
	}
	subsystems, _ := h.list("sys/class/nvme-subsystem") // none is an answer: the disk is refused
	known := false
	for _, subsystem := range subsystems {
		entries, _ := h.list("sys/class/nvme-subsystem/" + subsystem)
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
		found = append(found, NVMeController{Name: controller, Transport: h.word(base + "/transport"), PCIVendor: h.word(base + "/device/vendor")})
	}
	return found
}

// hiddenPaths names the controllers by which native multipath reaches a namespace.
func (h *Host) hiddenPaths(name string) []string {
	numbers := namespaceName.FindStringSubmatch(name)
	disks, err := h.list("sys/block")
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

// twins names the other visible disks with the same wwid.
func (h *Host) twins(name string) []string {
	wwid := h.wwid("sys/block/" + name)
	disks, err := h.list("sys/block")
	if wwid == "" || err != nil {
		return nil
	}
	var found []string
	for _, other := range disks {
		dir := "sys/block/" + other
		if other != name && h.word(dir+"/hidden") != "1" && h.exists(dir+"/device") && h.wwid(dir) == wwid {
			found = append(found, other)
		}
	}
	return found
}

func (h *Host) wwid(dir string) string {
	return cmp.Or(h.word(dir+"/wwid"), h.word(dir+"/device/wwid"))
}

// multipath names the device-mapper multipath device on top of a disk.
func (h *Host) multipath(dir string) string {
	holders, _ := h.list(dir + "/holders") // other holders are for InUse
	for _, holder := range holders {
		if strings.HasPrefix(h.word("sys/block/"+holder+"/dm/uuid"), "mpath-") {
			return holder
		}
	}
	return ""
}

// virtualMachine is true where the firmware's tables name a hypervisor. What they do not say is a real machine.
func (h *Host) virtualMachine() bool {
	const dir = "sys/class/dmi/id/"
	for _, field := range []string{"sys_vendor", "product_name", "chassis_vendor", "bios_vendor"} {
		word := h.word(dir + field)
		if slices.ContainsFunc(hypervisors, func(begin string) bool { return strings.HasPrefix(word, begin) }) {
			return true
		}
	}
	return h.word(dir+"sys_vendor") == "Microsoft Corporation" && h.word(dir+"product_name") == "Virtual Machine"
}
