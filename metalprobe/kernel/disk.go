// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"cmp"
	"io/fs"
	"strings"
)

// Model reads the model of a disk by its directory; cards call it their name.
func (t Tree) Model(dir string) string {
	return cmp.Or(t.Word(dir+"/device/model"), t.Word(dir+"/device/name"))
}

// WWID reads the name of a disk that no other has.
func (t Tree) WWID(dir string) string { return cmp.Or(t.Word(dir+"/wwid"), t.Word(dir+"/device/wwid")) }

// Serial reads the serial number: NVMe and virtio disks offer a file, SCSI disks page 0x80 of their vital data,
// whose text follows a header of four bytes.
func (t Tree) Serial(dir string) string {
	if word := cmp.Or(t.Word(dir+"/device/serial"), t.Word(dir+"/serial")); word != "" {
		return word
	}
	page, err := fs.ReadFile(t.Root, dir+"/device/vpd_pg80")
	if err != nil || len(page) <= 4 {
		return ""
	}
	return strings.TrimSpace(strings.Trim(string(page[4:]), "\x00"))
}
