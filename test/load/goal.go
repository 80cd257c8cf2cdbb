// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
)

// What clients of the API wait for.
const (
	available = "Available"
	reserved  = "Reserved"
	bound     = "Bound"
	on        = "On"
	off       = "Off"
)

// goal is what a phase waits for, on the API server's word and on the machines'.
type goal struct {
	// says is the goal in words, as in "97 of 100 servers Available and off".
	says string
	// want is how many objects have to be so.
	want int
	// of selects the kind that is counted, reached says whether one of them is so.
	of      kind
	reached func(o *object) bool
	// concerns narrows down what is missing to what may become so; nil is everything of the kind.
	concerns func(o *object) bool
	// none is a kind of which nothing may be left, empty where that does not matter.
	none kind
	// power is the state that the machine of each counted server has to be in; empty: no machine is looked at.
	power string
}

func allAvailable(servers int, none kind) goal {
	return goal{says: "servers Available and off", want: servers, of: kindServer, none: none, power: off, reached: func(o *object) bool {
		return o.Status.State == available && o.Status.PowerState == off
	}}
}

func allBound(claims int) goal {
	return goal{says: "claims Bound", want: claims, of: kindClaim, reached: func(o *object) bool {
		return o.Status.Phase == bound && o.Spec.ServerRef != nil
	}}
}

func allRunning(claims int) goal {
	return goal{says: "servers Reserved and on", want: claims, of: kindServer, power: on,
		reached:  func(o *object) bool { return o.Status.State == reserved && o.Status.PowerState == on },
		concerns: func(o *object) bool { return o.Spec.ServerClaimRef != nil },
	}
}

// allBack is reached when all servers are as before their maintenance.
func allBack(servers int) goal {
	return goal{says: "servers as before their maintenance", want: servers, of: kindServer, reached: func(o *object) bool {
		if o.Spec.ServerClaimRef != nil {
			return o.Status.State == reserved && o.Status.PowerState == on
		}
		return o.Status.State == available && o.Status.PowerState == off
	}}
}

// standing is how far a goal is.
type standing struct {
	have, want int
	says       string
	// missing is what is not so yet: objects, in the order of their names.
	missing []object
	// left counts what ought to be gone.
	left int
	// uuids are the system UUIDs of the servers that are so.
	uuids []string
	// stray names machines in another power state than the API server says.
	stray []string
}

func (s *standing) reached() bool { return s.have >= s.want && s.left == 0 && len(s.stray) == 0 }

func (s *standing) String() string {
	text := fmt.Sprintf("%d of %d %s", s.have, s.want, s.says)
	if s.left > 0 {
		text += fmt.Sprintf("; %d claims are still there", s.left)
	}
	if len(s.stray) > 0 {
		text += fmt.Sprintf("; %d machines differ from what the API says: %s", len(s.stray), strings.Join(first(s.stray), ", "))
	}
	return text
}

// stand looks at what the API server shows.
func (g *goal) stand(servers, claims map[string]object) standing {
	s := standing{want: g.want, says: g.says}
	objects := map[kind]map[string]object{kindServer: servers, kindClaim: claims}
	for _, o := range objects[g.of] {
		if !g.reached(&o) {
			if g.concerns == nil || g.concerns(&o) {
				s.missing = append(s.missing, o)
			}
			continue
		}
		s.have++
		if g.power != "" {
			s.uuids = append(s.uuids, strings.ToLower(o.Spec.SystemUUID))
		}
	}
	slices.SortFunc(s.missing, func(a, b object) int { return strings.Compare(a.key(), b.key()) })
	s.left = len(objects[g.none])
	return s
}

// compare looks at the machines of the servers that are as wanted: power is the state of each machine, by UUID.
func (s *standing) compare(want string, power map[string]string) {
	s.stray = nil
	for _, uuid := range s.uuids {
		switch state := power[uuid]; state {
		case want:
		case "":
			s.stray = append(s.stray, "no machine has the UUID "+uuid)
		default:
			s.stray = append(s.stray, "the machine with UUID "+uuid+" is "+state)
		}
	}
	slices.Sort(s.stray)
}

// shown is how many of many are named in a message.
const shown = 5

func first(all []string) []string {
	if len(all) <= shown {
		return all
	}
	return append(slices.Clone(all[:shown]), "...")
}

// describe says how an object stands.
func describe(o *object) string {
	parts := []string{o.key() + ":"}
	for _, field := range []struct{ name, value string }{
		{"state", o.Status.State}, {"power", o.Status.PowerState}, {"phase", o.Status.Phase}, {"claim", o.Spec.ServerClaimRef.key()},
		{"server", o.Spec.ServerRef.key()},
	} {
		if field.value != "" {
			parts = append(parts, field.name+" "+field.value+",")
		}
	}
	for _, c := range o.Status.Conditions {
		parts = append(parts, fmt.Sprintf("%s=%s (%s: %s)", c.Type, c.Status, c.Reason, c.Message))
	}
	if len(o.Status.Conditions) == 0 {
		parts = append(parts, "no conditions")
	}
	return strings.Join(parts, " ")
}
