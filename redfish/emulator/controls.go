// SPDX-License-Identifier: Apache-2.0

package emulator

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// The methods of this file are what a test does to a machine, and what a guest's operating system does.
// None of them passes the Redfish service, so none is in the log of writes.

// Power is the machine's true power state, whatever a fault lets the BMC say.
func (m *Machine) Power() PowerState {
	m.bmc.mu.Lock()
	defer m.bmc.mu.Unlock()
	return m.state
}

// Running is what the machine has booted; false where it is off or in its self test.
func (m *Machine) Running() (BootSelection, bool) {
	m.bmc.mu.Lock()
	defer m.bmc.mu.Unlock()
	if m.running == nil {
		return BootSelection{}, false
	}
	return *m.running, true
}

// Boots counts how often the machine booted, and NMIs how many interrupts it got.
func (m *Machine) Boots() int {
	m.bmc.mu.Lock()
	defer m.bmc.mu.Unlock()
	return m.boots
}

// NMIs counts the non-maskable interrupts that the machine got.
func (m *Machine) NMIs() int {
	m.bmc.mu.Lock()
	defer m.bmc.mu.Unlock()
	return m.nmis
}

// Override is the boot override as it truly is: enabled (Disabled, Once, Continuous) and target.
func (m *Machine) Override() (enabled, target string) {
	m.bmc.mu.Lock()
	defer m.bmc.mu.Unlock()
	return m.override.enabled, m.override.target
}

// SetOverride sets a boot override as if by hand in the firmware's menu.
func (m *Machine) SetOverride(enabled, target string) {
	m.bmc.mu.Lock()
	defer m.bmc.mu.Unlock()
	m.override.enabled, m.override.target = enabled, target
}

// BootOrder is the persistent boot order.
func (m *Machine) BootOrder() []string {
	m.bmc.mu.Lock()
	defer m.bmc.mu.Unlock()
	return slices.Clone(m.order)
}

// LED is the locator light: Lit, Blinking or Off.
func (m *Machine) LED() string {
	m.bmc.mu.Lock()
	defer m.bmc.mu.Unlock()
	return m.led
}

// PowerBehindBack changes power as a hand on the button does: at once, without a request. Switching on boots at once.
// It does nothing where the machine is in that state.
func (m *Machine) PowerBehindBack(on bool) {
	m.bmc.mu.Lock()
	defer m.bmc.mu.Unlock()
	switch {
	case on && m.state != PowerOn:
		m.interrupt()
		m.setState(PowerOn)
		m.boot()
	case !on && m.state != PowerOff:
		m.interrupt()
		m.stopGuest()
		m.off(nil)
	}
}

// OSReboot is a reboot that the operating system does by itself: a boot override, if one is set, hijacks it.
// It does nothing where no operating system runs.
func (m *Machine) OSReboot() {
	m.bmc.mu.Lock()
	defer m.bmc.mu.Unlock()
	if m.running != nil {
		m.warmReset(0)
	}
}

// OSPowerOff is a shutdown that the operating system does by itself, at once.
// It does nothing where no operating system runs.
func (m *Machine) OSPowerOff() {
	m.bmc.mu.Lock()
	defer m.bmc.mu.Unlock()
	if m.running != nil {
		m.interrupt()
		m.stopGuest()
		m.off(nil)
	}
}

// GuestEnded is how a guest says that it ended by itself: ctx is that of its PoweredOn. The machine goes off, or boots again where
// the guest rebooted or a graceful restart was asked for. Where ctx has ended another request came first, and nothing changes.
func (m *Machine) GuestEnded(ctx context.Context, rebooted bool) {
	m.bmc.mu.Lock()
	defer m.bmc.mu.Unlock()
	if ctx.Err() != nil || m.running == nil {
		return
	}
	if rebooted || m.restarts {
		m.warmReset(0)
		return
	}
	m.interrupt()
	m.stopGuest()
	m.off(nil)
}

// IgnoreShutdown says whether the operating system ignores graceful requests from now on.
func (m *Machine) IgnoreShutdown(ignore bool) {
	m.bmc.mu.Lock()
	defer m.bmc.mu.Unlock()
	m.ignores = ignore
}

// SwapIdentity lets the BMC answer as another system from now on, as after an exchange of the mainboard. Fields that
// are empty stay. It returns the former identity. To let two BMCs change places use Fleet.SwapAddresses.
func (m *Machine) SwapIdentity(id Identity) Identity {
	m.bmc.mu.Lock()
	defer m.bmc.mu.Unlock()
	former := m.identity
	m.identity = mergeIdentity(former, id)
	return former
}

// SetNICs replaces the host's network interfaces.
func (m *Machine) SetNICs(nics ...NIC) {
	m.bmc.mu.Lock()
	defer m.bmc.mu.Unlock()
	m.nics = slices.Clone(nics)
}

// SetPassword changes the password of the first account behind everyone's back. Its sessions end.
func (m *Machine) SetPassword(password string) {
	m.bmc.mu.Lock()
	defer m.bmc.mu.Unlock()
	a := m.bmc.accounts[0]
	a.setPassword(password)
	m.bmc.endSessionsOf(a.name)
}

// EndSessions forgets all sessions, as a BMC does that runs out of memory.
func (m *Machine) EndSessions() {
	m.bmc.mu.Lock()
	defer m.bmc.mu.Unlock()
	m.bmc.sessions = nil
}

// Sessions lists the sessions that are open now on the machine's BMC.
func (m *Machine) Sessions() []Session {
	m.bmc.mu.Lock()
	defer m.bmc.mu.Unlock()
	m.bmc.expireSessions()
	var open []Session
	for _, s := range m.bmc.sessions {
		open = append(open, s.Session)
	}
	return open
}

// LockOut locks the first account as if logins had failed too often, for the profile's time or a minute.
func (m *Machine) LockOut() {
	m.bmc.mu.Lock()
	defer m.bmc.mu.Unlock()
	m.bmc.accounts[0].lockedUntil = m.bmc.fleet.clock.Now().Add(max(m.bmc.profile.LockoutFor, time.Minute))
}

// LockedOut says whether the first account is locked after failed logins.
func (m *Machine) LockedOut() bool {
	m.bmc.mu.Lock()
	defer m.bmc.mu.Unlock()
	return m.bmc.accounts[0].lockedUntil.After(m.bmc.fleet.clock.Now())
}

// FailedLogins counts the failed logins that the BMC saw in its life.
func (m *Machine) FailedLogins() int {
	m.bmc.mu.Lock()
	defer m.bmc.mu.Unlock()
	n := 0
	for _, a := range m.bmc.accounts {
		n += a.failedEver
	}
	return n
}

// Tweak changes the BMC's copy of its profile while it runs.
func (m *Machine) Tweak(change func(*Profile)) {
	m.bmc.mu.Lock()
	defer m.bmc.mu.Unlock()
	p := m.bmc.profile.clone()
	change(p)
	m.bmc.profile = p
}

// SetReachability says how the BMC's address behaves from now on. It returns an error where the address cannot be
// listened on again.
func (m *Machine) SetReachability(r Reachability) error { return m.bmc.port().setReach(r, nil) }

// SetConnectionLimit bounds the connections that are open at one time; more are closed at once. 0: no bound.
func (m *Machine) SetConnectionLimit(n int) { m.bmc.port().setLimit(n) }

// SetCertificate chooses the certificate that the BMC shows from the next connection on.
func (m *Machine) SetCertificate(kind Certificate) { m.bmc.port().setCertificate(kind) }

// ResetBMC restarts the BMC: its sessions and overrides are lost and it refuses connections for Delays.BMCReset.
// The machine goes on.
func (m *Machine) ResetBMC() { m.bmc.restart(nil) }

// WaitPower returns when the machine's true power state is state, or with an error when ctx ends.
func (m *Machine) WaitPower(ctx context.Context, state PowerState) error {
	_, err := m.wait(ctx, "power "+string(state), func() bool { return m.state == state })
	return err
}

// WaitRunning returns when the machine has booted something, and what; or an error when ctx ends.
func (m *Machine) WaitRunning(ctx context.Context) (BootSelection, error) {
	return m.wait(ctx, "a boot", func() bool { return m.running != nil })
}

// wait blocks until reached says so; it is asked with bmc.mu held.
func (m *Machine) wait(ctx context.Context, what string, reached func() bool) (BootSelection, error) {
	for {
		m.bmc.mu.Lock()
		changed, state, running := m.bmc.changed, m.state, m.running
		done := reached()
		m.bmc.mu.Unlock()
		if done {
			if running == nil {
				running = &BootSelection{}
			}
			return *running, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return BootSelection{}, fmt.Errorf("machine %s: waited for %s, power is %s: %w", m.name, what, state, context.Cause(ctx))
		}
	}
}
