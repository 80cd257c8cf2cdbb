// SPDX-License-Identifier: Apache-2.0

package metalprobe

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

// What a report may hold. The API that stores reports has the same bounds or wider ones.
const (
	// MaxDisks bounds the block devices.
	MaxDisks = 256
	// MaxBody bounds the body of a request, in bytes.
	MaxBody = 1 << 20

	maxCPUs         = 256
	maxCapabilities = 512 // a processor's flags
	maxInterfaces   = 256 // network interfaces, NICs and LLDP interfaces each
	maxAddresses    = 64  // of one interface
	maxNeighbors    = 32  // of one interface, by LLDP
	maxRoles        = 32  // capabilities that one LLDP neighbour announces
	maxModes        = 256 // link modes of one NIC
	maxPorts        = 64  // kinds of port of one NIC
	maxMemory       = 512
	maxPCIDevices   = 1024
	maxReported     = 64 // problems of the agent

	// Lengths of texts, in bytes.
	maxAddress = 64   // an address, a speed or a number in words
	maxPCIID   = 32   // a vendor and a device of PCI
	maxFlag    = 128  // a flag, a version or a method
	maxWord    = 256  // a name or a serial number
	maxText    = 1024 // a description or a message
	maxCause   = 512  // the cause of a problem
)

// maxProblems keeps the answer to a hostile report short.
const maxProblems = 10

// bounds visits every list and string of a report. With trim set it cuts what is too long, else it notes it.
type bounds struct {
	trim     bool
	problems []error
}

func (b *bounds) note(format string, args ...any) {
	if len(b.problems) < maxProblems {
		b.problems = append(b.problems, fmt.Errorf(format, args...))
	}
}

func (b *bounds) text(path string, value *string, limit int) {
	if len(*value) <= limit && utf8.ValidString(*value) && !strings.ContainsRune(*value, 0) {
		return
	}
	if !b.trim {
		if len(*value) > limit {
			b.note("%s: %d bytes, at most %d are allowed", path, len(*value), limit)
		} else {
			b.note("%s: not valid UTF-8 text", path)
		}
		return
	}
	clean := strings.ReplaceAll(strings.ToValidUTF8(*value, "?"), "\x00", "")
	for len(clean) > limit {
		_, size := utf8.DecodeLastRuneInString(clean)
		clean = clean[:len(clean)-size]
	}
	*value = clean
}

func (b *bounds) texts(path string, limit int, values ...*string) {
	for _, value := range values {
		b.text(path, value, limit)
	}
}

// natural refuses numbers below zero.
func natural[T int32 | int64](b *bounds, path string, values ...*T) {
	for _, value := range values {
		if *value >= 0 {
			continue
		}
		if !b.trim {
			b.note("%s: %d is negative", path, *value)
			continue
		}
		*value = 0
	}
}

// each visits the entries of a list after having bounded it.
func each[T any](b *bounds, path string, list *[]T, limit int, visit func(path string, entry *T)) {
	if len(*list) > limit {
		if !b.trim {
			b.note("%s: %d entries, at most %d are allowed", path, len(*list), limit)
			return
		}
		*list = (*list)[:limit]
	}
	for i := range *list {
		visit(fmt.Sprintf("%s[%d]", path, i), &(*list)[i])
	}
}

func (b *bounds) flags(path string, list *[]string, limit int) {
	each(b, path, list, limit, func(path string, flag *string) { b.text(path, flag, maxFlag) })
}

func (b *bounds) data(d *Data) {
	b.systemInfo(&d.SystemInfo)
	each(b, "data.cpu", &d.CPU, maxCPUs, func(path string, c *CPU) {
		natural(b, path, &c.ID, &c.TotalCores, &c.TotalHardwareThreads)
		b.texts(path, maxWord, &c.Vendor, &c.Model)
		b.flags(path+".capabilities", &c.Capabilities, maxCapabilities)
	})
	each(b, "data.networkInterfaces", &d.NetworkInterfaces, maxInterfaces, func(path string, n *policyv1alpha1.ProbeNetworkInterface) {
		b.texts(path, maxWord, &n.Name)
		b.texts(path, maxAddress, &n.MACAddress, &n.CarrierStatus)
		each(b, path+".ipAddresses", &n.IPAddresses, maxAddresses, func(path string, ip *string) { b.texts(path, maxAddress, ip) })
	})
	each(b, "data.lldp", (*[]policyv1alpha1.LLDPInterface)(&d.LLDP), maxInterfaces, func(path string, l *policyv1alpha1.LLDPInterface) {
		b.texts(path, maxWord, &l.Name)
		each(b, path+".neighbors", &l.Neighbors, maxNeighbors, b.neighbor)
	})
	each(b, "data.storage", &d.Storage, MaxDisks, func(path string, s *policyv1alpha1.BlockDevice) {
		b.texts(path, maxWord, &s.Path, &s.Name, &s.Vendor, &s.Model, &s.Serial, &s.WWID, &s.Transport,
			&s.Firmware, &s.Slot, &s.ContentFound)
		b.text(path, &s.PCIAddress, maxAddress)
		b.content(path+".content", &s.Content)
		natural(b, path, &s.PhysicalBlockSize, &s.LogicalBlockSize, &s.HWSectorSize, &s.SizeBytes)
	})
	each(b, "data.memory", &d.Memory, maxMemory, func(path string, m *policyv1alpha1.MemoryDevice) {
		natural(b, path+".size", &m.SizeBytes)
		b.texts(path, maxWord, &m.DeviceSet, &m.DeviceLocator, &m.BankLocator, &m.MemoryType, &m.Speed, &m.Vendor, &m.SerialNumber,
			&m.AssetTag, &m.PartNumber, &m.ConfiguredMemorySpeed, &m.MinimumVoltage, &m.MaximumVoltage, &m.ConfiguredVoltage)
	})
	each(b, "data.nics", &d.NICs, maxInterfaces, func(path string, n *policyv1alpha1.NIC) {
		b.texts(path, maxWord, &n.Name, &n.FirmwareVersion)
		b.texts(path, maxAddress, &n.MAC, &n.PCIAddress, &n.Speed)
		b.text(path, &n.Driver, maxFlag)
		b.flags(path+".linkModes", &n.LinkModes, maxModes)
		b.flags(path+".supportedPorts", &n.SupportedPorts, maxPorts)
	})
	each(b, "data.pciDevices", &d.PCIDevices, maxPCIDevices, func(path string, p *policyv1alpha1.PCIDevice) {
		b.texts(path, maxWord, &p.Vendor, &p.Product)
		b.texts(path, maxAddress, &p.Address, &p.VendorID, &p.ProductID, &p.Class)
		b.text(path, &p.Driver, maxFlag)
	})
	b.hidden("data.hidden", &d.Hidden)
	each(b, "data.problems", &d.Problems, maxReported, func(path string, p *policyv1alpha1.ProbeProblem) {
		b.text(path+".source", &p.Source, maxAddress)
		b.text(path+".message", &p.Message, maxCause)
		if p.Source == "" {
			b.absent(path+".source", &p.Source)
		}
	})
}

// hidden bounds a list of storage that no disk shows. An agent names itself as the source, and excuses nothing.
func (b *bounds) hidden(path string, list *[]policyv1alpha1.HiddenStorage) {
	each(b, path, list, MaxHidden, func(path string, s *policyv1alpha1.HiddenStorage) {
		b.texts(path, maxWord, &s.Slot, &s.Name, &s.Model, &s.Serial)
		b.text(path+".address", &s.Address, maxAddress)
		b.text(path+".pciID", &s.PCIID, maxPCIID)
		b.text(path+".reason", &s.Reason, maxText)
		natural(b, path+".sizeBytes", &s.SizeBytes)
		switch {
		case b.trim:
			s.Source, s.ExcusedBy = policyv1alpha1.HiddenByAgent, ""
		case s.Source != policyv1alpha1.HiddenByAgent:
			b.note("%s.source: %.64q is not Agent", path, s.Source)
		case s.ExcusedBy != "":
			b.note("%s.excusedBy: an agent excuses nothing", path)
		}
	})
}

// content refuses a word that the API does not know.
func (b *bounds) content(path string, c *policyv1alpha1.DiskContent) {
	switch *c {
	case "", policyv1alpha1.ContentBlank, policyv1alpha1.ContentData, policyv1alpha1.ContentUnreadable:
		return
	}
	if !b.trim {
		b.note("%s: %.64q is none of Blank, Data, Unreadable", path, *c)
		return
	}
	*c = policyv1alpha1.ContentUnreadable
}

// absent refuses a text that must not be empty.
func (b *bounds) absent(path string, value *string) {
	if !b.trim {
		b.note("%s: empty", path)
		return
	}
	*value = "unknown"
}

func (b *bounds) systemInfo(s *policyv1alpha1.SystemInfo) {
	b.texts("data.systemInfo.biosInformation", maxWord, &s.BIOSInformation.Vendor, &s.BIOSInformation.Version, &s.BIOSInformation.Date)
	i := &s.SystemInformation
	b.texts("data.systemInfo.systemInformation", maxWord,
		&i.Manufacturer, &i.ProductName, &i.Version, &i.SerialNumber, &i.UUID, &i.SKUNumber, &i.Family)
	o := &s.BoardInformation
	b.texts("data.systemInfo.boardInformation", maxWord, &o.Manufacturer, &o.Product, &o.Version, &o.SerialNumber, &o.AssetTag)
}

func (b *bounds) neighbor(path string, n *policyv1alpha1.LLDPNeighbor) {
	b.texts(path, maxWord, &n.ChassisID, &n.PortID, &n.PortDescription, &n.SystemName)
	b.texts(path, maxAddress, &n.MgmtIP, &n.VLANID)
	b.text(path+".systemDescription", &n.SystemDescription, maxText)
	b.flags(path+".capabilities", &n.Capabilities, maxRoles)
}

// Trim cuts the data down to what a registry accepts, so that an odd machine is still described.
func (d *Data) Trim() {
	(&bounds{trim: true}).data(d)
}

// Validate says everything that is wrong with a report, up to ten problems. It changes nothing.
func (r *Report) Validate() error {
	var b bounds
	b.text("agentVersion", &r.AgentVersion, maxFlag)
	if _, err := NormalizeUUID(r.SystemUUID); err != nil {
		b.note("%w", err)
	}
	b.data(&r.Data)
	return errors.Join(b.problems...)
}

// Validate says everything that is wrong with a wipe report, up to ten problems. It changes nothing.
func (r *WipeReport) Validate() error {
	var b bounds
	if _, err := NormalizeUUID(r.SystemUUID); err != nil {
		b.note("%w", err)
	}
	switch r.State {
	case policyv1alpha1.WipeRunning, policyv1alpha1.WipeVerified, policyv1alpha1.WipeFailed:
	default:
		b.note("state: %.64q is none of Running, Verified, Failed", r.State)
	}
	b.text("message", &r.Message, maxText)
	each(&b, "disks", &r.Disks, MaxDisks, func(path string, d *policyv1alpha1.DiskWipe) {
		if d.Path == "" {
			b.note("%s.path: empty", path)
		}
		b.texts(path, maxWord, &d.Path, &d.Name, &d.Serial, &d.WWID)
		b.text(path+".method", &d.Method, maxFlag)
		b.text(path+".transport", &d.Transport, maxFlag)
		b.text(path+".message", &d.Message, maxText)
		natural(&b, path+".sizeBytes", &d.SizeBytes)
		b.erase(path, d)
		switch d.State {
		case policyv1alpha1.DiskPending, policyv1alpha1.DiskErasing, policyv1alpha1.DiskErased,
			policyv1alpha1.DiskVerified, policyv1alpha1.DiskFailed:
		default:
			b.note("%s.state: %.64q is none of Pending, Erasing, Erased, Verified, Failed", path, d.State)
		}
		if r.State == policyv1alpha1.WipeVerified && d.State != policyv1alpha1.DiskVerified {
			b.note("%s.state: %.64q, but a wipe is Verified only when each of its disks is", path, d.State)
		}
		if d.State == policyv1alpha1.DiskVerified && d.Verification != nil && !d.Verification.Passed {
			b.note("%s.verification: it did not pass, so the disk is not Verified", path)
		}
	})
	each(&b, "skipped", &r.Skipped, MaxDisks, func(path string, d *policyv1alpha1.SkippedDisk) {
		if d.Path == "" {
			b.note("%s.path: empty", path)
		}
		b.texts(path, maxWord, &d.Path, &d.Name, &d.Serial, &d.WWID)
		b.text(path+".transport", &d.Transport, maxFlag)
		b.text(path+".reason", &d.Reason, maxText)
		natural(&b, path+".sizeBytes", &d.SizeBytes)
	})
	b.hidden("hidden", &r.Hidden)
	return errors.Join(b.problems...)
}
