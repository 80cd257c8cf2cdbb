// SPDX-License-Identifier: Apache-2.0

package erasure

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// Commands and values of SPC-5 and SBC-4.
const (
	scsiRequestSense     = 0x03
	scsiSanitize         = 0x48
	scsiSecurityIn       = 0xa2
	scsiMaintenanceIn    = 0xa3
	supportedOpcodes     = 0x0c // service action of MAINTENANCE IN
	oneCommand           = 2    // reporting options: operation code with service action
	scsiBlockErase       = 0x02
	scsiCryptoErase      = 0x03
	scsiExitFailure      = 0x1f
	scsiImmediate        = 1 << 7
	scsiAUSE             = 1 << 5
	senseNoSense         = 0x0
	senseNotReady        = 0x2
	ascSanitizeRuns      = 0x041b // LOGICAL UNIT NOT READY, SANITIZE IN PROGRESS
	ascSanitizeFailed    = 0x3103 // SANITIZE COMMAND FAILED
	senseDescriptorTypes = 0x02   // sense key specific
)

// sense is what a device says after a command.
type sense struct {
	key     uint8
	asc     uint16 // additional sense code and its qualifier
	percent int32  // of a command that runs on; -1 where none is given
}

// parseSense reads both formats of sense data.
func parseSense(data []byte) (sense, error) {
	if len(data) < 8 {
		return sense{}, errors.New("the sense data is too short")
	}
	s := sense{percent: -1}
	specific := func(part []byte) {
		if part[0]&0x80 != 0 { // SKSV
			s.percent = int32(uint32(binary.BigEndian.Uint16(part[1:])) * 100 / 65536)
		}
	}
	switch data[0] & 0x7f {
	case 0x70, 0x71:
		if len(data) < 18 {
			return sense{}, errors.New("the sense data is too short")
		}
		s.key, s.asc = data[2]&0xf, binary.BigEndian.Uint16(data[12:])
		specific(data[15:18])
	case 0x72, 0x73:
		s.key, s.asc = data[1]&0xf, binary.BigEndian.Uint16(data[2:])
		for rest := data[8:]; len(rest) >= 2 && len(rest) >= 2+int(rest[1]); rest = rest[2+int(rest[1]):] {
			if rest[0] == senseDescriptorTypes && rest[1] >= 6 {
				specific(rest[4:7])
			}
		}
	default:
		return sense{}, fmt.Errorf("sense data of unknown format %#x", data[0])
	}
	return s, nil
}

// String names what was answered, as the standards number it.
func (s sense) String() string { return fmt.Sprintf("sense %x/%02x/%02x", s.key, s.asc>>8, s.asc&0xff) }

func scsiMethods(c Commands) []method {
	d := scsiDrive{c}
	return []method{d.sanitize(MethodSCSISanitizeBlock, scsiBlockErase), d.sanitize(MethodSCSISanitizeCrypto, scsiCryptoErase)}
}

type scsiDrive struct{ c Commands }

func (d scsiDrive) sanitize(name string, action uint8) method {
	m := method{name: name, parameters: fmt.Sprintf("service action %d, immed=1 ause=1", action), lacks: d.lacks(action)}
	m.run = func(ctx context.Context, limit time.Duration, progress func(int32)) (string, error) {
		cdb := make([]byte, 10)
		cdb[0], cdb[1] = scsiSanitize, scsiImmediate|scsiAUSE|action
		if _, err := d.c.SCSI(SCSICommand{CDB: cdb, Timeout: short}); err != nil {
			return "", err
		}
		var last sense
		err := poll(ctx, limit, func() (bool, error) {
			var err error
			if last, err = d.requestSense(); err != nil {
				return false, err
			}
			switch {
			case last.key == senseNotReady && last.asc == ascSanitizeRuns:
				progress(max(0, last.percent))
				return false, nil
			case last.key == senseNoSense:
				return true, nil
			}
			return false, fmt.Errorf("the sanitize ended with %s", last)
		})
		if err != nil && last.asc == ascSanitizeFailed {
			cdb[1] = scsiExitFailure
			_, exit := d.c.SCSI(SCSICommand{CDB: cdb, Timeout: short})
			err = errors.Join(err, exit)
		}
		return last.String(), err
	}
	return m
}

// lacks asks whether the device takes a SANITIZE command; empty where it does.
func (d scsiDrive) lacks(action uint8) string {
	answer := make([]byte, 64)
	cdb := make([]byte, 12)
	cdb[0], cdb[1], cdb[2], cdb[3], cdb[5] = scsiMaintenanceIn, supportedOpcodes, oneCommand, scsiSanitize, action
	binary.BigEndian.PutUint32(cdb[6:], uint32(len(answer)))
	if _, err := d.c.SCSI(SCSICommand{CDB: cdb, In: answer, Timeout: short}); err != nil {
		return fmt.Sprintf("REPORT SUPPORTED OPERATION CODES: %v", err)
	}
	const supported = 3
	if answer[1]&7 != supported {
		return "REPORT SUPPORTED OPERATION CODES does not name it"
	}
	return ""
}

func (d scsiDrive) requestSense() (sense, error) {
	answer := make([]byte, 252)
	_, err := d.c.SCSI(SCSICommand{CDB: []byte{scsiRequestSense, 0, 0, 0, byte(len(answer)), 0}, In: answer, Timeout: short})
	if err != nil {
		return sense{}, fmt.Errorf("REQUEST SENSE: %w", err)
	}
	return parseSense(answer)
}
