// SPDX-License-Identifier: Apache-2.0

package emulator

import "context"

// defaultBootOrder names the boot options of every machine, disk first.
var defaultBootOrder = []string{"Boot0001", "Boot0002", "Boot0003"}

// bootOptions says what each boot option boots.
var bootOptions = map[string]struct{ target, display string }{
	"Boot0001": {"Hdd", "Hard disk 1"},
	"Boot0002": {"Pxe", "UEFI PXE IPv4 NIC 1"},
	"Boot0003": {"Cd", "Virtual CD"},
}

// override is the boot override of one machine.
type override struct {
	enabled string // Disabled, Once, Continuous
	target  string
	mode    string
	uri     string
}

// clearOverride disables the override. bmc.mu is held.
func (m *Machine) clearOverride() {
	m.override = override{enabled: "Disabled", target: "None", mode: m.override.mode}
}

// shownOverride is the override as reads show it, which may be the former one for a while. bmc.mu is held.
func (m *Machine) shownOverride() override {
	if late := m.bmc.profile.OverrideShowsAfter; late > 0 && m.bmc.fleet.clock.Now().Sub(m.overriddenAt) < late {
		return m.formerOverride
	}
	return m.override
}

// bootProgress is how far the boot came, in the words of Redfish. bmc.mu is held.
func (m *Machine) bootProgress() string {
	switch {
	case m.running != nil:
		return "OSRunning"
	case m.inPOST:
		return "PCIResourceConfigStarted"
	}
	return "None"
}

// selectBoot chooses what to boot and consumes an override Once. bmc.mu is held.
func (m *Machine) selectBoot() BootSelection {
	m.boots++
	sel := BootSelection{Boot: m.boots, At: m.bmc.fleet.clock.Now(), Mode: m.override.mode}
	if o := m.override; o.enabled != "Disabled" && o.target != "None" {
		sel.Target, sel.Override, sel.HTTPBootURI = o.target, true, o.uri
		if o.enabled == "Once" && !m.bmc.profile.OverrideNeverClears {
			m.clearOverride()
		}
		return m.withMedia(sel)
	}
	sel.Target = "Hdd"
	if len(m.order) > 0 {
		sel.Target = m.bootOption(m.order[0])
	}
	return m.withMedia(sel)
}

// mediaTarget is the boot target that leads to the virtual CD drive. On Supermicro it is a USB drive, and Cd leads elsewhere.
func (p *Profile) mediaTarget() string {
	if p.Manufacturer == "Supermicro" {
		return "UsbCd"
	}
	return "Cd"
}

// withMedia adds the image that is in the virtual CD drive, where the firmware boots from it. bmc.mu is held.
func (m *Machine) withMedia(sel BootSelection) BootSelection {
	if sel.Target == m.bmc.profile.mediaTarget() {
		sel.MediaURL = m.insertedCD()
	}
	return sel
}

func (m *Machine) bootOption(reference string) string {
	if m.host != nil {
		return m.bmc.tree.bootTarget(m.host, reference)
	}
	return bootOptions[reference].target
}

// boot ends the self test: something runs from now on. bmc.mu is held.
func (m *Machine) boot() {
	sel := m.selectBoot()
	m.running, m.restarts = &sel, false
	m.startGuest(sel)
	m.bmc.notify()
}

// startGuest lets the guest run in a goroutine of its own, after the former has returned. bmc.mu is held.
func (m *Machine) startGuest(sel BootSelection) {
	if m.guest == nil {
		return
	}
	ctx, cancel := context.WithCancel(m.bmc.fleet.ctx)
	m.endGuest = cancel
	m.inTurn(func() {
		if ctx.Err() == nil {
			m.guest.PoweredOn(ctx, m, sel)
		}
	})
}

// stopGuest ends what runs on the machine. A repeated call does nothing. bmc.mu is held.
func (m *Machine) stopGuest() {
	m.running = nil
	if m.endGuest != nil {
		m.endGuest()
		m.endGuest = nil
	}
}

func (m *Machine) tellPoweredOff() {
	if m.guest != nil {
		m.inTurn(func() { m.guest.PoweredOff(m) })
	}
}

// inTurn runs call after the machine's former guest call has returned. bmc.mu is held.
func (m *Machine) inTurn(call func()) {
	if m.bmc.closed {
		return
	}
	before := m.guestDone
	done := make(chan struct{})
	m.guestDone = done
	m.bmc.fleet.guests.Add(1)
	go func() {
		defer m.bmc.fleet.guests.Done()
		defer close(done)
		if before != nil {
			<-before
		}
		call()
	}()
}
