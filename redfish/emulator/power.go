// SPDX-License-Identifier: Apache-2.0

package emulator

import (
	"slices"
	"time"
)

// verdict is what becomes of a reset.
type verdict int

const (
	verdictAccepted    verdict = iota
	verdictAlready             // it leads where the system is, or it needs a system that is on
	verdictBusy                // the firmware is in a transition
	verdictUnsupported         // the profile does not offer it
)

// historyLimit bounds the power history that stale reads look into.
const historyLimit = 64

// setState moves to state and tells waiters. bmc.mu is held.
func (m *Machine) setState(state PowerState) {
	m.state = state
	m.history = append(m.history, stateAt{state, m.bmc.fleet.clock.Now()})
	if over := len(m.history) - historyLimit; over > 0 {
		m.history = slices.Delete(m.history, 0, over)
	}
	m.bmc.notify()
	m.bmc.fleet.happened(Happening{Machine: m.name, What: PowerChanged, Power: state})
}

// stateSince is the state as it was stale ago. bmc.mu is held.
func (m *Machine) stateSince(stale time.Duration) PowerState {
	if stale <= 0 {
		return m.state
	}
	then := m.bmc.fleet.clock.Now().Add(-stale)
	state := m.history[0].state
	for _, h := range m.history {
		if h.at.After(then) {
			break
		}
		state = h.state
	}
	return state
}

// later runs step with bmc.mu held, d from now, unless the machine is interrupted before. bmc.mu is held.
func (m *Machine) later(d time.Duration, step func()) {
	if d <= 0 {
		step()
		return
	}
	epoch := m.epoch
	m.timer = m.bmc.fleet.clock.AfterFunc(d, func() {
		m.bmc.mu.Lock()
		defer m.bmc.mu.Unlock()
		if m.epoch == epoch && !m.bmc.closed {
			step()
		}
	})
}

// interrupt calls off what is pending. bmc.mu is held.
func (m *Machine) interrupt() {
	m.epoch++
	if m.timer != nil {
		m.timer.Stop()
		m.timer = nil
	}
	m.inPOST = false
}

// reset carries out one reset type. bmc.mu is held.
func (m *Machine) reset(kind ResetType) verdict {
	p := m.bmc.profile
	if !slices.Contains(p.ResetTypes, kind) {
		return verdictUnsupported
	}
	if m.inPOST && p.RefusesInPOST {
		return verdictBusy
	}
	if kind == ResetPushPowerButton {
		kind = ResetGracefulShutdown
		if m.state == PowerOff {
			kind = ResetOn
		}
	}
	if kind == ResetOff {
		kind = ResetGracefulShutdown
	}
	switch kind {
	case ResetOn, ResetForceOn:
		return m.resetOn()
	case ResetForceOff:
		if m.state == PowerOff {
			return verdictAlready
		}
		m.cutPower(nil)
	case ResetGracefulShutdown:
		if m.state == PowerOff || m.state == PowerPoweringOff {
			return verdictAlready
		}
		m.shutDown()
	default:
		return m.resetRunning(kind)
	}
	return verdictAccepted
}

func (m *Machine) resetOn() verdict {
	switch m.state {
	case PowerOn, PowerPoweringOn:
		return verdictAlready
	case PowerPoweringOff:
		return verdictBusy
	default:
		m.powerUp()
		return verdictAccepted
	}
}

// resetRunning carries out what makes sense only on a system that is on.
func (m *Machine) resetRunning(kind ResetType) verdict {
	if m.state == PowerOff {
		return verdictAlready
	}
	if m.state != PowerOn {
		return verdictBusy
	}
	switch kind {
	case ResetPowerCycle:
		m.cutPower(m.powerUp)
	case ResetForceRestart:
		m.warmReset(0)
	case ResetGracefulRestart:
		m.restartGracefully()
	default: // an interrupt
		m.nmis++
	}
	return verdictAccepted
}

// powerUp goes from Off over PoweringOn to On, then through the self test to the boot. bmc.mu is held.
func (m *Machine) powerUp() {
	m.interrupt()
	m.setState(PowerPoweringOn)
	m.later(m.delays.Power, func() {
		m.setState(PowerOn)
		m.post()
	})
}

// post is the firmware's self test, which ends with the boot. bmc.mu is held.
func (m *Machine) post() {
	m.inPOST = true
	m.later(m.delays.Boot, func() {
		m.inPOST = false
		m.boot()
	})
}

// cutPower ends the operating system at once and goes over PoweringOff to Off; then runs next. bmc.mu is held.
func (m *Machine) cutPower(next func()) {
	m.interrupt()
	m.stopGuest()
	m.setState(PowerPoweringOff)
	m.later(m.delays.Power, func() { m.off(next) })
}

// shutDown lets the operating system end itself, then switches off. bmc.mu is held.
func (m *Machine) shutDown() {
	if m.ignores || m.pressed(false) {
		return
	}
	m.interrupt()
	m.setState(PowerPoweringOff)
	m.later(m.delays.Shutdown, func() {
		m.stopGuest()
		m.off(nil)
	})
}

// restartGracefully lets the operating system end itself, then boots again. bmc.mu is held.
func (m *Machine) restartGracefully() {
	if m.ignores || m.pressed(true) {
		return
	}
	m.warmReset(m.delays.Shutdown)
}

// pressed hands a graceful request to a guest that hears of those; false where there is none. restart says that the machine
// boots again once the guest has ended. bmc.mu is held.
func (m *Machine) pressed(restart bool) bool {
	button, hears := m.guest.(PowerButton)
	if !hears || m.running == nil || m.bmc.closed {
		return false
	}
	m.restarts = restart
	m.bmc.fleet.guests.Add(1)
	go func() {
		defer m.bmc.fleet.guests.Done()
		button.Press(m)
	}()
	return true
}

func (m *Machine) off(next func()) {
	m.setState(PowerOff)
	m.tellPoweredOff()
	if next != nil {
		next()
	}
}

// warmReset restarts without switching off, after the operating system took wait to end itself. bmc.mu is held.
func (m *Machine) warmReset(wait time.Duration) {
	m.interrupt()
	m.later(wait, func() {
		m.stopGuest()
		m.bmc.notify()
		m.post()
	})
}
