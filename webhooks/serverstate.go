// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/bundle"
)

var statePath = field.NewPath("status", "state")

// statusFacts is what was looked up for a change of a Server's status.
type statusFacts struct {
	// revision names what governs the server, and governing is its content; nil where that cannot be loaded.
	revision  string
	governing *bundle.Bundle
}

// checkStatus: the state moves only along the lifecycle, whoever writes it, unless somebody forced the server and the
// manager records that; and the record of the lifecycle is the manager's alone.
func checkStatus(c change[v1alpha1.Server], f statusFacts) findings {
	var found findings
	if c.created() || c.deleted() {
		return found
	}
	if !c.byManager && !equality.Semantic.DeepEqual(c.old.Status.Lifecycle, c.new.Status.Lifecycle) {
		found.deny(field.Forbidden(field.NewPath("status", "lifecycle"), "only the manager writes it; leave it as it is stored"))
	}
	checkMove(c, f, &found)
	if c.new.Status.State == v1alpha1.StateAvailable && c.old.Status.State != v1alpha1.StateAvailable && marked(c.new, v1alpha1.MarkDirty) {
		found.deny(field.Forbidden(statePath, "the server may hold somebody's data (mark Dirty) and is never offered before it was wiped"))
	}
	return found
}

func marked(s *v1alpha1.Server, mark string) bool {
	return s.Status.Lifecycle != nil && slices.Contains(s.Status.Lifecycle.Marks, mark)
}

// forced says that the manager records a move that somebody forced, to the state that was asked for.
func forced(c change[v1alpha1.Server]) bool {
	lifecycle, operation := c.new.Status.Lifecycle, c.new.Status.Operation
	return c.byManager && lifecycle != nil && lifecycle.Rule == v1alpha1.RuleForced &&
		operation != nil && pastRules(operation.Name) && operation.To == c.new.Status.State
}

// takenOver says that the manager records that another revision took the server over as a new entry, for which it finds its
// place from the initial state.
func takenOver(c change[v1alpha1.Server]) bool {
	was, now := c.old.Status.Lifecycle, c.new.Status.Lifecycle
	return c.byManager && was != nil && now != nil && now.Rule == v1alpha1.RuleAdopted && now.Entry == was.Entry+1 && now.Revision != was.Revision
}

func checkMove(c change[v1alpha1.Server], f statusFacts, found *findings) {
	from, to := c.old.Status.State, c.new.Status.State
	if from == to {
		return
	}
	if f.governing == nil {
		found.deny(field.Forbidden(statePath, fmt.Sprintf(
			"policy revision %s, which governs the server, cannot be loaded; no move can be checked against it", f.revision)))
		return
	}
	lifecycle := f.governing.Lifecycle
	if lifecycle.HasEdge(engine.State(from), engine.State(to)) {
		return
	}
	// A server that comes with a claim and without a state begins in Reserved, whatever else the lifecycle says.
	if from == "" && to == v1alpha1.StateReserved && lifecycle.Defines(engine.State(to)) {
		return
	}
	if takenOver(c) && engine.State(to) == lifecycle.Initial() {
		return
	}
	if forced(c) && lifecycle.Defines(engine.State(to)) {
		return
	}
	err := field.NotSupported(statePath, string(to), reachable(f.governing, from))
	err.Detail = fmt.Sprintf("policy revision %s has no rule that leads from %s to it; %s", f.revision, named(from), err.Detail)
	found.deny(err)
}

func named(s v1alpha1.ServerState) string {
	if s == "" {
		return "no state"
	}
	return string(s)
}

// reachable lists where a state leads, sorted.
func reachable(b *bundle.Bundle, from v1alpha1.ServerState) []string {
	var all []string
	for _, to := range b.Lifecycle.States() {
		if b.Lifecycle.HasEdge(engine.State(from), to) || (from == "" && to == engine.State(v1alpha1.StateReserved)) {
			all = append(all, string(to))
		}
	}
	slices.Sort(all)
	return all
}

// judgeStatus finds the revision that governs the server after the change: a move is decided by the revision that it
// records, so that a halted server can adopt another one.
func (l *serverRules) judgeStatus(c change[v1alpha1.Server]) findings {
	var f statusFacts
	if !c.created() && !c.deleted() && c.old.Status.State != c.new.Status.State {
		f = l.governing(c.new.Status.Lifecycle, c.old.Status.Lifecycle)
	}
	return checkStatus(c, f)
}

func (l *serverRules) governing(records ...*v1alpha1.LifecycleStatus) statusFacts {
	for _, record := range records {
		if record != nil && record.Revision != "" {
			b, _ := l.bundles.Revision(record.Revision)
			return statusFacts{revision: record.Revision, governing: b}
		}
	}
	b := l.bundles.Active()
	return statusFacts{revision: b.Revision.Name, governing: b}
}
