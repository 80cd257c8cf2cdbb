// SPDX-License-Identifier: Apache-2.0

package metalprobe

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

// tree is a file system from one line for each file: its path, a colon and its content.
func tree(text string) fstest.MapFS {
	files := fstest.MapFS{}
	for line := range strings.Lines(text) {
		if name, content, found := strings.Cut(strings.TrimSpace(line), ": "); found {
			files[name] = &fstest.MapFile{Data: []byte(strings.ReplaceAll(content, `\n`, "\n") + "\n")}
		}
	}
	return files
}

const machine = `
sys/class/dmi/id/sys_vendor: Dell Inc.
sys/class/dmi/id/product_name: PowerEdge R750
sys/class/dmi/id/product_serial: ABC1234
sys/class/dmi/id/product_uuid: 4C4C4544-0042-3510-8054-B7C04F4D4D32
sys/class/dmi/id/product_sku: SKU=0954
sys/class/dmi/id/bios_version: 1.9.2
sys/class/dmi/id/board_asset_tag: rack 7
proc/meminfo: MemTotal:       16384 kB\nMemFree: 1 kB
proc/cpuinfo: processor : 0\nvendor_id : GenuineIntel\nmodel name : Xeon Gold\nphysical id : 0\ncpu cores : 2\nflags : fpu vme\n\nprocessor : 1\nphysical id : 0\n\nprocessor : 2\nvendor_id : GenuineIntel\nmodel name : Xeon Gold\nphysical id : 1\ncpu cores : 2\nflags : fpu vme\n
sys/block/sda/size: 2048
sys/block/sda/dev: 8:0
sys/block/sda/removable: 0
sys/block/sda/ro: 0
sys/block/sda/queue/rotational: 1
sys/block/sda/queue/logical_block_size: 512
sys/block/sda/queue/physical_block_size: 4096
sys/block/sda/queue/hw_sector_size: 512
sys/block/sda/device/vendor: SEAGATE
sys/block/sda/device/model: ST1000
sys/block/sda/device/wwid: naa.5000c500a1b2c3d4
sys/block/sda/device/numa_node: -1
sys/block/sda/device/vpd_pg80: ....ZA1B2C3D
sys/block/sda/sda1/partition: 1
sys/block/sda/sda1/dev: 8:1
sys/block/sdb/size: 62333952
sys/block/sdb/removable: 1
sys/block/sdb/device/model: USB stick
sys/block/nvme0n1/size: 100
sys/block/nvme0n1/wwid: eui.0025
sys/block/nvme0n1/device/serial: S4EV
sys/block/nvme0c0n1/size: 100
sys/block/nvme0c0n1/hidden: 1
sys/block/nvme0c0n1/device/serial: S4EV
sys/block/sr0/size: 100
sys/block/sr0/device/model: DVD
sys/block/loop0/size: 100
sys/block/sdc/size: 0
sys/block/sdc/device/model: card reader
sys/class/net/lo/address: 00:00:00:00:00:00
sys/class/net/eth0/address: aa:bb:cc:dd:ee:01
sys/class/net/eth0/operstate: up
sys/class/net/eth0/speed: 25000
sys/class/net/eth0/device/uevent: DRIVER=i40e\nPCI_SLOT_NAME=0000:3b:00.0
sys/class/net/eth1/address: aa:bb:cc:dd:ee:02
sys/class/net/eth1/operstate: down
sys/class/net/eth1/speed: -1
sys/class/net/eth1/device/uevent: DRIVER=i40e
sys/bus/pci/devices/0000:3b:00.0/vendor: 0x8086
sys/bus/pci/devices/0000:3b:00.0/device: 0x158b
sys/bus/pci/devices/0000:3b:00.0/numa_node: 1
`

func TestCollectReadsAMachine(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	host := &Host{
		Root:      tree(machine),
		Addresses: func(name string) ([]string, error) { return map[string][]string{"eth0": {"10.0.0.1"}}[name], nil },
		Now:       func() time.Time { return now },
	}
	got, err := host.Collect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	flags := []string{"fpu", "vme"}
	want := Data{
		Timestamp: Timestamp{now},
		SystemInfo: policyv1alpha1.SystemInfo{
			BIOSInformation: policyv1alpha1.BIOSInformation{Version: "1.9.2"},
			SystemInformation: policyv1alpha1.SystemInformation{Manufacturer: "Dell Inc.", ProductName: "PowerEdge R750", SerialNumber: "ABC1234",
				UUID: "4c4c4544-0042-3510-8054-b7c04f4d4d32", SKUNumber: "SKU=0954"},
			BoardInformation: policyv1alpha1.BoardInformation{AssetTag: "rack 7"},
		},
		CPU: []CPU{
			{ID: 0, TotalCores: 2, TotalHardwareThreads: 2, Vendor: "GenuineIntel", Model: "Xeon Gold", Capabilities: flags},
			{ID: 1, TotalCores: 2, TotalHardwareThreads: 1, Vendor: "GenuineIntel", Model: "Xeon Gold", Capabilities: flags},
		},
		Memory: []policyv1alpha1.MemoryDevice{{SizeBytes: 16777216, DeviceLocator: "total"}},
		Storage: []policyv1alpha1.BlockDevice{
			{Path: "/dev/nvme0n1", Name: "nvme0n1", Serial: "S4EV", WWID: "eui.0025", Transport: "nvme/unknown", SizeBytes: 51200},
			{Path: "/dev/sda", Name: "sda", Rotational: true, Vendor: "SEAGATE", Model: "ST1000", Serial: "ZA1B2C3D",
				WWID: "naa.5000c500a1b2c3d4", Transport: "unknown", PhysicalBlockSize: 4096, LogicalBlockSize: 512, HWSectorSize: 512, SizeBytes: 1048576, NUMANodeID: -1},
			{Path: "/dev/sdb", Name: "sdb", Removable: true, Model: "USB stick", Transport: "unknown", SizeBytes: 31914983424},
		},
		NetworkInterfaces: []policyv1alpha1.ProbeNetworkInterface{
			{Name: "eth0", IPAddresses: []string{"10.0.0.1"}, MACAddress: "aa:bb:cc:dd:ee:01", CarrierStatus: "up"},
			{Name: "eth1", MACAddress: "aa:bb:cc:dd:ee:02", CarrierStatus: "down"},
		},
		NICs: []policyv1alpha1.NIC{
			{Name: "eth0", MAC: "aa:bb:cc:dd:ee:01", PCIAddress: "0000:3b:00.0", Speed: "25000Mb/s", Driver: "i40e"},
			{Name: "eth1", MAC: "aa:bb:cc:dd:ee:02", Driver: "i40e"},
		},
		PCIDevices:  []policyv1alpha1.PCIDevice{{Address: "0000:3b:00.0", VendorID: "8086", ProductID: "158b", NumaNodeID: 1}},
		HiddenKnown: true,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("collected (-want +got):\n%s", diff)
	}
}

func TestCollectReadsAnEmptyMachine(t *testing.T) {
	got, err := (&Host{Root: fstest.MapFS{}}).Collect(t.Context())
	if err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(Data{}, got); diff != "" {
		t.Errorf("collected (-want +got):\n%s", diff)
	}
}

func TestCollectGivesWhatItCouldReadTogetherWithTheError(t *testing.T) {
	files := tree("proc/meminfo: MemTotal: much kB\nsys/class/dmi/id/sys_vendor: Dell Inc.\nproc/cpuinfo: processor : 0\\nphysical id : x")
	got, err := (&Host{Root: files}).Collect(t.Context())
	expectProblems(t, err, []string{`/proc/meminfo: MemTotal "much"`, `/proc/cpuinfo: physical id "x"`})
	if got.SystemInfo.SystemInformation.Manufacturer != "Dell Inc." {
		t.Errorf("got %+v", got.SystemInfo)
	}
}

func TestCollectReadsThisMachine(t *testing.T) {
	data, err := (&Host{Root: os.DirFS("/"), Addresses: InterfaceAddresses, Now: time.Now}).Collect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	data.Trim()
	// A container may have another machine's firmware tables or none: only the form is checked.
	data.SystemInfo.SystemInformation.UUID = ""
	if err := (&Report{SystemUUID: uuid, Data: data}).Validate(); err != nil {
		t.Error(err)
	}
}

func TestInUse(t *testing.T) {
	for name, c := range map[string]struct{ more, want string }{
		"an idle disk":                              {"", ""},
		"its partition is mounted":                  {"proc/self/mountinfo: 29 1 8:1 / /var rw - ext4 /dev/sda1 rw", "it is mounted at /var"},
		"mounted under another number, as btrfs is": {"proc/self/mountinfo: 29 1 0:40 / /data rw - btrfs /dev/sda rw", "it is mounted at /data"},
		"another disk is mounted":                   {"proc/self/mountinfo: 29 1 8:17 / /var rw - ext4 /dev/sdb1 rw", ""},
		"its partition is swap":                     {"proc/swaps: Filename Type\\n/dev/sda1 partition 1 0 -2", "it is used as swap"},
		"LVM is on its partition":                   {"sys/block/sda/sda1/holders/dm-0/x: 1", "it is held by dm-0"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (&Host{Root: tree(machine + c.more)}).InUse("sda"); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestDisksToWipeAreTheFixedOnes(t *testing.T) {
	disks, _, err := (&Host{Root: tree(machine)}).Disks(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, disk := range disks {
		got = append(got, disk.Info().Path)
	}
	if diff := cmp.Diff([]string{"/dev/nvme0n1", "/dev/sda"}, got); diff != "" {
		t.Errorf("disks (-want +got):\n%s", diff)
	}
}

// The inventory tells what a wipe need not cover; that does not depend on what this boot erases.
func TestTheReportCallsAStickRemovableAlsoWhereThePolicyErasesIt(t *testing.T) {
	for _, eraseRemovable := range []bool{false, true} {
		host := sysfs(t, sata+strings.NewReplacer("sda", "sdb", "removable: 0", "removable: 1").Replace(usb))
		host.Policy.Removable = map[bool]string{true: RemovableErase}[eraseRemovable]
		data, err := host.Collect(t.Context())
		if err != nil || len(data.Storage) != 2 || data.Storage[0].Removable || !data.Storage[1].Removable {
			t.Errorf("erases %t: %+v, %v", eraseRemovable, data.Storage, err)
		}
		disks, skipped, err := host.Disks(t.Context())
		if want := map[bool]int{false: 1, true: 2}[eraseRemovable]; err != nil || len(disks) != want || len(disks)+len(skipped) != 2 {
			t.Errorf("erases %t: %d disks, %+v, %v", eraseRemovable, len(disks), skipped, err)
		}
	}
}

func TestEraseRefusesBeforeItOpensTheDisk(t *testing.T) {
	for name, c := range map[string]struct {
		change func(fstest.MapFS)
		want   string
	}{
		"a read-only disk": {func(f fstest.MapFS) { f["sys/block/sda/ro"].Data = []byte("1\n") }, "read-only"},
		"a removable disk": {func(f fstest.MapFS) { f["sys/block/sda/removable"].Data = []byte("1\n") }, "removable"},
		"a mounted disk": {func(f fstest.MapFS) {
			f["proc/self/mountinfo"] = &fstest.MapFile{Data: []byte("1 1 8:0 / / rw - ext4 x")}
		}, "mounted"},
		"a disk that is gone": {func(f fstest.MapFS) {
			for name := range f {
				if strings.HasPrefix(name, "sys/block/sda/") {
					delete(f, name)
				}
			}
		}, "gone"},
	} {
		t.Run(name, func(t *testing.T) {
			files := tree(machine)
			host := &Host{Root: files}
			info := policyv1alpha1.BlockDevice{Path: filepath.Join(t.TempDir(), "must-not-be-opened"), Name: "sda"}
			disk := &blockDisk{info: info, guard: func() error { return host.mayErase(info) }}
			c.change(files)
			_, err := disk.Erase(t.Context(), EraseOrder{})
			expectProblems(t, err, []string{c.want, "not erased"})
		})
	}
}
