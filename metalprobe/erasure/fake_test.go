// SPDX-License-Identifier: Apache-2.0

package erasure

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"testing"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

// fakeDisk is a disk in memory with faults.
type fakeDisk struct {
	data []byte
	// discards is what a discard does.
	discards func(secure bool) error
	// failsAt makes writes fail that touch this byte; keepsFrom makes the disk forget what is written from there on.
	failsAt, keepsFrom int64
	flush              error
	read               error
}

// fullDisk is full of random data, the same at each call.
func fullDisk(size int) *fakeDisk {
	d := &fakeDisk{data: make([]byte, size), failsAt: -1, keepsFrom: int64(size), discards: func(bool) error { return errors.ErrUnsupported }}
	_, _ = rand.New(rand.NewSource(1)).Read(d.data)
	return d
}

func (d *fakeDisk) Size() int64               { return int64(len(d.data)) }
func (d *fakeDisk) Flush() error              { return d.flush }
func (d *fakeDisk) Discard(secure bool) error { return d.discards(secure) }

func (d *fakeDisk) ReadAt(part []byte, offset int64) (int, error) {
	if d.read != nil {
		return 0, d.read
	}
	n := copy(part, d.data[offset:])
	if n < len(part) {
		return n, io.EOF
	}
	return n, nil
}

func (d *fakeDisk) WriteAt(part []byte, offset int64) (int, error) {
	if d.failsAt >= offset && d.failsAt < offset+int64(len(part)) {
		return int(d.failsAt - offset), errors.New("input/output error")
	}
	if offset < d.keepsFrom {
		copy(d.data[offset:min(d.keepsFrom, offset+int64(len(part)))], part)
	}
	return len(part), nil
}

func (d *fakeDisk) empty() bool { return bytes.Count(d.data, []byte{0}) == len(d.data) }

// fakeDrive answers commands as real drives do. What it is told is in log.
type fakeDrive struct {
	t    *testing.T
	disk *fakeDisk
	log  []string
	// controller, namespace, active and allocated are pages of NVMe's Identify.
	controller, namespace, active, allocated []byte
	sanitizeLogs                             [][]byte
	formats                                  func()
	// ataPage is the answer of IDENTIFY DEVICE; password is the one that is set.
	ataPage     []byte
	password    string
	refuseErase bool
	erases      func()
	statuses    []ATAResult
	// opcodes are the service actions of SANITIZE that the device supports; senses are its answers to REQUEST SENSE.
	opcodes   map[uint8]bool
	senses    [][]byte
	discovery []byte
}

func (f *fakeDrive) note(format string, arguments ...any) {
	f.log = append(f.log, fmt.Sprintf(format, arguments...))
}

func (f *fakeDrive) NamespaceID() (uint32, error) { return 1, nil }

func (f *fakeDrive) NVMe(c NVMeCommand) (uint32, error) {
	switch c.Opcode {
	case nvmeIdentify:
		page := map[uint32][]byte{identifyController: f.controller, identifyNamespace: f.namespace, identifyActive: f.active, identifyAllocated: f.allocated}[c.CDW10]
		if page == nil {
			return 0, errors.New("NVMe status 0x2002")
		}
		copy(c.Data, page)
		return 0, nil
	case nvmeGetLogPage:
		if len(f.sanitizeLogs) == 0 {
			return 0, errors.New("NVMe status 0x2109")
		}
		copy(c.Data, f.sanitizeLogs[0])
		if len(f.sanitizeLogs) > 1 {
			f.sanitizeLogs = f.sanitizeLogs[1:]
		}
		return 0, nil
	case nvmeSecurityReceive:
		copy(c.Data, f.discovery)
		return 0, nil
	}
	f.note("nvme %#x nsid=%#x cdw10=%#x", c.Opcode, c.NSID, c.CDW10)
	if f.formats != nil {
		f.formats()
	}
	return 0, nil
}

func (f *fakeDrive) ATA(c ATACommand) (ATAResult, error) {
	aborted := errors.New("ATA status 0x51, error 0x04")
	word := func(bit int, set bool) {
		status := binary.LittleEndian.Uint16(f.ataPage[256:]) &^ (1 << bit)
		if set {
			status |= 1 << bit
		}
		binary.LittleEndian.PutUint16(f.ataPage[256:], status)
	}
	given := ""
	if len(c.Out) > 0 {
		given = string(bytes.TrimRight(c.Out[2:34], "\x00"))
	}
	switch c.Command {
	case ataIdentify:
		copy(c.In, f.ataPage)
		return ATAResult{}, nil
	case ataSanitize:
		if c.Feature == sanitizeStatusExt {
			status := f.statuses[0]
			if len(f.statuses) > 1 {
				f.statuses = f.statuses[1:]
			}
			return status, nil
		}
		f.note("ata sanitize %#x %#x", c.Feature, c.LBA)
		f.erases()
		return ATAResult{}, nil
	case ataSetPassword:
		f.note("set %s", given)
		f.password = given
		word(1, true)
	case ataUnlock:
		f.note("unlock %s", given)
		if given != f.password {
			return ATAResult{}, aborted
		}
		word(2, false)
	case ataDisablePassword:
		f.note("disable %s", given)
		if given != f.password || binary.LittleEndian.Uint16(f.ataPage[256:])&4 != 0 {
			return ATAResult{}, aborted
		}
		f.password = ""
		word(1, false)
	case ataErasePrepare:
		f.note("prepare")
	case ataEraseUnit:
		f.note("erase %s mode=%d within %s", given, binary.LittleEndian.Uint16(c.Out), c.Timeout)
		if f.refuseErase || given != f.password {
			return ATAResult{}, aborted
		}
		f.erases()
		f.password = ""
		word(1, false)
	}
	return ATAResult{}, nil
}

func (f *fakeDrive) SCSI(c SCSICommand) ([]byte, error) {
	switch c.CDB[0] {
	case scsiMaintenanceIn:
		if f.opcodes[c.CDB[5]] {
			c.In[1] = 3
		} else {
			c.In[1] = 1
		}
	case scsiSanitize:
		f.note("sanitize % x", c.CDB[:2])
		if f.erases != nil {
			f.erases()
		}
	case scsiRequestSense:
		copy(c.In, f.senses[0])
		if len(f.senses) > 1 {
			f.senses = f.senses[1:]
		}
	case scsiSecurityIn:
		copy(c.In, f.discovery)
	}
	return nil, nil
}

// summary is one line for each step.
func summary(steps []policyv1alpha1.EraseStep) []string {
	var lines []string
	for _, s := range steps {
		lines = append(lines, s.Method+" "+string(s.Result))
	}
	return lines
}
