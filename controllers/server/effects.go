// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/controllers/server/power"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/policies"
)

// Apply implements loop.Scope.
func (v *scope) Apply(ctx context.Context, effect engine.Effect) loop.Progress {
	if v.held {
		return loop.Waiting(power.WaitsForReading, "a fresh reading of the BMC", 0)
	}
	if asClaimed[effect.Name] && v.claim != nil && v1alpha1.Ignored(v.claim) {
		return loop.Holds() // a claim that is to be left alone asks for nothing
	}
	return v.carryOut(ctx, effect)
}

// Await implements loop.Awaiter.
func (v *scope) Await(a engine.Awaited) loop.Progress {
	if p, ok := v.powerKnown(); !ok {
		return p
	}
	return loop.Waiting(a.Rule, a.Message, v.pollInterval())
}

// asClaimed are the effects that do what a claim asks for.
var asClaimed = map[string]bool{policies.EffectPowerAsClaimed: true, policies.EffectBootAsClaimed: true}

// carryOut has one line for each effect of the vocabulary.
func (v *scope) carryOut(ctx context.Context, effect engine.Effect) loop.Progress {
	switch effect.Name {
	case engine.MarkEffect:
		return v.storeMark(ctx, effect.Param("mark").Text())
	case policies.EffectPowerOff:
		return powerShell{v: v}.powerOff(ctx, effect)
	case policies.EffectPowerOn:
		return powerShell{v: v}.powerOn(ctx, effect)
	case policies.EffectPowerAsClaimed:
		return powerShell{v: v}.powerAsClaimed(ctx, effect)
	case policies.EffectBootProbe:
		return v.bootAgent(ctx, v.probeBoot())
	case policies.EffectBootWipe:
		return v.bootAgent(ctx, v.wipeBoot())
	case policies.EffectBootAsClaimed:
		return v.bootAsClaimed(ctx)
	case policies.EffectClearBoot:
		return v.clearBoot(ctx)
	case policies.EffectReleaseClaim:
		return v.releaseClaim(ctx)
	case policies.EffectForgetHolder:
		return v.forgetHolder(ctx)
	case policies.EffectResetAsAsked:
		return v.resetAsAsked(ctx)
	case policies.EffectLocate:
		return v.locate(ctx, effect)
	case policies.EffectApplyBootOrder:
		return v.applyBootOrder(ctx)
	case policies.EffectMaintain:
		return loop.Holds() // a maintenance is granted by its own controller, which brings what it asks for
	}
	return loop.Failing("UnknownEffect", "this version cannot carry out "+effect.Name, 0)
}
