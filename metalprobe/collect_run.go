// SPDX-License-Identifier: Apache-2.0

package metalprobe

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

// DefaultLimit bounds one collector: a read of /sys can hang with its device.
const DefaultLimit = 20 * time.Second

// collector reads one part of the hardware into data of its own.
type collector struct {
	name string
	read func(data *Data) error
}

func (h *Host) collectors() []collector {
	return []collector{
		{"firmware", func(d *Data) error { d.SystemInfo = h.sys().Firmware(); return nil }},
		{"cpu", h.cpus},
		{"memory", func(d *Data) (err error) { d.Memory, err = h.sys().Memory(); return err }},
		{"disks", h.disks},
		{"hidden", h.hiddenStorage},
		{"network", h.interfaces},
		{"lldp", h.neighbors},
		{"pci", func(d *Data) (err error) { d.PCIDevices, err = h.sys().PCIDevices(); return err }},
	}
}

// running holds the collectors that have not ended, so that one that hangs is not begun anew.
type running struct {
	mu    sync.Mutex
	names map[string]bool
}

// begin marks a collector as running; false where it is.
func (r *running) begin(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.names[name] {
		return false
	}
	if r.names == nil {
		r.names = map[string]bool{}
	}
	r.names[name] = true
	return true
}

func (r *running) end(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.names, name)
}

// Collect reads everything, each part at the same time as the others and within a limit. It returns what could be read together with
// what went wrong, which is part of the data too; a file that is not there is only something that this machine does not tell.
func (h *Host) Collect(ctx context.Context) (Data, error) {
	var data Data
	if h.Now != nil {
		data.Timestamp = Timestamp{h.Now()}
	}
	var problems []error
	problem := func(source string, err error) {
		problems = append(problems, err)
		data.Problems = append(data.Problems, policyv1alpha1.ProbeProblem{Source: source, Message: strings.ReplaceAll(err.Error(), "\n", "; ")})
	}
	limited, cancel := context.WithTimeoutCause(ctx, h.limit(), fmt.Errorf("not read within %s; the device or its driver hangs", h.limit()))
	defer cancel()
	var waiting []func() (Data, error)
	all := h.collectors()
	for _, c := range all {
		waiting = append(waiting, h.start(limited, c))
	}
	for i, wait := range waiting {
		part, err := wait()
		data.add(part)
		if err != nil {
			problem(all[i].name, err)
		}
	}
	if err := ctx.Err(); err != nil {
		return data, err
	}
	h.readContents(ctx, data.Storage)
	if h.Problems != nil {
		data.Problems = append(data.Problems, h.Problems()...)
	}
	return data, errors.Join(problems...)
}

func (h *Host) limit() time.Duration {
	if h.Limit > 0 {
		return h.Limit
	}
	return DefaultLimit
}

// start begins a collector, and returns how to wait for it.
func (h *Host) start(ctx context.Context, c collector) func() (Data, error) {
	if !h.running.begin(c.name) {
		return func() (Data, error) {
			return Data{}, errors.New("a former reading has not ended; the device or its driver hangs: power-cycle the machine")
		}
	}
	type result struct {
		data Data
		err  error
	}
	ended := make(chan result, 1)
	go func() {
		var r result
		r.err = c.read(&r.data)
		h.running.end(c.name)
		ended <- r
	}()
	return func() (Data, error) {
		select {
		case r := <-ended:
			return r.data, r.err
		case <-ctx.Done():
		}
		select {
		case r := <-ended: // at the same time
			return r.data, r.err
		default:
			return Data{}, context.Cause(ctx)
		}
	}
}

// add takes over what one collector found.
func (d *Data) add(part Data) {
	if part.SystemInfo != (policyv1alpha1.SystemInfo{}) {
		d.SystemInfo = part.SystemInfo
	}
	d.CPU = append(d.CPU, part.CPU...)
	d.NetworkInterfaces = append(d.NetworkInterfaces, part.NetworkInterfaces...)
	d.LLDP = append(d.LLDP, part.LLDP...)
	d.Storage = append(d.Storage, part.Storage...)
	d.Memory = append(d.Memory, part.Memory...)
	d.NICs = append(d.NICs, part.NICs...)
	d.PCIDevices = append(d.PCIDevices, part.PCIDevices...)
	d.Hidden = append(d.Hidden, part.Hidden...)
	d.HiddenKnown = d.HiddenKnown || part.HiddenKnown
}
