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

func hidden(c erasure.Commands, page []byte) (found, unknown string) {
	word := func(n int) uint16 { return binary.LittleEndian.Uint16(page[2*n:]) }
	const (
		protectedArea = 1 << 10 // of word 82
		overlay       = 1 << 11 // of word 83
		longAddresses = 1 << 10 // of word 83
		maxAddress    = 1 << 8  // of word 119
	)
	shown := uint64(word(61))<<16 | uint64(word(60))
	long := word(83)&longAddresses != 0
	if long {
		shown = binary.LittleEndian.Uint64(page[200:]) & (1<<48 - 1)
	}
	var command uint8
	switch {
	case valid(word(120)) && word(119)&maxAddress != 0:
		command = ataGetNativeMax
	case valid(word(83)) && word(82)&protectedArea != 0 && long:
		command = ataReadNativeMax
	case valid(word(83)) && word(82)&protectedArea != 0:
		return "", "a drive with addresses of 28 bits may hide sectors in a host protected area, and the agent cannot read its native size"
	}
	if command != 0 {
		after, err := c.ATA(erasure.ATACommand{Command: command, Extended: true, Timeout: timeout})
		if err != nil {
			return "", fmt.Sprintf("the drive did not say whether a host protected area hides sectors: %v", err)
		}
		if native := after.LBA + 1; native != shown {
			return differ("a host protected area", fmt.Sprintf("hdparm -N p%d", native), shown, native)
		}
	}
	if !valid(word(83)) || word(83)&overlay == 0 {
		return "", ""
	}
	return overlaidBy(c, shown)
}

// overlaidBy asks a drive whether a device configuration overlay hides sectors.
func overlaidBy(c erasure.Commands, shown uint64) (found, unknown string) {
	overlaid := make([]byte, ataBlock)
	question := erasure.ATACommand{Command: ataConfiguration, Feature: ataConfigurationReads, Count: 1, In: overlaid, Timeout: timeout}
	if _, err := c.ATA(question); err != nil {
		return "", fmt.Sprintf("the drive did not say whether a device configuration overlay hides sectors (%v); "+
			"many BIOSes lock that: power-cycle the drive, or allow it in the policy", err)
	}
	if native := binary.LittleEndian.Uint64(overlaid[6:])&(1<<48-1) + 1; native != shown {
		return differ("a device configuration overlay", "hdparm --dco-restore", shown, native)
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
