// SPDX-License-Identifier: Apache-2.0

package metalprobe

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

// contentLimits is how many times longer than a collector the reading of a disk may take.
const contentLimits = 3

// contents holds what the disks held when they were first read: a disk is read once for each boot, and again after an erase.
type contents struct {
	mu    sync.Mutex
	disks map[string]*reading
}

// forget makes the next report read a disk again.
func (c *contents) forget(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.disks, func(_ string, r *reading) bool { return r.name == name })
}

// reading is one disk that is being read, or was.
type reading struct {
	name    string
	ended   chan struct{}
	content policyv1alpha1.DiskContent
	found   string
}

// readContents says of each disk and removable medium of this machine whether it holds data. Those of the BMC are not
// read. All are read at the same time. A disk that does not answer in time is unreadable; where it answers later, the
// next report says what it holds.
func (h *Host) readContents(ctx context.Context, disks []policyv1alpha1.BlockDevice) {
	if h.Content == nil {
		return
	}
	limit := contentLimits * h.limit()
	over := time.NewTimer(limit)
	defer over.Stop()
	late := false
	begun := map[*policyv1alpha1.BlockDevice]*reading{}
	for i := range disks {
		if disk := &disks[i]; disk.Content == "" { // a medium that hides is unreadable already
			begun[disk] = h.begin(context.WithoutCancel(ctx), *disk, limit)
		}
	}
	for disk, r := range begun {
		if !late {
			select {
			case <-r.ended:
			case <-ctx.Done():
				late = true
			case <-over.C:
				late = true
			}
		}
		select {
		case <-r.ended:
			disk.Content, disk.ContentFound = r.content, r.found
		default:
			disk.Content, disk.ContentFound = policyv1alpha1.ContentUnreadable, fmt.Sprintf("not read within %s", limit)
		}
	}
}

// begin starts to read a disk, unless that was done before.
func (h *Host) begin(ctx context.Context, disk policyv1alpha1.BlockDevice, limit time.Duration) *reading {
	key := fmt.Sprintf("%s %s %s %d", disk.Name, disk.Serial, disk.WWID, disk.SizeBytes)
	h.contents.mu.Lock()
	defer h.contents.mu.Unlock()
	if known := h.contents.disks[key]; known != nil {
		return known
	}
	if h.contents.disks == nil {
		h.contents.disks = map[string]*reading{}
	}
	r := &reading{name: disk.Name, ended: make(chan struct{})}
	h.contents.disks[key] = r
	go func() {
		defer close(r.ended)
		verdict := h.judgeWith(disk.Name, true) // a removable medium is read whether or not the policy erases it
		if verdict.Standing != DiskOurs {
			return
		}
		if verdict.Sanitizing {
			r.content, r.found = policyv1alpha1.ContentUnreadable, "a sanitize runs in the drive"
			return
		}
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		r.content, r.found = h.Content(ctx, disk.Path)
	}()
	return r
}
