// SPDX-License-Identifier: Apache-2.0

package hardware

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

type data = policyv1alpha1.ProbeData

func machine() *data {
	return &data{
		SystemInfo: policyv1alpha1.SystemInfo{BIOSInformation: policyv1alpha1.BIOSInformation{Vendor: "Acme", Version: "1"}},
		CPU:        []policyv1alpha1.CPU{{ID: 0, Model: "Xeon", TotalCores: 8}},
		Memory: []policyv1alpha1.MemoryDevice{
			{DeviceLocator: "A1", SizeBytes: 1 << 30, SerialNumber: "M1"}, {DeviceLocator: "A2", SizeBytes: 1 << 30, SerialNumber: "M2"}, {DeviceLocator: "B1"},
		},
		Storage: []policyv1alpha1.BlockDevice{
			{Name: "sda", WWID: "w1", Serial: "D1", Model: "MZ", SizeBytes: 5, Firmware: "f1"}, {Name: "sdb", Serial: "remote", Transport: "nvme/tcp"},
		},
		NICs: []policyv1alpha1.NIC{{Name: "eth0", MAC: "AA:BB", FirmwareVersion: "n1"}},
		PCIDevices: []policyv1alpha1.PCIDevice{
			{Address: "0000:01:00.0", VendorID: "10de", ProductID: "2330", Product: "H100"}, {Address: "0000:02:00.0", VendorID: "10de", ProductID: "2330", Product: "H100"},
		},
		NetworkInterfaces: []policyv1alpha1.ProbeNetworkInterface{{Name: "eth0", IPAddresses: []string{"10.0.0.1"}, CarrierStatus: "up"}},
	}
}

func manyDevices() []policyv1alpha1.PCIDevice {
	return slices.Repeat([]policyv1alpha1.PCIDevice{{Address: "0000:03:00.0", VendorID: "8086", ProductID: "1"}}, 2000)
}

func TestDifferences(t *testing.T) {
	for name, c := range map[string]struct {
		change func(was, is *data)
		want   []string
	}{
		"none between the same": {func(*data, *data) {}, nil},
		"none by what is volatile": {func(_, is *data) {
			is.NetworkInterfaces, is.LLDP = nil, []policyv1alpha1.LLDPInterface{{Name: "eth0"}}
			is.Storage[0].Name, is.Storage[1].Serial, is.NICs[0].Name, is.NICs[0].Speed = "sdz", "another", "eth7", "1000Mb/s"
			is.PCIDevices[0].Address, is.PCIDevices[1].Address = "0000:09:00.0", "0000:01:00.0"
			is.CPU[0].Capabilities, is.Timestamp = []string{"fpu"}, "later"
		}, nil},
		"a DIMM that vanished":    {func(_, is *data) { is.Memory = is.Memory[1:] }, []string{"Removed DIMM A1: 1024 MiB serial M1"}},
		"a DIMM that was changed": {func(_, is *data) { is.Memory[0].SerialNumber = "M9" }, []string{"Changed DIMM A1: was 1024 MiB serial M1, is 1024 MiB serial M9"}},
		"a slot that was filled":  {func(_, is *data) { is.Memory[2].SizeBytes = 1 << 30 }, []string{"Added DIMM B1: 1024 MiB"}},
		"the only disk":           {func(_, is *data) { is.Storage = nil }, []string{"Removed Disk w1 serial D1: MZ 5 bytes"}},
		"another disk": {func(_, is *data) { is.Storage[0].WWID, is.Storage[0].Serial = "w2", "D2" },
			[]string{"Removed Disk w1 serial D1: MZ 5 bytes", "Added Disk w2 serial D2: MZ 5 bytes"}},
		"one GPU less": {func(_, is *data) { is.PCIDevices = is.PCIDevices[1:] }, []string{"Removed PCIDevice 10de:2330 H100: "}},
		"firmware": {func(_, is *data) {
			is.Storage[0].Firmware, is.NICs[0].FirmwareVersion, is.SystemInfo.BIOSInformation.Version = "f2", "n2", "2"
		}, []string{"Changed Firmware Disk w1 serial D1: was f1, is f2", "Changed Firmware NIC aa:bb: was n1, is n2", "Changed Firmware BIOS: was Acme 1, is Acme 2"}},
		"firmware that was not read before": {func(was, _ *data) { was.Storage[0].Firmware, was.SystemInfo = "", policyv1alpha1.SystemInfo{} }, nil},
		"another processor":                 {func(_, is *data) { is.CPU[0].Model = "EPYC" }, []string{"Changed CPU 0: was Xeon 8 cores, is EPYC 8 cores"}},
		"none of what could not be read": {func(_, is *data) {
			is.Memory, is.Storage = nil, nil
			is.Problems = []policyv1alpha1.ProbeProblem{{Source: "memory"}, {Source: "disks"}}
		}, nil},
		"none where a module did not load": {func(was, _ *data) {
			was.Storage, was.Problems = nil, []policyv1alpha1.ProbeProblem{{Source: "module"}}
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			was, is := machine(), machine()
			c.change(was, is)
			var got []string
			for _, d := range Differences(was, is) {
				got = append(got, fmt.Sprintf("%s %s %s: %s", d.Kind, d.Part, d.Name, d.Detail))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestDifferencesAreBounded(t *testing.T) {
	is := machine()
	for i := range 200 {
		is.Storage = append(is.Storage, policyv1alpha1.BlockDevice{WWID: fmt.Sprint(i), Serial: strings.Repeat("é", 200), Model: strings.Repeat("m", 600)})
	}
	got := Differences(machine(), is)
	if len(got) != 64 || len(got[0].Name) > 256 || len(got[0].Detail) > 512 {
		t.Errorf("%d differences, the first %+v", len(got), got[0])
	}
	if text := Words(got); len(text) > 1000 || !strings.HasSuffix(text, "; and 60 more") || strings.Count(text, ";") != 4 {
		t.Errorf("words %q", text)
	}
}

func TestALargeReportIsTrimmedInItsOrder(t *testing.T) {
	for name, c := range map[string]struct {
		grow func(*data)
		want string
		lost func(*data) bool
	}{
		"none of a small one":      {func(*data) {}, "", func(d *data) bool { return len(d.PCIDevices) == 0 || len(d.NICs) == 0 }},
		"PCI devices first":        {func(d *data) { d.PCIDevices = manyDevices() }, "without: pciDevices", func(d *data) bool { return d.CPU[0].Capabilities == nil }},
		"then CPUs, and their own": {func(d *data) { d.CPU[0].Capabilities = []string{strings.Repeat("x", MaxReport)} }, "without: pciDevices, capabilities of CPUs", func(d *data) bool { return len(d.Memory) != 3 }},
		"all that can be, but no disk": {func(d *data) { d.Storage[0].Model = strings.Repeat("x", MaxReport) }, "nics", func(d *data) bool {
			return len(d.Storage) != 2 || len(d.NICs) != 0 || d.Memory[0].SizeBytes != 2<<30
		}},
	} {
		t.Run(name, func(t *testing.T) {
			d := machine()
			d.CPU[0].Capabilities = []string{"fpu"}
			c.grow(d)
			Trim(d)
			message := ""
			if len(d.Problems) > 0 {
				message = d.Problems[0].Message
			}
			if (c.want == "") != (message == "") || !strings.HasSuffix(message, c.want) || c.lost(d) {
				t.Errorf("problem %q", message)
			}
			if text, err := json.Marshal(d); err != nil || len(text) > MaxReport && c.want != "nics" {
				t.Errorf("%d bytes are left, %v", len(text), err)
			}
		})
	}
}

func TestWhatWasTrimmedIsNotCompared(t *testing.T) {
	large := machine()
	large.PCIDevices = append(large.PCIDevices, manyDevices()...)
	Trim(large)
	large.Memory = large.Memory[1:]
	if got := Differences(machine(), large); len(got) != 1 || got[0].Part != PartDIMM {
		t.Errorf("differences %+v", got)
	}
}

func TestAProblemMoreThanTheAPIStoresIsNotAdded(t *testing.T) {
	d := machine()
	d.Problems = make([]policyv1alpha1.ProbeProblem, 64)
	d.PCIDevices = manyDevices()
	if Trim(d); len(d.Problems) != 64 || d.Problems[63].Source != "registry" {
		t.Errorf("%d problems", len(d.Problems))
	}
}
