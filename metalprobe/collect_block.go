// SPDX-License-Identifier: Apache-2.0

package metalprobe

import (
	"cmp"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

// disks reads the block devices that have hardware behind them: no partitions, loops, RAM disks or mappings.
func (h *Host) disks(data *Data) error {
	names, err := h.blockDevices()
	for _, name := range names {
		if noDisk(name) == "" {
			data.Storage = append(data.Storage, h.storage(name))
		}
	}
	for _, m := range h.hiddenMedia() {
		data.Storage = append(data.Storage, m.info)
	}
	return err
}

// blockDevices names those that have hardware behind them and a medium: no partitions, loops, mappings, hidden paths,
// and no card reader without a card.
func (h *Host) blockDevices() ([]string, error) {
	names, err := h.list("sys/block")
	return slices.DeleteFunc(names, func(name string) bool {
		dir := path.Join("sys/block", name)
		return !h.exists(dir+"/device") || h.word(dir+"/hidden") == "1" || h.number(dir+"/size") <= 0
	}), err
}

// storage describes one disk. Removable means that a wipe leaves it alone and need not cover it, so JudgeDisk decides:
// the kernel flags fixed disks in hot-swap bays, and does not flag cards.
func (h *Host) storage(name string) policyv1alpha1.BlockDevice {
	const sector = 512 // the unit of "size", whatever the disk's own sectors are
	dir := path.Join("sys/block", name)
	verdict := JudgeDisk(h.facts(name))
	return policyv1alpha1.BlockDevice{
		Path:              "/dev/" + strings.ReplaceAll(name, "!", "/"),
		Name:              name,
		Rotational:        h.word(dir+"/queue/rotational") == "1",
		Removable:         verdict.Standing == DiskNotFixed,
		Transport:         verdict.Transport,
		ReadOnly:          h.word(dir+"/ro") == "1",
		Vendor:            h.word(dir + "/device/vendor"),
		Model:             h.model(dir),
		Serial:            h.serial(dir),
		WWID:              h.wwid(dir),
		PhysicalBlockSize: h.number(dir + "/queue/physical_block_size"),
		LogicalBlockSize:  h.number(dir + "/queue/logical_block_size"),
		HWSectorSize:      h.number(dir + "/queue/hw_sector_size"),
		SizeBytes:         h.number(dir+"/size") * sector,
		Firmware:          cmp.Or(h.word(dir+"/device/firmware_rev"), h.word(dir+"/device/rev"), h.word(dir+"/device/fwrev")),
		PCIAddress:        h.diskPCIAddress(name),
		Slot:              h.slot(name),
		NUMANodeID:        int32(h.number(dir + "/device/numa_node")),
	}
}

// model reads the model; cards call it their name.
func (h *Host) model(dir string) string {
	return cmp.Or(h.word(dir+"/device/model"), h.word(dir+"/device/name"))
}

// diskPCIAddress finds the PCI function of a disk's adapter. An NVMe disk with native multipath hangs below no function, but its
// controllers do.
func (h *Host) diskPCIAddress(name string) string {
	dir := h.resolve("sys/block/" + name)
	if address := pciAddress(dir); address != "" || !isNVMe(name) {
		return address
	}
	for _, controller := range h.controllers(name, dir) {
		if address := pciAddress(h.resolve("sys/class/nvme/" + controller.Name)); address != "" {
			return address
		}
	}
	return ""
}

// slot names where a disk sits: its bay in an enclosure, its PCI slot, or its port of a SATA adapter.
func (h *Host) slot(name string) string {
	if _, bay := h.component(name); bay != "" {
		return bay
	}
	if isNVMe(name) {
		address, _, _ := strings.Cut(h.diskPCIAddress(name), ".")
		slots, _ := h.list("sys/bus/pci/slots") // none is an answer: the firmware names no slots
		for _, slot := range slots {
			if address != "" && h.word("sys/bus/pci/slots/"+slot+"/address") == address {
				return slot
			}
		}
		return ""
	}
	for part := range strings.SplitSeq(h.resolve("sys/block/"+name), "/") {
		if ataPort.MatchString(part) {
			return part
		}
	}
	return ""
}

var ataPort = regexp.MustCompile(`^ata\d+$`)

// serial reads the serial number: NVMe and virtio disks offer a file, SCSI disks page 0x80 of their vital data,
// whose text follows a header of four bytes.
func (h *Host) serial(dir string) string {
	if word := cmp.Or(h.word(dir+"/device/serial"), h.word(dir+"/serial")); word != "" {
		return word
	}
	page, err := fs.ReadFile(h.Root, dir+"/device/vpd_pg80")
	if err != nil || len(page) <= 4 {
		return ""
	}
	return strings.TrimSpace(strings.Trim(string(page[4:]), "\x00"))
}

// InUse says what uses a disk: a mounted file system, swap, or a mapping on top (LVM, RAID, encryption).
// Empty means that nothing was found.
func (h *Host) InUse(name string) string {
	dir := path.Join("sys/block", name)
	parts := []string{dir}
	entries, _ := h.list(dir)
	for _, entry := range entries {
		if h.exists(path.Join(dir, entry, "partition")) {
			parts = append(parts, path.Join(dir, entry))
		}
	}
	for _, part := range parts {
		if holders, _ := h.list(part + "/holders"); len(holders) > 0 {
			return "it is held by " + holders[0]
		}
		device := "/dev/" + strings.ReplaceAll(path.Base(part), "!", "/")
		if where := h.mountedAt(h.word(part+"/dev"), device); where != "" {
			return "it is mounted at " + where
		}
		for line := range strings.Lines(h.word("proc/swaps")) {
			if fields := strings.Fields(line); len(fields) > 0 && fields[0] == device {
				return "it is used as swap"
			}
		}
	}
	return ""
}

// mountedAt finds where a device is mounted, by its number and by its path (some file systems have numbers of their own).
func (h *Host) mountedAt(number, device string) string {
	for line := range strings.Lines(h.word("proc/self/mountinfo")) {
		fields := strings.Fields(line)
		if len(fields) < 5 {
			continue
		}
		_, source, _ := strings.Cut(line, " - ")
		words := strings.Fields(source)
		if (number != "" && fields[2] == number) || (len(words) > 1 && words[1] == device) {
			return fields[4]
		}
	}
	return ""
}
