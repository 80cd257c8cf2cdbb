// SPDX-License-Identifier: Apache-2.0

package bootmedia

import (
	"encoding/binary"
	"fmt"
	"io"
	"strings"
)

const (
	isoSector = 2048
	// The system area is followed by the primary volume descriptor, the boot record (which El Torito wants here), the
	// terminator and the boot catalog.
	isoPrimary   = 16
	isoBoot      = 17
	isoEnd       = 18
	isoCatalog   = 19
	isoPathTable = 20
	isoEFI       = 0xef // the platform of UEFI in a boot catalog
)

// ISOOptions say what an ISO holds.
type ISOOptions struct {
	// VolumeID is the label, at most 32 printable ASCII characters. Empty is METALAW.
	VolumeID string
	// UKI is the EFI program that firmware starts, of UKISize bytes. The ISO reads it in place: it must not change.
	UKI     io.ReaderAt
	UKISize int64
	// Arch is amd64 or arm64.
	Arch string
	// Files are plain files by their path on the ISO, for example metalprobe/config.json.
	Files map[string][]byte
}

// ISO is a virtual CD that UEFI firmware boots, composed while it is read. Its files have Rock Ridge names, so that
// Linux shows them as they were given; without Rock Ridge, Linux shows shortened names in lower case.
type ISO struct {
	*Image
}

// NewISO composes an ISO 9660 image with an El Torito entry for UEFI and the files of options.
func NewISO(options ISOOptions) (*ISO, error) {
	if options.VolumeID == "" {
		options.VolumeID = "METALAW"
	}
	if len(options.VolumeID) > 32 || strings.ContainsFunc(options.VolumeID, func(r rune) bool { return r < ' ' || r > '~' }) {
		return nil, fmt.Errorf("composing an ISO: volume ID %q is not of 1 to 32 printable ASCII characters", options.VolumeID)
	}
	if options.UKI == nil {
		return nil, fmt.Errorf("composing an ISO: there is no UKI; give the EFI program that the machine boots")
	}
	esp, err := NewESP(options.Arch, options.UKI, options.UKISize)
	if err != nil {
		return nil, err
	}
	root, err := isoTree(options.Files)
	if err != nil {
		return nil, err
	}
	folders := root.folders()
	sizes, _ := pathTables(folders)
	tableSectors := roundUp(int64(len(sizes)), isoSector) / isoSector

	next := isoPathTable + 2*tableSectors
	for _, folder := range folders {
		folder.sector = next
		folder.size = folder.recordsSize()
		next += folder.size / isoSector
	}
	files := root.files()
	for _, file := range files {
		file.sector = next
		next += roundUp(file.size, isoSector) / isoSector
	}
	// The tables again, now that each folder has its place.
	littleTable, bigTable := pathTables(folders)
	espSector := next
	sectors := espSector + roundUp(esp.Size(), isoSector)/isoSector

	image := &Image{size: sectors * isoSector}
	image.putBytes(isoPrimary*isoSector, primaryDescriptor(options.VolumeID, sectors, int64(len(littleTable)), tableSectors, root))
	image.putBytes(isoBoot*isoSector, bootRecord())
	image.putBytes(isoEnd*isoSector, []byte("\xffCD001\x01"))
	image.putBytes(isoCatalog*isoSector, bootCatalog(espSector, esp.Size()))
	image.putBytes(isoPathTable*isoSector, littleTable)
	image.putBytes((isoPathTable+tableSectors)*isoSector, bigTable)
	for _, folder := range folders {
		image.putBytes(folder.sector*isoSector, folder.records())
	}
	for _, file := range files {
		image.putBytes(file.sector*isoSector, file.content)
	}
	image.embed(espSector*isoSector, esp)
	return &ISO{Image: image}, nil
}

// bootRecord says that there is a boot catalog and where.
func bootRecord() []byte {
	b := make([]byte, isoSector)
	copy(b, "\x00CD001\x01EL TORITO SPECIFICATION")
	binary.LittleEndian.PutUint32(b[71:], isoCatalog)
	return b
}

// bootCatalog has a validation entry and one entry: the EFI system partition, without emulation.
func bootCatalog(sector, size int64) []byte {
	b := make([]byte, isoSector)
	le := binary.LittleEndian
	b[0] = 1
	b[1] = isoEFI
	copy(b[4:], "metalaw")
	b[30], b[31] = 0x55, 0xaa
	var sum uint16
	for n := 0; n < 32; n += 2 {
		sum += le.Uint16(b[n:])
	}
	le.PutUint16(b[28:], -sum)

	entry := b[32:]
	entry[0] = 0x88 // bootable
	// The field counts 512 bytes. A larger partition is announced as 0, which UEFI reads as "to the end of the medium":
	// that is why it lies last.
	if blocks := roundUp(size, fatSector) / fatSector; blocks < 1<<16 {
		le.PutUint16(entry[6:], uint16(blocks))
	}
	le.PutUint32(entry[8:], uint32(sector))
	return b
}

// primaryDescriptor describes the volume.
func primaryDescriptor(volumeID string, sectors, tableSize, tableSectors int64, root *isoNode) []byte {
	b := make([]byte, isoSector)
	copy(b, "\x01CD001\x01")
	text := func(at, length int, s string) { copy(b[at:at+length], s+strings.Repeat(" ", length-len(s))) }
	text(8, 32, "")
	text(40, 32, volumeID)
	bothEndian32(b[80:], sectors)
	bothEndian16(b[120:], 1)
	bothEndian16(b[124:], 1)
	bothEndian16(b[128:], isoSector)
	bothEndian32(b[132:], tableSize)
	binary.LittleEndian.PutUint32(b[140:], isoPathTable)
	binary.BigEndian.PutUint32(b[148:], uint32(isoPathTable+tableSectors))
	copy(b[156:], root.record("\x00", nil))
	text(190, 128*4, "")
	text(702, 37*3, "")
	for n := range 4 { // created, changed, expires, effective; the last byte is the offset from UTC
		stamp := "2020010100000000"
		if n == 2 {
			stamp = "0000000000000000"
		}
		copy(b[813+17*n:], stamp)
	}
	b[881] = 1
	return b
}

func bothEndian16(b []byte, n int64) {
	binary.LittleEndian.PutUint16(b, uint16(n))
	binary.BigEndian.PutUint16(b[2:], uint16(n))
}

func bothEndian32(b []byte, n int64) {
	binary.LittleEndian.PutUint32(b, uint32(n))
	binary.BigEndian.PutUint32(b[4:], uint32(n))
}
