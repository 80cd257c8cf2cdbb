// SPDX-License-Identifier: Apache-2.0

package metalprobe

import "time"

// WipeState is how far the erasing of a server's disks has come.
type WipeState string

const (
	// WipeRunning means disks are being erased.
	WipeRunning WipeState = "Running"
	// WipeVerified means every disk was erased and read back.
	WipeVerified WipeState = "Verified"
	// WipeFailed means at least one disk could not be erased or proved erased.
	WipeFailed WipeState = "Failed"
)

// DiskState is how far the erasing of one disk has come.
type DiskState string

const (
	// DiskPending means nothing was done yet.
	DiskPending DiskState = "Pending"
	// DiskErasing means the erase runs.
	DiskErasing DiskState = "Erasing"
	// DiskErased means the erase ended without an error, and was not yet read back.
	DiskErased DiskState = "Erased"
	// DiskVerified means the disk was erased and read back.
	DiskVerified DiskState = "Verified"
	// DiskFailed means the disk may still hold data.
	DiskFailed DiskState = "Failed"
)

// WipeReport is the body of POST /wipe.
type WipeReport struct {
	SystemUUID string     `json:"systemUUID"`
	State      WipeState  `json:"state"`
	Disks      []DiskWipe `json:"disks,omitempty"`
	// Skipped is what the wipe left alone because it is no fixed disk. It does not fail the wipe.
	Skipped []SkippedDisk `json:"skipped,omitempty"`
	Message string        `json:"message,omitempty"`
}

// SkippedDisk is a block device that a wipe leaves alone, such as a CD drive or a firmware area.
type SkippedDisk struct {
	Path      string `json:"path"`
	Name      string `json:"name,omitempty"`
	Serial    string `json:"serial,omitempty"`
	WWID      string `json:"wwid,omitempty"`
	SizeBytes int64  `json:"sizeBytes,omitempty"`
	Transport string `json:"transport,omitempty"`
	// Reason says why it is no fixed disk.
	Reason string `json:"reason,omitempty"`
}

// DiskWipe says what became of one disk.
type DiskWipe struct {
	Path      string `json:"path"`
	Name      string `json:"name,omitempty"`
	Serial    string `json:"serial,omitempty"`
	WWID      string `json:"wwid,omitempty"`
	SizeBytes int64  `json:"sizeBytes,omitempty"`
	// Transport is how the disk is attached, such as nvme/pcie; agents of others leave it out.
	Transport string    `json:"transport,omitempty"`
	State     DiskState `json:"state"`
	// Method is how it was erased, such as "discard+zero".
	Method  string `json:"method,omitempty"`
	Message string `json:"message,omitempty"`
}

// WipeStatus is the answer of GET /wipe/{uuid}: may the agent go on?
type WipeStatus struct {
	// Current is true only where the registry said so.
	Current bool `json:"current"`
	// Held says that the agent may not go on for now, and should ask again.
	Held bool `json:"held,omitempty"`
	// Entry is the lifecycle entry that the wipe belongs to.
	Entry int64 `json:"entry,omitempty"`
	// Reason says why not.
	Reason string `json:"reason,omitempty"`
	// RetryAfter is when to ask again, where the registry said so.
	RetryAfter time.Duration `json:"-"`
}
