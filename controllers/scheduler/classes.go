// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/metalaw/metalaw/engine/placement"
	"github.com/metalaw/metalaw/engine/selection"
	"github.com/metalaw/metalaw/policies/index"
)

// class is the open claims that ask the hard contract for the same.
type class struct {
	key  string
	spec selection.ClaimSpec
	// placed is what they ask for beside it. namespace is theirs where they are spread; else those of several may share a class.
	placed    *placement.Placement
	namespace string
	members   map[types.UID]*openClaim
	// offered says that a server came up, since the last pass, that could satisfy them.
	offered bool
	// home is the set in which the class is found.
	home map[*class]struct{}
}

// label is a key with its value.
type label struct{ key, value string }

// classes finds the claims that a server could satisfy without a look at the others: a class is kept under the server that it
// names, or under one of the labels that it selects, and only one that selects no label is looked at for every server.
type classes struct {
	byKey    map[string]*class
	byServer map[string]map[*class]struct{}
	byLabel  map[label]map[*class]struct{}
	anywhere map[*class]struct{}
	// spread are those that keep apart from other claims.
	spread map[*class]struct{}
}

func newClasses() classes {
	return classes{byKey: map[string]*class{}, byServer: map[string]map[*class]struct{}{}, byLabel: map[label]map[*class]struct{}{},
		anywhere: map[*class]struct{}{}, spread: map[*class]struct{}{}}
}

// join puts a claim into the class of those that ask for the same.
func (k *classes) join(uid types.UID, w *openClaim) {
	key, namespace := w.ask.Class(), ""
	if w.ask.Placement.Spread() != nil || w.ask.Gang() != nil {
		namespace = w.claim.Namespace
	}
	c := k.byKey[key]
	if c == nil {
		c = &class{key: key, spec: w.ask.Spec, placed: w.ask.Placement, namespace: namespace, members: map[types.UID]*openClaim{}}
		if w.ask.Placement.Spread() != nil {
			k.spread[c] = struct{}{}
		}
		c.home = k.home(w.ask.Spec)
		c.home[c] = struct{}{}
		k.byKey[key] = c
	}
	c.members[uid] = w
	w.class = c
}

// home is where a class is to be found: under the label that the fewest others are found under.
func (k *classes) home(spec selection.ClaimSpec) map[*class]struct{} {
	if spec.ServerRef != "" {
		return under(k.byServer, spec.ServerRef)
	}
	if spec.Selector == nil || len(spec.Selector.MatchLabels) == 0 {
		return k.anywhere
	}
	var best label
	least := -1
	for key, value := range spec.Selector.MatchLabels {
		if n := len(k.byLabel[label{key, value}]); least < 0 || n < least {
			best, least = label{key, value}, n
		}
	}
	return under(k.byLabel, best)
}

func under[K comparable](all map[K]map[*class]struct{}, key K) map[*class]struct{} {
	if all[key] == nil {
		all[key] = map[*class]struct{}{}
	}
	return all[key]
}

// leave takes a claim out of its class.
func (k *classes) leave(uid types.UID, c *class) {
	if c == nil {
		return
	}
	delete(c.members, uid)
	if len(c.members) > 0 {
		return
	}
	delete(k.byKey, c.key)
	delete(c.home, c)
	delete(k.spread, c)
	if ref := c.spec.ServerRef; ref != "" && len(k.byServer[ref]) == 0 {
		delete(k.byServer, ref)
	}
	if c.spec.Selector == nil {
		return
	}
	for key, value := range c.spec.Selector.MatchLabels {
		if l := (label{key, value}); len(k.byLabel[l]) == 0 {
			delete(k.byLabel, l)
		}
	}
}

// offer marks the classes that a server could satisfy, and says whether there are any.
func (k *classes) offer(e *index.Entry) bool {
	if !e.IsFree() {
		return false
	}
	found := false
	look := func(all map[*class]struct{}) {
		for c := range all {
			if e.Eligible(c.spec) && c.accepts(e) {
				c.offered, found = true, true
			}
		}
	}
	look(k.byServer[e.Name()])
	look(k.anywhere)
	for key, value := range e.State.Labels {
		look(k.byLabel[label{key, value}])
	}
	return found
}

// accepts says whether the placement of the class accepts a server, whatever the counts of its spread are.
func (c *class) accepts(e *index.Entry) bool {
	return c.placed == nil || c.placed.Accepts(e.Candidate().Facts())
}
