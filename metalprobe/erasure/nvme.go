// SPDX-License-Identifier: Apache-2.0

package erasure

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Opcodes and values of the NVM Express base specification, revision 2.0.
const (
	nvmeGetLogPage      = 0x02
	nvmeIdentify        = 0x06
	nvmeFormat          = 0x80
	nvmeSecurityReceive = 0x82
	nvmeSanitize        = 0x84

	identifyNamespace  = 0x00
	identifyController = 0x01
	identifyActive     = 0x02
	identifyAllocated  = 0x10

	everyNamespace = 0xffffffff
	sanitizeLog    = 0x81
	noEstimate     = 0xffffffff

	sanitizeExitFailure = 1
	sanitizeBlock       = 2
	sanitizeCrypto      = 4
	sanitizeAUSE        = 1 << 3 // lets a failed sanitize be left, so that the drive can be overwritten

	sesUserData = 1
	sesCrypto   = 2
)

// nvmeFacts is what a drive says of its erase commands.
type nvmeFacts struct {
	nsid uint32
	// format, sanitizeBlock, sanitizeCrypto and cryptoFormat say what the drive offers (OACS, SANICAP, FNA).
	format, sanitizeBlock, sanitizeCrypto, cryptoFormat bool
	// alone says that the drive holds no namespace but this one, as far as it tells: a sanitize erases all of them.
	alone bool
	// formatsAll says that a format reaches all namespaces (FNA).
	formatsAll bool
	// keep is CDW10 of a format that changes neither the LBA format nor the protection.
	keep uint32
}

// parseNVMe reads the data of Identify: of the controller, of the namespace, and the lists of namespaces. allocated is nil where the
// controller manages no namespaces.
func parseNVMe(controller, namespace, active, allocated []byte, nsid uint32) (nvmeFacts, error) {
	const page = 4096
	if len(controller) < page || len(namespace) < page || len(active) < page {
		return nvmeFacts{}, errors.New("the data of Identify is too short")
	}
	const oacsFormat, oacsManagement = 1 << 1, 1 << 3
	oacs := binary.LittleEndian.Uint16(controller[256:])
	fna, sanicap, cmic := controller[524], binary.LittleEndian.Uint32(controller[328:]), controller[76]
	f := nvmeFacts{
		nsid: nsid, format: oacs&oacsFormat != 0, cryptoFormat: fna&4 != 0, formatsAll: fna&3 != 0,
		sanitizeCrypto: sanicap&1 != 0, sanitizeBlock: sanicap&2 != 0,
	}
	f.alone = slices.Equal(namespaces(active), []uint32{nsid})
	if oacs&oacsManagement != 0 {
		f.alone = f.alone && slices.Equal(namespaces(allocated), []uint32{nsid})
	} else {
		const severalControllers, virtualFunction = 1 << 1, 1 << 2
		f.alone = f.alone && cmic&(severalControllers|virtualFunction) == 0
	}
	flbas, dps := uint32(namespace[26]), uint32(namespace[29])
	f.keep = flbas&0xf | // LBAFL
		(flbas>>4&1)<<4 | // MSET: metadata at the end of the data
		(dps&7)<<5 | // PI
		(dps>>3&1)<<8 | // PIL: protection information first
		(flbas>>5&3)<<12 // LBAFU
	return f, nil
}

// namespaces reads a list of namespaces, which ends at the first zero.
func namespaces(list []byte) []uint32 {
	var found []uint32
	for ; len(list) >= 4; list = list[4:] {
		nsid := binary.LittleEndian.Uint32(list)
		if nsid == 0 {
			break
		}
		found = append(found, nsid)
	}
	return found
}

func nvmeMethods(c Commands) ([]method, error) {
	nsid, err := c.NamespaceID()
	if err != nil {
		return nil, fmt.Errorf("NVMe namespace number: %w", err)
	}
	page := func(what, nsid uint32) []byte {
		data := make([]byte, 4096)
		if _, failed := c.NVMe(NVMeCommand{Opcode: nvmeIdentify, NSID: nsid, CDW10: what, Data: data, Timeout: short}); failed != nil {
			err = errors.Join(err, fmt.Errorf("NVMe Identify %d: %w", what, failed))
			return nil
		}
		return data
	}
	controller, namespace, active := page(identifyController, 0), page(identifyNamespace, nsid), page(identifyActive, 0)
	if err != nil {
		return nil, err
	}
	allocated := page(identifyAllocated, 0) // where it fails the drive manages no namespaces, or is not known to hold one only
	facts, err := parseNVMe(controller, namespace, active, allocated, nsid)
	if err != nil {
		return nil, err
	}
	d := nvmeDrive{facts, c}
	estimates, _ := d.log() // a drive without sanitize has no such log
	return []method{
		d.sanitize(MethodNVMeSanitizeBlock, sanitizeBlock, facts.sanitizeBlock, estimates.block),
		d.sanitize(MethodNVMeSanitizeCrypto, sanitizeCrypto, facts.sanitizeCrypto, estimates.crypto),
		d.format(MethodNVMeFormatCrypto, sesCrypto, facts.cryptoFormat, "FNA bit 2 is clear: the drive offers no cryptographic erase"),
		d.format(MethodNVMeFormat, sesUserData, true, ""),
	}, nil
}

type nvmeDrive struct {
	nvmeFacts
	Commands
}

const notAlone = "the drive holds, or may hold, other namespaces, which it would erase too"

func (d nvmeDrive) sanitize(name string, action uint32, offered bool, estimate time.Duration) method {
	cdw10 := action | sanitizeAUSE
	m := method{name: name, parameters: fmt.Sprintf("sanact=%d ause=1", action), estimate: estimate}
	switch {
	case !offered:
		m.lacks = "SANICAP does not name it"
	case !d.alone:
		m.lacks = notAlone
	}
	m.run = func(ctx context.Context, limit time.Duration, progress func(int32)) (string, error) {
		if _, err := d.NVMe(NVMeCommand{Opcode: nvmeSanitize, CDW10: cdw10, Timeout: short}); err != nil {
			return "", err
		}
		var last sanitizeStatus
		err := poll(ctx, limit, func() (bool, error) {
			var err error
			if last, err = d.log(); err != nil {
				return false, err
			}
			progress(last.percent)
			return last.ended(cdw10)
		})
		if err != nil && last.state() == sanitizeFailed {
			_, exit := d.NVMe(NVMeCommand{Opcode: nvmeSanitize, CDW10: sanitizeExitFailure, Timeout: short})
			err = errors.Join(err, exit)
		}
		return fmt.Sprintf("sanitize log: SSTAT %#04x, SCDW10 %#x", last.sstat, last.scdw10), err
	}
	return m
}

func (d nvmeDrive) format(name string, ses uint32, offered bool, lacks string) method {
	cdw10 := d.keep | ses<<9
	m := method{name: name, parameters: fmt.Sprintf("ses=%d cdw10=%#x", ses, cdw10)}
	switch {
	case !d.nvmeFacts.format:
		m.lacks = "OACS names no Format NVM"
	case !offered:
		m.lacks = lacks
	case d.formatsAll && !d.alone:
		m.lacks = notAlone
	}
	m.run = func(_ context.Context, limit time.Duration, _ func(int32)) (string, error) {
		result, err := d.NVMe(NVMeCommand{Opcode: nvmeFormat, NSID: d.nsid, CDW10: cdw10, Timeout: limit})
		return fmt.Sprintf("completion dword 0: %#x", result), err
	}
	return m
}

// The states of a sanitize (SSTAT bits 2:0).
const (
	sanitizeSucceeded            = 1
	sanitizeRunning              = 2
	sanitizeFailed               = 3
	sanitizeSucceededDeallocated = 4
)

// sanitizeStatus is the sanitize status log page.
type sanitizeStatus struct {
	percent int32
	sstat   uint16
	scdw10  uint32
	// overwrite to crypto are estimates; zero where none is given.
	overwrite, block, crypto time.Duration
}

func parseSanitizeLog(page []byte) (sanitizeStatus, error) {
	if len(page) < 20 {
		return sanitizeStatus{}, errors.New("the sanitize log is too short")
	}
	estimate := func(offset int) time.Duration {
		seconds := binary.LittleEndian.Uint32(page[offset:])
		if seconds == noEstimate {
			return 0
		}
		return time.Duration(seconds) * time.Second
	}
	return sanitizeStatus{
		percent:   int32(uint32(binary.LittleEndian.Uint16(page)) * 100 / 65536),
		sstat:     binary.LittleEndian.Uint16(page[2:]),
		scdw10:    binary.LittleEndian.Uint32(page[4:]),
		overwrite: estimate(8),
		block:     estimate(12),
		crypto:    estimate(16),
	}, nil
}

func (s sanitizeStatus) state() uint16 { return s.sstat & 7 }

// ended says whether the sanitize that was started with cdw10 has succeeded.
func (s sanitizeStatus) ended(cdw10 uint32) (bool, error) {
	switch s.state() {
	case sanitizeRunning:
		return false, nil
	case sanitizeFailed:
		return false, errors.New("the drive says that the sanitize failed")
	case sanitizeSucceeded, sanitizeSucceededDeallocated:
		if s.scdw10 == cdw10 {
			return true, nil
		}
	}
	return false, fmt.Errorf("the sanitize log speaks of no sanitize that was asked for (SCDW10 %#x, not %#x)", s.scdw10, cdw10)
}

func (d nvmeDrive) log() (sanitizeStatus, error) {
	page := make([]byte, 512)
	dwords := uint32(len(page)/4 - 1)
	_, err := d.NVMe(NVMeCommand{Opcode: nvmeGetLogPage, NSID: everyNamespace, CDW10: sanitizeLog | dwords<<16, Data: page, Timeout: short})
	if err != nil {
		return sanitizeStatus{}, fmt.Errorf("sanitize log: %w", err)
	}
	return parseSanitizeLog(page)
}
