// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalaw/metalaw/redfish/emulator"
)

func TestOneDescriptionGivesFlagsAndRedfish(t *testing.T) {
	d := Description{
		Name: "vm1", UUID: "u-1", SerialNumber: "S1", Manufacturer: "Maker, Inc.", Model: "M1", MemoryMiB: 256,
		DIMM: emulator.DIMM{Manufacturer: "Testron", SerialNumber: "D1", PartNumber: "P1"},
		NICs: []NIC{{MACAddress: "52:54:00:00:00:01"}, {MACAddress: "52:54:00:00:00:02", Model: "e1000e", Neighbour: &Neighbour{ChassisID: "c"}}},
		Disks: []Disk{
			{Bus: NVMe, Serial: "A", SizeBytes: 1, Path: "/d/a.img"}, {Bus: Virtio, Serial: "B", NBD: "/d/b", IgnoreDiscard: true},
			{Bus: SATA, Serial: "C", Path: "/d/c", ReadOnly: true}, {Bus: ATA, Serial: "D", Path: "/d/d"}, {Bus: USB, Serial: "E", Path: "/d/e"},
		},
	}
	on := files{serial: "/s", qmp: "/q", frames: func(int) string { return "/f" }, guestFrames: func(int) string { return "/g" }}
	got := strings.Join(d.flags(emulator.Identity{UUID: "u-1", SerialNumber: "S1", Manufacturer: "Maker, Inc.", Model: "M1"}, "tcg", on,
		source{flags: []string{"-kernel", "/k"}}), "\n")
	want := `-nodefaults
-no-user-config
-display
none
-no-reboot
-name
vm1
-machine
q35,accel=tcg
-cpu
max
-m
256
-serial
file:/s
-qmp
unix:/q,server=on,wait=off
-smbios
type=0,vendor=metalaw,version=metalaw-vm-1
-smbios
type=1,uuid=u-1,serial=S1,manufacturer=Maker,, Inc.,product=M1
-smbios
type=17,loc_pfx=DIMM_A,manufacturer=Testron,serial=D1,part=P1
-netdev
user,id=user0
-device
virtio-net-pci,netdev=user0,mac=52:54:00:00:00:01,romfile=
-netdev
user,id=user1
-netdev
dgram,id=wire1,local.type=unix,remote.type=unix,local.path=/g,remote.path=/f
-netdev
hubport,id=hubuser1,hubid=1,netdev=user1
-netdev
hubport,id=hubwire1,hubid=1,netdev=wire1
-netdev
hubport,id=port1,hubid=1
-device
e1000e,netdev=port1,mac=52:54:00:00:00:02,romfile=
-drive
if=none,id=disk0,format=raw,discard=unmap,cache=unsafe,file=/d/a.img
-device
nvme,drive=disk0,serial=A
-drive
if=none,id=disk1,format=raw,discard=ignore,file=nbd:unix:/d/b
-device
virtio-blk-pci,drive=disk1,serial=B
-drive
if=none,id=disk2,format=raw,discard=unmap,readonly=on,cache=unsafe,file=/d/c
-device
ide-hd,bus=ide.0,drive=disk2,serial=C
-device
piix3-ide,id=piix
-drive
if=none,id=disk3,format=raw,discard=unmap,cache=unsafe,file=/d/d
-device
ide-hd,bus=piix.0,drive=disk3,serial=D
-device
qemu-xhci,id=usb0
-drive
if=none,id=disk4,format=raw,discard=unmap,cache=unsafe,file=/d/e
-device
usb-storage,bus=usb0.0,removable=on,drive=disk4,serial=E
-kernel
/k`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	spec := d.spec()
	if spec.Identity.UUID != "u-1" || len(spec.NICs) != 2 || spec.NICs[0].MACAddress != "52:54:00:00:00:01" || spec.Hardware.MemoryBytes != 256<<20 {
		t.Errorf("%+v", spec)
	}
	wantDIMM := emulator.DIMM{Locator: "DIMM_A", Manufacturer: "Testron", SerialNumber: "D1", PartNumber: "P1", SizeBytes: 256 << 20}
	if diff := cmp.Diff([]emulator.DIMM{wantDIMM}, spec.Hardware.DIMMs); diff != "" {
		t.Error(diff)
	}
	var transports []emulator.Transport
	for _, drive := range spec.Drives {
		transports = append(transports, drive.Transport)
	}
	if diff := cmp.Diff([]emulator.Transport{emulator.TransportPCIe, emulator.TransportVirtio, emulator.TransportSATA, emulator.TransportSATA,
		emulator.TransportUSBStick}, transports); diff != "" {
		t.Error(diff)
	}
}

func TestAFrameOfLLDPIsAddressedToTheNearestBridge(t *testing.T) {
	frame := Neighbour{ChassisID: "leaf-1", PortID: "Ethernet4", SystemName: "leaf-1.example"}.frame()
	if len(frame) < 60 || string(frame[:6]) != "\x01\x80\xc2\x00\x00\x0e" || string(frame[12:14]) != "\x88\xcc" {
		t.Errorf("%x", frame)
	}
	if !strings.Contains(string(frame), "\x02\x07\x07leaf-1") {
		t.Errorf("%q has no chassis", frame)
	}
}

func TestTheTableOfADellSaysWhatItsServiceTagIs(t *testing.T) {
	id := emulator.Identity{UUID: "u-1", SerialNumber: "CN0001", Manufacturer: "Dell Inc.", Model: "M1", SKU: "F54P1X0"}
	got := strings.Join(Description{}.smbios(id), "\n")
	for _, want := range []string{"type=1,uuid=u-1,serial=F54P1X0,", "type=2,manufacturer=Dell Inc.,serial=.F54P1X0.CN0001."} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not in\n%s", want, got)
		}
	}
	got = strings.Join(Description{SystemSerial: "S9", BoardSerial: "B9"}.smbios(id), "\n")
	if !strings.Contains(got, "type=1,uuid=u-1,serial=S9,") || !strings.Contains(got, "type=2,manufacturer=Dell Inc.,serial=B9") {
		t.Errorf("got\n%s", got)
	}
}
