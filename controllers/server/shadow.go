// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"runtime/debug"

	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/bundle"
)

// compare has every shadow decide on the facts of a decision, and tells the difference. Whatever a shadow says or does,
// the decision stays as it is.
func (v *visit) compare(decided engine.Decision) {
	if v.Shadows == nil {
		return
	}
	for _, b := range v.Bundles.Shadows() {
		if b.Revision.Name != v.bundle.Revision.Name {
			v.compareWith(b, &decided)
		}
	}
}

// compareWith evaluates one shadow. The facts are those that the decision was made on, but for the settings that a policy
// knows of itself. A shadow that panics is one that would halt.
func (v *visit) compareWith(shadow *bundle.Bundle, decided *engine.Decision) {
	defer func() {
		if cause := recover(); cause != nil {
			logf.Log.WithName("shadow").Error(fmt.Errorf("panic: %v", cause), "a shadow could not be evaluated; nothing else is touched by that",
				"revision", shadow.Revision.Name, "server", v.server.Name, "stack", string(debug.Stack()))
		}
	}()
	got := shadowDecision(shadow, v)
	v.Shadows.Observe(shadow.Revision.Name, v.server.Name, decided, &got, v.now)
}

// shadowDecision is what a shadow decides, a halt where it panics.
func shadowDecision(shadow *bundle.Bundle, v *visit) (got engine.Decision) {
	facts, state := v.facts, engine.State(v.server.Status.State)
	if shadow.Settings.Sanitization != facts.Policy.Sanitization {
		own := *facts
		own.Policy.Sanitization = shadow.Settings.Sanitization
		facts = &own
	}
	defer func() {
		if cause := recover(); cause != nil {
			got = engine.Decision{From: state, To: state,
				Halt: &engine.Halt{Cause: engine.HaltGuardError, Rule: "Panic", Message: fmt.Sprintf("the revision panics: %v", cause)}}
		}
	}()
	return shadow.Lifecycle.Decide(facts)
}
