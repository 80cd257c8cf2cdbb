// SPDX-License-Identifier: Apache-2.0

package erasure

import (
	"encoding/binary"
)

// Level 0 discovery of the TCG Storage Architecture Core Specification.
const (
	tcgProtocol     = 0x01
	tcgDiscovery    = 0x0001
	discoveryHeader = 48
	lockingFeature  = 0x0002
	lockingLocked   = 1 << 2
)

// opalLocked asks the drive whether a locking range is locked; a drive that does not answer is not known to be.
func opalLocked(protocol Protocol, c Commands) bool {
	page := make([]byte, 2048)
	var err error
	switch protocol {
	case NVMe:
		cdw10 := uint32(tcgProtocol)<<24 | uint32(tcgDiscovery)<<8
		_, err = c.NVMe(NVMeCommand{Opcode: nvmeSecurityReceive, CDW10: cdw10, CDW11: uint32(len(page)), Data: page, Timeout: short})
	case ATA, SCSI: // the kernel translates it for ATA
		cdb := make([]byte, 12)
		cdb[0], cdb[1], cdb[4] = scsiSecurityIn, tcgProtocol, 0x80 // the length counts blocks of 512 bytes
		binary.BigEndian.PutUint16(cdb[2:], tcgDiscovery)
		binary.BigEndian.PutUint32(cdb[6:], uint32(len(page)/512))
		_, err = c.SCSI(SCSICommand{CDB: cdb, In: page, Timeout: short})
	case NoProtocol:
		return false
	}
	return err == nil && parseDiscovery(page)
}

// parseDiscovery finds the locking feature in the answer of level 0 discovery, and says whether it is locked.
func parseDiscovery(page []byte) bool {
	if len(page) < discoveryHeader {
		return false
	}
	end := min(uint64(len(page)), 4+uint64(binary.BigEndian.Uint32(page)))
	if end < discoveryHeader {
		return false
	}
	for rest := page[discoveryHeader:end]; len(rest) >= 4; {
		length := 4 + int(rest[3])
		if length > len(rest) {
			break
		}
		if binary.BigEndian.Uint16(rest) == lockingFeature && length > 4 {
			return rest[4]&lockingLocked != 0
		}
		rest = rest[length:]
	}
	return false
}
