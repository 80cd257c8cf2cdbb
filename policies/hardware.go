// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/selection"
)

// Hardware is what the inventory says of a machine, summarised for choosing among servers. The zero value is a machine that
// never reported.
type Hardware struct {
	CPUCount, Cores, MemoryBytes         int64
	CPUModel                             string
	DiskCount                            int64
	DiskMinBytes, DiskMaxBytes           int64
	Disks                                selection.DiskCounts
	DiskBytes                            selection.DiskBytes
	NICCount, NICMaxSpeed, NICTotalSpeed int64
	GPUs                                 int64
	TimesClaimed                         int64
}

// HardwareOf summarises a report; inv may be nil.
func HardwareOf(inv *policyv1alpha1.ServerInventory) Hardware {
	var h Hardware
	if inv != nil && inv.Custody != nil {
		h.TimesClaimed = inv.Custody.TimesClaimed
	}
	if inv == nil || inv.Report == nil || ReportVoided(inv) {
		return h
	}
	data := inv.Report.Data
	h.CPUCount = int64(len(data.CPU))
	for _, cpu := range data.CPU {
		h.Cores += int64(cpu.TotalCores)
		h.CPUModel = cmp.Or(h.CPUModel, cpu.Model)
	}
	for _, module := range data.Memory {
		h.MemoryBytes += module.SizeBytes
	}
	for _, disk := range data.Storage {
		if disk.Removable {
			continue
		}
		kind := "SSD"
		switch {
		case strings.HasPrefix(disk.Name, "nvme"), strings.HasPrefix(disk.Path, "/dev/nvme"):
			kind = "NVMe"
		case disk.Rotational:
			kind = "HDD"
		}
		h.addDisk(kind, disk.SizeBytes)
	}
	h.NICCount = int64(len(data.NICs))
	for _, nic := range data.NICs {
		speed := megabits(nic.Speed)
		h.NICMaxSpeed, h.NICTotalSpeed = max(h.NICMaxSpeed, speed), h.NICTotalSpeed+speed
	}
	h.GPUs = gpus(data.PCIDevices)
	return h
}

func (h *Hardware) addDisk(kind string, bytes int64) {
	if h.DiskCount == 0 || bytes < h.DiskMinBytes {
		h.DiskMinBytes = bytes
	}
	h.DiskCount++
	h.DiskMaxBytes = max(h.DiskMaxBytes, bytes)
	h.DiskBytes.Total += bytes
	switch {
	case strings.EqualFold(kind, "NVMe"):
		h.Disks.NVMe++
		h.DiskBytes.NVMe += bytes
	case strings.EqualFold(kind, "HDD"):
		h.Disks.HDD++
		h.DiskBytes.HDD += bytes
	default:
		h.Disks.SSD++
		h.DiskBytes.SSD += bytes
	}
}

// megabits reads a link speed such as 25000Mb/s; what has another form is 0, not known.
func megabits(speed string) int64 {
	digits, ok := strings.CutSuffix(speed, "Mb/s")
	if !ok {
		return 0
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// accelerators are the PCI vendors whose devices compute. A report has no PCI classes, and the same vendors make bridges, audio
// functions and switches: a device counts by the words in its name, none standing for any name, and not by those that it is
// not.
var accelerators = []struct {
	vendorID string
	are, not []string
}{
	{"10de", nil, []string{"audio", "switch", "bridge", "usb", "bluefield", "connectx"}},
	{"1002", []string{"instinct", "radeon"}, []string{"audio", "bridge"}},
	{"8086", []string{"data center gpu"}, nil},
}

// gpus counts the devices, and of each only the first function.
func gpus(devices []policyv1alpha1.PCIDevice) int64 {
	var n int64
	for _, d := range devices {
		product := strings.ToLower(d.Product)
		named := func(word string) bool { return strings.Contains(product, word) }
		for _, a := range accelerators {
			if strings.TrimPrefix(strings.ToLower(d.VendorID), "0x") == a.vendorID && strings.HasSuffix(d.Address, ".0") &&
				(a.are == nil || slices.ContainsFunc(a.are, named)) && !slices.ContainsFunc(a.not, named) {
				n++
			}
		}
	}
	return n
}

// IsKnown says that what a server is made of was reported by an agent, or that its lifecycle is past the states in which that is found
// out. The Hardware is what was reported, without what FilledFrom adds.
func (h Hardware) IsKnown(s *v1alpha1.Server) bool {
	switch s.Status.State {
	case "", v1alpha1.StateInitial, v1alpha1.StateObserving, v1alpha1.StateDiscovery:
		h.TimesClaimed = 0 // which is no report
		return h != Hardware{}
	default:
		return true
	}
}

// FilledFrom is what is known of a machine, with what its BMC says where the agent said nothing.
func (h Hardware) FilledFrom(s *v1alpha1.Server) Hardware {
	status := &s.Status
	h.fillProcessors(status.Processors)
	if h.MemoryBytes == 0 && status.TotalSystemMemory != nil {
		h.MemoryBytes = status.TotalSystemMemory.Value()
	}
	if h.NICCount == 0 {
		h.NICCount = int64(len(status.NetworkInterfaces))
	}
	if h.DiskCount > 0 {
		return h
	}
	for _, storage := range status.Storages {
		for _, drive := range storage.Drives {
			if drive.State == v1alpha1.StorageStateAbsent {
				continue
			}
			kind := drive.MediaType
			if strings.EqualFold(drive.Type, "NVMe") {
				kind = drive.Type
			}
			var bytes int64
			if drive.Capacity != nil {
				bytes = drive.Capacity.Value()
			}
			h.addDisk(kind, bytes)
		}
	}
	return h
}

func (h *Hardware) fillProcessors(processors []v1alpha1.Processor) {
	var cpus, cores, gpus int64
	for _, p := range processors {
		switch {
		case p.Type == "" || strings.EqualFold(p.Type, "CPU"):
			cpus, cores = cpus+1, cores+int64(p.TotalCores)
			h.CPUModel = cmp.Or(h.CPUModel, p.Model)
		case strings.EqualFold(p.Type, "GPU"):
			gpus++
		}
	}
	if h.Cores == 0 {
		h.CPUCount, h.Cores = cpus, cores
	}
	h.GPUs = cmp.Or(h.GPUs, gpus)
}
