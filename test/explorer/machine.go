// SPDX-License-Identifier: Apache-2.0

package explorer

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/cel-go/cel"
)

// Machine is a lifecycle that can be played. It is not safe for concurrent use.
type Machine struct {
	env       *cel.Env
	atoms     []*atom
	atomNames map[string]int
	states    []stateRules
	places    map[string]uint8
	initial   uint8
	dropped   []uint8 // states in which another lifecycle has left servers
	ages      []time.Duration
	markBits  map[string]uint8
	waived    bool // the bundle waives the wipe
	takesOver bool // the bundle takes over what it finds running
	graced    bool // a release takes effect after a while
	powerGoes bool // the machine need not run on until then
	readsAge  bool // a definition asks for the age of an entry

	reading    uint8      // the marks that marked() is asked about
	evaluation evaluation // reused from one decision to the next
}

type stateRules struct {
	name       string
	stable     bool
	marks      uint8
	operations []string
	exits      []exit
	ensure     []ensure
}

type exit struct {
	rule   string
	to     uint8
	when   *guard
	after  time.Duration
	retry  bool
	clears uint8
}

type ensure struct {
	effect string
	when   *guard
}

// migrated is the rule of the one way out of a state that was dropped.
const migrated = "Migrated"

// Load reads the files of a bundle. It fails where the lifecycle cannot be played at all.
func Load(files map[string][]byte) (*Machine, error) {
	d, s, err := parse(files)
	if err != nil {
		return nil, err
	}
	m := &Machine{atomNames: map[string]int{}, places: map[string]uint8{}, ages: []time.Duration{0},
		markBits: map[string]uint8{"Managed": managed, "Dirty": dirty, "Stranger": foreign},
		waived:   s.Settings.Sanitization == "none", takesOver: s.Settings.FirstSeen == "manage", powerGoes: s.Settings.ReleasePower == "Immediate"}
	grace, err := time.ParseDuration(cmp.Or(s.Settings.ReleaseGrace, "0s"))
	if err != nil {
		return nil, fmt.Errorf("bundle.yaml: releaseGrace: %w", err)
	}
	m.graced = grace > 0
	if m.env, err = m.newEnv(); err != nil {
		return nil, err
	}
	for _, def := range d.Define {
		a, err := m.newAtom(def.name, def.value)
		if err != nil {
			return nil, err
		}
		m.atomNames[def.name] = len(m.atoms)
		m.atoms = append(m.atoms, a)
	}
	if len(m.atoms) > maxAtoms || len(d.States) > 255 {
		return nil, fmt.Errorf("there are more than %d definitions or 255 states", maxAtoms)
	}
	for i, st := range d.States {
		if _, twice := m.places[st.name]; twice {
			return nil, fmt.Errorf("the state %s is written twice", st.name)
		}
		m.places[st.name] = uint8(i)
		m.states = append(m.states, stateRules{name: st.name, stable: st.value.Stable, marks: m.bitsOf(st.value.Marks),
			operations: st.value.Operations})
	}
	if m.initial, err = m.placeOf(d.Initial); err != nil {
		return nil, err
	}
	for i, st := range d.States {
		if err := m.fill(&m.states[i], st.value, d.Interrupts); err != nil {
			return nil, fmt.Errorf("state %s: %w", st.name, err)
		}
	}
	if err := m.addDropped(d.Migrate); err != nil {
		return nil, err
	}
	slices.Sort(m.ages)
	m.ages = slices.Compact(m.ages)
	return m, nil
}

// addDropped adds the states that the lifecycle has dropped, each with the one way out of it.
func (m *Machine) addDropped(migrate map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(migrate)) {
		to, err := m.placeOf(migrate[name])
		if err != nil {
			return err
		}
		m.dropped = append(m.dropped, uint8(len(m.states)))
		m.states = append(m.states, stateRules{name: name, exits: []exit{{rule: migrated, to: to}}})
	}
	return nil
}

// fill adds what a state ensures and its ways out, interrupts first.
func (m *Machine) fill(s *stateRules, text stateDoc, interrupts []exitText) error {
	for _, e := range text.Ensure {
		if !known(e.Do) {
			return fmt.Errorf("there is no effect %q", e.Do)
		}
		when, err := m.guardOf(e.When)
		if err != nil {
			return err
		}
		s.ensure = append(s.ensure, ensure{e.Do, when})
	}
	for _, x := range interrupts {
		if slices.Contains(x.Except, s.name) || x.To == s.name { // an interrupt has nothing to interrupt where it leads
			continue
		}
		if err := m.addExit(s, x); err != nil {
			return err
		}
	}
	for _, x := range text.Exits {
		if err := m.addExit(s, x); err != nil {
			return err
		}
	}
	return nil
}

func (m *Machine) addExit(s *stateRules, text exitText) error {
	to, err := m.placeOf(text.To)
	if err != nil {
		return err
	}
	when, err := m.guardOf(text.When)
	if err != nil {
		return err
	}
	x := exit{rule: text.Rule, to: to, when: when, retry: text.Retry, clears: m.bitsOf(text.Clears)}
	if text.After != "" {
		if x.after, err = durationOf(text.After); err != nil {
			return err
		}
		m.noteAge(x.after)
	}
	s.exits = append(s.exits, x)
	return nil
}

func durationOf(text string) (time.Duration, error) {
	if text == vocabulary[wipeBudget].name {
		return defaultWipeBudget, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("after %q: %w", text, err)
	}
	return d, nil
}

func (m *Machine) placeOf(name string) (uint8, error) {
	if i, ok := m.places[name]; ok {
		return i, nil
	}
	return 0, fmt.Errorf("there is no state %q", name)
}

func (m *Machine) bitsOf(names []string) uint8 {
	var bits uint8
	for _, n := range names {
		bits |= m.markBit(n)
	}
	return bits
}

// markBit is the bit of a mark; of more than eight those too many are forgotten, which no bundle needs.
func (m *Machine) markBit(name string) uint8 {
	if b, ok := m.markBits[name]; ok {
		return b
	}
	b := firstOwnMark << (len(m.markBits) - 3)
	m.markBits[name] = b
	return b
}

func (m *Machine) noteAge(d time.Duration) { m.ages = append(m.ages, d) }

func (m *Machine) in(w *World, name string) bool { return m.states[w.State].name == name }

// States lists the states of the lifecycle.
func (m *Machine) States() []string {
	var all []string
	for i := range m.states {
		all = append(all, m.states[i].name)
	}
	return all
}
