// SPDX-License-Identifier: Apache-2.0

// Package bmcmedia tells the virtual media of a BMC from USB sticks in the machine, by what they say of themselves on
// the USB.
package bmcmedia

import (
	"path"
	"slices"
	"strings"

	"github.com/metalaw/metalaw/metalprobe/kernel"
)

// Device is what a USB storage device says of itself: on the USB, and to SCSI.
type Device struct {
	// Vendor and Product are numbers of four hex digits.
	Vendor, Product string
	// Manufacturer is a text of the USB.
	Manufacturer string
	// SCSIVendor and SCSIModel are those of INQUIRY.
	SCSIVendor, SCSIModel string
}

// known are virtual media of BMCs. Each condition that is given must hold. SD cards and flash that a BMC holds for its
// machine keep what the machine writes, so they are not among them: Dell's Internal Dual SD Module and vFlash, HPE's
// Internal SD-CARD.
var known = []struct {
	whose, vendor string
	products      []string
	manufacturer  string
	// scsiVendor is whole; scsiModel is the begin.
	scsiVendor, scsiModel string
	// source is where that stands.
	source string
}{
	{whose: "AMI MegaRAC", vendor: "046b", products: []string{"ff20", "ff31", "ff40"}, scsiVendor: "AMI",
		scsiModel: "Virtual ",
		source: "usb.ids: ff20 Virtual CDROM; lsusb: ff31 Virtual HDisk; lsscsi: AMI Virtual HDISK0, AMI Virtual " +
			"Floppy0"},
	{whose: "Dell DRAC", vendor: "413c", products: []string{"0001"}, source: "usb.ids: DRAC 5 Virtual Media"},
	{whose: "Dell DRAC", vendor: "413c", scsiVendor: "Dell", scsiModel: "Virtual ",
		source: "lsscsi: Dell Virtual  Floppy"},
	{whose: "Dell iDRAC", vendor: "0624", products: []string{"0251"}, source: "usb.ids: Avocent Virtual Mass Storage"},
	{whose: "Cisco CIMC", vendor: "0624", products: []string{"0403"}, source: "usb.ids: Cisco Virtual Mass Storage"},
	{whose: "Cisco CIMC", vendor: "05a6", products: []string{"0a02"}, source: "usb.ids: Virtual Mass Storage"},
	{whose: "HPE iLO", vendor: "03f0", products: []string{"1227"}, source: "usb.ids: Virtual CD-ROM"},
	{whose: "HPE iLO", vendor: "03f0", scsiVendor: "iLO", scsiModel: "Virtual ", source: "lsscsi: iLO Virtual DVD-ROM"},
	{whose: "Lenovo XCC", vendor: "17ef", products: []string{"b003"},
		source: "usb.ids: Virtual Keyboard and Mouse / Mass Storage"},
	{whose: "Supermicro (ATEN)", vendor: "0557", scsiVendor: "ATEN", scsiModel: "Virtual ",
		source: "lsscsi: ATEN Virtual CDROM YS0J"},
	{whose: "OpenBMC", vendor: "1d6b", products: []string{"0104", "0105"}, manufacturer: "OpenBMC",
		source: "usb_install.sh of jsnbd, virtual-media of OpenBMC: idVendor 0x1d6b, manufacturer OpenBMC, " +
			"Virtual Media Device"},
}

// Whose names the BMC whose virtual medium a device is known to be; empty for all others.
func Whose(d Device) string {
	for _, k := range known {
		switch {
		case !strings.EqualFold(d.Vendor, k.vendor):
		case len(k.products) > 0 && !slices.Contains(k.products, strings.ToLower(d.Product)):
		case k.manufacturer != "" && d.Manufacturer != k.manufacturer:
		case k.scsiVendor != "" && d.SCSIVendor != k.scsiVendor:
		case k.scsiModel != "" && !strings.HasPrefix(d.SCSIModel+" ", k.scsiModel):
		default:
			return k.whose
		}
	}
	return ""
}

// Read finds what the USB device of a disk says of itself; dir is the disk's own directory.
func Read(tree kernel.Tree, dir string) Device {
	d := Device{SCSIVendor: tree.Word(dir + "/device/vendor"), SCSIModel: tree.Word(dir + "/device/model")}
	for place := path.Dir(dir); strings.Contains(place, "/usb"); place = path.Dir(place) {
		if d.Vendor = tree.Word(place + "/idVendor"); d.Vendor != "" {
			d.Product, d.Manufacturer = tree.Word(place+"/idProduct"), tree.Word(place+"/manufacturer")
			break
		}
	}
	return d
}
