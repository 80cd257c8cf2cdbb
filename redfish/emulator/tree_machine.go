// SPDX-License-Identifier: Apache-2.0

package emulator

import (
	"fmt"
	"slices"
)

// Hosts counts the systems of a tree that can be switched on and off.
func (t *Tree) Hosts() int { return len(t.hosts) }

// Firmware is the version that the BMC shows of itself; empty where the tree does not say.
func (t *Tree) Firmware() string { return t.profile.FirmwareVersion }

// AddTree adds a BMC that serves spec.Tree, with one machine for each host that the tree shows, in its order. Each machine
// starts with the power state that was captured, unless the spec names one. What the tree does not show is invented; see
// Machine.Invented. Fields of the spec that the tree decides are ignored.
func (f *Fleet) AddTree(spec MachineSpec) []*Machine {
	first := f.Add(spec)
	machines := []*Machine{first}
	for n := 1; n < spec.Tree.Hosts(); n++ {
		further := spec
		further.Behind = first
		if spec.Name != "" {
			further.Name = fmt.Sprintf("%s-%d", spec.Name, n)
		}
		machines = append(machines, f.Add(further))
	}
	return machines
}

// takeHost makes the machine the next host of its BMC's tree, and lets spec say of it what the tree says.
func (m *Machine) takeHost(spec *MachineSpec) {
	t := m.bmc.tree
	m.bmc.mu.Lock()
	n := len(m.bmc.machines)
	m.bmc.mu.Unlock()
	if n >= len(t.hosts) {
		return // a machine that the tree does not show: nothing leads to it
	}
	h := &t.hosts[n]
	m.host, m.order, m.override, m.led = h, slices.Clone(h.order), h.override, h.led
	m.invented = append(slices.Clone(t.invented), h.invented...)
	if m.spec.Power == "" {
		m.spec.Power = h.power
	} else if m.spec.Power != h.power {
		m.invented = append(m.invented, fmt.Sprintf("power %s at the beginning (captured: %s)", m.spec.Power, h.power))
	}
	spec.Identity, spec.Hardware = h.identity, h.hardware
	if len(h.nics) > 0 {
		spec.NICs = h.nics
	}
	if len(h.drives) > 0 {
		spec.Drives = slices.Clone(h.drives)
	}
}

// Invented lists what this machine needs and its captured tree does not show; empty without a tree.
func (m *Machine) Invented() []string { return slices.Clone(m.invented) }
