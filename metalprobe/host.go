// SPDX-License-Identifier: Apache-2.0

package metalprobe

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/metalaw/metalaw/metalprobe/lldp"

	"github.com/metalaw/metalaw/metalprobe/blank"
	"github.com/metalaw/metalaw/metalprobe/drive"
	"github.com/metalaw/metalaw/metalprobe/erasure"
	"github.com/metalaw/metalaw/metalprobe/holders"
	"github.com/metalaw/metalaw/metalprobe/nic"
)

// NewHost is the machine that this program runs on. It listens for LLDP neighbours until ctx ends: call it early. policy may be nil.
func NewHost(ctx context.Context, policy *WipePolicy) *Host {
	h := &Host{
		Root:       os.DirFS("/"),
		Addresses:  InterfaceAddresses,
		Link:       nic.LinkOf,
		Neighbors:  lldp.Listen(ctx).Neighbors,
		Sharing:    SharingOf,
		Drive:      AskDrive,
		Namespaces: NamespacesOf,
		Content:    blank.ReadDisk,
		Now:        time.Now,
		Change:     holders.Kernel{},
	}
	if policy != nil {
		h.Policy = *policy
	}
	return h
}

// AskDrive asks a drive of this machine whether a host has reserved it, and what it hides. It only reads.
func AskDrive(name string, protocol erasure.Protocol) drive.Answers {
	disk, err := erasure.OpenCommands("/dev/" + name)
	if err != nil {
		return drive.Answers{HiddenUnknown: "the drive could not be asked whether it hides anything: " + err.Error()}
	}
	defer func() { _ = disk.Close() }() // nothing was written
	return drive.Ask(protocol, disk, func(long bool, page []byte) error { return reservationReport(name, long, page) })
}

// errNoAnswer means that a drive did not answer a command.
var errNoAnswer = errors.New("the drive did not answer")
