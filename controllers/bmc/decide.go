// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine"
)

// The effects of a BMC.
const (
	// EffectRefuseOperation takes an operation annotation away that a BMC cannot act upon, with a Warning event.
	EffectRefuseOperation = "RefuseOperation"
	// EffectTrustCertificate writes into spec.trust the certificate that somebody accepted, or that was pinned at first use.
	EffectTrustCertificate = "TrustCertificate"
	// EffectRestartBMC restarts the BMC once for each time it is asked for: the request is recorded first.
	EffectRestartBMC = "RestartBMC"
	// EffectRetryAccess asks the BMC again at once, with credentials that it refused as well, where they were not tried again
	// by hand a while ago.
	EffectRetryAccess = "RetryAccess"
	// EffectRegisterSystems makes a Server for each system behind the BMC, or lets the one that exists name it.
	EffectRegisterSystems = "RegisterSystems"
	// EffectFollowLabels carries changes of the BMC's labels over to its Servers.
	EffectFollowLabels = "FollowLabels"
)

// Decide implements loop.Scope.
func (v *scope) Decide() engine.Decision {
	if v.usable() {
		v.plan = makePlan(v.facts)
	}
	list := effects(v.operation())
	if v.operation() == "" && v.asks() {
		list = append([]engine.Effect{{Name: EffectRefuseOperation}}, list...)
	}
	if v.certificate.trust != "" || v.certificate.consumed {
		list = append([]engine.Effect{{Name: EffectTrustCertificate}}, list...)
	}
	return engine.Decision{Effects: list}
}

// effects lists what must hold, for the operation that the annotation asks for.
func effects(operation string) []engine.Effect {
	var list []engine.Effect
	switch operation {
	case "":
	case v1alpha1.OperationGracefulRestartBMC:
		list = append(list, engine.Effect{Name: EffectRestartBMC})
	case v1alpha1.OperationRetry, v1alpha1.OperationRetryFailedStateResource:
		list = append(list, engine.Effect{Name: EffectRetryAccess})
	default:
		list = append(list, engine.Effect{Name: EffectRefuseOperation})
	}
	return append(list, engine.Effect{Name: EffectFollowLabels}, engine.Effect{Name: EffectRegisterSystems})
}

// asks says that the operation annotation is written, with an empty value also.
func (v *scope) asks() bool {
	_, written := v.bmc.Annotations[v1alpha1.OperationAnnotation]
	return written
}

func (v *scope) operation() string { return v.bmc.Annotations[v1alpha1.OperationAnnotation] }
