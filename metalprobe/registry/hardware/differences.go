// SPDX-License-Identifier: Apache-2.0

// Package hardware compares what two reports say of a machine, and keeps reports small.
package hardware

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

// Parts of a HardwareDifference.
const (
	PartCPU      = "CPU"
	PartDIMM     = "DIMM"
	PartDisk     = "Disk"
	PartNIC      = "NIC"
	PartPCI      = "PCIDevice"
	PartFirmware = "Firmware"
)

const (
	maxDifferences = 64
	maxName        = 256
	maxDetail      = 512
)

// part is one part of a machine, as it is compared.
type part struct {
	// key tells it from others in the same machine, and name tells a reader which it is.
	key, name string
	// value is what makes it another part, where key stays.
	value string
	// firmware is its firmware; empty where it is not known.
	firmware string
}

// Differences says what became of the parts of a machine between two reports, at most 64 entries. What comes and goes by itself makes
// no difference: addresses, carriers, neighbours, names of devices and disks that are attached over a network. Neither does a kind of
// parts that one of the two agents could not read.
func Differences(before, after *policyv1alpha1.ProbeData) []policyv1alpha1.HardwareDifference {
	var found []policyv1alpha1.HardwareDifference
	for _, kind := range []struct {
		part  string
		parts func(*policyv1alpha1.ProbeData) []part
	}{
		{PartDIMM, dimms}, {PartDisk, disks}, {PartNIC, nics}, {PartCPU, cpus}, {PartPCI, devices},
	} {
		if unread(before, kind.part) || unread(after, kind.part) {
			continue
		}
		found = append(found, compare(kind.part, kind.parts(before), kind.parts(after))...)
	}
	if was, is := bios(before), bios(after); was != "" && is != "" && was != is {
		found = append(found, changed(PartFirmware, "BIOS", was, is))
	}
	return found[:min(len(found), maxDifferences)]
}

// sources are the words by which problems name the collector of each kind of parts.
var sources = map[string][]string{
	PartCPU:  {"cpu"},
	PartDIMM: {"memory", "dimm", "smbios", "dmi"},
	PartDisk: {"storage", "disk", "block"},
	PartNIC:  {"nic", "network"},
	PartPCI:  {"pci"},
}

// unread says that a report is incomplete as to a kind of parts. A kernel module that did not load may hide anything.
func unread(data *policyv1alpha1.ProbeData, kind string) bool {
	return slices.ContainsFunc(data.Problems, func(p policyv1alpha1.ProbeProblem) bool {
		source := strings.ToLower(p.Source)
		switch source {
		case "module":
			return true
		case trimSource:
			return trimmed(p.Message, kind)
		}
		return slices.ContainsFunc(sources[kind], func(word string) bool { return strings.Contains(source, word) })
	})
}

func compare(kind string, before, after []part) []policyv1alpha1.HardwareDifference {
	var removed, added, altered []policyv1alpha1.HardwareDifference
	left := slices.Clone(after)
	for _, was := range before {
		i := slices.IndexFunc(left, func(p part) bool { return p.key == was.key })
		if i < 0 {
			removed = append(removed, difference(kind, policyv1alpha1.PartRemoved, was.name, was.value))
			continue
		}
		is := left[i]
		left = slices.Delete(left, i, i+1)
		if was.value != is.value {
			altered = append(altered, changed(kind, is.name, was.value, is.value))
		}
		if was.firmware != "" && is.firmware != "" && was.firmware != is.firmware {
			altered = append(altered, changed(PartFirmware, kind+" "+is.name, was.firmware, is.firmware))
		}
	}
	for _, is := range left {
		added = append(added, difference(kind, policyv1alpha1.PartAdded, is.name, is.value))
	}
	return slices.Concat(removed, added, altered)
}

func changed(kind, name, was, is string) policyv1alpha1.HardwareDifference {
	return difference(kind, policyv1alpha1.PartChanged, name, fmt.Sprintf("was %s, is %s", cmp.Or(was, "unknown"), cmp.Or(is, "unknown")))
}

func difference(part string, kind policyv1alpha1.DifferenceKind, name, detail string) policyv1alpha1.HardwareDifference {
	return policyv1alpha1.HardwareDifference{Part: part, Kind: kind, Name: cut(name, maxName), Detail: cut(detail, maxDetail)}
}

func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "")
}

func words(all ...string) string {
	return strings.Join(slices.DeleteFunc(all, func(word string) bool { return word == "" }), " ")
}

func dimms(data *policyv1alpha1.ProbeData) []part {
	var found []part
	for _, m := range data.Memory {
		if m.SizeBytes == 0 {
			continue // an empty slot
		}
		slot := slotOf(m)
		value := words(m.Vendor, m.PartNumber, fmt.Sprintf("%d MiB", m.SizeBytes>>20))
		if m.SerialNumber != "" {
			value += " serial " + m.SerialNumber
		}
		found = append(found, part{key: slot, name: cmp.Or(slot, "memory"), value: value})
	}
	return found
}

func slotOf(m policyv1alpha1.MemoryDevice) string { return words(m.DeviceLocator, m.BankLocator) }

// Slots are the slots that hold a memory module, by the names that a HardwareDifference has for them; false where the report is
// incomplete as to memory.
func Slots(data *policyv1alpha1.ProbeData) (slots []string, complete bool) {
	for _, m := range data.Memory {
		if m.SizeBytes > 0 {
			slots = append(slots, cut(cmp.Or(slotOf(m), "memory"), maxName))
		}
	}
	return slots, len(slots) > 0 && !unread(data, PartDIMM)
}

func disks(data *policyv1alpha1.ProbeData) []part {
	var found []part
	for _, d := range data.Storage {
		if d.Removable || remote(d.Transport) {
			continue
		}
		identity := cmp.Or(d.WWID, d.Serial, d.Name, d.Path)
		name := identity
		if d.Serial != "" && d.Serial != identity {
			name += " serial " + d.Serial
		}
		found = append(found, part{key: identity, name: name, value: words(d.Model, fmt.Sprintf("%d bytes", d.SizeBytes)), firmware: d.Firmware})
	}
	return found
}

// remote says that a disk is attached over a network in one of its ways at least.
func remote(transport string) bool {
	return slices.ContainsFunc(strings.FieldsFunc(transport, func(r rune) bool { return r == '/' || r == '+' }), func(word string) bool {
		return word == "iscsi" || word == "fc" || word == "tcp" || word == "rdma"
	})
}

func nics(data *policyv1alpha1.ProbeData) []part {
	var found []part
	for _, n := range data.NICs {
		identity := cmp.Or(strings.ToLower(n.MAC), n.PCIAddress, n.Name)
		found = append(found, part{key: identity, name: identity, firmware: n.FirmwareVersion})
	}
	return found
}

func cpus(data *policyv1alpha1.ProbeData) []part {
	var found []part
	for _, c := range data.CPU {
		id := fmt.Sprint(c.ID)
		found = append(found, part{key: id, name: id, value: words(c.Model, fmt.Sprintf("%d cores", c.TotalCores))})
	}
	return found
}

// devices are known by what they are, not by their address: one more card may move those behind it.
func devices(data *policyv1alpha1.ProbeData) []part {
	var found []part
	for _, d := range data.PCIDevices {
		id := d.VendorID + ":" + d.ProductID
		found = append(found, part{key: id, name: words(id, d.Product)})
	}
	return found
}

func bios(data *policyv1alpha1.ProbeData) string {
	b := data.SystemInfo.BIOSInformation
	return words(b.Vendor, b.Version)
}

// maxNamed bounds the parts that Words names.
const maxNamed = 4

// Words says in one sentence what became of the parts, and names a few of them.
func Words(all []policyv1alpha1.HardwareDifference) string {
	var parts []string
	for i, d := range all {
		if i == maxNamed {
			parts = append(parts, fmt.Sprintf("and %d more", len(all)-maxNamed))
			break
		}
		text := fmt.Sprintf("%s %s %.80s", strings.ToLower(string(d.Kind)), d.Part, d.Name)
		if d.Detail != "" {
			text += fmt.Sprintf(" (%.80s)", d.Detail)
		}
		parts = append(parts, strings.ToValidUTF8(text, ""))
	}
	return strings.Join(parts, "; ")
}
