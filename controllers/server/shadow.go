// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"reflect"
	"runtime/debug"

	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/policies"
)

// compare has every shadow decide on the facts of a decision, and tells the difference. Whatever a shadow says or does,
// the decision stays as it is.
func (v *scope) compare(decided engine.Decision) {
	if v.Shadows == nil || v.seen.Bundle == nil {
		return
	}
	for _, b := range v.Bundles.Shadows() {
		if b.Revision.Name != v.seen.Bundle.Revision.Name {
			v.compareWith(b, &decided)
		}
	}
}

// compareWith evaluates one shadow. The facts are made of what the decision's were made of, with the shadow's own settings. A
// shadow that panics is one that would halt.
func (v *scope) compareWith(shadow *bundle.Bundle, decided *engine.Decision) {
	defer func() {
		if cause := recover(); cause != nil {
			logf.Log.WithName("shadow").Error(fmt.Errorf("panic: %v", cause), "a shadow could not be evaluated; nothing else is touched by that",
				"revision", shadow.Revision.Name, "server", v.server.Name, "stack", string(debug.Stack()))
		}
	}()
	got := shadowDecision(shadow, v)
	v.Shadows.Observe(shadow.Revision.Name, v.server.Name, decided, &got, v.seen.Now)
}

// shadowDecision is what a shadow decides, a halt where it panics.
func shadowDecision(shadow *bundle.Bundle, v *scope) (got engine.Decision) {
	state := engine.State(v.server.Status.State)
	defer func() {
		if cause := recover(); cause != nil {
			got = engine.Decision{From: state, To: state,
				Halt: &engine.Halt{Cause: engine.HaltGuardError, Rule: "Panic", Message: fmt.Sprintf("the revision panics: %v", cause)}}
		}
	}()
	return shadow.Lifecycle.Decide(v.factsUnder(shadow.Settings))
}

// factsUnder are the facts as the settings of another policy make them: whether a release counts yet, a report without a
// token, or a machine that was found running.
func (v *scope) factsUnder(settings bundle.Settings) *policies.Facts {
	if v.NoReleaseGrace {
		settings.ReleaseGrace = 0
	}
	settings.Maintenance = v.seen.Settings.Maintenance // no fact reads it, and compiled conditions are never equal
	if reflect.DeepEqual(settings, v.seen.Settings) {
		return v.seen.Facts
	}
	o := v.seen.Observation
	o.Settings = settings
	return o.Facts()
}
