// SPDX-License-Identifier: Apache-2.0

// Package uki makes what a machine boots: kernel modules, initramfs and unified kernel image. It is pure Go and needs no
// root. The same inputs give the same bytes: times are fixed and names are sorted.
package uki

import (
	"encoding/binary"
	"fmt"
)

// Options are the parts of a unified kernel image.
type Options struct {
	// Stub is the EFI stub of systemd, which starts the kernel with the other parts.
	Stub []byte
	// Kernel, Initramfs and Cmdline are what it starts.
	Kernel, Initramfs []byte
	Cmdline           string
	// OSRelease names the image to boot menus, in the format of os-release.
	OSRelease string
	// Uname is the version of the kernel; it may be empty.
	Uname string
}

const (
	peSectionHeader = 40
	// The optional header of a 64-bit program, without its data directories.
	peOptionalHeader = 112
	// Initialized data that can be read.
	peReadOnlyData = 0x40000040
)

// New returns an EFI program that boots a kernel with its initramfs and command line. It is not signed.
func New(options Options) ([]byte, error) {
	pe, err := openPE(options.Stub)
	if err != nil {
		return nil, fmt.Errorf("composing a UKI: the EFI stub: %w", err)
	}
	if len(options.Kernel) == 0 || len(options.Initramfs) == 0 {
		return nil, fmt.Errorf("composing a UKI: kernel and initramfs must not be empty")
	}
	// The kernel comes last: it may unpack itself over what lies behind it.
	for _, section := range []struct {
		name    string
		content []byte
	}{
		{".osrel", []byte(options.OSRelease)},
		{".cmdline", []byte(options.Cmdline)},
		{".uname", []byte(options.Uname)},
		{".initrd", options.Initramfs},
		{".linux", options.Kernel},
	} {
		if len(section.content) == 0 {
			continue
		}
		if err := pe.add(section.name, section.content); err != nil {
			return nil, fmt.Errorf("composing a UKI: section %s: %w", section.name, err)
		}
	}
	return pe.image, nil
}

// peFile is a PE32+ program to which sections are appended.
type peFile struct {
	image     []byte
	optional  int // where the optional header begins
	table     int // where the table of sections begins
	count     int // number of sections
	headers   int64
	alignment int64 // of sections in memory
	fileAlign int64
	next      int64 // first free address in memory
}

func openPE(stub []byte) (*peFile, error) {
	le := binary.LittleEndian
	if len(stub) < 64 || stub[0] != 'M' || stub[1] != 'Z' {
		return nil, fmt.Errorf("no EFI program: it does not begin with MZ")
	}
	coff := int64(le.Uint32(stub[60:])) + 4
	if coff+20+peOptionalHeader > int64(len(stub)) || string(stub[coff-4:coff]) != "PE\x00\x00" {
		return nil, fmt.Errorf("no EFI program: the PE header is missing")
	}
	p := &peFile{image: append([]byte(nil), stub...), optional: int(coff) + 20, count: int(le.Uint16(stub[coff+2:]))}
	optional := stub[p.optional:]
	if le.Uint16(optional) != 0x20b {
		return nil, fmt.Errorf("not a 64-bit EFI program")
	}
	p.table = p.optional + int(le.Uint16(stub[coff+16:]))
	p.alignment = int64(le.Uint32(optional[32:]))
	p.fileAlign = int64(le.Uint32(optional[36:]))
	p.headers = int64(le.Uint32(optional[60:]))
	if err := p.check(stub); err != nil {
		return nil, err
	}
	end := p.headers
	for n := range p.count {
		header := stub[p.table+n*peSectionHeader:]
		size, address, rawSize, raw := le.Uint32(header[8:]), le.Uint32(header[12:]), le.Uint32(header[16:]), le.Uint32(header[20:])
		p.next = max(p.next, int64(address)+max(int64(size), int64(rawSize)))
		end = max(end, int64(raw)+int64(rawSize))
	}
	if end > int64(len(stub)) {
		return nil, fmt.Errorf("its sections are cut")
	}
	// Symbols behind the sections would become a gap, which not every firmware leaves out when it checks a signature.
	p.image = p.image[:end]
	clear(p.image[coff+8 : coff+16])
	return p, nil
}

// check finds what would lead out of the file, and signatures.
func (p *peFile) check(stub []byte) error {
	if p.alignment < 1 || p.alignment > 1<<20 || p.fileAlign < 1 || p.fileAlign > 1<<16 || p.headers > int64(len(stub)) {
		return fmt.Errorf("its header has an alignment or a size out of range")
	}
	// Linkers write six data directories or sixteen.
	directories := int(binary.LittleEndian.Uint32(stub[p.optional+108:]))
	if directories > 16 || p.table < p.optional+peOptionalHeader+8*directories || p.table+p.count*peSectionHeader > int(p.headers) {
		return fmt.Errorf("its table of sections is cut")
	}
	optional, le := stub[p.optional:], binary.LittleEndian
	if le.Uint32(optional[108:]) > 4 && le.Uint32(optional[148:]) != 0 {
		return fmt.Errorf("it is signed already; sign the UKI instead")
	}
	return nil
}

// add appends a section behind all others, in the file and in memory.
func (p *peFile) add(name string, content []byte) error {
	le := binary.LittleEndian
	at := p.table + p.count*peSectionHeader
	if at+peSectionHeader > int(p.headers) {
		return fmt.Errorf("the stub has no room for another section; take the stub of another version of systemd")
	}
	address := roundUp(p.next, p.alignment)
	offset := roundUp(int64(len(p.image)), p.fileAlign)
	size := int64(len(content))
	rawSize := roundUp(size, p.fileAlign)
	if address+rawSize > 1<<31 || offset+rawSize > 1<<31 {
		return fmt.Errorf("the image would be larger than 2 GB")
	}
	image := make([]byte, offset+rawSize)
	copy(image, p.image)
	copy(image[offset:], content)

	header := image[at : at+peSectionHeader]
	clear(header)
	copy(header[:8], name)
	for field, value := range map[int]int64{8: size, 12: address, 16: rawSize, 20: offset, 36: peReadOnlyData} {
		le.PutUint32(header[field:], uint32(value))
	}
	p.count++
	p.next = address + size
	optional := image[p.optional:]
	le.PutUint16(image[p.optional-18:], uint16(p.count))
	le.PutUint32(optional[8:], le.Uint32(optional[8:])+uint32(rawSize))
	le.PutUint32(optional[56:], uint32(roundUp(p.next, p.alignment)))
	le.PutUint32(optional[64:], 0) // the checksum, which EFI does not read
	p.image = image
	return nil
}

// roundUp returns the least multiple of unit that is not below n.
func roundUp(n, unit int64) int64 { return (n + unit - 1) / unit * unit }
