// SPDX-License-Identifier: Apache-2.0

// Package dedup has the objects in a cache share what is alike in them. Machines of a type report the same hundreds of processor
// features and PCI devices, which decoded one by one are most of what a manager keeps of a fleet.
package dedup

import (
	"hash/maphash"
	"slices"
	"sync"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
)

// mostKept bounds each table. One that is full is emptied: what is shared stays so, and what comes later is shared anew.
const mostKept = 1 << 14

// Transform is for the objects that come into a cache: it drops managed fields and what strip takes from inventories, and has
// inventories and servers share what is the same for machines of a type. A cached object must not be changed by its readers,
// whether it shares anything or not.
func Transform() toolscache.TransformFunc {
	managed, t := cache.TransformStripManagedFields(), newTables()
	return func(o any) (any, error) {
		o, err := managed(o)
		if err != nil {
			return nil, err
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		switch o := o.(type) {
		case *policyv1alpha1.ServerInventory:
			o.Previous = nil
			if o.Report != nil {
				strip(&o.Report.Data)
				t.report(&o.Report.Data)
			}
		case *v1alpha1.Server:
			t.server(o)
		}
		return o, nil
	}
}

// strip takes away what no reader of the cache asks for: facts, the hardware of a Server, the identities of disks and the slots of
// memory modules stay. Whoever writes an inventory, or shows a whole report, reads it from the API server.
func strip(data *policyv1alpha1.ProbeData) {
	for i := range data.Memory {
		m := &data.Memory[i]
		*m = policyv1alpha1.MemoryDevice{SizeBytes: m.SizeBytes, DeviceLocator: m.DeviceLocator, BankLocator: m.BankLocator}
	}
	for i := range data.NICs {
		data.NICs[i].LinkModes, data.NICs[i].SupportedPorts = nil, nil
	}
	data.SystemInfo.BoardInformation = policyv1alpha1.BoardInformation{SerialNumber: data.SystemInfo.BoardInformation.SerialNumber}
}

// tables are what was seen, by content.
type tables struct {
	mu       sync.Mutex
	seed     maphash.Seed
	words    map[string]string
	features map[uint64][]string
	devices  map[uint64][]policyv1alpha1.PCIDevice
}

func newTables() *tables {
	return &tables{seed: maphash.MakeSeed(), words: map[string]string{}, features: map[uint64][]string{},
		devices: map[uint64][]policyv1alpha1.PCIDevice{}}
}

// word has texts share their bytes with the first ones of the same content. It is for what many machines have in common: no serial
// numbers and no addresses.
func (t *tables) word(texts ...*string) {
	for _, text := range texts {
		if known, ok := t.words[*text]; ok {
			*text = known
			continue
		}
		if len(t.words) >= mostKept {
			clear(t.words)
		}
		t.words[*text] = *text
	}
}

// list returns the first list of the same content.
func list[T comparable](t *tables, known map[uint64][]T, all []T) []T {
	if len(all) == 0 {
		return all
	}
	var h maphash.Hash
	h.SetSeed(t.seed)
	for _, one := range all {
		maphash.WriteComparable(&h, one)
	}
	sum := h.Sum64()
	if same, ok := known[sum]; ok {
		if slices.Equal(same, all) {
			return same
		}
		return all
	}
	if len(known) >= mostKept {
		clear(known)
	}
	known[sum] = all
	return all
}

func (t *tables) report(data *policyv1alpha1.ProbeData) {
	data.PCIDevices = list(t, t.devices, data.PCIDevices)
	for i := range data.CPU {
		cpu := &data.CPU[i]
		cpu.Capabilities = list(t, t.features, cpu.Capabilities)
		t.word(&cpu.Vendor, &cpu.Model)
	}
	for i := range data.Memory {
		t.word(&data.Memory[i].DeviceLocator, &data.Memory[i].BankLocator)
	}
	for i := range data.Storage {
		d := &data.Storage[i]
		t.word(&d.Path, &d.Name, &d.Vendor, &d.Model)
	}
}

func (t *tables) server(s *v1alpha1.Server) {
	t.word(&s.Spec.SystemURI, &s.Status.Manufacturer, &s.Status.Model, &s.Status.SKU, &s.Status.BIOSVersion)
	if s.Status.Lifecycle != nil {
		t.word(&s.Status.Lifecycle.Revision, &s.Status.Lifecycle.Rule)
	}
	for i := range s.Status.Conditions {
		c := &s.Status.Conditions[i]
		t.word(&c.Type, &c.Reason)
	}
	for i := range s.Status.Processors {
		p := &s.Status.Processors[i]
		t.word(&p.ID, &p.Type, &p.Architecture, &p.InstructionSet, &p.Manufacturer, &p.Model)
	}
	for i := range s.Status.NetworkInterfaces {
		n := &s.Status.NetworkInterfaces[i]
		t.word(&n.Name, &n.CarrierStatus)
		for k := range n.Neighbors {
			t.word(&n.Neighbors[k].PortID, &n.Neighbors[k].SystemName, &n.Neighbors[k].SystemDescription)
		}
	}
	for i := range s.Status.Storages {
		storage := &s.Status.Storages[i]
		t.word(&storage.Name)
		for k := range storage.Drives {
			d := &storage.Drives[k]
			t.word(&d.Name, &d.MediaType, &d.Type, &d.Vendor, &d.Model)
		}
	}
}
