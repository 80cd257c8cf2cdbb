// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"cmp"
	"slices"
	"time"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

const (
	// newest is how many of the last things Happened lists.
	newest = 20
	// lately is the time of which Happened counts moves.
	lately = time.Hour
)

// Happened is what happened last.
type Happened struct {
	// Moves is how many moves of the last hour the servers remember; each remembers ten.
	Moves int `json:"moves"`
	// Rules counts these moves by rule, the most frequent first.
	Rules []Count `json:"rules,omitempty"`
	// Last is what happened last, the newest first.
	Last []Event `json:"last,omitempty"`
}

// Event is one thing that happened to a server: a move, an operation that a person asked for, or a power change.
type Event struct {
	At     time.Time `json:"at"`
	Server string    `json:"server"`
	// What is Move, the name of an operation, or a power change in the words of Redfish.
	What string `json:"what"`
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// State is how far an operation has come.
	State    string `json:"state,omitempty"`
	Rule     string `json:"rule,omitempty"`
	Revision string `json:"revision,omitempty"`
	By       string `json:"by,omitempty"`
	// Reason is why, in the words of the person, or what the BMC refused.
	Reason string `json:"reason,omitempty"`
}

// Move is the word for a move.
const Move = "Move"

// latest keeps the newest events.
type latest struct{ events []Event }

// room says that an event at a time is among the newest.
func (l *latest) room(at time.Time) bool {
	return !at.IsZero() && (len(l.events) < newest || at.After(l.events[newest-1].At))
}

func (l *latest) add(e Event) {
	i, _ := slices.BinarySearchFunc(l.events, e, func(a, b Event) int {
		return cmp.Or(b.At.Compare(a.At), cmp.Compare(a.Server, b.Server), cmp.Compare(a.What, b.What))
	})
	l.events = slices.Insert(l.events, i, e)
	l.events = l.events[:min(len(l.events), newest)]
}

// happenedOf gathers what the servers tell of the past.
func happenedOf(servers []v1alpha1.Server, now time.Time) Happened {
	var h Happened
	var last latest
	rules := tally{}
	for i := range servers {
		s := &servers[i]
		if l := s.Status.Lifecycle; l != nil {
			for j := range l.History {
				m := &l.History[j]
				if now.Sub(m.At.Time) <= lately {
					h.Moves++
					rules[m.Rule]++
				}
				if last.room(m.At.Time) {
					last.add(Event{At: m.At.UTC(), Server: s.Name, What: Move, From: string(m.From), To: string(m.To),
						Rule: m.Rule, Revision: m.Revision, By: m.By, Reason: m.Reason})
				}
			}
			if r := l.Request; r != nil && last.room(r.AskedAt.Time) {
				last.add(Event{At: r.AskedAt.UTC(), Server: s.Name, What: string(r.Action), Reason: r.Refusal})
			}
		}
		if o := s.Status.Operation; o != nil && last.room(o.StartedAt.Time) {
			last.add(Event{At: o.StartedAt.UTC(), Server: s.Name, What: o.Name, To: string(o.To),
				State: string(o.State),
				By:    o.By, Reason: cmp.Or(o.Reason, o.Message)})
		}
	}
	h.Last, h.Rules = last.events, rules.counts()
	return h
}
