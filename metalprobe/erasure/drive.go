// SPDX-License-Identifier: Apache-2.0

package erasure

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Commands sends a drive its own commands.
type Commands interface {
	// NVMe sends an admin command, and returns dword 0 of its completion.
	NVMe(command NVMeCommand) (result uint32, err error)
	// NamespaceID is the number of the NVMe namespace that was opened.
	NamespaceID() (uint32, error)
	// ATA sends an ATA command, and returns the registers after it.
	ATA(command ATACommand) (ATAResult, error)
	// SCSI sends a SCSI command. It returns the sense data also where the command failed.
	SCSI(command SCSICommand) (sense []byte, err error)
}

// NVMeCommand is an NVMe admin command. Data is read or written, as the opcode says.
type NVMeCommand struct {
	Opcode       uint8
	NSID         uint32
	CDW10, CDW11 uint32
	Data         []byte
	Timeout      time.Duration
}

// ATACommand is an ATA command of 48 bits where Extended is set, else of 28 bits. At most one of In and Out is given.
type ATACommand struct {
	Command        uint8
	Extended       bool
	Feature, Count uint16
	LBA            uint64
	In, Out        []byte
	Timeout        time.Duration
}

// ATAResult is what an ATA command leaves in the registers.
type ATAResult struct {
	Status, Error uint8
	Count         uint16
	LBA           uint64
}

// SCSICommand is a SCSI command. At most one of In and Out is given.
type SCSICommand struct {
	CDB     []byte
	In, Out []byte
	Timeout time.Duration
}

// method is one erase command of a drive.
type method struct {
	name, parameters string
	// lacks says why the method is not tried.
	lacks string
	// estimate is the drive's own; zero where it gives none.
	estimate time.Duration
	// run erases within the limit and returns the drive's answer.
	run func(ctx context.Context, limit time.Duration, progress func(percent int32)) (answer string, err error)
}

const (
	// short bounds a command that only asks.
	short = 30 * time.Second
	// pollEvery is the pause between two looks at a command that runs on.
	pollEvery = time.Second
)

// LockedError is a drive that a password of another owner keeps locked.
type LockedError struct{ By string }

// Error implements error. It begins with the reason that programs read.
func (e *LockedError) Error() string {
	return "DriveLocked: " + e.By + " of another owner locks the drive; read the PSID on its label, revert it with " +
		"sedutil-cli --PSIDrevert <PSID> <device> (which erases it), or unlock it with its owner's password, and repeat the wipe"
}

// methods asks the drive what it offers, strongest first. It fails where the drive is locked.
func (e *eraser) methods(ctx context.Context) ([]method, error) {
	e.expect("identify", e.floor())
	if e.target.Volume || e.target.Commands == nil {
		return nil, e.readable()
	}
	var methods []method
	var err error
	switch e.target.Protocol {
	case NVMe:
		methods, err = nvmeMethods(e.target.Commands)
	case ATA:
		methods, err = e.ataMethods(ctx)
	case SCSI:
		methods = scsiMethods(e.target.Commands)
	case NoProtocol:
	}
	if _, locked := errors.AsType[*LockedError](err); locked {
		return nil, err
	}
	if err != nil { // the drive says nothing of itself: it is overwritten
		e.step("identify", "", "", err)
	}
	return methods, e.readable()
}

// readable reads the first block. A drive whose reads fail is asked whether it is locked.
func (e *eraser) readable() error {
	block, free, err := buffer(Block)
	if err != nil {
		return err
	}
	defer free()
	err = readFull(e.disk, block[:min(Block, e.disk.Size())], 0)
	if err != nil && e.target.Commands != nil && opalLocked(e.target.Protocol, e.target.Commands) {
		return &LockedError{By: "a TCG Opal locking range"}
	}
	return nil // a bad first block shows again where it is written
}

// poll looks every second, within the limit, until look says that the command has ended.
func poll(ctx context.Context, limit time.Duration, look func() (ended bool, err error)) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		if ended, err := look(); ended || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the command did not end: %w", context.Cause(ctx))
		case <-ticker.C:
		}
	}
}
