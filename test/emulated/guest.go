// SPDX-License-Identifier: Apache-2.0

// Package emulated lets the stand-in agent run on emulated machines, neither of which knows the other: it is for the emulator's
// program and for tests.
package emulated

import (
	"context"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/metalprobe"
	"github.com/metalaw/metalaw/metalprobe/drive"
	"github.com/metalaw/metalaw/redfish/emulator"
	"github.com/metalaw/metalaw/test/guest"
)

// networkTargets are the boot sources that ask the boot provider; everything else boots from disk.
var networkTargets = map[string]guest.Source{"Pxe": guest.FromNetwork, "UefiHttp": guest.FromUEFIHTTP}

// NewGuest makes machines boot what the boot provider says and report as the agent does.
func NewGuest(options guest.Options) (emulator.Guest, error) {
	guests, err := guest.New(options)
	if err != nil {
		return nil, err
	}
	return stand{guests}, nil
}

// stand lets the stand-in agent run on emulated machines, neither of which knows the other.
type stand struct{ guests *guest.Guests }

// PoweredOn boots and runs until the machine is switched off.
func (s stand) PoweredOn(ctx context.Context, m *emulator.Machine, boot emulator.BootSelection) {
	if boot.MediaURL != "" {
		s.guests.PoweredOnFromISO(ctx, describe(m), readISO(m, boot.MediaURL))
		return
	}
	from, fromNetwork := networkTargets[boot.Target]
	if !fromNetwork {
		from = guest.FromDisk
	}
	s.guests.PoweredOn(ctx, describe(m), from)
}

// PoweredOff has nothing to do: the end of PoweredOn's context was the end of the guest.
func (stand) PoweredOff(*emulator.Machine) {}

// describe is the machine as an agent on it finds it. The report holds the UUID in the byte order that the machine
// itself sees.
func describe(m *emulator.Machine) guest.Machine {
	id, hardware := m.Identity(), m.Hardware()
	system, board := id.DMI()
	data := metalprobe.Data{
		SystemInfo: policyv1alpha1.SystemInfo{
			BIOSInformation: policyv1alpha1.BIOSInformation{Vendor: id.Manufacturer, Version: hardware.BIOSVersion},
			SystemInformation: policyv1alpha1.SystemInformation{
				Manufacturer: id.Manufacturer, ProductName: id.Model, SerialNumber: system,
				UUID: m.InBandUUID(), SKUNumber: id.SKU,
			},
			BoardInformation: policyv1alpha1.BoardInformation{SerialNumber: board},
		},
		Memory: []policyv1alpha1.MemoryDevice{{SizeBytes: hardware.MemoryBytes, DeviceLocator: "total"}},
	}
	cores := int32(hardware.CoresPerSocket)
	for i := range hardware.Sockets {
		data.CPU = append(data.CPU, metalprobe.CPU{
			ID: int32(i), TotalCores: cores, TotalHardwareThreads: 2 * cores, Model: hardware.CPUModel,
		})
	}
	for _, n := range m.NICs() {
		carrier := "down"
		if n.LinkUp {
			carrier = "up"
		}
		data.NetworkInterfaces = append(data.NetworkInterfaces, policyv1alpha1.ProbeNetworkInterface{
			Name: n.Name, MACAddress: n.MACAddress, CarrierStatus: carrier,
		})
	}
	for _, f := range m.Functions() {
		data.Hidden = append(data.Hidden, policyv1alpha1.HiddenStorage{Source: policyv1alpha1.HiddenByAgent, Address: f.Address,
			PCIID: f.ID, Reason: "no driver is bound to this storage function"})
	}
	machine := guest.Machine{UUID: id.UUID, Data: data}
	for _, d := range m.Drives() {
		machine.Disks = append(machine.Disks, disk{d})
	}
	return machine
}

// disk is an emulated drive as the agent knows drives.
type disk struct{ *emulator.Drive }

// Info describes the drive.
func (d disk) Info() policyv1alpha1.BlockDevice {
	content := policyv1alpha1.ContentBlank
	if d.Contents() != "" {
		content = policyv1alpha1.ContentData
	}
	return policyv1alpha1.BlockDevice{Content: content,
		Path: "/dev/" + d.Name, Name: d.Name, Rotational: d.Rotational, Vendor: d.Vendor, Model: d.Model,
		Serial: d.Serial, WWID: d.WWID, SizeBytes: d.SizeBytes,
	}
}

// Content is what reading the drive finds.
func (d disk) Content() (content policyv1alpha1.DiskContent, found string) {
	if d.Contents() != "" {
		return policyv1alpha1.ContentData, "data at byte 0"
	}
	return policyv1alpha1.ContentBlank, ""
}

// Facts are what Linux 6.1 shows of a drive that is attached so; the paths are those of its drivers.
func (d disk) Facts() metalprobe.DiskFacts {
	facts := metalprobe.DiskFacts{Name: d.Name, Device: "devices/pci0000:00/0000:00:04.0/nvme/nvme0/" + d.Name, Sharing: metalprobe.SharingNone,
		Reservation: drive.ReservationNone}
	scsi := "/target0:0:0/0:0:0:0/block/" + d.Name
	switch d.Transport {
	case emulator.TransportPCIe:
		facts.Controllers = []metalprobe.NVMeController{{Name: "nvme0", Transport: "pcie", PCIVendor: "0x144d"}}
	case emulator.TransportTCP:
		facts.Device = "devices/virtual/nvme-subsystem/nvme-subsys0/" + d.Name
		facts.Controllers = []metalprobe.NVMeController{{Name: "nvme0", Transport: "tcp"}}
	case emulator.TransportSATA:
		facts.Device = "devices/pci0000:00/0000:00:1f.2/ata1/host0" + scsi
	case emulator.TransportSAS:
		facts.Device = "devices/pci0000:00/0000:00:05.0/host0/port-0:0/end_device-0:0" + scsi
	case emulator.TransportISCSI:
		facts.Device = "devices/platform/host0/session1" + scsi
	case emulator.TransportUSBStick:
		facts.Device, facts.Removable = "devices/pci0000:00/0000:00:14.0/usb1/1-2/1-2:1.0/host0"+scsi, true
	default:
		facts.Device = ""
	}
	return facts
}
