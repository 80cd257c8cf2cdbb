// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"maps"
	"slices"

	"github.com/metalaw/metalaw/engine"
)

// Marks lists every mark that a server may have under this lifecycle, sorted: the engine's own and those that states set.
func (l *Lifecycle) Marks() []string {
	words := slices.Collect(maps.Keys(l.vocabulary.Marks))
	for _, st := range l.states {
		words = append(words, st.Marks...)
	}
	slices.Sort(words)
	return slices.Compact(words)
}

// Invariants lists the names of the bundle's own invariants, in the order in which the author wrote them.
func (l *Lifecycle) Invariants() []string {
	var names []string
	for _, i := range l.ast.Invariants {
		names = append(names, i.Rule)
	}
	return names
}

// EnsuredEffects lists the effects that a state ensures at some time, in order; an effect that it lists twice is named once.
func (l *Lifecycle) EnsuredEffects(s engine.State) []string {
	var names []string
	for _, e := range l.state(s).Ensure {
		if !slices.Contains(names, e.Effect.Name) {
			names = append(names, e.Effect.Name)
		}
	}
	return names
}
