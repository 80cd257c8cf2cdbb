// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/webhooks/review"
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
func checkStatus(c review.Change[v1alpha1.Server], f statusFacts, found *review.Findings) {
	if c.Created() || c.Deleted() {
		return
	}
	if !c.ByManager && !equality.Semantic.DeepEqual(c.Old.Status.Lifecycle, c.New.Status.Lifecycle) {
		found.Deny(field.Forbidden(field.NewPath("status", "lifecycle"), "only the manager writes it; leave it as it is stored"))
	}
	checkMove(c, f, found)
	if c.New.Status.State == v1alpha1.StateAvailable && c.Old.Status.State != v1alpha1.StateAvailable && isDirty(c.New) {
		found.Deny(field.Forbidden(statePath, "the server may hold somebody's data (mark Dirty) and is never offered before it was wiped"))
	}
}

// forced says that the manager records a move that somebody forced, to the state that was asked for.
func forced(c review.Change[v1alpha1.Server]) bool {
	lifecycle, operation := c.New.Status.Lifecycle, c.New.Status.Operation
	return c.ByManager && lifecycle != nil && lifecycle.Rule == v1alpha1.RuleForced &&
		operation != nil && pastRules(operation.Name) && operation.To == c.New.Status.State
}

// takenOver says that the manager records that another revision took the server over as a new entry, for which it finds its
// place from the initial state.
func takenOver(c review.Change[v1alpha1.Server]) bool {
	was, now := c.Old.Status.Lifecycle, c.New.Status.Lifecycle
	return c.ByManager && was != nil && now != nil && now.Rule == v1alpha1.RuleAdopted && now.Entry == was.Entry+1 && now.Revision != was.Revision
}

// voided says that the manager records the end of an entry for which two agents reported: the server begins anew, or goes to Error.
func voided(c review.Change[v1alpha1.Server], initial engine.State) bool {
	was, now, to := c.Old.Status.Lifecycle, c.New.Status.Lifecycle, c.New.Status.State
	return c.ByManager && was != nil && now != nil && now.Rule == v1alpha1.RuleEntryVoided && now.Entry == was.Entry+1 &&
		(to == v1alpha1.StateError || engine.State(to) == initial)
}

func checkMove(c review.Change[v1alpha1.Server], f statusFacts, found *review.Findings) {
	from, to := c.Old.Status.State, c.New.Status.State
	if from == to {
		return
	}
	if f.governing == nil {
		found.Deny(field.Forbidden(statePath, fmt.Sprintf(
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
	if (forced(c) || voided(c, lifecycle.Initial())) && lifecycle.Defines(engine.State(to)) {
		return
	}
	err := field.NotSupported(statePath, string(to), reachable(f.governing, from))
	err.Detail = fmt.Sprintf("policy revision %s has no rule that leads from %s to it; %s", f.revision, cmp.Or(string(from), "no state"), err.Detail)
	found.Deny(err)
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
func (l *serverRules) judgeStatus(c review.Change[v1alpha1.Server], found *review.Findings) {
	var f statusFacts
	if !c.Created() && !c.Deleted() && c.Old.Status.State != c.New.Status.State {
		f = l.governing(c.New.Status.Lifecycle, c.Old.Status.Lifecycle)
	}
	checkStatus(c, f, found)
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
