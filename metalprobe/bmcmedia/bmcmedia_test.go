// SPDX-License-Identifier: Apache-2.0

package bmcmedia

import "testing"

func TestWhose(t *testing.T) {
	for _, test := range []struct {
		name   string
		device Device
		want   string
	}{
		{"AMI's virtual hard disk", Device{Vendor: "046b", Product: "ff31", SCSIVendor: "AMI", SCSIModel: "Virtual HDisk0"}, "AMI MegaRAC"},
		{"AMI's virtual floppy", Device{Vendor: "046b", Product: "ff40", SCSIVendor: "AMI", SCSIModel: "Virtual Floppy0"}, "AMI MegaRAC"},
		{"another device of AMI's", Device{Vendor: "046b", Product: "ff31", SCSIVendor: "SanDisk", SCSIModel: "Ultra"}, ""},
		{"Dell's virtual floppy of old", Device{Vendor: "413c", Product: "0001", SCSIVendor: "Dell", SCSIModel: "Virtual  Floppy"}, "Dell DRAC"},
		{"iDRAC's virtual media", Device{Vendor: "0624", Product: "0251", SCSIVendor: "iDRAC", SCSIModel: "Virtual Floppy"}, "Dell iDRAC"},
		{"iDRAC's vFlash, which keeps data", Device{Vendor: "0624", Product: "0252"}, ""},
		{"Dell's Internal Dual SD Module, which keeps data", Device{Vendor: "413c", Product: "a101", SCSIVendor: "DELL", SCSIModel: "IDSDM"}, ""},
		{"iLO's virtual media", Device{Vendor: "03f0", Product: "0001", SCSIVendor: "iLO", SCSIModel: "Virtual Floppy"}, "HPE iLO"},
		{"iLO's internal SD card, which keeps data", Device{Vendor: "0424", Product: "4030", SCSIVendor: "HP iLO", SCSIModel: "Internal SD-CARD"}, ""},
		{"a USB stick of HP", Device{Vendor: "03f0", Product: "5a07", SCSIVendor: "hp", SCSIModel: "v100w"}, ""},
		{"XCC's virtual media", Device{Vendor: "17EF", Product: "B003"}, "Lenovo XCC"},
		{"ATEN's virtual disk", Device{Vendor: "0557", Product: "2221", SCSIVendor: "ATEN", SCSIModel: "Virtual Disk"}, "Supermicro (ATEN)"},
		{"OpenBMC's gadget", Device{Vendor: "1d6b", Product: "0104", Manufacturer: "OpenBMC", SCSIVendor: "Linux", SCSIModel: "File-Stor Gadget"}, "OpenBMC"},
		{"a gadget of another Linux", Device{Vendor: "1d6b", Product: "0104", Manufacturer: "Linux", SCSIVendor: "Linux", SCSIModel: "File-Stor Gadget"}, ""},
		{"a USB stick", Device{Vendor: "0781", Product: "5567", SCSIVendor: "SanDisk", SCSIModel: "Cruzer Blade"}, ""},
		{"a stick that calls itself virtual", Device{Vendor: "0781", Product: "5567", SCSIVendor: "AMI", SCSIModel: "Virtual HDisk0"}, ""},
		{"a device that says nothing", Device{}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := Whose(test.device); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	for _, k := range known {
		if k.source == "" || k.vendor == "" || len(k.products) == 0 && k.scsiVendor == "" {
			t.Errorf("a row of %s proves nothing: %+v", k.whose, k)
		}
	}
}
