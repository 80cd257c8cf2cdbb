// SPDX-License-Identifier: Apache-2.0

package uki

import (
	"bytes"
	"crypto/sha256"
	"debug/pe"
	"encoding/binary"
	"fmt"
	"os"
	"strings"
	"testing"
)

// stub returns an EFI program with a section .text and room for a number of further ones.
func stub(room int) []byte {
	le := binary.LittleEndian
	b := make([]byte, 1024)
	copy(b, "MZ")
	le.PutUint32(b[60:], 128)
	copy(b[128:], "PE\x00\x00\x64\x86\x01\x00")
	le.PutUint16(b[128+20:], 240)
	optional := b[152:]
	le.PutUint16(optional, 0x20b)
	le.PutUint32(optional[32:], 4096)
	le.PutUint32(optional[36:], 512)
	le.PutUint32(optional[60:], uint32(392+(1+room)*40))
	le.PutUint32(optional[108:], 16)
	section := b[392:]
	copy(section, ".text")
	le.PutUint32(section[8:], 100)
	le.PutUint32(section[12:], 4096)
	le.PutUint32(section[16:], 100)
	le.PutUint32(section[20:], 900)
	le.PutUint32(b[128+12:], 1000) // symbols, behind the section
	return b
}

func testUKI(t *testing.T, stub []byte) []byte {
	t.Helper()
	uki, err := New(Options{
		Stub:      stub,
		Kernel:    someBytes(5000),
		Initramfs: someBytes(70_000),
		Cmdline:   "console=ttyS0,115200",
		OSRelease: "ID=metalaw\n",
	})
	if err != nil {
		t.Fatal(err)
	}
	return uki
}

func checkUKI(t *testing.T, uki []byte) {
	t.Helper()
	file, err := pe.NewFile(bytes.NewReader(uki))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	for name, want := range map[string][]byte{
		".linux":   someBytes(5000),
		".initrd":  someBytes(70_000),
		".cmdline": []byte("console=ttyS0,115200"),
		".osrel":   []byte("ID=metalaw\n"),
	} {
		section := file.Section(name)
		if section == nil {
			t.Fatalf("section %s is missing", name)
		}
		got, err := section.Data()
		if err != nil || !bytes.Equal(got[:section.VirtualSize], want) {
			t.Errorf("section %s differs (%v)", name, err)
		}
	}
	end, offset := uint32(0), uint32(1024)
	for _, section := range file.Sections {
		if section.Offset%512 == 0 && section.Offset != offset {
			t.Errorf("section %s begins at %d in the file, the one before it ends at %d", section.Name, section.Offset, offset)
		}
		offset = (section.Offset + section.Size + 511) / 512 * 512
		if section.VirtualAddress < end {
			t.Errorf("section %s overlaps with the one before it", section.Name)
		}
		end = section.VirtualAddress + section.VirtualSize
	}
	if size := file.OptionalHeader.(*pe.OptionalHeader64).SizeOfImage; size < end || size > end+4096 {
		t.Errorf("SizeOfImage is %d, sections end at %d", size, end)
	}
}

func TestAUKIHoldsItsPartsAsSections(t *testing.T) {
	uki := testUKI(t, stub(5))
	checkUKI(t, uki)
	const golden = "bceacaac2162325d08d444fa5f8edae9ba56652ad4a967755a918cb63e5eeceb"
	if got := fmt.Sprintf("%x", sha256.Sum256(uki)); got != golden {
		t.Errorf("the bytes changed: sha256 %s, want %s", got, golden)
	}
}

// Debian's stub for arm64 has six data directories, and so a shorter header than that for amd64.
func TestAUKIOfAStubWithSixDataDirectories(t *testing.T) {
	const shorter = 80
	b := stub(5)
	le := binary.LittleEndian
	le.PutUint16(b[128+20:], 240-shorter)
	le.PutUint32(b[152+108:], 6)
	copy(b[392-shorter:], b[392:432])
	clear(b[432-shorter : 432])
	checkUKI(t, testUKI(t, b))
}

func TestAUKIOfTheStubOfSystemd(t *testing.T) {
	systemd, err := os.ReadFile("/usr/lib/systemd/boot/efi/linuxx64.efi.stub")
	if err != nil {
		t.Skip("systemd-boot-efi is not installed")
	}
	checkUKI(t, testUKI(t, systemd))
}

func TestWhatIsNoStub(t *testing.T) {
	change := func(at int, value byte) []byte {
		b := stub(5)
		b[at] = value
		return b
	}
	for name, c := range map[string]struct {
		stub []byte
		want string
	}{
		"an empty file":        {nil, "does not begin with MZ"},
		"a text":               {bytes.Repeat([]byte("text"), 100), "does not begin with MZ"},
		"a cut file":           {stub(5)[:200], "the PE header is missing"},
		"a 32-bit program":     {change(152, 0x0a), "not a 64-bit EFI program"},
		"a signed program":     {change(152+148, 1), "signed already"},
		"without room":         {stub(2), "no room for another section"},
		"an alignment of zero": {change(152+33, 0), "out of range"},
		"a cut section":        {change(392+18, 1), "its sections are cut"},
		"too many of sections": {change(128+6, 200), "table of sections is cut"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(Options{Stub: c.stub, Kernel: []byte("k"), Initramfs: []byte("i"), Cmdline: "c", OSRelease: "o"})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func FuzzNew(f *testing.F) {
	f.Add(stub(5))
	f.Add(stub(0))
	f.Fuzz(func(_ *testing.T, stub []byte) {
		_, _ = New(Options{Stub: stub, Kernel: []byte("kernel"), Initramfs: []byte("initramfs"), Cmdline: "c"})
	})
}
