// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalaw/metalaw/redfish"
)

const machineUUID = "1a2b3c4d-0000-0000-0000-000000000001"

// machine is a server with its BMC: it writes down what it is asked for, and shows what the test says. Whatever a test
// does not expect to be called is the nil of the embedded interface.
type machine struct {
	redfish.BMC
	mu    sync.Mutex
	shows redfish.SystemSnapshot
	turns []turn
	// obeys says what becomes of an accepted reset; nil is a machine that shows it at once.
	obeys func(m *machine, action redfish.PowerAction)
	// refuses says what a write is answered with, by what was asked; nil accepts everything.
	refuses func(asked string) error
	// hears is called with every request that arrives.
	hears func(asked string)
	heard []heard
	// reads counts how often it was read.
	reads int
	// silent is what reading it fails with; nil where it answers.
	silent error
	// takes is how much longer than readTakes a reading takes, as where a manager that starts has thousands to make.
	takes time.Duration
	// shines says that its light shows what was accepted.
	shines bool
	// keeps is a boot override that stays, whatever was accepted.
	keeps bool
}

// turn is a power state that the BMC begins to show at some time.
type turn struct {
	at    time.Time
	power redfish.PowerState
}

// heard is one request that the BMC was asked for.
type heard struct {
	what string
	at   time.Time
}

// How long the BMC takes to answer.
const (
	readTakes  = 20 * time.Millisecond
	writeTakes = 100 * time.Millisecond
)

func newMachine(power redfish.PowerState) *machine {
	return &machine{shows: redfish.SystemSnapshot{Power: power, Health: redfish.HealthOK, Identity: redfish.Identity{UUID: machineUUID}}}
}

// will makes the BMC show a power state from a while from now on.
func (m *machine) will(after time.Duration, power redfish.PowerState) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.turns = append(m.turns, turn{time.Now().Add(after), power})
}

// slowly makes a machine show what it was asked for only after a while.
func slowly(after time.Duration) func(*machine, redfish.PowerAction) {
	return func(m *machine, action redfish.PowerAction) { m.will(after, leadsTo[action]) }
}

var leadsTo = map[redfish.PowerAction]redfish.PowerState{
	redfish.ActionOn: redfish.PowerOn, redfish.ActionGracefulShutdown: redfish.PowerOff, redfish.ActionForceOff: redfish.PowerOff,
	redfish.ActionForceRestart: redfish.PowerOn, redfish.ActionGracefulRestart: redfish.PowerOn, redfish.ActionPowerCycle: redfish.PowerOn,
}

// deaf is a machine that accepts every reset and does nothing.
func deaf(*machine, redfish.PowerAction) {}

func (m *machine) System(ctx context.Context, _ string) (redfish.SystemSnapshot, error) {
	m.mu.Lock()
	takes := readTakes + m.takes
	m.mu.Unlock()
	select {
	case <-ctx.Done():
		return redfish.SystemSnapshot{}, &redfish.UnreachableError{Crowded: true, Err: ctx.Err()}
	case <-time.After(takes):
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reads++
	if m.silent != nil {
		return redfish.SystemSnapshot{}, m.silent
	}
	now := time.Now()
	for _, t := range m.turns {
		if !t.at.After(now) {
			m.shows.Power = t.power
		}
	}
	m.turns = slices.DeleteFunc(m.turns, func(t turn) bool { return !t.at.After(now) })
	shown := m.shows
	shown.BootOrder = slices.Clone(m.shows.BootOrder)
	return shown, nil
}

// SystemDetail shows the same, with the network interfaces that the test gave the machine.
func (m *machine) SystemDetail(ctx context.Context, uri string) (redfish.SystemSnapshot, error) {
	return m.System(ctx, uri)
}

// readings is how often the BMC was read.
func (m *machine) readings() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.reads
}

// hear writes a request down and answers it.
func (m *machine) hear(what string) error {
	m.mu.Lock()
	m.heard = append(m.heard, heard{what, time.Now()})
	m.mu.Unlock()
	if m.hears != nil {
		m.hears(what)
	}
	time.Sleep(writeTakes)
	if m.refuses != nil {
		return m.refuses(what)
	}
	return nil
}

func (m *machine) Reset(_ context.Context, _ string, _ redfish.Identity, action redfish.PowerAction) error {
	if err := m.hear(string(action)); err != nil {
		return err
	}
	if m.obeys == nil {
		m.will(0, leadsTo[action])
	} else {
		m.obeys(m, action)
	}
	return nil
}

// set hears a request that changes what the BMC shows.
func (m *machine) set(what string, change func()) error {
	if err := m.hear(what); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	change()
	return nil
}

// setBootOnce is the first half of a power-on.
func (m *machine) setBootOnce(target string) error {
	return m.set("SetBootOnce", func() { m.shows.Boot = redfish.BootOverride{Enabled: "Once", Target: target} })
}

func (m *machine) PowerOnOnce(ctx context.Context, uri string, want redfish.Identity, target string, mode ...redfish.BootMode) error {
	if target == redfish.TargetBootOrder { // heard as On alone
		return m.Reset(ctx, uri, want, redfish.ActionOn)
	}
	if err := m.setBootOnce(target); err != nil {
		return err
	}
	return m.Reset(ctx, uri, want, redfish.ActionOn)
}

func (m *machine) ClearBoot(context.Context, string, redfish.Identity) error {
	return m.set("ClearBoot", func() {
		if !m.keeps {
			m.shows.Boot = redfish.BootOverride{Enabled: "Disabled"}
		}
	})
}

func (m *machine) SetBootOrder(_ context.Context, _ string, _ redfish.Identity, order []string) error {
	return m.set("SetBootOrder "+strings.Join(order, ","), func() { m.shows.BootOrder = order })
}

// SetLED is accepted and never shows, as on machines whose light is wired to nothing, unless it shines.
func (m *machine) SetLED(_ context.Context, _ string, _ redfish.Identity, led redfish.IndicatorLED) error {
	return m.set("SetLED "+string(led), func() {
		if m.shines {
			m.shows.LED = led
		}
	})
}

// asked is what the BMC was asked for, in order, without the boot override that goes before each power-on.
func (m *machine) asked() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []string
	for _, h := range m.heard {
		if h.what != "SetBootOnce" {
			all = append(all, h.what)
		}
	}
	return all
}

// wants fails unless exactly these requests were made.
func (m *machine) wants(t *testing.T, when string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, m.asked()); diff != "" {
		t.Errorf("%s the BMC was asked (-want +got)\n%s", when, diff)
	}
}

// gaps are the times between one request of a kind and the next.
func (m *machine) gaps(what string) []time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []time.Duration
	var last time.Time
	for _, h := range m.heard {
		if h.what != what {
			continue
		}
		if !last.IsZero() {
			all = append(all, h.at.Sub(last))
		}
		last = h.at
	}
	return all
}
