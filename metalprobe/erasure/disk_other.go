// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package erasure

import "errors"

// The agent runs on Linux; elsewhere it is only built and tested.
func (*Disk) goDirect() {}

// Discard implements Medium.
func (*Disk) Discard(bool) error { return errors.ErrUnsupported }

func (*Disk) dropCache() {}

// NamespaceID implements Commands.
func (*Disk) NamespaceID() (uint32, error) { return 0, errors.ErrUnsupported }

// NVMe implements Commands.
func (*Disk) NVMe(NVMeCommand) (uint32, error) { return 0, errors.ErrUnsupported }

// ATA implements Commands.
func (*Disk) ATA(ATACommand) (ATAResult, error) { return ATAResult{}, errors.ErrUnsupported }

// SCSI implements Commands.
func (*Disk) SCSI(SCSICommand) ([]byte, error) { return nil, errors.ErrUnsupported }

const nonBlocking = 0
