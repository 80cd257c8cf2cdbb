// SPDX-License-Identifier: Apache-2.0

package emulator

import "time"

// HappeningKind is what happened to a machine.
type HappeningKind string

const (
	// PowerChanged: the machine entered the state Power.
	PowerChanged HappeningKind = "PowerChanged"
	// DriveWritten: something was written to the drive, which holds Contents from now on.
	DriveWritten HappeningKind = "DriveWritten"
	// EraseBegun: somebody began to erase the drive, which held Contents until then.
	EraseBegun HappeningKind = "EraseBegun"
	// DriveErased: an erasure ran to its end; the drive is empty.
	DriveErased HappeningKind = "DriveErased"
)

// Happening is one thing that truly happened to a machine, whatever its BMC says of it.
type Happening struct {
	At      time.Time
	Machine string
	What    HappeningKind
	Power   PowerState
	// Drive and Contents are empty where power changed.
	Drive, Contents string
}

// happened tells the witness.
func (f *Fleet) happened(h Happening) {
	if f.opts.Witness != nil {
		h.At = f.clock.Now()
		f.opts.Witness(h)
	}
}
