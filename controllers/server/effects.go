// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"time"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/controllers/server/gates"
	"github.com/metalaw/metalaw/controllers/server/said"
	"github.com/metalaw/metalaw/controllers/server/storage"
	"github.com/metalaw/metalaw/controllers/trigger"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/policies"
)

// effectShell makes the effects of a decision hold.
type effectShell struct{ *scope }

// Apply implements loop.Scope.
func (v *scope) Apply(ctx context.Context, _ *gates.Output) loop.Outcome {
	d := custodyShell{v}.dirtiedByMove(ctx, gateShell{v}.settle())
	d, outcome := custodyShell{v}.proven(ctx, d)
	if outcome.Settled() {
		outcome = effectShell{v}.applyEffects(ctx, d)
	}
	err := errors.Join(operationShell{v}.attest(ctx), operationShell{v}.prove(ctx), custodyShell{v}.noteRivals(ctx),
		said.Keep(ctx, v.Client, v.server, v.inventory, custodyShell{v}.writeInventory))
	if err != nil && outcome.Settled() {
		outcome.Effect, outcome.Progress = v1alpha1.OperationAttestDisk, conflictOrBroken(err)
	} else if err != nil {
		v.wakeIn(fastestPoll)
	}
	v.wakeIn(v.Storage.Look(ctx, storage.Subject{Server: v.server, Inventory: v.inventory,
		Target: v.target, TargetErr: v.targetErr, Want: v.want()}))
	v.Record(d, outcome)
	outcome.Again = trigger.Earlier(d.WakeAfter, v.out.wake)
	if d.Moves() {
		outcome.Again = time.Millisecond // the state entered has effects of its own
	}
	outcome.MayWait = v.mayWait()
	outcome.Reports = []func(context.Context){v.report}
	return outcome
}

// applyEffects makes the effects of a decision hold that neither moves nor halts, up to one that waits for a safety rule.
func (v effectShell) applyEffects(ctx context.Context, d engine.Decision) loop.Outcome {
	if d.Moves() || d.Halt != nil {
		return loop.Outcome{}
	}
	outcome := loop.InOrder(d.Effects, func(e engine.Effect) string { return e.Name },
		func(e engine.Effect) loop.Progress { return v.carryOut(ctx, e) })
	if outcome.Settled() && d.Awaits != nil {
		outcome.Effect, outcome.Progress = d.Awaits.Effect, v.await(*d.Awaits)
	}
	return outcome
}

// await waits for a safety rule, on word of the machine.
func (v effectShell) await(a engine.Awaited) loop.Progress {
	if a.Rule == policies.RuleNoRebootWithoutConsent {
		return loop.Waiting(a.Rule, a.Message, 0) // no word of the machine ends that
	}
	if p, ok := v.powerKnown(); !ok {
		return p
	}
	return loop.Waiting(a.Rule, a.Message, v.pollInterval())
}

// asClaimed are the effects that do what a claim asks for.
var asClaimed = map[string]bool{policies.EffectPowerAsClaimed: true, policies.EffectBootAsClaimed: true}

// carryOut has one line for each effect of the vocabulary.
func (v effectShell) carryOut(ctx context.Context, effect engine.Effect) loop.Progress { //nolint:gocyclo // one line for each effect
	if asClaimed[effect.Name] && v.claim != nil && v1alpha1.Ignored(v.claim) {
		return loop.Holds() // a claim that is to be left alone asks for nothing
	}
	switch effect.Name {
	case engine.MarkEffect:
		return custodyShell(v).storeMark(ctx, effect.Param("mark").Text())
	case policies.EffectPowerOff:
		return powerShell{scope: v.scope}.powerOff(ctx, effect)
	case policies.EffectPowerOn:
		return powerShell{scope: v.scope}.powerOn(ctx, effect)
	case policies.EffectPowerAsClaimed:
		return powerShell{scope: v.scope}.powerAsClaimed(ctx, effect)
	case policies.EffectBootProbe:
		return bootShell(v).agent(ctx, bootShell(v).probe())
	case policies.EffectBootWipe:
		return bootShell(v).agent(ctx, bootShell(v).wipe())
	case policies.EffectBootAsClaimed:
		return bootShell(v).asClaimed(ctx)
	case policies.EffectClearBoot:
		return bootShell(v).clear(ctx)
	case policies.EffectReleaseClaim:
		return custodyShell(v).releaseClaim(ctx)
	case policies.EffectForgetHolder:
		return custodyShell(v).forgetHolder(ctx)
	case policies.EffectResetAsAsked:
		return operationShell(v).resetAsAsked(ctx)
	case policies.EffectLocate:
		return settingShell(v).locate(ctx, effect)
	case policies.EffectApplyBootOrder:
		return settingShell(v).applyBootOrder(ctx)
	case policies.EffectMaintain:
		return maintenanceShell(v).asAsked(ctx, effect)
	}
	return loop.Failing("UnknownEffect", "this version cannot carry out "+effect.Name, 0)
}
