// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/metalaw/metalaw/engine/placement"
	"github.com/metalaw/metalaw/engine/selection"
	"github.com/metalaw/metalaw/policies/index"
)

// equivalenceClass is the open claims that ask the hard contract for the same.
type equivalenceClass struct {
	key  string
	spec selection.ClaimSpec
	// placed is what they ask for beside it. namespace is theirs where they are spread; else those of several may share a class.
	placed    *placement.Placement
	namespace string
	members   map[types.UID]*openClaim
	// offered says that a server came up, since the last cycle, that could satisfy them.
	offered bool
}

// equivalenceClasses are the classes, so that a server is compared once with all claims that ask for the same.
type equivalenceClasses struct {
	byKey map[string]*equivalenceClass
	// byServer has them by the server that they name; those that name none are under the empty name.
	byServer map[string]map[*equivalenceClass]struct{}
	// spread are those whose claims are spread.
	spread map[*equivalenceClass]struct{}
}

func newEquivalenceClasses() equivalenceClasses {
	return equivalenceClasses{byKey: map[string]*equivalenceClass{}, byServer: map[string]map[*equivalenceClass]struct{}{},
		spread: map[*equivalenceClass]struct{}{}}
}

// join puts a claim into the class of those that ask for the same.
func (k *equivalenceClasses) join(uid types.UID, w *openClaim) {
	key := w.ask.Class()
	c := k.byKey[key]
	if c == nil {
		c = &equivalenceClass{key: key, spec: w.ask.Spec, placed: w.ask.Placement, members: map[types.UID]*openClaim{}}
		if w.ask.Placement.Spread() != nil {
			c.namespace = w.claim.Namespace
			k.spread[c] = struct{}{}
		}
		k.byKey[key] = c
		named := k.byServer[c.spec.ServerRef]
		if named == nil {
			named = map[*equivalenceClass]struct{}{}
			k.byServer[c.spec.ServerRef] = named
		}
		named[c] = struct{}{}
	}
	c.members[uid] = w
	w.class = c
}

// leave takes a claim out of its class.
func (k *equivalenceClasses) leave(uid types.UID, c *equivalenceClass) {
	if c == nil {
		return
	}
	delete(c.members, uid)
	if len(c.members) > 0 {
		return
	}
	delete(k.byKey, c.key)
	delete(k.spread, c)
	delete(k.byServer[c.spec.ServerRef], c)
	if len(k.byServer[c.spec.ServerRef]) == 0 {
		delete(k.byServer, c.spec.ServerRef)
	}
}

// offer marks the classes that a server could satisfy, and says whether there are any.
func (k *equivalenceClasses) offer(e *index.Entry) bool {
	if !e.IsFree() {
		return false
	}
	found := false
	for _, name := range []string{"", e.Name()} {
		for c := range k.byServer[name] {
			if e.Eligible(c.spec) && c.accepts(e) {
				c.offered, found = true, true
			}
		}
	}
	return found
}

// accepts says whether the placement of the class accepts a server, whatever the counts of its spread are.
func (c *equivalenceClass) accepts(e *index.Entry) bool {
	return c.placed == nil || c.placed.Brief(e.Candidate().Facts()).Accepted
}
