// SPDX-License-Identifier: Apache-2.0

package erasure

import (
	"errors"
	"fmt"
)

// ATA PASS-THROUGH (16) of SAT-4.
const (
	ataPassThrough16 = 0x85
	protocolNonData  = 3 << 1
	protocolPIOIn    = 4 << 1
	protocolPIOOut   = 5 << 1
	extend           = 1
	checkCondition   = 1 << 5
	fromDevice       = 1 << 3
	lengthInBlocks   = 1<<2 | 2 // the count field counts blocks
	deviceLBA        = 1 << 6
	ataDescriptor    = 0x09
	ataStatusError   = 1 << 0
	ataStatusFault   = 1 << 5
)

// ataCDB wraps an ATA command. A command without data asks for the registers after it.
func ataCDB(c ATACommand) []byte {
	cdb := make([]byte, 16)
	cdb[0] = ataPassThrough16
	switch {
	case len(c.In) > 0:
		cdb[1], cdb[2] = protocolPIOIn, fromDevice|lengthInBlocks
	case len(c.Out) > 0:
		cdb[1], cdb[2] = protocolPIOOut, lengthInBlocks
	default:
		cdb[1], cdb[2] = protocolNonData, checkCondition
	}
	cdb[4], cdb[6], cdb[14] = byte(c.Feature), byte(c.Count), c.Command
	cdb[8], cdb[10], cdb[12] = byte(c.LBA), byte(c.LBA>>8), byte(c.LBA>>16)
	if c.Extended {
		cdb[1] |= extend
		cdb[3], cdb[5] = byte(c.Feature>>8), byte(c.Count>>8)
		cdb[7], cdb[9], cdb[11] = byte(c.LBA>>24), byte(c.LBA>>32), byte(c.LBA>>40)
		cdb[13] = deviceLBA
	}
	return cdb
}

// ataAnswer reads the registers from the sense data, where the command asked for them.
func ataAnswer(c ATACommand, data []byte, err error) (ATAResult, error) {
	registers, found := ataRegisters(data)
	switch {
	case found && registers.Status&(ataStatusError|ataStatusFault) != 0:
		return registers, fmt.Errorf("ATA status %#02x, error %#02x", registers.Status, registers.Error)
	case found:
		return registers, nil
	case err == nil && len(c.In)+len(c.Out) == 0:
		return registers, errors.New("the adapter returned no ATA registers")
	}
	return registers, err
}

// ataRegisters finds the ATA Status Return descriptor in sense data of the descriptor format.
func ataRegisters(data []byte) (ATAResult, bool) {
	if len(data) < 8 || data[0]&0x7f != 0x72 {
		return ATAResult{}, false
	}
	for rest := data[8:]; len(rest) >= 2; {
		length := 2 + int(rest[1])
		if length > len(rest) {
			break
		}
		if rest[0] == ataDescriptor && length >= 14 {
			return ATAResult{
				Error: rest[3], Status: rest[13],
				Count: uint16(rest[4])<<8 | uint16(rest[5]),
				LBA: uint64(rest[10])<<40 | uint64(rest[8])<<32 | uint64(rest[6])<<24 |
					uint64(rest[11])<<16 | uint64(rest[9])<<8 | uint64(rest[7]),
			}, true
		}
		rest = rest[length:]
	}
	return ATAResult{}, false
}

// The driver's own bits of driver_status are the low four; the sense bit beside them is no error.
const driverSense = 0x08

// scsiAnswer says whether a command succeeded: the device, the host adapter and the driver must all say so. An adapter that never
// reached the device answers with a good device status.
func scsiAnswer(status uint8, host, driver uint16, data []byte) error {
	if host == 0 && driver&^driverSense == 0 && status == 0 {
		return nil
	}
	words := fmt.Sprintf("SCSI status %#02x, host_status %#x, driver_status %#x", status, host, driver)
	if s, err := parseSense(data); err == nil {
		words += ", " + s.String()
	}
	return errors.New(words)
}
