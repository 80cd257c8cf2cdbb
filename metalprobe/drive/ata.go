// SPDX-License-Identifier: Apache-2.0

package drive

import (
	"encoding/binary"
	"fmt"

	"github.com/metalaw/metalaw/metalprobe/erasure"
)

// Commands of ATA8-ACS and ACS-3.
const (
	ataIdentify           = 0xec
	ataReadNativeMax      = 0x27 // READ NATIVE MAX ADDRESS EXT
	ataGetNativeMax       = 0x78 // ACCESSIBLE MAX ADDRESS CONFIGURATION, with feature 0: GET NATIVE MAX ADDRESS EXT
	ataConfiguration      = 0xb1 // DEVICE CONFIGURATION
	ataConfigurationReads = 0xc2 // its feature IDENTIFY
	ataBlock              = 512
)

// ATA asks a SATA disk whether a host protected area or a device configuration overlay hides sectors. SATA knows no reservations.
func ATA(c erasure.Commands) Answers {
	answers := Answers{Reservation: ReservationNone}
	page := make([]byte, ataBlock)
	if _, err := c.ATA(erasure.ATACommand{Command: ataIdentify, Count: 1, In: page, Timeout: timeout}); err != nil {
		answers.HiddenUnknown = fmt.Sprintf("the drive did not say whether it hides sectors (IDENTIFY DEVICE: %v)", err)
		return answers
	}
	answers.Hidden, answers.HiddenUnknown = hidden(c, page)
	return answers
}

// The words of IDENTIFY DEVICE say what a drive supports.
const (
	supportsProtectedArea = 1 << 10 // of word 82
	supportsOverlay       = 1 << 11 // of word 83
	longAddresses         = 1 << 10 // of word 83
	supportsMaxAddress    = 1 << 8  // of word 119
	maxSector             = 1<<48 - 1
)

// hidden says what a drive hides, or why that is not known.
func hidden(c erasure.Commands, page []byte) (found, unknown string) {
	word := func(n int) uint16 { return binary.LittleEndian.Uint16(page[2*n:]) }
	shown := uint64(word(61))<<16 | uint64(word(60))
	long := word(83)&longAddresses != 0
	if long {
		shown = binary.LittleEndian.Uint64(page[200:]) & maxSector
	}
	switch {
	case valid(word(120)) && word(119)&supportsMaxAddress != 0:
		found, unknown = protectedArea(c, ataGetNativeMax, shown)
	case !valid(word(83)) || word(82)&supportsProtectedArea == 0:
	case long:
		found, unknown = protectedArea(c, ataReadNativeMax, shown)
	default:
		unknown = "a drive with addresses of 28 bits may hide sectors in a host protected area, and the agent cannot read its native size"
	}
	if found != "" || unknown != "" || !valid(word(83)) || word(83)&supportsOverlay == 0 {
		return found, unknown
	}
	return overlay(c, shown)
}

// protectedArea compares what a drive shows with its native size, which a command leaves in the registers.
func protectedArea(c erasure.Commands, command uint8, shown uint64) (found, unknown string) {
	after, err := c.ATA(erasure.ATACommand{Command: command, Extended: true, Timeout: timeout})
	if err != nil {
		return "", fmt.Sprintf("the drive did not say whether a host protected area hides sectors: %v", err)
	}
	if native := after.LBA + 1; native != shown {
		return differ("a host protected area", fmt.Sprintf("hdparm -N p%d", native), shown, native)
	}
	return "", ""
}

// overlay compares what a drive shows with what it had when it left its maker.
func overlay(c erasure.Commands, shown uint64) (found, unknown string) {
	page := make([]byte, ataBlock)
	question := erasure.ATACommand{Command: ataConfiguration, Feature: ataConfigurationReads, Count: 1, In: page, Timeout: timeout}
	if _, err := c.ATA(question); err != nil {
		return "", fmt.Sprintf("the drive did not say whether a device configuration overlay hides sectors (%v); "+
			"many BIOSes lock that: power-cycle the drive, or allow it in the policy", err)
	}
	if made := binary.LittleEndian.Uint64(page[6:])&maxSector + 1; made != shown {
		return differ("a device configuration overlay", "hdparm --dco-restore", shown, made)
	}
	return "", ""
}

// differ words that a drive has another number of sectors than it shows. One that has fewer did not answer: its adapter cut the
// address off, or made the answer up.
func differ(what, remedy string, shown, has uint64) (found, unknown string) {
	if has > shown {
		return fmt.Sprintf("%s hides %d of its %d sectors; remove it with %s", what, has-shown, has, remedy), ""
	}
	return "", fmt.Sprintf("the drive did not say whether %s hides sectors: it shows %d sectors, and names %d", what, shown, has)
}

// valid reads the mark by which a drive says that words of support mean something: bit 14 is set, and bit 15 is not.
func valid(word uint16) bool { return word>>14 == 1 }
