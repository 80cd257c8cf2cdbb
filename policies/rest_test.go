// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/lifecycle"
)

// model is a server whose machine and boot operator do at once what is asked of them.
type model struct {
	*Facts
	// foreign says that what the machine runs now was found running, and stopped that it was switched off by us.
	foreign, stopped bool
}

// rest follows the decisions until nothing changes any more and says where that is.
func (m *model) rest(l *lifecycle.Lifecycle) string {
	for range 50 {
		d := l.Decide(m.Facts)
		switch {
		case d.Halt != nil:
			return "halted by " + d.Halt.Rule
		case d.Moves():
			m.move(d)
		case !slices.ContainsFunc(d.Effects, m.apply):
			return m.words()
		}
	}
	return "never rests"
}

func (m *model) words() string {
	words := m.Lifecycle.State + "/" + m.BMC.Power
	switch {
	case m.stopped:
		words += " stopped"
	case m.foreign:
		words += " untouched"
	}
	return words
}

func (m *model) move(d engine.Decision) {
	m.Lifecycle.State = string(d.To)
	m.Lifecycle.Entry++
	m.Lifecycle.Marks = slices.DeleteFunc(slices.Clone(m.Lifecycle.Marks), func(mark string) bool { return slices.Contains(d.Clears, mark) })
	m.Lifecycle.Marks = append(m.Lifecycle.Marks, d.Marks...)
	if m.Boot.Purpose != "Claim" {
		m.Boot = BootFacts{Purpose: none, State: none}
	}
}

// apply carries out one effect and says whether it changed anything.
func (m *model) apply(e engine.Effect) bool {
	switch e.Name {
	case engine.MarkEffect:
		m.Lifecycle.Marks = append(slices.Clone(m.Lifecycle.Marks), e.Param("mark").Text())
		return true
	case EffectPowerOff:
		return m.power("Off")
	case EffectPowerOn:
		changes := m.power("On")
		if changes {
			m.Lifecycle.Marks = append(slices.Clone(m.Lifecycle.Marks), e.Earns...)
		}
		return changes
	case EffectPowerAsClaimed:
		return m.power(m.Claim.Power)
	case EffectBootProbe:
		return m.prepare("Probe")
	case EffectBootWipe:
		return m.prepare("Wipe")
	case EffectBootAsClaimed:
		return m.prepare("Claim")
	case EffectReleaseClaim:
		changes := m.Server.ClaimRefSet
		m.Server.ClaimRefSet = false
		return changes
	case EffectForgetHolder:
		changes := m.Claim.Released
		m.Claim.Released = false
		return changes
	}
	return false
}

func (m *model) power(word string) bool {
	if m.BMC.Power == word {
		return false
	}
	m.stopped = m.stopped || m.foreign
	m.BMC.Power, m.foreign = word, false
	if word == "On" && m.Boot.Purpose != "Claim" { // the agent reports, and erases where it is the one that wipes
		m.Probe = ProbeFacts{Entry: m.Lifecycle.Entry, Complete: true}
		m.Wipe.Entry, m.Wipe.Verified = m.Lifecycle.Entry, m.Boot.Purpose == "Wipe"
	}
	return true
}

func (m *model) prepare(purpose string) bool {
	if m.Boot.Purpose == purpose {
		return false
	}
	m.Boot = BootFacts{Purpose: purpose, State: "Ready", Ready: true}
	return true
}

// written says what stands on the server about a claim.
var written = []struct {
	word   string
	server ServerFacts
	claim  ClaimFacts
}{
	{"nothing", ServerFacts{}, ClaimFacts{Power: none}},
	{"binding", ServerFacts{ClaimRefSet: true}, ClaimFacts{Binding: true, Power: none}},
	{"bound", ServerFacts{ClaimRefSet: true}, ClaimFacts{Bound: true, Power: "On"}},
	{"missing", ServerFacts{ClaimRefSet: true}, ClaimFacts{Missing: true, Power: none}},
	{"released", ServerFacts{ClaimRefSet: true}, ClaimFacts{Released: true, Power: none}},
}

// TestWhereAServerComesToRest starts from each of the four states through which a machine comes to a claim, with every
// combination of what is written on the server, whether its machine runs, and whether that is ours to stop. No machine is
// Dirty at first. A stranger stays untouched in Observing until a user consents or a claim agrees.
func TestWhereAServerComesToRest(t *testing.T) {
	want := strings.TrimPrefix(`
                    | On, ours              On, a stranger         Off, ours      Off, a stranger
Initial   nothing   | Available/Off stopped Observing/On untouched Available/Off  Available/Off
Initial   binding   | Reserved/Off stopped  Reserved/On untouched  Reserved/Off   Reserved/Off
Initial   bound     | Reserved/On stopped   Reserved/On untouched  Reserved/On    Reserved/On
Initial   missing   | Reserved/Off stopped  Reserved/On untouched  Reserved/Off   Reserved/Off
Initial   released  | Available/Off stopped Observing/On untouched Available/Off  Available/Off
Observing nothing   | Available/Off stopped Observing/On untouched Available/Off  Observing/Off
Observing binding   | Reserved/Off stopped  Observing/On untouched Reserved/Off   Observing/Off
Observing bound     | Reserved/On untouched Reserved/On untouched  Reserved/On    Reserved/On
Observing missing   | Reserved/Off stopped  Observing/On untouched Reserved/Off   Observing/Off
Observing released  | Available/Off stopped Observing/On untouched Available/Off  Observing/Off
Available nothing   | Available/Off stopped Observing/On untouched Available/Off  Available/Off
Available binding   | Available/Off stopped Observing/On untouched Available/Off  Available/Off
Available bound     | Reserved/On stopped   Reserved/On untouched  Reserved/On    Reserved/On
Available missing   | Reserved/Off stopped  Observing/On untouched Reserved/Off   Reserved/Off
Available released  | Available/Off stopped Observing/On untouched Available/Off  Available/Off
Reserved  nothing   | Available/Off stopped Observing/On untouched Available/Off  Available/Off
Reserved  binding   | Reserved/On untouched Reserved/On untouched  Reserved/Off   Reserved/Off
Reserved  bound     | Reserved/On untouched Reserved/On untouched  Reserved/On    Reserved/On
Reserved  missing   | Reserved/On untouched Reserved/On untouched  Reserved/Off   Reserved/Off
Reserved  released  | Available/Off stopped Observing/On untouched Available/Off  Available/Off
`, "\n")
	got := fmt.Sprintf("%-19s | %-21s %-22s %-14s %s\n", "", "On, ours", "On, a stranger", "Off, ours", "Off, a stranger")
	l := defaultLifecycle(t)
	for _, state := range []string{"Initial", "Observing", "Available", "Reserved"} {
		for _, w := range written {
			var cells []any
			line := fmt.Sprintf("%-10s%-9s |", state, w.word)
			for _, power := range []string{"On", "Off"} {
				for _, marks := range [][]string{{MarkManaged}, nil} {
					m := model{Facts: free(state, nil), foreign: power == "On"}
					m.Server, m.Claim, m.BMC.Power, m.Lifecycle.Marks = w.server, w.claim, power, marks
					m.Server.ReclaimPolicy = "Recycle"
					cells = append(cells, m.rest(l))
				}
			}
			line += fmt.Sprintf(" %-21s %-22s %-14s %s", cells...)
			got += strings.TrimRight(line, " ") + "\n"
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
