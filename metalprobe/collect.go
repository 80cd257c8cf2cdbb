// SPDX-License-Identifier: Apache-2.0

package metalprobe

import (
	"context"
	"io/fs"
	"net"
	"time"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/metalprobe/drive"
	"github.com/metalaw/metalaw/metalprobe/erasure"
	"github.com/metalaw/metalaw/metalprobe/holders"
	"github.com/metalaw/metalaw/metalprobe/kernel"
	"github.com/metalaw/metalaw/metalprobe/nic"
)

// Host reads the hardware of a Linux machine from its /sys and /proc.
//
// The functions ask what /sys does not tell; each may be nil, and then that part is left out. NewHost sets all of them. A Host must not
// be copied after its first use.
type Host struct {
	// Root is the root of the file system that holds sys and proc, such as os.DirFS("/").
	Root fs.FS
	// Addresses lists the IP addresses of an interface; nil lists none.
	Addresses func(name string) ([]string, error)
	// Link tells what a driver says of an interface.
	Link func(name string) (nic.Link, error)
	// Neighbors lists what was heard by LLDP so far.
	Neighbors func() ([]policyv1alpha1.LLDPInterface, error)
	// Sharing asks an NVMe drive whether other hosts may use a namespace; nil leaves that unknown, and the disk is refused.
	Sharing func(name string) NVMeSharing
	// Drive asks a drive whether a host has reserved it, and what it hides; nil leaves that unknown, and the disk is refused.
	Drive func(name string, protocol erasure.Protocol) drive.Answers
	// Namespaces lists the namespaces of an NVMe controller: those that are allocated, and those that it shows. A drive
	// that does not manage namespaces has no list of those that are allocated.
	Namespaces func(controller string) (allocated, active []uint32, err error)
	// Content reads whether a disk holds data, and where. It is asked once for each disk.
	Content func(ctx context.Context, path string) (content policyv1alpha1.DiskContent, found string)
	// Policy is what the policy says of a wipe: which disks are erased in spite of a doubt, and what becomes of
	// removable media.
	Policy WipePolicy
	// Change changes what the kernel made of disks; nil changes nothing.
	Change holders.Changer
	// Problems tells what went wrong outside of the collectors, such as a module that did not load.
	Problems func() []policyv1alpha1.ProbeProblem
	// Limit bounds each collector; zero means DefaultLimit.
	Limit time.Duration
	// Now stamps the data; nil leaves the stamp out.
	Now func() time.Time

	running  running
	contents contents
}

// InterfaceAddresses lists the IP addresses of an interface of this machine, link-local ones left out.
func InterfaceAddresses(name string) ([]string, error) {
	device, err := net.InterfaceByName(name)
	if err != nil {
		return nil, err
	}
	addresses, err := device.Addrs()
	if err != nil {
		return nil, err
	}
	var found []string
	for _, address := range addresses {
		prefix, isPrefix := address.(*net.IPNet)
		if isPrefix && !prefix.IP.IsLinkLocalUnicast() {
			found = append(found, prefix.IP.String())
		}
	}
	return found, nil
}

// sys reads what the kernel shows.
func (h *Host) sys() kernel.Tree { return kernel.Tree{Root: h.Root} }
