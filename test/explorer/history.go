// SPDX-License-Identifier: Apache-2.0

package explorer

import (
	"slices"
	"strings"
)

// Violation is a rule that a lifecycle breaks, and how it comes to that.
type Violation struct {
	Rule    Rule
	Text    string
	History History
}

// String is the violation with its history, one step in a line.
func (v Violation) String() string {
	return string(v.Rule) + ": " + v.Text + "\n    " + strings.Join(v.History.Told, "\n    ")
}

// History is a seed and what happened from then on.
type History struct {
	// Events are names of events, in order; Told is everything in words, with what the lifecycle did between them.
	Events, Told []string
}

// history tells how a node was reached.
func (x *exploration) history(last node) History {
	var way []node
	for n := last; ; n = x.nodes[n.parent] {
		way = append(way, n)
		if n.parent < 0 {
			break
		}
	}
	slices.Reverse(way)
	t := x.m.newTeller(x.m.seeds()[way[0].by])
	for _, n := range way[1:] {
		if n.by == byVisit {
			t.visit(&t.w)
		} else {
			t.happens(&events[n.by])
		}
	}
	return t.History
}

// teller plays a history again and tells it.
type teller struct {
	History
	player
	w World
}

func (m *Machine) newTeller(s seed) *teller {
	t := &teller{player: player{m: m}, w: s.world}
	t.Told = []string{s.name}
	t.tell = func(text string) { t.Told = append(t.Told, "  "+m.states[t.w.State].name+": "+text) }
	return t
}

func (t *teller) happens(e *event) bool {
	if !e.do(&t.player, &t.w) {
		return false
	}
	t.Events = append(t.Events, e.name)
	t.Told = append(t.Told, e.name)
	return true
}
