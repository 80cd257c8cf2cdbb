// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"maps"
	"slices"

	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/diag"
)

// findPaths follows the rules that can fire: from the initial state, and from where servers come otherwise.
func (m *model) findPaths() {
	m.paths = map[engine.State][]Step{m.ast.Initial: nil}
	for queue := []engine.State{m.ast.Initial}; len(queue) > 0; queue = queue[1:] {
		for i := range m.views[queue[0]].exits {
			w := &m.views[queue[0]].exits[i]
			if _, known := m.paths[w.To]; known || !w.leads {
				continue
			}
			m.paths[w.To] = append(slices.Clone(m.paths[queue[0]]), Step{queue[0], w.Rule, w.To})
			queue = append(queue, w.To)
		}
	}
	from := map[engine.State]bool{m.ast.Initial: true}
	for _, to := range m.ast.Migrate {
		from[to] = true
	}
	for s := range m.words.Entries {
		from[s] = true
	}
	m.reached = m.closure(from, func(reached map[engine.State]bool, from *view, w *wayOut) (engine.State, bool) {
		return w.To, reached[from.Name]
	})
}

// closure adds to some states what a rule adds for each exit that can fire, until that adds no more.
func (m *model) closure(
	of map[engine.State]bool, rule func(of map[engine.State]bool, from *view, w *wayOut) (added engine.State, adds bool),
) map[engine.State]bool {
	for again := true; again; {
		again = false
		for _, v := range m.order {
			for i := range v.exits {
				if s, adds := rule(of, v, &v.exits[i]); v.exits[i].leads && adds && !of[s] {
					of[s], again = true, true
				}
			}
		}
	}
	return of
}

// checkGraph looks for states that no rule leads to, and for states that no rule leads out of.
func (c *checker) checkGraph() {
	back := c.toStable()
	for _, v := range c.order {
		_, byRules := c.paths[v.Name]
		entry, adopted := c.words.Entries[v.Name]
		switch {
		case byRules || slices.Contains(slices.Collect(maps.Values(c.ast.Migrate)), v.Name):
		case !c.reached[v.Name]:
			c.add(diag.Error, CodeUnreachable, v.At, string(v.Name), nil, "add an exit that leads to it, or remove it",
				"no rule that can fire leads to %s", v.Name)
		case adopted:
			c.add(diag.Warning, CodeUnreachable, v.At, string(v.Name), nil, "add an exit that leads to it, if servers of your own shall come there",
				"no rule that can fire leads to %s: only a server that was %s is in it", v.Name, entry)
		}
		switch {
		case slices.ContainsFunc(v.exits, func(w wayOut) bool { return !w.Interrupt && c.unserved(v, &w) }):
			// the rule is reported, and correcting it corrects this
		case !slices.ContainsFunc(v.exits, func(w wayOut) bool { return w.leads }):
			c.add(diag.Error, CodeDeadEnd, v.At, string(v.Name), nil, "add an exit, for example one that an operation asks for",
				"nothing leads out of %s: a server that comes there stays until it is forced out", v.Name)
		case !v.Stable && !back[v.Name]:
			c.add(diag.Error, CodeDeadEnd, v.At, string(v.Name), nil, "add an exit that leads to a stable state",
				"no way from %s leads to a stable state: a server that comes there never rests", v.Name)
		}
	}
}

// toStable is the states from which rules that can fire lead to a stable one.
func (m *model) toStable() map[engine.State]bool {
	stable := map[engine.State]bool{}
	for _, v := range m.order {
		stable[v.Name] = v.Stable
	}
	return m.closure(stable, func(back map[engine.State]bool, from *view, w *wayOut) (engine.State, bool) {
		return from.Name, back[w.To]
	})
}
