// SPDX-License-Identifier: Apache-2.0

package emulator

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Transport is how a machine reaches a drive.
type Transport string

// The transports of emulated drives. A BMC shows the local ones only.
const (
	TransportPCIe     Transport = "pcie"
	TransportSATA     Transport = "sata"
	TransportSAS      Transport = "sas"
	TransportUSBStick Transport = "usb-stick"
	// TransportVirtio is a disk of a virtual machine, for which Redfish has no protocol.
	TransportVirtio Transport = "virtio"
	// TransportTCP and TransportISCSI reach a drive that is not in the machine.
	TransportTCP   Transport = "tcp"
	TransportISCSI Transport = "iscsi"
)

// Remote says that the drive is not in the machine.
func (t Transport) Remote() bool { return t == TransportTCP || t == TransportISCSI }

// protocol is Redfish's word for a transport (Protocol of the schema Drive).
func (t Transport) protocol() string {
	return map[Transport]string{TransportPCIe: "NVMe", TransportSATA: "SATA", TransportSAS: "SAS", TransportUSBStick: "USB"}[t]
}

// DriveSpec describes a drive.
type DriveSpec struct {
	// Name is the device name inside the machine, such as nvme0n1.
	Name       string
	Serial     string
	WWID       string
	Vendor     string
	Model      string
	SizeBytes  int64
	Rotational bool
	// Transport is how the drive is attached; empty means PCIe for a name that begins with nvme, else SATA.
	Transport    Transport
	Contents     string
	EraseFailure string
}

// FunctionSpec is a PCI function of a machine.
type FunctionSpec struct {
	// Address is its PCI address, and ID are its vendor and device in hex, such as 1000:0014.
	Address, ID string
}

// Drive is one drive. What was written survives power-off, until an erasure has run to its end.
type Drive struct {
	Name, Serial, WWID, Vendor, Model string
	SizeBytes                         int64
	Rotational                        bool
	Transport                         Transport

	clock Clock
	takes time.Duration
	tell  func(what HappeningKind, contents string)

	mu       sync.Mutex
	contents string
	erased   bool
	erasures int
	failure  string
	out      bool
}

func newDrive(spec DriveSpec, clock Clock, takes time.Duration) *Drive {
	return &Drive{
		Name: spec.Name, Serial: spec.Serial, WWID: spec.WWID, Vendor: spec.Vendor, Model: spec.Model,
		SizeBytes: spec.SizeBytes, Rotational: spec.Rotational, Transport: spec.Transport,
		clock: clock, takes: takes, contents: spec.Contents, failure: spec.EraseFailure,
		tell: func(HappeningKind, string) {},
	}
}

// Write puts data on the drive, as a tenant does. A drive with data is not erased any more.
func (d *Drive) Write(contents string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.contents, d.erased = contents, false
	d.tell(DriveWritten, contents)
}

// Contents is what the drive holds; empty after an erasure.
func (d *Drive) Contents() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.contents
}

// Erased says whether the drive was erased since something was last written.
func (d *Drive) Erased() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.erased
}

// Erasures counts the erasures that ran to their end.
func (d *Drive) Erasures() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.erasures
}

// TakeOut takes the drive out of its machine.
func (d *Drive) TakeOut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.out = true
}

// PutIn puts a drive that was taken out back into its machine.
func (d *Drive) PutIn() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.out = false
}

func (d *Drive) isOut() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.out
}

// FailErase makes every later Erase fail with that message after its time; an empty message heals the drive.
func (d *Drive) FailErase(message string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failure = message
}

// Erase erases the drive and returns when it is done. Where ctx ends first (a power-off, say) the data survives.
// A repeated call erases again.
func (d *Drive) Erase(ctx context.Context) error {
	d.mu.Lock()
	d.tell(EraseBegun, d.contents)
	d.mu.Unlock()
	if !sleep(ctx, d.clock, d.takes) {
		return fmt.Errorf("drive %s: erasure broken off, the data is still there: erase it again: %w", d.Name, context.Cause(ctx))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failure != "" {
		return fmt.Errorf("drive %s: %w", d.Name, errors.New(d.failure))
	}
	d.contents, d.erased = "", true
	d.erasures++
	d.tell(DriveErased, "")
	return nil
}
