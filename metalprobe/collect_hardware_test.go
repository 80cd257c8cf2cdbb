// SPDX-License-Identifier: Apache-2.0

package metalprobe

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/metalprobe/drive"
	"github.com/metalaw/metalaw/metalprobe/erasure"
	"github.com/metalaw/metalaw/metalprobe/nic"
)

func TestCollectReadsMemoryModules(t *testing.T) {
	slot := make([]byte, 0x28)
	slot[0], slot[1], slot[0x0d], slot[0x10] = 17, byte(len(slot)), 0x40, 1
	table := slices.Concat(slot, []byte("DIMM A1\x00\x00\x7f\x04\x00\x00\x00\x00"))
	for name, c := range map[string]struct {
		table []byte
		want  []policyv1alpha1.MemoryDevice
		err   string
	}{
		"modules": {table, []policyv1alpha1.MemoryDevice{{SizeBytes: 16 << 30, DeviceLocator: "DIMM A1"}}, ""},
		"a table without modules gives the total": {[]byte{127, 4, 0, 0, 0, 0}, []policyv1alpha1.MemoryDevice{{SizeBytes: 16 << 20, DeviceLocator: "total"}}, ""},
		"a broken table gives the total":          {[]byte{17}, []policyv1alpha1.MemoryDevice{{SizeBytes: 16 << 20, DeviceLocator: "total"}}, "/sys/firmware/dmi/tables/DMI: the SMBIOS table breaks off"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := (&Host{Root: fstest.MapFS{
				"sys/firmware/dmi/tables/DMI": {Data: c.table}, "proc/meminfo": {Data: []byte("MemTotal: 16384 kB\n")},
			}}).Collect(t.Context())
			if diff := cmp.Diff(c.want, got.Memory); diff != "" {
				t.Errorf("memory (-want +got):\n%s", diff)
			}
			if c.err == "" && err != nil {
				t.Error(err)
			}
			if c.err != "" && (len(got.Problems) != 1 || got.Problems[0].Source != "memory" || !strings.HasPrefix(got.Problems[0].Message, c.err)) {
				t.Errorf("problems %+v, want %q", got.Problems, c.err)
			}
		})
	}
}

// onVirtio is a network card of a virtual machine: it hangs below its PCI function, whose uevent alone names it.
const onVirtio = `
class/net/eth0 -> ../../devices/pci0000:00/0000:00:03.0/virtio0/net/eth0
devices/pci0000:00/0000:00:03.0/virtio0/net/eth0/address: 52:54:00:00:00:01
devices/pci0000:00/0000:00:03.0/virtio0/net/eth0/operstate: up
devices/pci0000:00/0000:00:03.0/virtio0/net/eth0/device -> ../../../virtio0
devices/pci0000:00/0000:00:03.0/virtio0/uevent: DRIVER=virtio_net
`

func TestCollectReadsANetworkCard(t *testing.T) {
	host := sysfs(t, onVirtio)
	host.Link = func(string) (nic.Link, error) {
		return nic.Link{Driver: "other", Firmware: "14.1", Modes: []string{"25000baseCR/Full"}, Ports: []string{"FIBRE"}}, nil
	}
	host.Neighbors = func() ([]policyv1alpha1.LLDPInterface, error) {
		return []policyv1alpha1.LLDPInterface{{Name: "eth0", Neighbors: []policyv1alpha1.LLDPNeighbor{{SystemName: "leaf1"}}}}, errors.New("eth1: down")
	}
	got, err := host.Collect(t.Context())
	if err == nil {
		t.Error("the error of a collector is not returned")
	}
	want := Data{
		NetworkInterfaces: []policyv1alpha1.ProbeNetworkInterface{{Name: "eth0", MACAddress: "52:54:00:00:00:01", CarrierStatus: "up"}},
		NICs: []policyv1alpha1.NIC{{Name: "eth0", MAC: "52:54:00:00:00:01", PCIAddress: "0000:00:03.0", Driver: "virtio_net", FirmwareVersion: "14.1",
			LinkModes: []string{"25000baseCR/Full"}, SupportedPorts: []string{"FIBRE"}}},
		LLDP:     LLDPInterfaces{{Name: "eth0", Neighbors: []policyv1alpha1.LLDPNeighbor{{SystemName: "leaf1"}}}},
		Problems: []policyv1alpha1.ProbeProblem{{Source: "lldp", Message: "eth1: down"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("collected (-want +got):\n%s", diff)
	}
}

func TestCollectNamesPCIDevices(t *testing.T) {
	root := tree(`
sys/bus/pci/devices/0000:01:00.0/vendor: 0x10de
sys/bus/pci/devices/0000:01:00.0/device: 0x2330
sys/bus/pci/devices/0000:01:00.0/class: 0x030200
sys/bus/pci/devices/0000:01:00.0/uevent: DRIVER=nvidia\nPCI_CLASS=30200
sys/bus/pci/devices/0000:02:00.0/vendor: 0x8086
sys/bus/pci/devices/0000:02:00.0/device: 0xffff
sys/bus/pci/devices/0000:02:00.0/class: 0x020000`)
	root["usr/share/misc/pci.ids"] = &fstest.MapFile{Data: []byte("# a comment\n10de  NVIDIA Corporation\n\t2330  GH100 [H100 SXM5 80GB]\n\t\t10de 16c1  board\n" +
		"8086  Intel Corporation\n\t1572  X710\nC 03  Display controller\n\t00  VGA\n")}
	got, err := (&Host{Root: root}).Collect(t.Context())
	if err != nil {
		t.Error(err)
	}
	want := []policyv1alpha1.PCIDevice{
		{Address: "0000:01:00.0", Vendor: "NVIDIA Corporation", VendorID: "10de", Product: "GH100 [H100 SXM5 80GB]", ProductID: "2330", Class: "030200", Driver: "nvidia"},
		{Address: "0000:02:00.0", Vendor: "Intel Corporation", VendorID: "8086", ProductID: "ffff", Class: "020000"},
	}
	if diff := cmp.Diff(want, got.PCIDevices); diff != "" {
		t.Errorf("devices (-want +got):\n%s", diff)
	}
}

func TestWhereADiskSits(t *testing.T) {
	const shelf = "pci0000:00/0000:00:05.0/host0/port-0:0/expander-0:0/port-0:0:1/end_device-0:0:1"
	for name, c := range map[string]struct{ sysfs, disk, address, slot, firmware string }{
		"NVMe in a slot": {localNVMe + "bus/pci/slots/7/address: 0000:00:04\nbus/pci/slots/8/address: 0000:00:05\n" +
			at("nvme0", pci+"/nvme", "firmware_rev", "GDC5"), "nvme0n1", "0000:00:04.0", "7", "GDC5"},
		"NVMe below its subsystem": {twoLocal, "nvme0n1", "0000:00:04.0", "", ""},
		"SATA":                     {sata + "devices/pci0000:00/0000:00:1f.2/ata1/host0/target0:0:0/0:0:0:0/rev: 1.0\n", "sda", "0000:00:1f.2", "ata1", "1.0"},
		"SAS in a bay":             {scsiAt("sda", shelf) + inEnclosure(shelf, "DP", "BP14G+EXP"), "sda", "0000:00:05.0", "Slot 03", ""},
		"virtio":                   {virtioDisk, "vda", "0000:00:04.0", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := sysfs(t, c.sysfs).storage(c.disk)
			if got.PCIAddress != c.address || got.Slot != c.slot || got.Firmware != c.firmware {
				t.Errorf("got %q %q %q, want %q %q %q", got.PCIAddress, got.Slot, got.Firmware, c.address, c.slot, c.firmware)
			}
		})
	}
}

func TestACollectorThatHangsIsPartOfTheReport(t *testing.T) {
	hang := make(chan struct{})
	host := &Host{Root: tree("sys/class/net/eth0/device/x: 1\nsys/class/dmi/id/sys_vendor: Acme"), Limit: time.Second,
		Addresses: func(string) ([]string, error) { <-hang; return nil, nil },
		Problems: func() []policyv1alpha1.ProbeProblem {
			return []policyv1alpha1.ProbeProblem{{Source: "module", Message: "ahci"}}
		}}
	for _, want := range []string{"not read within 1s", "a former reading has not ended"} {
		got, err := host.Collect(t.Context())
		if err == nil || got.SystemInfo.SystemInformation.Manufacturer != "Acme" {
			t.Errorf("got %+v, %v", got.SystemInfo, err)
		}
		if len(got.Problems) != 2 || got.Problems[0].Source != "network" || !strings.HasPrefix(got.Problems[0].Message, want) ||
			got.Problems[1].Source != "module" {
			t.Errorf("problems %+v, want %q", got.Problems, want)
		}
	}
	close(hang)
	for !host.running.begin("network") { // until the reading has ended
		select {
		case <-t.Context().Done():
			return
		default:
		}
	}
	host.running.end("network")
	if got, err := host.Collect(t.Context()); err != nil || len(got.Problems) != 1 {
		t.Errorf("after the end: %+v, %v", got.Problems, err)
	}
}

// contentsOf collects, and lists what the disks hold.
func contentsOf(t *testing.T, host *Host) (list []string) {
	t.Helper()
	data, _ := host.Collect(t.Context())
	for _, s := range data.Storage {
		list = append(list, strings.TrimSpace(s.Name+" "+string(s.Content)+" "+s.ContentFound))
	}
	return list
}

func TestEachDiskOfTheMachineIsReadOnce(t *testing.T) {
	stick := func(name, port string) string {
		return strings.NewReplacer("sda", name, "removable: 0", "removable: 1", "1-2", port, "host0", "host"+name).Replace(usb)
	}
	virtual := strings.NewReplacer("1-2", "1-3", "host0", "hostsdd").Replace(usbOf("046b", "ff31", "AMI", "Virtual HDisk0"))
	host := sysfs(t, sata+tcpNVMe+stick("sdc", "1-2")+stick("sdd", "1-3")+virtual)
	var mu sync.Mutex
	asked := map[string]int{}
	host.Content = func(_ context.Context, path string) (policyv1alpha1.DiskContent, string) {
		mu.Lock()
		defer mu.Unlock()
		asked[path]++
		return policyv1alpha1.ContentData, "GPT at the begin"
	}
	want := []string{"nvme0n1", "sda Data GPT at the begin", "sdc Data GPT at the begin", "sdd"}
	for range 2 {
		if diff := cmp.Diff(want, contentsOf(t, host)); diff != "" {
			t.Errorf("contents (-want +got):\n%s", diff)
		}
	}
	if diff := cmp.Diff(map[string]int{"/dev/sda": 1, "/dev/sdc": 1}, asked); diff != "" {
		t.Errorf("read (-want +got):\n%s", diff)
	}
	host.contents.forget("sda")
	contentsOf(t, host)
	if asked["/dev/sda"] != 2 {
		t.Errorf("after its erase the disk was read %d times", asked["/dev/sda"])
	}
}

func TestADiskThatDoesNotAnswerInTimeIsUnreadable(t *testing.T) {
	host := sysfs(t, sata)
	host.Limit = time.Millisecond
	hang := make(chan struct{})
	host.Content = func(context.Context, string) (policyv1alpha1.DiskContent, string) {
		<-hang
		return policyv1alpha1.ContentBlank, ""
	}
	read := func() string {
		disks := []policyv1alpha1.BlockDevice{{Name: "sda", Path: "/dev/sda"}}
		host.readContents(t.Context(), disks)
		return string(disks[0].Content) + " " + disks[0].ContentFound
	}
	if got, want := read(), "Unreadable not read within 3ms"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	close(hang)
	for _, r := range host.contents.disks {
		<-r.ended
	}
	if got, want := read(), "Blank "; got != want {
		t.Errorf("later: got %q, want %q", got, want)
	}
}

func TestMediaThatHideAreRefused(t *testing.T) {
	other := nvmeAt("nvme1", otherPCI+"/nvme", "pcie", "nvme-subsys0")
	nqn := func(place, name string) string { return "devices/" + place + "/" + name + "/subsysnqn: nqn.1\n" }
	both := localNVMe + other + nqn(pci+"/nvme", "nvme0") + nqn(otherPCI+"/nvme", "nvme1")
	for name, c := range map[string]struct {
		sysfs      string
		namespaces map[string][2][]uint32
		want       []string
	}{
		"nothing hides":                {localNVMe + sata, map[string][2][]uint32{"nvme0": {{1}, {1}}}, nil},
		"a drive of one namespace":     {localNVMe, map[string][2][]uint32{"nvme0": {nil, nil}}, nil},
		"a detached namespace":         {localNVMe, map[string][2][]uint32{"nvme0": {{1, 2}, {1}}}, []string{"/dev/nvme0 it has namespaces that are attached to no controller of this machine: 2;"}},
		"attached to the other port":   {both, map[string][2][]uint32{"nvme0": {{1, 2}, {1}}, "nvme1": {{1, 2}, {2}}}, nil},
		"attached to neither":          {both, map[string][2][]uint32{"nvme0": {{1, 2, 3}, {1}}, "nvme1": {{1, 2, 3}, {2}}}, []string{"/dev/nvme0 it has namespaces that are attached to no controller of this machine: 3;"}},
		"a drive that does not say":    {localNVMe, nil, []string{"/dev/nvme0 the drive did not say"}},
		"a remote drive is not asked":  {tcpNVMe, nil, nil},
		"an NVDIMM without a disk":     {"bus/nd/devices/nmem0/nfit/serial: 0x1\nbus/nd/devices/region0/x: 1\n", nil, []string{"/dev/nmem0 it is persistent memory"}},
		"an NVDIMM that is a disk":     {"bus/nd/devices/nmem0/nfit/serial: 0x1\n" + diskAt("pmem0", "LNXSYSTM:00/ndbus0/region0/namespace0.0/block", "../../../namespace0.0"), nil, nil},
		"a disk without a capacity":    {strings.Replace(sata, "size: 2048", "size: 0", 1), nil, []string{"/dev/sda the kernel shows no capacity"}},
		"a card reader without a card": {strings.NewReplacer("size: 2048", "size: 0", "removable: 0", "removable: 1").Replace(usb), nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			host := sysfs(t, c.sysfs)
			host.Namespaces = func(controller string) (allocated, active []uint32, err error) {
				lists, known := c.namespaces[controller]
				if !known {
					return nil, nil, errors.New("timed out")
				}
				return lists[0], lists[1], nil
			}
			disks, _, err := host.Disks(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, disk := range disks {
				if v := disk.Verdict(); v.Standing == DiskRefused && !strings.HasPrefix(disk.Info().Name, "pmem") && v.Transport != "nvme/tcp" {
					got = append(got, disk.Info().Path+" "+v.Reason)
					if _, err := disk.Erase(t.Context(), EraseOrder{}); err == nil {
						t.Errorf("%s was erased", disk.Info().Path)
					}
				}
			}
			if !slices.EqualFunc(got, c.want, strings.HasPrefix) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
			data, _ := host.Collect(t.Context())
			unreadable := slices.DeleteFunc(data.Storage, func(s policyv1alpha1.BlockDevice) bool { return s.Content != policyv1alpha1.ContentUnreadable })
			if len(unreadable) != len(c.want) {
				t.Errorf("the report names %d media that cannot be read, want %d", len(unreadable), len(c.want))
			}
		})
	}
}

// inEnclosure puts the disk sda below a place into a bay of an enclosure.
func inEnclosure(place, vendor, model string) string {
	const bay = "pci0000:00/0000:00:05.0/ses/0:0:8:0/enclosure/0:0:8:0/Slot 03"
	up := strings.Repeat("../", strings.Count(place, "/")+3)
	return "devices/" + place + "/target0:0:0/0:0:0:0/enclosure_device:Slot 03 -> " + up + bay + "\n" +
		"devices/" + bay + "/type: array device\n" +
		"class/enclosure/0:0:8:0 -> ../../devices/pci0000:00/0000:00:05.0/ses/0:0:8:0/enclosure/0:0:8:0\n" +
		"devices/pci0000:00/0000:00:05.0/ses/0:0:8:0/enclosure/0:0:8:0/device -> ../../../0:0:8:0\n" +
		"devices/pci0000:00/0000:00:05.0/ses/0:0:8:0/vendor: " + vendor + "\n" +
		"devices/pci0000:00/0000:00:05.0/ses/0:0:8:0/model: " + model + "\n"
}

func TestADoubtRefusesADiskThatThePolicyDoesNotAllow(t *testing.T) {
	const shelf = "pci0000:00/0000:00:05.0/host0/port-0:0/end_device-0:0"
	sas := scsiAt("sda", shelf)
	says := func(a drive.Answers) func(*Host) {
		return func(h *Host) { h.Drive = func(string, erasure.Protocol) drive.Answers { return a } }
	}
	held, unknown := says(drive.Answers{Reservation: drive.ReservationHeld}), says(drive.Answers{})
	none := says(drive.Answers{Reservation: drive.ReservationNone})
	for name, c := range map[string]struct {
		sysfs, disk string
		change      func(*Host)
		want        string
		// allowed is what becomes of the disk where the policy allows it.
		allowed Standing
	}{
		"SAS that a host has reserved":           {sas, "sda", held, "a host holds a reservation", DiskOurs},
		"SAS that does not say":                  {sas, "sda", unknown, "the drive did not say whether a host has reserved it", DiskOurs},
		"NVMe that a host has reserved":          {localNVMe, "nvme0n1", held, "a host holds a reservation", DiskOurs},
		"NVMe that does not say":                 {localNVMe, "nvme0n1", unknown, "the drive did not say whether a host has reserved it", DiskOurs},
		"a RAID volume that a host has reserved": {raid, "sda", held, "a host holds a reservation", DiskOurs},
		"nobody who could ask":                   {sata, "sda", func(h *Host) { h.Drive = nil }, "the drive was not asked", DiskOurs},
		"a protected area":                       {sata, "sda", says(drive.Answers{Hidden: "a host protected area hides 1"}), "a host protected area hides 1", DiskRefused},
		"SATA that does not say what it hides":   {sata, "sda", says(drive.Answers{HiddenUnknown: "the drive did not say"}), "the drive did not say", DiskOurs},
		"a shelf of disks":                       {sas + inEnclosure(shelf, "ACME", "JBOD60"), "sda", none, "it is in the enclosure ACME JBOD60 0:0:8:0 (Slot 03)", DiskOurs},
		"a shelf of a maker of servers":          {sas + inEnclosure(shelf, "DELL", "MD1400"), "sda", none, "it is in the enclosure DELL MD1400", DiskOurs},
		"an enclosure without a name":            {sas + inEnclosure(shelf, "", ""), "sda", none, "it is in the enclosure 0:0:8:0", DiskOurs},
		"a shelf, and no driver that tells its disks": {sas + "bus/scsi/devices/0:0:8:0/type: 13\nbus/scsi/devices/0:0:8:0/vendor: ACME\n", "sda", none,
			"it is in the enclosure ACME 0:0:8:0 (bay not known)", DiskOurs},
		"NVMe of a DPU":             {strings.ReplaceAll(localNVMe, "0x144d", "0x15b3"), "nvme0n1", none, "its controller nvme0 is of a DPU", DiskOurs},
		"shared NVMe":               {localNVMe, "nvme0n1", func(h *Host) { h.Sharing = func(string) NVMeSharing { return SharingPossible } }, "another host may use it", DiskOurs},
		"a virtio disk of a server": {virtioDisk, "vda", none, "it is a virtio disk", DiskOurs},
		"a remote disk":             {tcpNVMe, "nvme0n1", none, "it is remote", DiskRefused},
		"iSCSI":                     {scsiAt("sda", "platform/host0/session1"), "sda", none, "it is remote", DiskRefused},
		"a USB SSD":                 {usb, "sda", none, "it is attached over usb", DiskRefused},
		"an unknown transport":      {strings.ReplaceAll(raid, "megaraid_sas", "someraid"), "sda", none, "how it is attached is not known", DiskRefused},
	} {
		t.Run(name, func(t *testing.T) {
			host := sysfs(t, c.sysfs+"devices/"+pci+"/virtio1/block/vda/serial: V1\ndevices/"+pci+"/nvme/nvme0/nvme0n1/wwid: eui.1\n")
			c.change(host)
			got := host.judge(c.disk)
			if got.Standing != DiskRefused || !strings.HasPrefix(got.Reason, c.want) {
				t.Errorf("got  %+v\nwant %s", got, c.want)
			}
			host.Policy.Allowed = []string{"DISK", "V1", "eui.1"} // a model, a serial number and a wwid
			got = host.judge(c.disk)
			if got.Standing != c.allowed || (c.allowed == DiskOurs && !strings.HasPrefix(got.Reason, "the policy allows it, although "+c.want)) {
				t.Errorf("where the policy allows it: %+v, want %s", got, c.allowed)
			}
		})
	}
}

func TestABackplaneOfTheMachineIsNoShelf(t *testing.T) {
	const shelf = "pci0000:00/0000:00:05.0/host0/port-0:0/end_device-0:0"
	for name, c := range map[string]struct{ vendor, model string }{
		"Dell":     {"DP", "BP14G+EXP"},
		"HPE":      {"HPE", "Smart Adapter"},
		"Broadcom": {"BROADCOM", "VirtualSES"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := sysfs(t, scsiAt("sda", shelf)+inEnclosure(shelf, c.vendor, c.model)).judge("sda"); got.Standing != DiskOurs {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestAShelfOfAnotherAdapterOrOfOtherDisksIsNoDoubt(t *testing.T) {
	const sas = "pci0000:00/0000:00:05.0/host0/port-0:0/end_device-0:0"
	for name, more := range map[string]string{
		"another adapter":                    "bus/scsi/devices/10:0:8:0/type: 13\n",
		"the driver tells the disks of it":   "bus/scsi/devices/0:0:8:0/type: 13\nclass/enclosure/0:0:8:0/components: 4\n",
		"a backplane that the driver missed": "bus/scsi/devices/0:0:8:0/type: 13\nbus/scsi/devices/0:0:8:0/vendor: DP\nbus/scsi/devices/0:0:8:0/model: BP14G+EXP\n",
	} {
		t.Run(name, func(t *testing.T) {
			if got := sysfs(t, scsiAt("sda", sas)+more).judge("sda"); got.Standing != DiskOurs {
				t.Errorf("got %+v", got)
			}
		})
	}
}
