// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"cmp"
	"slices"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

// Count is how many there are of one name.
type Count struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
}

// Where is where the machines are.
type Where struct {
	Servers int `json:"servers"`
	// States counts servers by state; none stands for a server without one.
	States []Count `json:"states"`
	// Errors counts the servers in Error by the rule that led there.
	Errors []Count `json:"errors,omitempty"`
	// Power counts servers by power; unknown stands for a power that no BMC told.
	Power    []Count `json:"power"`
	Claimed  int     `json:"claimed"`
	Cordoned int     `json:"cordoned"`
	Racks    []Rack  `json:"racks,omitempty"`
}

// Rack is the servers of one rack by state. Servers of which no rack is known are in a rack without a name.
type Rack struct {
	Name    string  `json:"name"`
	Servers int     `json:"servers"`
	States  []Count `json:"states"`
	// NeedPerson is how many of its servers need a person.
	NeedPerson int `json:"needPerson,omitempty"`
}

// tally counts by name.
type tally map[string]int

// counts are the names with their numbers, the largest first.
func (t tally) counts() []Count {
	all := make([]Count, 0, len(t))
	for name, n := range t {
		all = append(all, Count{name, n})
	}
	slices.SortFunc(all, func(a, b Count) int { return cmp.Or(b.Count-a.Count, cmp.Compare(a.Name, b.Name)) })
	return all
}

// whereOf counts the servers. The racks in which most servers need a person come first.
func whereOf(servers []v1alpha1.Server, troubles []Trouble) Where {
	w := Where{Servers: len(servers)}
	states, errors, power, racks, needs := tally{}, tally{}, tally{}, map[string]tally{}, tally{}
	for i := range servers {
		s := &servers[i]
		state := string(cmp.Or(s.Status.State, "none"))
		states[state]++
		if s.Status.State == v1alpha1.StateError {
			errors[ruleOf(s)]++
		}
		power[string(cmp.Or(s.Status.PowerState, "unknown"))]++
		if s.Spec.ServerClaimRef != nil {
			w.Claimed++
		}
		if s.Spec.Unclaimable {
			w.Cordoned++
		}
		rack := RackOf(s)
		if racks[rack] == nil {
			racks[rack] = tally{}
		}
		racks[rack][state]++
	}
	for i := range troubles {
		if t := &troubles[i]; t.Kind == kindServer && t.NeedsPerson {
			needs[t.Rack]++
		}
	}
	w.States, w.Errors, w.Power = states.counts(), errors.counts(), power.counts()
	for name, in := range racks {
		r := Rack{Name: name, States: in.counts(), NeedPerson: needs[name]}
		for _, c := range r.States {
			r.Servers += c.Count
		}
		w.Racks = append(w.Racks, r)
	}
	slices.SortFunc(w.Racks, func(a, b Rack) int {
		return cmp.Or(b.NeedPerson-a.NeedPerson, cmp.Compare(a.Name,
			b.Name))
	})
	return w
}

// ruleOf is the rule of a server's last move.
func ruleOf(s *v1alpha1.Server) string {
	if l := s.Status.Lifecycle; l != nil && l.Rule != "" {
		return l.Rule
	}
	return "unknown"
}
