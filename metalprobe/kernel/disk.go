// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"cmp"
	"io/fs"
	"path"
	"regexp"
	"strings"
)

// Model reads the model of a disk by its directory; cards call it their name.
func (t Tree) Model(dir string) string {
	return cmp.Or(t.Word(dir+"/device/model"), t.Word(dir+"/device/name"))
}

// WWID reads the name of a disk that no other has.
func (t Tree) WWID(dir string) string { return cmp.Or(t.Word(dir+"/wwid"), t.Word(dir+"/device/wwid")) }

// Serial reads the serial number: NVMe and virtio disks offer a file, SCSI disks page 0x80 of their vital data,
// whose text follows a header of four bytes. For a USB disk it is that of its USB device, because the kernel asks for no such page.
func (t Tree) Serial(dir string) string {
	if word := cmp.Or(t.Word(dir+"/device/serial"), t.Word(dir+"/serial")); word != "" {
		return word
	}
	page, err := fs.ReadFile(t.Root, dir+"/device/vpd_pg80")
	if err != nil || len(page) <= 4 {
		return t.usbSerial(t.Resolve(dir))
	}
	return strings.TrimSpace(strings.Trim(string(page[4:]), "\x00"))
}

// usbDevice matches the directory of a USB device: its bus, and the ports on the way to it.
var usbDevice = regexp.MustCompile(`^\d+-\d+(\.\d+)*$`)

// usbSerial is the serial number of the USB device on the path of a disk; empty for other disks.
func (t Tree) usbSerial(device string) string {
	for dir := device; dir != "." && dir != "/"; dir = path.Dir(dir) {
		if usbDevice.MatchString(path.Base(dir)) {
			return t.Word(dir + "/serial")
		}
	}
	return ""
}
