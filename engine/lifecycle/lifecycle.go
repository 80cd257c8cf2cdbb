// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"cmp"
	"maps"
	"slices"

	"github.com/metalaw/metalaw/engine"
)

// Lifecycle is a compiled lifecycle. It is immutable and safe for concurrent use.
type Lifecycle struct {
	*language

	ast    AST
	states map[engine.State]*State
	says   map[string]string
}

// Initial is the state in which a server without a state starts.
func (l *Lifecycle) Initial() engine.State { return l.ast.Initial }

// States lists the states in the order in which the author wrote them.
func (l *Lifecycle) States() []engine.State {
	names := make([]engine.State, len(l.ast.States))
	for i, st := range l.ast.States {
		names[i] = st.Name
	}
	return names
}

// Defines says whether the lifecycle has the state.
func (l *Lifecycle) Defines(s engine.State) bool {
	_, ok := l.states[s]
	return ok
}

// state is empty where the lifecycle does not define it.
func (l *Lifecycle) state(s engine.State) *State { return cmp.Or(l.states[s], &State{}) }

// Stable says whether a server may rest in the state; false for a state that the lifecycle does not have.
func (l *Lifecycle) Stable(s engine.State) bool {
	return l.state(s).Stable
}

// Says is the message of a server that the rule has led to where it is: cause and remedy; empty where nothing is
// said of the rule.
func (l *Lifecycle) Says(rule string) string { return l.says[rule] }

// Means is the sentence that the author gave the state; empty for a state that the lifecycle does not have.
func (l *Lifecycle) Means(s engine.State) string {
	return l.state(s).Means
}

// Accepts says whether the state can use an operation.
func (l *Lifecycle) Accepts(s engine.State, operation string) bool {
	return slices.Contains(l.state(s).Operations, operation)
}

// Ensures says whether the state ensures an effect at some time, not only now.
func (l *Lifecycle) Ensures(s engine.State, effect string) bool {
	return slices.ContainsFunc(l.state(s).Ensure, func(e *Ensured) bool { return e.Effect.Name == effect })
}

// Migrates returns the state that takes the place of one that the lifecycle has dropped.
func (l *Lifecycle) Migrates(s engine.State) (engine.State, bool) {
	to, ok := l.ast.Migrate[s]
	return to, ok
}

// HasEdge says whether some rule leads from one state to another. From an empty state the initial state, every state that
// the initial state's exits lead to, and those that are resumed can be reached.
func (l *Lifecycle) HasEdge(from, to engine.State) bool {
	if from == "" {
		if to == l.ast.Initial || (l.states[to] != nil && slices.Contains(slices.Collect(maps.Values(l.vocabulary.Resumes)), to)) {
			return true
		}
		from = l.ast.Initial
	}
	if target, ok := l.ast.Migrate[from]; ok && target == to {
		return true
	}
	return slices.ContainsFunc(l.state(from).Exits, func(e *Exit) bool { return e.To == to })
}

// Edge is one way out of a state.
type Edge struct {
	From, To  engine.State
	Rule      string
	When      string
	After     string
	Retry     bool
	Clears    []string
	Interrupt bool
}

// Edges lists every way out of every state, interrupts first, in the order in which they are tried.
func (l *Lifecycle) Edges() []Edge {
	var edges []Edge
	for _, st := range l.ast.States {
		for _, e := range st.Exits {
			edge := Edge{From: st.Name, To: e.To, Rule: e.Rule, Retry: e.Retry, Clears: e.Clears, Interrupt: e.Interrupt}
			if e.When != nil {
				edge.When = e.When.Source
			}
			if e.After != nil {
				edge.After = l.deadlineText(e.After)
			}
			edges = append(edges, edge)
		}
	}
	return edges
}

func (l *Lifecycle) deadlineText(d *Deadline) string {
	if d.Fact >= 0 {
		return l.vocabulary.Facts[d.Fact].Name
	}
	return d.Literal.String()
}
