// SPDX-License-Identifier: Apache-2.0

package metalprobe

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/metalprobe/drive"
	"github.com/metalaw/metalaw/metalprobe/erasure"
)

// sysfs builds a tree with the links that the kernel makes: a line is "path: content" or "path -> target".
func sysfs(t *testing.T, text string) *Host {
	t.Helper()
	root := t.TempDir()
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		name, rest, isLink := strings.Cut(line, " -> ")
		if !isLink {
			var isFile bool
			if name, rest, isFile = strings.Cut(line, ": "); !isFile {
				continue
			}
		}
		name = filepath.Join(root, "sys", name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		write := func() error { return os.WriteFile(name, []byte(rest+"\n"), 0o600) }
		if isLink {
			write = func() error { return os.Symlink(rest, name) }
		}
		if err := write(); err != nil && !os.IsExist(err) {
			t.Fatal(err)
		}
	}
	return &Host{
		Root:    os.DirFS(root),
		Sharing: func(string) NVMeSharing { return SharingNone },
		Drive:   func(string, erasure.Protocol) drive.Answers { return drive.Answers{Reservation: drive.ReservationNone} },
	}
}

// The layouts below are those of Linux 6.1, written down from its drivers.

// nvmeAt is a controller at its place, and its subsystem, which names it.
func nvmeAt(name, place, transport, subsystem string) string {
	return `
devices/` + place + `/` + name + `/transport: ` + transport + `
class/nvme/` + name + ` -> ../../devices/` + place + `/` + name + `
devices/virtual/nvme-subsystem/` + subsystem + `/` + name + ` -> ../../../` + place + `/` + name + `
class/nvme-subsystem/` + subsystem + ` -> ../../devices/virtual/nvme-subsystem/` + subsystem + `
` + pciVendor(place, name, transport)
}

// pciVendor is the PCI function below which a local controller hangs.
func pciVendor(place, name, transport string) string {
	if transport != "pcie" {
		return ""
	}
	function := place[:strings.LastIndex(place, "/nvme")]
	return `
devices/` + function + `/vendor: 0x144d
devices/` + place + `/` + name + `/device -> ../../../` + filepath.Base(function) + `
`
}

// diskAt is a block device at its place; device is its link of that name.
func diskAt(name, place, device string) string {
	return `
block/` + name + ` -> ../devices/` + place + `/` + name + `
devices/` + place + `/` + name + `/size: 2048
devices/` + place + `/` + name + `/ro: 0
devices/` + place + `/` + name + `/removable: 0
devices/` + place + `/` + name + `/device -> ` + device + `
`
}

const (
	pci      = "pci0000:00/0000:00:04.0"
	otherPCI = "pci0000:00/0000:00:05.0"
	fabrics  = "virtual/nvme-fabrics/ctl"
	head     = "virtual/nvme-subsystem/nvme-subsys0"
)

// scsiAt is a SCSI disk below a path of adapters and ports.
func scsiAt(name, place string) string {
	return `
devices/` + place + `/target0:0:0/0:0:0:0/type: 0
devices/` + place + `/target0:0:0/0:0:0:0/model: DISK
` + diskAt(name, place+"/target0:0:0/0:0:0:0/block", "../../../0:0:0:0")
}

var (
	localNVMe = nvmeAt("nvme0", pci+"/nvme", "pcie", "nvme-subsys0") + diskAt("nvme0n1", pci+"/nvme/nvme0", "../../nvme0")
	tcpPath   = nvmeAt("nvme0", fabrics, "tcp", "nvme-subsys0") + diskAt("nvme0c0n1", fabrics+"/nvme0", "../../nvme0") +
		"devices/" + fabrics + "/nvme0/nvme0c0n1/hidden: 1\n"
	tcpNVMe    = tcpPath + diskAt("nvme0n1", head, "../../nvme-subsys0")
	twoLocal   = nvmeAt("nvme0", pci+"/nvme", "pcie", "nvme-subsys0") + localTwin + diskAt("nvme0n1", head, "../../nvme-subsys0")
	localTwin  = nvmeAt("nvme1", otherPCI+"/nvme", "pcie", "nvme-subsys0")
	sata       = scsiAt("sda", "pci0000:00/0000:00:1f.2/ata1/host0")
	virtioDisk = diskAt("vda", pci+"/virtio1/block", "../../../virtio1")
	card       = diskAt("mmcblk0", pci+"/mmc_host/mmc0/mmc0:0001/block", "../../../mmc0:0001")
	usb        = scsiAt("sda", "pci0000:00/0000:00:14.0/usb1/1-2/1-2:1.0/host0")
	raid       = scsiAt("sda", "pci0000:00/0000:00:01.0/0000:01:00.0/host0") + hostOf("megaraid_sas")
	dmi        = "devices/virtual/dmi/id/"
	dmiLink    = "class/dmi/id -> ../../devices/virtual/dmi/id\n"
)

// usbOf is what the USB device of usb, and its disk, say of themselves.
func usbOf(vendor, product, scsiVendor, model string) string {
	const device, disk = "devices/pci0000:00/0000:00:14.0/usb1/1-2/", "1-2:1.0/host0/target0:0:0/0:0:0:0/"
	return device + "idVendor: " + vendor + "\n" + device + "idProduct: " + product + "\n" +
		device + disk + "vendor: " + scsiVendor + "\n" + device + disk + "model: " + model + "\n"
}

// twoSATA are two SATA disks with one wwid.
func twoSATA(wwid, serial, other string) string {
	const place, scsi = "pci0000:00/0000:00:1f.2/ata", "/target0:0:0/0:0:0:0/block"
	var text string
	for i, number := range []string{serial, other} {
		host := fmt.Sprintf("%s%d/host%d", place, i+1, i)
		name := []string{"sda", "sdb"}[i]
		text += scsiAt(name, host) + at(name, host+scsi, "wwid", wwid) + at(name, host+scsi, "serial", number)
	}
	return text
}

// raidFunction is the PCI function of raid with its driver.
func raidFunction(driver string) string {
	return "bus/pci/devices/0000:01:00.0/uevent: DRIVER=" + driver + "\n"
}

func hostOf(driver string) string {
	return "devices/pci0000:00/0000:00:01.0/0000:01:00.0/host0/scsi_host/host0/proc_name: " + driver +
		"\nclass/scsi_host/host0 -> ../../devices/pci0000:00/0000:00:01.0/0000:01:00.0/host0/scsi_host/host0\n"
}

// The places of flags below a disk's own directory.
func at(name, place, file, content string) string {
	return "devices/" + place + "/" + name + "/" + file + ": " + content + "\n"
}

func TestWhichDisksAWipeMayErase(t *testing.T) {
	const scsi = "/target0:0:0/0:0:0:0/block"
	shared := func(h *Host) { h.Sharing = func(string) NVMeSharing { return SharingPossible } }
	silent := func(h *Host) { h.Sharing = nil }
	erase := func(h *Host) { h.Policy.Removable = RemovableErase }
	stick := strings.Replace(usb, "removable: 0", "removable: 1", 1)
	bmc := stick + usbOf("046b", "ff31", "AMI", "Virtual HDisk0")
	volume := func(driver string) string { return strings.ReplaceAll(raid, "megaraid_sas", driver) }
	flagged := func(driver string) string { return strings.Replace(volume(driver), "removable: 0", "removable: 1", 1) }
	allowing := func(h *Host) { h.Policy.Allowed = []string{"DISK"} }
	both := func(h *Host) { erase(h); allowing(h) }
	sdCard := card + at("mmcblk0", pci+"/mmc_host/mmc0/mmc0:0001/block", "../../type", "SD")
	for name, c := range map[string]struct {
		sysfs  string
		disk   string
		change func(*Host)
		want   string
	}{
		"NVMe at its PCIe controller":                    {localNVMe, "nvme0n1", nil, "Ours nvme/pcie"},
		"NVMe over TCP below its subsystem":              {tcpNVMe, "nvme0n1", nil, "Refused nvme/tcp it is remote: its controller nvme0 is reached over tcp"},
		"NVMe over TCP without native multipath":         {nvmeAt("nvme0", fabrics, "tcp", "nvme-subsys0") + diskAt("nvme0n1", fabrics+"/nvme0", "../../nvme0"), "nvme0n1", nil, "Refused nvme/tcp it is remote"},
		"NVMe over RDMA":                                 {nvmeAt("nvme0", fabrics, "rdma", "nvme-subsys0") + diskAt("nvme0n1", head, "../../nvme-subsys0"), "nvme0n1", nil, "Refused nvme/rdma it is remote"},
		"NVMe over Fibre Channel":                        {nvmeAt("nvme0", fabrics, "fc", "nvme-subsys0") + diskAt("nvme0n1", head, "../../nvme-subsys0"), "nvme0n1", nil, "Refused nvme/fc it is remote"},
		"an NVMe loop target":                            {nvmeAt("nvme0", fabrics, "loop", "nvme-subsys0") + diskAt("nvme0n1", head, "../../nvme-subsys0"), "nvme0n1", nil, "Refused nvme/loop it is remote"},
		"one of two controllers is remote":               {nvmeAt("nvme0", pci+"/nvme", "pcie", "nvme-subsys0") + nvmeAt("nvme1", fabrics, "tcp", "nvme-subsys0") + diskAt("nvme0n1", head, "../../nvme-subsys0"), "nvme0n1", nil, "Refused nvme/pcie+tcp it is remote: its controller nvme1"},
		"a hidden path by a controller of no subsystem":  {twoLocal + diskAt("nvme0c7n1", fabrics+"/nvme7", "../../nvme7"), "nvme0n1", nil, "Refused nvme/pcie the transport of its controller nvme7 is not known"},
		"an NVMe disk without a subsystem":               {diskAt("nvme0n1", pci+"/nvme/nvme0", "../../nvme0"), "nvme0n1", nil, "Refused nvme/unknown its NVMe controllers are not known"},
		"two local controllers, one private namespace":   {twoLocal, "nvme0n1", nil, "Ours nvme/pcie"},
		"two local controllers, one shared namespace":    {twoLocal, "nvme0n1", shared, "Refused nvme/pcie another host may use it"},
		"an NVMe drive that does not say what is shared": {localNVMe, "nvme0n1", silent, "Refused nvme/pcie the drive did not say"},
		"NVMe of a DPU":                                  {strings.ReplaceAll(localNVMe, "0x144d", "0x15b3"), "nvme0n1", nil, "Refused nvme/pcie its controller nvme0 is of a DPU (NVIDIA BlueField)"},
		"SATA":                                           {sata, "sda", nil, "Ours sata"},
		"SATA in a hot-swap bay, flagged removable":      {strings.Replace(sata, "removable: 0", "removable: 1", 1), "sda", nil, "Ours sata"},
		"SAS behind an expander":                         {scsiAt("sda", pci+"/host0/port-0:0/expander-0:0/port-0:0:1/end_device-0:0:1"), "sda", nil, "Ours sas"},
		"iSCSI":                                          {scsiAt("sda", "platform/host0/session1"), "sda", nil, "Refused iscsi it is remote"},
		"iSCSI of an adapter":                            {scsiAt("sda", pci+"/host0/session1"), "sda", nil, "Refused iscsi it is remote"},
		"Fibre Channel":                                  {scsiAt("sda", pci+"/host0/rport-0:0-0"), "sda", nil, "Refused fc it is remote"},
		"a virtio disk of a virtual machine":             {virtioDisk + dmiLink + dmi + "sys_vendor: QEMU", "vda", nil, "Ours virtio"},
		"virtio SCSI of a virtual machine":               {scsiAt("sda", pci+"/virtio1/host0") + dmiLink + dmi + "product_name: KVM", "sda", nil, "Ours virtio"},
		"a virtio disk of a server":                      {virtioDisk + dmiLink + dmi + "sys_vendor: Dell Inc.", "vda", nil, "Refused virtio it is a virtio disk"},
		"a virtio disk where the firmware says nothing":  {virtioDisk, "vda", nil, "Refused virtio it is a virtio disk"},
		"a USB stick":                                    {strings.Replace(usb, "removable: 0", "removable: 1", 1), "sda", nil, "NotFixed usb removable medium"},
		"a USB SSD":                                      {usb, "sda", nil, "Refused usb it is attached over usb"},
		"a USB SSD, under Erase":                         {usb, "sda", erase, "Refused usb it is attached over usb"},
		"a USB stick, under Erase":                       {stick, "sda", erase, "Ours usb"},
		"a USB stick, write-locked, under Erase":         {strings.Replace(stick, "ro: 0", "ro: 1", 1), "sda", erase, "NotFixed usb removable medium or virtual medium of the BMC, and read-only"},
		"a virtual medium of the BMC":                    {bmc, "sda", nil, "NotFixed usb virtual medium of the BMC (AMI MegaRAC)"},
		"a virtual medium of the BMC, under Erase":       {bmc, "sda", erase, "NotFixed usb virtual medium of the BMC (AMI MegaRAC)"},
		"an SD card, under Erase":                        {sdCard, "mmcblk0", erase, "Ours mmc"},
		"a card of no known type, under Erase":           {card, "mmcblk0", erase, "Refused mmc it is a card of unknown type"},
		"a CD drive, under Erase":                        {scsiAt("sr0", "pci0000:00/0000:00:1f.2/ata1/host0"), "sr0", erase, "NotFixed sata optical"},
		"removable, of an unknown adapter":               {flagged("someraid"), "sda", nil, "NotFixed unknown the kernel calls it removable, and how it is attached"},
		"removable, of an unknown adapter, under Erase":  {flagged("someraid"), "sda", erase, "Refused unknown how it is attached is not known"},
		"a volume of mpi3mr":                             {volume("mpi3mr"), "sda", nil, "Ours raid RAID volume"},
		"a volume of mpi3mr, flagged removable":          {flagged("mpi3mr"), "sda", nil, "Ours raid RAID volume"},
		"a volume of arcmsr":                             {volume("arcmsr"), "sda", nil, "Refused raid its RAID driver arcmsr is not known"},
		"a volume of arcmsr that the policy allows":      {volume("arcmsr"), "sda", allowing, "Ours raid the policy allows it, although its RAID driver arcmsr"},
		"a volume of hptiop, flagged removable":          {flagged("hptiop"), "sda", nil, "NotFixed raid the kernel calls it removable, as some RAID drivers"},
		"the same, and the policy allows it":             {flagged("hptiop"), "sda", allowing, "Ours raid the policy allows it"},
		"the same, under Erase":                          {flagged("hptiop"), "sda", erase, "Refused raid its RAID driver hptiop is not known"},
		"the same, under Erase and allowed":              {flagged("hptiop"), "sda", both, "Ours raid the policy allows it"},
		"a volume of a driver that names its function":   {volume("(null)") + raidFunction("3w-9xxx"), "sda", nil, "Refused raid its RAID driver 3w-9xxx is not known"},
		"a RAID volume":                                  {raid, "sda", nil, "Ours raid RAID volume: only its blocks"},
		"a disk of an adapter that is not known":         {strings.ReplaceAll(raid, "megaraid_sas", "someraid"), "sda", nil, "Refused unknown how it is attached is not known"},
		"persistent memory":                              {diskAt("pmem0", "LNXSYSTM:00/ndbus0/region0/namespace0.0/block", "../../../namespace0.0"), "pmem0", nil, "Refused unknown how it is attached"},
		"two paths to one disk": {sata + at("sda", "pci0000:00/0000:00:1f.2/ata1/host0"+scsi, "wwid", "naa.1") +
			scsiAt("sdb", "pci0000:00/0000:00:1f.2/ata2/host1") + at("sdb", "pci0000:00/0000:00:1f.2/ata2/host1"+scsi, "wwid", "naa.1"),
			"sda", nil, "Refused sata it has the same wwid as sdb"},
		"two SATA disks of a batch with one wwid": {twoSATA("naa.5000c500a1b2c3d4", "S1", "S2"), "sda", nil, "Ours sata"},
		"one SATA disk seen twice":                {twoSATA("naa.5000c500a1b2c3d4", "S1", "S1"), "sda", nil, "Refused sata it has the same wwid as sdb"},
		"two SATA disks with a wwid of zeros":     {twoSATA("naa.0000000000000000", "S1", "S2"), "sda", nil, "Ours sata"},
		"a path of dm-multipath": {sata + "devices/virtual/block/dm-0/dm/uuid: mpath-3600\nblock/dm-0 -> ../devices/virtual/block/dm-0\n" +
			"devices/pci0000:00/0000:00:1f.2/ata1/host0" + scsi + "/sda/holders/dm-0 -> ../../../../../../../../../../virtual/block/dm-0",
			"sda", nil, "Refused sata it is a path of the multipath device dm-0"},
		"an eMMC":                    {card + at("mmcblk0", pci+"/mmc_host/mmc0/mmc0:0001/block", "../../type", "MMC"), "mmcblk0", nil, "Ours mmc"},
		"an SD card, never flagged":  {card + at("mmcblk0", pci+"/mmc_host/mmc0/mmc0:0001/block", "../../type", "SD"), "mmcblk0", nil, "NotFixed mmc removable SD card"},
		"a card of no known type":    {card, "mmcblk0", nil, "Refused mmc it is a card of unknown type"},
		"a boot area of an eMMC":     {diskAt("mmcblk0boot0", pci+"/mmc_host/mmc0/mmc0:0001/block/mmcblk0", "../../mmcblk0"), "mmcblk0boot0", nil, "NotFixed mmc firmware area"},
		"a CD drive":                 {scsiAt("sr0", "pci0000:00/0000:00:1f.2/ata1/host0"), "sr0", nil, "NotFixed sata optical"},
		"a fixed disk, write-locked": {strings.Replace(sata, "ro: 0", "ro: 1", 1), "sda", nil, "Refused sata it is read-only"},
	} {
		t.Run(name, func(t *testing.T) {
			host := sysfs(t, c.sysfs)
			if c.change != nil {
				c.change(host)
			}
			got := host.judge(c.disk)
			if line := string(got.Standing) + " " + got.Transport + " " + got.Reason; !strings.HasPrefix(strings.TrimSpace(line), c.want) {
				t.Errorf("got  %s\nwant %s", line, c.want)
			}
			if (got.Standing == DiskOurs) != (host.mayErase(policyv1alpha1.BlockDevice{Name: c.disk}) == nil) {
				t.Errorf("%s, but asked before the erase: %v", got.Standing, host.mayErase(policyv1alpha1.BlockDevice{Name: c.disk}))
			}
		})
	}
}

func TestAWipeNamesWhatItRefusesAndWhatItSkips(t *testing.T) {
	host := sysfs(t, tcpNVMe+sata+diskAt("mmcblk0boot0", pci+"/mmc_host/mmc0/mmc0:0001/block/mmcblk0", "../../mmcblk0"))
	disks, skipped, err := host.Disks(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, disk := range disks {
		got = append(got, disk.Info().Path+" "+string(disk.Verdict().Standing))
	}
	if diff := cmp.Diff([]string{"/dev/nvme0n1 Refused", "/dev/sda Ours"}, got); diff != "" {
		t.Errorf("disks (-want +got):\n%s", diff)
	}
	want := []policyv1alpha1.SkippedDisk{{Path: "/dev/mmcblk0boot0", Name: "mmcblk0boot0", SizeBytes: 1 << 20, Transport: "mmc", Reason: "firmware area of an eMMC"}}
	if diff := cmp.Diff(want, skipped); diff != "" {
		t.Errorf("skipped (-want +got):\n%s", diff)
	}
}

func TestARemoteDiskIsNotOpenedForWriting(t *testing.T) {
	host := sysfs(t, tcpNVMe)
	if err := host.mayErase(policyv1alpha1.BlockDevice{Name: "nvme0n1"}); err == nil {
		t.Error("a namespace over NVMe/TCP may be erased")
	}
}

func TestAFailedWipeNamesEachDiskAndItsReason(t *testing.T) {
	got := failure([]policyv1alpha1.DiskWipe{
		{Path: "/dev/sda", State: policyv1alpha1.DiskVerified},
		{Path: "/dev/sdb", Serial: "B", State: policyv1alpha1.DiskFailed, Message: "not erased: it is remote"},
		{Path: "/dev/sdc", State: policyv1alpha1.DiskFailed, Message: "/dev/sdc: flushing: input/output error"},
	})
	const want = "2 of 3 disks may still hold data: /dev/sdb (serial B): not erased: it is remote; /dev/sdc: flushing: input/output error"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestADriveThatCannotBeAskedIsNotKnownToBePrivate(t *testing.T) {
	if got := SharingOf("no-such-disk"); got != SharingUnknown {
		t.Errorf("got %d", got)
	}
}

func TestSharingNeedsAnAttachableNamespaceAndSeveralControllers(t *testing.T) {
	for name, c := range map[string]struct {
		cmic, nmic byte
		want       NVMeSharing
	}{
		"a plain drive":                           {0, 0, SharingNone},
		"two ports, a private namespace":          {1, 0, SharingNone},
		"one controller, an attachable namespace": {0, 1, SharingNone},
		"two ports, an attachable namespace":      {1, 1, SharingPossible},
		"two controllers, the same":               {2, 1, SharingPossible},
		"a virtual function, the same":            {4, 1, SharingPossible},
	} {
		t.Run(name, func(t *testing.T) {
			if got := sharing(c.cmic, c.nmic); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}

func FuzzADiskOnARemotePathIsNeverOurs(f *testing.F) {
	f.Add("sda", "devices/pci0000:00/0000:00:04.0/ata1/host0", false)
	f.Add("vda", "devices/platform/virtio1", true)
	f.Fuzz(func(t *testing.T, name, place string, vm bool) {
		for _, remote := range []string{"session4", "rport-2:0-1"} {
			facts := DiskFacts{Name: name, Device: place + "/" + remote + "/target0:0:0/0:0:0:0/block/sda", VirtualMachine: vm, HostDriver: "hpsa", CardType: "MMC"}
			if got := JudgeDisk(facts); got.Standing == DiskOurs {
				t.Errorf("%+v is erased: %+v", facts, got)
			}
		}
		facts := DiskFacts{Name: "nvme0n1", Device: place, Sharing: SharingNone, Controllers: []NVMeController{{"nvme0", "pcie", "0x144d"}, {"nvme1", name, "0x144d"}}}
		if got := JudgeDisk(facts); got.Standing == DiskOurs && name != "pcie" {
			t.Errorf("%+v is erased: %+v", facts, got)
		}
	})
}
