// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"fmt"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/lifecycle"
)

// AwaitsFirstWord is the decision about a server whose BMC was not asked yet, where the answer decides.
var AwaitsFirstWord = engine.Decision{Message: "waits for the first word of its BMC"}

// Begin decides where the lifecycle of a server without one begins, in the state that its facts name. Heard says that its BMC was
// asked: a BMC that cannot be reached has answered too.
func Begin(l *lifecycle.Lifecycle, f *Facts, heard bool) engine.Decision {
	if f.Lifecycle.State != "" {
		return Adopt(l, f, heard)
	}
	if !heard {
		return AwaitsFirstWord
	}
	return l.Start(f)
}

// Adopt decides what becomes of a server that another operator of this API, or another revision, left in a state. The server keeps
// the state where the safety rules allow it. Where they do not, it finds its place from the initial state, if a rule leads there from
// the stored state: admission accepts no other move.
func Adopt(l *lifecycle.Lifecycle, f *Facts, heard bool) engine.Decision {
	left := engine.State(f.Lifecycle.State)
	state := left
	if target, ok := l.Migrates(state); ok {
		state = target
	}
	if !l.Defines(state) {
		return engine.Decision{From: state, To: state, Halt: &engine.Halt{Cause: engine.HaltUnknownState,
			Message: fmt.Sprintf("the policy defines no state %q and does not migrate it", state)}}
	}
	d := l.Enter(f, state)
	if d.Halt != nil && d.Halt.Cause == engine.HaltSafety && l.HasEdge(left, l.Initial()) {
		if !heard {
			return AwaitsFirstWord
		}
		d = l.Enter(f, l.Initial())
	}
	d.Rule = v1alpha1.RuleAdopted
	return d
}
