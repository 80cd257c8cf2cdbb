// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"io/fs"
	"testing"
	"testing/fstest"
)

func TestTheSerialNumberOfADisk(t *testing.T) {
	const stick = "sys/devices/pci0000:00/0000:00:03.0/usb2/2-1/2-1.4/2-1.4:1.0/host0/target0:0:0/0:0:0:0/block/sda"
	link := func(target string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte(target), Mode: fs.ModeSymlink}
	}
	text := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	for name, c := range map[string]struct {
		files fstest.MapFS
		want  string
	}{
		"is a file of the disk": {fstest.MapFS{"sys/block/sda/device/serial": text("N1\n")}, "N1"},
		"is in its vital data":  {fstest.MapFS{"sys/block/sda/device/vpd_pg80": text("\x00\x80\x00\x02S1")}, "S1"},
		"of a USB stick is that of its USB device, and not of a hub": {fstest.MapFS{"sys/block/sda": link("../devices" + stick[len("sys/devices"):]),
			"sys/devices/pci0000:00/0000:00:03.0/usb2/2-1/serial": text("HUB\n"), "sys/devices/pci0000:00/0000:00:03.0/usb2/2-1/2-1.4/serial": text("U1\n")}, "U1"},
		"of a stick that shows none is not that of the hub": {fstest.MapFS{"sys/block/sda": link("../devices" + stick[len("sys/devices"):]),
			"sys/devices/pci0000:00/0000:00:03.0/usb2/2-1/serial": text("HUB\n")}, ""},
		"is not known": {fstest.MapFS{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (Tree{Root: c.files}).Serial("sys/block/sda"); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
