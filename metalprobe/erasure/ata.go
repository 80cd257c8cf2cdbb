// SPDX-License-Identifier: Apache-2.0

package erasure

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// ATAPassword is the user password that a drive is given for as long as its security erase runs. It is documented, so that a drive
// whose erase was cut off can be unlocked: hdparm --security-unlock metalaw /dev/sdX.
const ATAPassword = "metalaw"

// Commands and values of the ATA command set (ACS-4).
const (
	ataSanitize        = 0xb4
	ataIdentify        = 0xec
	ataSetPassword     = 0xf1
	ataUnlock          = 0xf2
	ataErasePrepare    = 0xf3
	ataEraseUnit       = 0xf4
	ataDisablePassword = 0xf6

	sanitizeStatusExt   = 0x0000
	cryptoScrambleExt   = 0x0011
	blockEraseExt       = 0x0012
	cryptoScrambleKey   = 0x43727970 // "Cryp"
	blockEraseKey       = 0x426b4572 // "BkEr"
	clearFailureCount   = 1 << 0     // count of SANITIZE STATUS EXT: leave the failed state
	sanitizeCompletedOK = 1 << 15
	sanitizeInProgress  = 1 << 14
	failureModeAllowed  = 1 << 4 // count of an erase: a failed one may be left

	eraseEnhanced = 1 << 1 // word 0 of SECURITY ERASE UNIT
)

// ataFacts is what IDENTIFY DEVICE says of the erase commands.
type ataFacts struct {
	// sanitize, crypto and block are word 59: the feature set and its commands.
	sanitize, crypto, block bool
	// supported to enhanced are word 128, the security status.
	supported, enabled, locked, frozen, expired, enhanced bool
	// eraseTime and enhancedTime are words 89 and 90; zero where the drive names none.
	eraseTime, enhancedTime time.Duration
}

func parseATA(page []byte) (ataFacts, error) {
	if len(page) < 512 {
		return ataFacts{}, errors.New("the data of IDENTIFY DEVICE is too short")
	}
	word := func(n int) uint16 { return binary.LittleEndian.Uint16(page[2*n:]) }
	bit := func(n, bit int) bool { return word(n)>>bit&1 != 0 }
	return ataFacts{
		sanitize: bit(59, 12), crypto: bit(59, 13), block: bit(59, 15),
		supported: bit(128, 0), enabled: bit(128, 1), locked: bit(128, 2), frozen: bit(128, 3), expired: bit(128, 4), enhanced: bit(128, 5),
		eraseTime: eraseTime(word(89)), enhancedTime: eraseTime(word(90)),
	}, nil
}

// eraseTime reads a time in units of two minutes: 15 bits where bit 15 is set, else 8 bits. The largest value means "longer".
func eraseTime(word uint16) time.Duration {
	units := int64(word & 0xff)
	if word&0x8000 != 0 {
		units = int64(word & 0x7fff)
	}
	return time.Duration(2*units) * time.Minute
}

func identifyATA(c Commands) (ataFacts, error) {
	page := make([]byte, 512)
	if _, err := c.ATA(ATACommand{Command: ataIdentify, Count: 1, In: page, Timeout: short}); err != nil {
		return ataFacts{}, fmt.Errorf("ATA IDENTIFY DEVICE: %w", err)
	}
	return parseATA(page)
}

// ataMethods asks the drive what it offers. A password that is set is taken away first: no other erase does that, and the drive would
// lock at its next power-on.
func (e *eraser) ataMethods(ctx context.Context) ([]method, error) {
	d := ataDrive{c: e.target.Commands, announce: e.order.Announce}
	facts, err := identifyATA(d.c)
	if err == nil && facts.enabled {
		facts, err = e.unlock(ctx, d, facts)
	}
	if err != nil {
		return nil, err
	}
	d.ataFacts = facts
	return []method{
		d.sanitizeMethod(MethodATASanitizeCrypto, cryptoScrambleExt, cryptoScrambleKey, facts.crypto),
		d.sanitizeMethod(MethodATASanitizeBlock, blockEraseExt, blockEraseKey, facts.block),
		d.securityErase(MethodATAEnhancedErase, eraseEnhanced, facts.enhanced, facts.enhancedTime),
		d.securityErase(MethodATAErase, 0, true, facts.eraseTime),
	}, nil
}

// unlock takes the password of a drive away. A locked drive is tried once with our password, which an erase that was cut off left; a
// drive that its owner's password does not lock now takes ours in its place.
func (e *eraser) unlock(ctx context.Context, d ataDrive, facts ataFacts) (ataFacts, error) {
	var err error
	switch {
	case facts.frozen:
		err = errors.New("the firmware froze the security feature set (IDENTIFY word 128 bit 3)")
	case facts.locked:
		err = d.password(ataUnlock, 0, short)
	default:
		err = d.setPassword(ctx, MethodATAUnlock)
	}
	if err == nil {
		err = d.password(ataDisablePassword, 0, short)
	}
	e.step(MethodATAUnlock, "user password "+ATAPassword, "", err)
	facts, failed := identifyATA(d.c)
	if failed != nil {
		return facts, failed
	}
	if facts.enabled {
		return facts, &LockedError{By: "an ATA security password"}
	}
	return facts, nil
}

type ataDrive struct {
	ataFacts
	c        Commands
	announce func(ctx context.Context, message string) error
}

func (d ataDrive) sanitizeMethod(name string, feature uint16, key uint64, offered bool) method {
	m := method{name: name, parameters: fmt.Sprintf("feature=%#x", feature)}
	if !d.sanitize || !offered {
		m.lacks = "IDENTIFY word 59 does not name it"
	}
	m.run = func(ctx context.Context, limit time.Duration, progress func(int32)) (string, error) {
		begin := ATACommand{Command: ataSanitize, Extended: true, Feature: feature, Count: failureModeAllowed, LBA: key, Timeout: short}
		if _, err := d.c.ATA(begin); err != nil {
			return "", err
		}
		var last ATAResult
		err := poll(ctx, limit, func() (bool, error) {
			var err error
			if last, err = d.c.ATA(ATACommand{Command: ataSanitize, Extended: true, Feature: sanitizeStatusExt, Timeout: short}); err != nil {
				return false, err
			}
			switch {
			case last.Count&sanitizeInProgress != 0:
				progress(int32(last.LBA & 0xffff * 100 / 65536))
				return false, nil
			case last.Count&sanitizeCompletedOK == 0:
				return false, errors.New("the drive does not say that the sanitize completed without error")
			}
			return true, nil
		})
		if err != nil && ctx.Err() == nil {
			_, _ = d.c.ATA(ATACommand{Command: ataSanitize, Extended: true, Feature: sanitizeStatusExt, Count: clearFailureCount, Timeout: short})
		}
		return fmt.Sprintf("SANITIZE STATUS EXT: count %#04x", last.Count), err
	}
	return m
}

func (d ataDrive) securityErase(name string, mode uint16, offered bool, estimate time.Duration) method {
	m := method{name: name, parameters: fmt.Sprintf("user password %s, estimate %s", ATAPassword, estimate), estimate: estimate}
	switch {
	case !d.supported:
		m.lacks = "IDENTIFY word 128 names no security feature set"
	case d.frozen:
		m.lacks = "the firmware froze the security feature set (IDENTIFY word 128 bit 3)"
	case d.expired:
		m.lacks = "too many passwords were tried; switch the drive off and on (IDENTIFY word 128 bit 4)"
	case !offered:
		m.lacks = "IDENTIFY word 128 names no enhanced erase"
	}
	m.run = func(ctx context.Context, limit time.Duration, _ func(int32)) (string, error) {
		if err := d.setPassword(ctx, name); err != nil {
			return "", err
		}
		_, err := d.c.ATA(ATACommand{Command: ataErasePrepare, Timeout: short})
		if err == nil {
			err = d.password(ataEraseUnit, mode, limit)
		}
		return d.settle(err)
	}
	return m
}

// setPassword gives the drive our password, once that is stored outside of the machine.
func (d ataDrive) setPassword(ctx context.Context, name string) error {
	if d.announce != nil {
		message := fmt.Sprintf("%s begins: the drive gets the user password %q, which ends with it", name, ATAPassword)
		if err := d.announce(ctx, message); err != nil {
			return fmt.Errorf("the password was not set, because its report failed: %w", err)
		}
	}
	if err := d.password(ataSetPassword, 0, short); err != nil {
		return fmt.Errorf("SECURITY SET PASSWORD: %w", err)
	}
	return nil
}

// settle takes the password away where the erase left it, and says how the drive stands.
func (d ataDrive) settle(erased error) (string, error) {
	facts, err := identifyATA(d.c)
	if err == nil && facts.enabled {
		if err = d.password(ataDisablePassword, 0, short); err != nil {
			err = fmt.Errorf("the drive keeps the password %q: SECURITY DISABLE PASSWORD: %w", ATAPassword, err)
		}
	}
	return fmt.Sprintf("password left by the erase: %t", facts.enabled), errors.Join(erased, err)
}

// password sends a security command with our user password. SECURITY SET PASSWORD makes its level High.
func (d ataDrive) password(command uint8, word0 uint16, limit time.Duration) error {
	page := make([]byte, 512)
	binary.LittleEndian.PutUint16(page, word0)
	copy(page[2:34], ATAPassword)
	_, err := d.c.ATA(ATACommand{Command: command, Count: 1, Out: page, Timeout: limit})
	return err
}
