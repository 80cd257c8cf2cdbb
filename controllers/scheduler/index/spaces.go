// SPDX-License-Identifier: Apache-2.0

package index

import (
	"maps"

	"github.com/metalaw/metalaw/engine/selection"
)

// space is where the claims of one namespace have servers.
type space struct {
	byZone, byRack map[string]int64
	// given says that the maps were given away, and are copied before they change.
	given bool
}

// countIn counts a server that a claim has, for the claim's namespace: that which is written, or else the one assumed.
func (x *Index) countIn(e *Entry, by int64) {
	namespace := e.Claim().Namespace
	if namespace == "" {
		namespace = x.assumedIn[e.Name()]
	}
	if namespace == "" || e.Zone == "" && e.Rack == "" {
		return
	}
	s := x.spaces[namespace]
	switch {
	case s == nil:
		s = &space{byZone: map[string]int64{}, byRack: map[string]int64{}}
		x.spaces[namespace] = s
	case s.given:
		s = &space{byZone: maps.Clone(s.byZone), byRack: maps.Clone(s.byRack)}
		x.spaces[namespace] = s
	}
	addTo(s.byZone, e.Zone, by)
	addTo(s.byRack, e.Rack, by)
	if len(s.byZone) == 0 && len(s.byRack) == 0 {
		delete(x.spaces, namespace)
	}
}

// CountsFor returns the counts for a policy that judges a claim of a namespace. The maps are not to be changed.
func (x *Index) CountsFor(namespace string, now int64) selection.Fleet {
	counts := x.Counts(now)
	x.mu.Lock()
	defer x.mu.Unlock()
	if s := x.spaces[namespace]; s != nil {
		s.given = true
		counts.NamespaceByZone, counts.NamespaceByRack = s.byZone, s.byRack
	}
	return counts
}
