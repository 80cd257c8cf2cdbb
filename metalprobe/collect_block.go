// SPDX-License-Identifier: Apache-2.0

package metalprobe

import (
	"cmp"
	"path"
	"regexp"
	"slices"
	"strings"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/metalprobe/kernel"
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
	names, err := h.sys().List("sys/block")
	return slices.DeleteFunc(names, func(name string) bool {
		dir := path.Join("sys/block", name)
		return !h.sys().Exists(dir+"/device") || h.sys().Word(dir+"/hidden") == "1" || h.sys().Number(dir+"/size") <= 0
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
		Rotational:        h.sys().Word(dir+"/queue/rotational") == "1",
		Removable:         verdict.Standing == DiskNotFixed,
		Transport:         verdict.Transport,
		ReadOnly:          h.sys().Word(dir+"/ro") == "1",
		Vendor:            h.sys().Word(dir + "/device/vendor"),
		Model:             h.sys().Model(dir),
		Serial:            h.sys().Serial(dir),
		WWID:              h.sys().WWID(dir),
		PhysicalBlockSize: h.sys().Number(dir + "/queue/physical_block_size"),
		LogicalBlockSize:  h.sys().Number(dir + "/queue/logical_block_size"),
		HWSectorSize:      h.sys().Number(dir + "/queue/hw_sector_size"),
		SizeBytes:         h.sys().Number(dir+"/size") * sector,
		Firmware:          cmp.Or(h.sys().Word(dir+"/device/firmware_rev"), h.sys().Word(dir+"/device/rev"), h.sys().Word(dir+"/device/fwrev")),
		PCIAddress:        h.diskPCIAddress(name),
		Slot:              h.slot(name),
		NUMANodeID:        int32(h.sys().Number(dir + "/device/numa_node")),
	}
}

// diskPCIAddress finds the PCI function of a disk's adapter. An NVMe disk with native multipath hangs below no function, but its
// controllers do.
func (h *Host) diskPCIAddress(name string) string {
	dir := h.sys().Resolve("sys/block/" + name)
	if address := kernel.PCIAddress(dir); address != "" || !isNVMe(name) {
		return address
	}
	for _, controller := range h.controllers(name, dir) {
		if address := kernel.PCIAddress(h.sys().Resolve("sys/class/nvme/" + controller.Name)); address != "" {
			return address
		}
	}
	return ""
}

// slot names where a disk sits: its bay in an enclosure, its PCI slot, or its port of a SATA adapter.
func (h *Host) slot(name string) string {
	if _, bay := h.sys().Component(name); bay != "" {
		return bay
	}
	if isNVMe(name) {
		return h.sys().PCISlot(h.diskPCIAddress(name))
	}
	for part := range strings.SplitSeq(h.sys().Resolve("sys/block/"+name), "/") {
		if ataPort.MatchString(part) {
			return part
		}
	}
	return ""
}

var ataPort = regexp.MustCompile(`^ata\d+$`)

// InUse says what uses a disk: a mounted file system, swap, or a mapping on top (LVM, RAID, encryption).
// Empty means that nothing was found.
func (h *Host) InUse(name string) string { return h.sys().InUse(name) }
