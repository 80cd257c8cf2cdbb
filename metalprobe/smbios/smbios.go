// SPDX-License-Identifier: Apache-2.0

// Package smbios reads the memory modules of a machine from the tables that its firmware keeps (DMTF DSP0134).
package smbios

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

const (
	headerLength = 4
	memoryDevice = 17
	endOfTable   = 127
	// maxModules bounds what a table may name.
	maxModules = 512
)

// structure is one structure of the table: its formatted part, the header included, and its strings.
type structure struct {
	kind    byte
	fields  []byte
	strings []string
}

// MemoryModules lists the modules that are plugged in, in the order of the table. The table is that of
// /sys/firmware/dmi/tables/DMI. A table that breaks off gives the modules before that place, together with an error.
func MemoryModules(table []byte) (modules []policyv1alpha1.MemoryDevice, err error) {
	for len(table) > 0 && len(modules) < maxModules {
		var s structure
		if s, table, err = next(table); err != nil {
			return modules, err
		}
		if s.kind == endOfTable {
			break
		}
		if size := s.size(); s.kind == memoryDevice && size > 0 {
			modules = append(modules, s.module(size))
		}
	}
	return modules, nil
}

// next cuts the first structure off a table. Its strings end with two zero bytes.
func next(table []byte) (s structure, rest []byte, err error) {
	if len(table) < headerLength || int(table[1]) < headerLength || int(table[1]) > len(table) {
		return s, nil, errors.New("the SMBIOS table breaks off within a structure; update the firmware")
	}
	length := int(table[1])
	s = structure{kind: table[0], fields: table[:length]}
	end := bytes.Index(table[length:], []byte{0, 0})
	if end < 0 {
		return s, nil, fmt.Errorf("the SMBIOS table breaks off within the strings of a structure of type %d; update the firmware", s.kind)
	}
	for text := range bytes.SplitSeq(table[length:length+end], []byte{0}) {
		s.strings = append(s.strings, strings.TrimSpace(string(text)))
	}
	return s, table[length+end+2:], nil
}

// word reads two bytes; zero where the structure is of an older version and ends before.
func (s structure) word(at int) uint16 {
	if at+2 > len(s.fields) {
		return 0
	}
	return binary.LittleEndian.Uint16(s.fields[at:])
}

func (s structure) double(at int) uint32 {
	if at+4 > len(s.fields) {
		return 0
	}
	return binary.LittleEndian.Uint32(s.fields[at:])
}

// text reads a string by the number that stands at a place; number 0 is none.
func (s structure) text(at int) string {
	if at >= len(s.fields) || s.fields[at] == 0 || int(s.fields[at]) > len(s.strings) {
		return ""
	}
	return s.strings[s.fields[at]-1]
}

// size is the capacity in bytes; zero where no module is plugged in, or its size is not known.
func (s structure) size() int64 {
	const extended, unknown, kibibytes = 0x7fff, 0xffff, 0x8000
	switch size := s.word(0x0c); {
	case size == unknown:
		return 0
	case size == extended:
		return int64(s.double(0x1c)&0x7fffffff) << 20
	case size&kibibytes != 0:
		return int64(size&^uint16(kibibytes)) << 10
	default:
		return int64(size) << 20
	}
}

// module describes a structure of type 17.
func (s structure) module(size int64) policyv1alpha1.MemoryDevice {
	m := policyv1alpha1.MemoryDevice{
		SizeBytes:             size,
		DeviceLocator:         s.text(0x10),
		BankLocator:           s.text(0x11),
		Speed:                 s.speed(0x15, 0x54),
		Vendor:                s.text(0x17),
		SerialNumber:          s.text(0x18),
		AssetTag:              s.text(0x19),
		PartNumber:            s.text(0x1a),
		ConfiguredMemorySpeed: s.speed(0x20, 0x58),
		MinimumVoltage:        s.voltage(0x22),
		MaximumVoltage:        s.voltage(0x24),
		ConfiguredVoltage:     s.voltage(0x26),
	}
	if len(s.fields) > 0x12 {
		m.MemoryType = kinds[s.fields[0x12]]
		if set := s.fields[0x0f]; set != 0 && set != 0xff {
			m.DeviceSet = strconv.Itoa(int(set))
		}
	}
	return m
}

// speed words a transfer rate. The value that fills a word stands in a double word of newer tables.
func (s structure) speed(at, extended int) string {
	rate := uint32(s.word(at))
	if rate == 0xffff {
		rate = s.double(extended) & 0x7fffffff
	}
	if rate == 0 {
		return ""
	}
	return strconv.FormatUint(uint64(rate), 10) + " MT/s"
}

// voltage words millivolts; zero is not known.
func (s structure) voltage(at int) string {
	millivolts := s.word(at)
	if millivolts == 0 {
		return ""
	}
	return strconv.FormatFloat(float64(millivolts)/1000, 'f', -1, 64) + " V"
}

// kinds are the memory types of DSP0134 7.18.2; "Other" and "Unknown" are left out.
var kinds = map[byte]string{
	0x03: "DRAM", 0x04: "EDRAM", 0x05: "VRAM", 0x06: "SRAM", 0x07: "RAM", 0x08: "ROM", 0x09: "Flash", 0x0a: "EEPROM", 0x0b: "FEPROM",
	0x0c: "EPROM", 0x0d: "CDRAM", 0x0e: "3DRAM", 0x0f: "SDRAM", 0x10: "SGRAM", 0x11: "RDRAM", 0x12: "DDR", 0x13: "DDR2",
	0x14: "DDR2 FB-DIMM", 0x18: "DDR3", 0x19: "FBD2", 0x1a: "DDR4", 0x1b: "LPDDR", 0x1c: "LPDDR2", 0x1d: "LPDDR3", 0x1e: "LPDDR4",
	0x1f: "Logical non-volatile device", 0x20: "HBM", 0x21: "HBM2", 0x22: "DDR5", 0x23: "LPDDR5", 0x24: "HBM3",
}
