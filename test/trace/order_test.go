// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

// orders are which kinds of events came before which, in each kind of entry.
type orders map[string]relation

// relation is what was the same in all entries of one kind.
type relation struct {
	// before holds pairs of events of which the first came first.
	before map[[2]string]bool
	// guards are what was read before each write to the BMC.
	guards map[string][]string
}

// orders compares the entries of all servers. A pair that came in both orders is left out.
func (r *recorder) orders() orders {
	r.mu.Lock()
	defer r.mu.Unlock()
	got := orders{}
	for _, w := range r.servers {
		for _, e := range w.entries {
			if _, known := got[e.key]; !known {
				got[e.key] = relation{map[[2]string]bool{}, map[string][]string{}}
			}
			got[e.key].add(e)
		}
	}
	for _, relation := range got {
		both := map[[2]string]bool{}
		for pair := range relation.before {
			both[pair] = relation.before[[2]string{pair[1], pair[0]}]
		}
		maps.DeleteFunc(relation.before, func(pair [2]string, _ bool) bool { return both[pair] })
	}
	return got
}

func (r relation) add(e *entry) {
	for a, at := range e.first {
		for b, then := range e.first {
			if at < then && !varies(a, b) {
				r.before[[2]string{a, b}] = true
			}
		}
	}
	for kind, read := range e.guards {
		if former, known := r.guards[kind]; known {
			read = slices.DeleteFunc(slices.Clone(read), func(one string) bool { return !slices.Contains(former, one) })
		}
		r.guards[kind] = read
	}
}

// lines tells the orders in words.
func (o orders) lines() []string {
	var all []string
	for key, r := range o {
		for pair := range r.before {
			all = append(all, fmt.Sprintf("%s: %s, then %s", key, pair[0], pair[1]))
		}
		for kind, read := range r.guards {
			all = append(all, fmt.Sprintf("%s: live read of %s, then each %s", key, strings.Join(read, ", "), kind))
		}
	}
	slices.Sort(all)
	return all
}

// varies says that the order of two kinds of events may differ. People decide when they release a claim, ask for an operation or
// change the power that a claim asks for. The finalizer comes with whichever write of the main part is next; that the lifecycle
// is stored before it is checked for itself.
func varies(a, b string) bool {
	if a == "finalizer stored" || b == "finalizer stored" {
		return true
	}
	if people[a] || people[b] {
		return !served[[2]string{a, b}] && !served[[2]string{b, a}]
	}
	return power(a) != "" && power(b) != "" && power(a) != power(b)
}

// people are the events that they decide on, and served what follows from one.
var (
	people = map[string]bool{"claim named": true, "holder named": true, "release stored": true, "operation stored": true,
		"BMC Reset ForceRestart": true, "BMC Reset GracefulRestart": true, "BMC Reset PowerCycle": true}
	served = map[[2]string]bool{{"operation stored", "BMC Reset ForceRestart"}: true, {"operation stored", "BMC Reset GracefulRestart"}: true,
		{"operation stored", "BMC Reset PowerCycle"}: true}
)

// power is the power change that an event is about.
func power(kind string) string {
	if kind == "BMC boot override" {
		return string(v1alpha1.PowerActionOn)
	}
	for _, action := range []v1alpha1.PowerAction{v1alpha1.PowerActionOn, v1alpha1.PowerActionForceOff, v1alpha1.PowerActionGracefulShutdown} {
		if kind == "request "+string(action)+" stored" || kind == "BMC Reset "+string(action) {
			return string(action)
		}
	}
	return ""
}
