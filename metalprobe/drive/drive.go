// SPDX-License-Identifier: Apache-2.0

// Package drive asks drives what decides whether a wipe may erase them and the kernel does not show: whether another host has reserved
// the drive, and what it hides. Its commands only read.
package drive

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/metalaw/metalaw/metalprobe/erasure"
)

// Reservation says whether other hosts hold or share a drive.
type Reservation int

const (
	// ReservationUnknown means that the drive was not asked, or did not answer.
	ReservationUnknown Reservation = iota
	// ReservationNone means that no host holds the drive, or that it knows no reservations.
	ReservationNone
	// ReservationHeld means that a host has reserved the drive, or is registered for that.
	ReservationHeld
)

// Answers is what a drive says.
type Answers struct {
	Reservation Reservation
	// Hidden says what the drive hides from the kernel; empty where it hides nothing.
	Hidden string
	// HiddenUnknown says why it is not known whether the drive hides anything; empty where that is known.
	HiddenUnknown string
	// Sanitizing says that a sanitize runs in the drive. Until it ends the drive answers no other question.
	Sanitizing bool
}

// Ask asks a drive everything, in its own language. report is for NVMe.
func Ask(protocol erasure.Protocol, c erasure.Commands, report ReadReport) Answers {
	// A drive that does not answer this question may answer the others.
	if now, err := erasure.Sanitizing(protocol, c); err == nil && now.Runs {
		return Answers{Sanitizing: true}
	}
	switch protocol {
	case erasure.NVMe:
		return NVMe(c, report)
	case erasure.ATA:
		return ATA(c)
	case erasure.SCSI:
		return SCSI(c)
	case erasure.NoProtocol:
	}
	return Answers{}
}

// timeout bounds one question.
const timeout = 10 * time.Second

const (
	nvmeIdentify = 0x06
	pageSize     = 4096
)

// ReadReport reads the NVMe reservation report of the namespace that was opened, with host identifiers of 64 or of 128 bits.
type ReadReport func(long bool, page []byte) error

// NVMe asks about a namespace.
func NVMe(c erasure.Commands, report ReadReport) Answers {
	const (
		oncs, rescap      = 520, 31
		oncsReservations  = 1 << 5
		identifyDrive     = 1
		identifyNamespace = 0
	)
	controller, err := identify(c, 0, identifyDrive)
	if err != nil {
		return Answers{}
	}
	if controller[oncs]&oncsReservations == 0 {
		return Answers{Reservation: ReservationNone}
	}
	nsid, err := c.NamespaceID()
	if err != nil {
		return Answers{}
	}
	namespace, err := identify(c, nsid, identifyNamespace)
	if err != nil {
		return Answers{}
	}
	if namespace[rescap]&0x7f == 0 {
		return Answers{Reservation: ReservationNone}
	}
	page := make([]byte, pageSize)
	if err := report(false, page); err != nil {
		if err := report(true, page); err != nil {
			return Answers{}
		}
	}
	const kind, registered = 4, 5
	if page[kind] != 0 || page[registered] != 0 || page[registered+1] != 0 {
		return Answers{Reservation: ReservationHeld}
	}
	return Answers{Reservation: ReservationNone}
}

// ErrActiveUnknown means that a drive which manages no namespaces did not say which it shows. It hides none in any
// case.
var ErrActiveUnknown = errors.New("the drive did not list its namespaces")

const (
	identifyDrive = 0x01
	listActive    = 0x02
	listAllocated = 0x10
)

// Namespaces lists the namespaces of an NVMe controller: those that are allocated, and those that it shows. A drive
// that does not manage namespaces has no list of those that are allocated.
func Namespaces(c erasure.Commands) (allocated, active []uint32, err error) {
	const oacs, oacsManagement = 256, 1 << 3
	controller, err := identify(c, 0, identifyDrive)
	if err != nil {
		return nil, nil, err
	}
	if controller[oacs]&oacsManagement == 0 {
		if active, err = shown(c, controller); err != nil {
			return nil, nil, fmt.Errorf("%w: %w", ErrActiveUnknown, err)
		}
		return nil, active, nil
	}
	if allocated, err = namespaces(c, listAllocated); err != nil {
		return nil, nil, err
	}
	if active, err = namespaces(c, listActive); err != nil {
		return nil, nil, err
	}
	return allocated, active, nil
}

// shown lists the namespaces that a controller shows. A drive of NVMe 1.0 has no such list: it has as many as Identify
// says.
func shown(c erasure.Commands, controller []byte) ([]uint32, error) {
	const count, mostOld = 516, 64
	active, failed := namespaces(c, listActive)
	if failed == nil {
		return active, nil
	}
	n := binary.LittleEndian.Uint32(controller[count:])
	if n > mostOld {
		return nil, failed
	}
	for nsid := uint32(1); nsid <= n; nsid++ {
		page, err := identify(c, nsid, 0)
		if err != nil {
			return nil, err
		}
		if binary.LittleEndian.Uint64(page) > 0 { // zeros describe an inactive namespace
			active = append(active, nsid)
		}
	}
	return active, nil
}

// namespaces reads a list of namespaces, which ends at the first zero.
func namespaces(c erasure.Commands, what uint32) (found []uint32, err error) {
	page, err := identify(c, 0, what)
	if err != nil {
		return nil, err
	}
	for at := 0; at+4 <= len(page); at += 4 {
		nsid := binary.LittleEndian.Uint32(page[at:])
		if nsid == 0 {
			break
		}
		found = append(found, nsid)
	}
	return found, nil
}

// Detached words the namespaces that hold data which no disk shows; empty where there is none.
func Detached(allocated, active []uint32) string {
	var words []string
	for _, nsid := range allocated {
		if !slices.Contains(active, nsid) {
			words = append(words, fmt.Sprint(nsid))
		}
	}
	if len(words) == 0 {
		return ""
	}
	return "it has namespaces that are attached to no controller of this machine: " + strings.Join(words, ", ") +
		"; attach or delete them with nvme-cli"
}

func identify(c erasure.Commands, nsid, what uint32) ([]byte, error) {
	page := make([]byte, pageSize)
	_, err := c.NVMe(erasure.NVMeCommand{Opcode: nvmeIdentify, NSID: nsid, CDW10: what, Data: page, Timeout: timeout})
	return page, err
}

// SCSI asks about a SCSI disk: PERSISTENT RESERVE IN with READ RESERVATION and READ KEYS of SPC-4.
func SCSI(c erasure.Commands) Answers {
	const (
		persistentReserveIn       = 0x5e
		readKeys, readReservation = 0, 1
		length                    = 255
	)
	for _, action := range []byte{readReservation, readKeys} {
		data := make([]byte, length)
		sense, err := c.SCSI(erasure.SCSICommand{CDB: []byte{persistentReserveIn, action, 0, 0, 0, 0, 0, 0, length, 0}, In: data, Timeout: timeout})
		switch {
		case err != nil && unsupported(sense):
			return Answers{Reservation: ReservationNone}
		case err != nil:
			return Answers{}
		case data[4]|data[5]|data[6]|data[7] != 0: // the additional length: there is a reservation, or a key
			return Answers{Reservation: ReservationHeld}
		}
	}
	return Answers{Reservation: ReservationNone}
}

// unsupported says whether a drive knows no such command, or not this form of it. Sense data come in two formats.
func unsupported(sense []byte) bool {
	const illegalRequest, invalidCommand, invalidField = 5, 0x20, 0x24
	if len(sense) < 8 {
		return false
	}
	var key, code byte
	switch sense[0] & 0x7f {
	case 0x70:
		if len(sense) < 13 {
			return false
		}
		key, code = sense[2]&0xf, sense[12]
	case 0x72:
		key, code = sense[1]&0xf, sense[2]
	}
	return key == illegalRequest && (code == invalidCommand || code == invalidField)
}
