// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/metalaw/metalaw/redfish/emulator"
	"github.com/metalaw/metalaw/test/guest"
)

// ledger holds what may be done to each machine, as its users see it, and every breach of that.
type ledger struct {
	// grace is how long a BMC may take to show what it accepted.
	grace time.Duration

	mu       sync.Mutex
	machines map[string]*permit // by system UUID
	breaches []string
}

// permit is what may be done to one machine at this moment.
type permit struct {
	machine *emulator.Machine
	// probe: it may boot the probe. wipe: it may boot the wipe image, and be erased.
	probe, wipe bool
	// claims are those that exist.
	claims   map[string]bool
	erasures int
	// restarts is how many restarts were asked for.
	restarts int
	boots    []string
}

func newLedger(grace time.Duration) *ledger {
	return &ledger{grace: grace, machines: map[string]*permit{}}
}

func (l *ledger) add(m *emulator.Machine) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.machines[m.Identity().UUID] = &permit{machine: m, probe: true, claims: map[string]bool{}}
}

// change changes what may be done to a machine. What was erased so far must have been permitted.
func (l *ledger) change(m *emulator.Machine, change func(*permit)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.machines[m.Identity().UUID]
	l.audit(p)
	change(p)
}

// audit is called with the lock held.
func (l *ledger) audit(p *permit) {
	n := 0
	for _, d := range p.machine.Drives() {
		n += d.Erasures()
	}
	if n > p.erasures && !p.wipe {
		l.breach("%s was erased %d times more, which nobody had released", p.machine.Name(), n-p.erasures)
	}
	p.erasures = n
}

func (l *ledger) breach(format string, args ...any) {
	l.breaches = append(l.breaches, time.Now().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
}

// booted hears what a machine boots, before it does anything.
func (l *ledger) booted(b guest.Boot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.machines[b.UUID]
	if p == nil {
		return
	}
	name := p.machine.Name()
	l.audit(p)
	p.boots = append(p.boots, fmt.Sprintf("%s %s %s %s", b.At.Format("15:04:05.000"), b.Kind, b.Configuration, b.Image))
	switch b.Kind {
	case guest.KindProbe:
		if !p.probe {
			l.breach("%s booted the probe, long after it was inspected", name)
		}
	case guest.KindWipe:
		if !p.wipe {
			l.breach("%s booted the wipe image, and nobody had released it", name)
		}
	case guest.KindImage:
		_, claim, _ := strings.Cut(b.Configuration, "/")
		if !p.claims[claim] {
			l.breach("%s booted %s for the claim %s, which does not exist", name, b.Image, claim)
		}
		for _, d := range p.machine.Drives() {
			if held := d.Contents(); held != "" && !strings.Contains(held, claim) {
				l.breach("%s booted for the claim %s with what another tenant left: %s", name, claim, held)
			}
		}
		p.wipe = false
	case guest.KindInstalled:
		if resets := p.machine.Resets(); len(resets) == 0 || resets[len(resets)-1] != emulator.ResetForceRestart {
			l.breach("%s booted from its disks, after %v", name, resets)
		}
	default:
		l.breach("%s booted nothing: it was switched on without being told what to boot", name)
	}
}

// report is every breach so far, with those that only the log of writes shows.
func (l *ledger) report() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.machines {
		l.audit(p)
	}
	all := append([]string(nil), l.breaches...)
	for _, p := range l.machines {
		for _, b := range judgeWrites(p, l.grace) {
			all = append(all, fmt.Sprintf("%s: %s", p.machine.Name(), b))
		}
	}
	return all
}

// judgeWrites looks for power requests that were made twice for one decision, and for overrides on a running machine.
func judgeWrites(p *permit, grace time.Duration) []string {
	var found []string
	last := map[emulator.ResetType]emulator.Write{}
	restarts := 0
	for _, w := range p.machine.Writes() {
		var body struct {
			ResetType emulator.ResetType
			Boot      struct{ BootSourceOverrideEnabled string }
		}
		if !w.Executed || json.Unmarshal([]byte(w.Body), &body) != nil {
			continue
		}
		if set := body.Boot.BootSourceOverrideEnabled; set != "" && set != "Disabled" && w.Power != emulator.PowerOff {
			found = append(found, fmt.Sprintf("an override was set while power was %s (write %d)", w.Power, w.Number))
		}
		kind := body.ResetType
		if kind == "" {
			continue
		}
		if before, again := last[kind]; again && w.Time.Sub(before.Time) < grace {
			found = append(found, fmt.Sprintf("%s was asked for twice within %s (writes %d and %d)", kind, w.Time.Sub(before.Time), before.Number, w.Number))
		}
		if kind == emulator.ResetOn && w.Power != emulator.PowerOff {
			found = append(found, fmt.Sprintf("On was asked for while power was %s (write %d)", w.Power, w.Number))
		}
		switch kind {
		case emulator.ResetOn:
			delete(last, emulator.ResetForceOff)
			delete(last, emulator.ResetGracefulShutdown)
		case emulator.ResetForceOff, emulator.ResetGracefulShutdown:
			delete(last, emulator.ResetOn)
		case emulator.ResetForceRestart:
			restarts++
			continue
		default:
			found = append(found, fmt.Sprintf("%s was asked for, which nobody wanted (write %d)", kind, w.Number))
		}
		last[kind] = w
	}
	if restarts > p.restarts {
		found = append(found, fmt.Sprintf("%d restarts were made, %d asked for", restarts, p.restarts))
	}
	return found
}
