// SPDX-License-Identifier: Apache-2.0

package gates

import (
	"fmt"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/lifecycle"
	"github.com/metalaw/metalaw/policies"
)

// entryVoided ends an entry for which two agents with different keys reported: nothing of it counts, and its token is known to another.
// The server begins once anew from the initial state. After a second time in a row it goes to Error. An agent that may still erase is
// left its power until it is silent.
func (r *run) entryVoided() bool {
	l := r.Observation.Server.Status.Lifecycle
	if l == nil || r.Forced != nil || r.Governance.Resting != nil || r.facts.Wipe.Running ||
		!policies.EntryVoided(r.Observation.Inventory, l.Entry) {
		return false
	}
	governs := r.Governance.Bundle.Lifecycle
	to, next := governs.Initial(), "the server is booted once more, with a new token"
	if again(governs, l.History) {
		to, next = engine.State(v1alpha1.StateError), "it is the second time in a row. Find out who has the credential of this server, then retry"
	}
	if to == r.d.From || !governs.Defines(to) {
		return false
	}
	d := governs.Enter(r.facts, to)
	if d.Halt != nil {
		return false
	}
	d.From, d.Rule, d.Revision = r.d.From, v1alpha1.RuleEntryVoided, r.d.Revision
	d.Message = fmt.Sprintf("Two agents with different keys reported for entry %d, so that nothing of it counts; %s.", l.Entry, next)
	r.d = d
	return true
}

// again says that the way of a server to its present entry began with a voided one, since it last came from a state in which it rests.
func again(l *lifecycle.Lifecycle, history []v1alpha1.LifecycleMove) bool {
	for i := len(history) - 1; i >= 0; i-- {
		move := &history[i]
		switch {
		case move.Rule == v1alpha1.RuleEntryVoided && move.To != v1alpha1.StateError:
			return true
		case move.From == "" || l.Stable(engine.State(move.From)):
			return false
		}
	}
	return false
}
