// SPDX-License-Identifier: Apache-2.0

package bootmedia

import (
	"encoding/binary"
	"fmt"
	"io"
)

const (
	fatSector      = 512
	fatRootEntries = 512
	// FAT16 has at least 4085 and at most 65524 clusters: their number alone tells firmware which FAT it is. Some
	// firmware errs at the edges, so we stay away from them.
	fatMinClusters = 4200
	fatMaxClusters = 65000
	fatMaxCluster  = 32 << 10
	// 1 January 2020, 00:00: each file on our media has this time.
	fatDate   = (2020-1980)<<9 | 1<<5 | 1
	fatSerial = 0x4d4c4157
)

// BootFile returns the name of the file that UEFI firmware of that architecture starts from removable media.
func BootFile(arch string) (string, error) {
	switch arch {
	case "amd64":
		return "BOOTX64.EFI", nil
	case "arm64":
		return "BOOTAA64.EFI", nil
	}
	return "", fmt.Errorf("composing boot media: there is no boot file for architecture %q; use amd64 or arm64", arch)
}

// NewESP composes an EFI system partition with a single file, /EFI/BOOT/BOOTX64.EFI or its twin for arm64. It is a FAT16
// filesystem of at most 2 GB.
func NewESP(arch string, uki io.ReaderAt, size int64) (*Image, error) {
	file, err := BootFile(arch)
	if err != nil {
		return nil, err
	}
	cluster := int64(fatSector)
	for roundUp(size, cluster)/cluster+2 > fatMaxClusters {
		cluster *= 2
	}
	if size <= 0 || cluster > fatMaxCluster {
		return nil, fmt.Errorf("composing an EFI system partition: a boot file of %d bytes does not fit; it may have 1 byte to 2 GB", size)
	}
	fileClusters := roundUp(size, cluster) / cluster
	clusters := max(fileClusters+2, fatMinClusters)
	fatSectors := roundUp((clusters+2)*2, fatSector) / fatSector
	dataSector := 1 + 2*fatSectors + fatRootEntries*32/fatSector
	total := dataSector + clusters*cluster/fatSector

	// Clusters 2 and 3 are the folders, the file follows without a gap.
	fat := make([]byte, fatSectors*fatSector)
	set := func(n int64, value uint16) { binary.LittleEndian.PutUint16(fat[2*n:], value) }
	set(0, 0xfff8)
	set(1, 0xffff)
	set(2, 0xffff)
	set(3, 0xffff)
	for n := int64(4); n < 4+fileClusters; n++ {
		set(n, uint16(n+1))
	}
	set(4+fileClusters-1, 0xffff)

	efi := append(fatEntry(".", fatFolder, 2, 0), fatEntry("..", fatFolder, 0, 0)...)
	efi = append(efi, fatEntry("BOOT", fatFolder, 3, 0)...)
	boot := append(fatEntry(".", fatFolder, 3, 0), fatEntry("..", fatFolder, 2, 0)...)
	boot = append(boot, fatEntry(file, fatArchive, 4, size)...)
	root := append(fatEntry("METALAW", fatLabel, 0, 0), fatEntry("EFI", fatFolder, 2, 0)...)

	image := &Image{size: total * fatSector}
	image.putBytes(0, fatBootSector(total, fatSectors, cluster))
	image.putBytes(fatSector, fat)
	image.putBytes((1+fatSectors)*fatSector, fat)
	image.putBytes((1+2*fatSectors)*fatSector, root)
	data := dataSector * fatSector
	image.putBytes(data, efi)
	image.putBytes(data+cluster, boot)
	image.put(data+2*cluster, size, uki)
	return image, nil
}

const (
	fatArchive = 0x20
	fatFolder  = 0x10
	fatLabel   = 0x08
)

// fatEntry returns a directory entry for a name of at most eight and three characters.
func fatEntry(name string, attributes byte, cluster uint16, size int64) []byte {
	entry := make([]byte, 32)
	for n := range 11 {
		entry[n] = ' '
	}
	at := 0
	for n := range len(name) {
		if name[n] == '.' && n > 0 && name != ".." {
			at = 8
			continue
		}
		entry[at] = name[n]
		at++
	}
	entry[11] = attributes
	for _, date := range []int{16, 18, 24} { // created, read, written
		binary.LittleEndian.PutUint16(entry[date:], fatDate)
	}
	binary.LittleEndian.PutUint16(entry[26:], cluster)
	binary.LittleEndian.PutUint32(entry[28:], uint32(size))
	return entry
}

// fatBootSector returns the first sector, which describes the filesystem and boots nothing by itself.
func fatBootSector(sectors, fatSectors, cluster int64) []byte {
	b := make([]byte, fatSector)
	le := binary.LittleEndian
	copy(b, "\xeb\x3c\x90METALAW ")
	le.PutUint16(b[11:], fatSector)
	b[13] = byte(cluster / fatSector)
	le.PutUint16(b[14:], 1) // reserved sectors
	b[16] = 2               // copies of the table
	le.PutUint16(b[17:], fatRootEntries)
	if sectors < 1<<16 {
		le.PutUint16(b[19:], uint16(sectors))
	} else {
		le.PutUint32(b[32:], uint32(sectors))
	}
	b[21] = 0xf8 // fixed disk
	le.PutUint16(b[22:], uint16(fatSectors))
	le.PutUint16(b[24:], 32) // sectors of a track
	le.PutUint16(b[26:], 64) // heads
	b[36] = 0x80
	b[38] = 0x29
	le.PutUint32(b[39:], fatSerial)
	copy(b[43:], "METALAW    FAT16   ")
	b[510], b[511] = 0x55, 0xaa
	return b
}
