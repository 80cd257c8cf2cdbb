// SPDX-License-Identifier: Apache-2.0

package bmc

import "github.com/metalaw/metalaw/api/v1alpha1"

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

// decision is what is to be done about a BMC.
type decision struct {
	// plan is what becomes of its Servers.
	plan plan
	// effects are what must hold, in order.
	effects []string
}

// Decide implements loop.Scope.
func (v *scope) Decide() decision {
	var d decision
	if v.usable() {
		d.plan = makePlan(v.facts)
	}
	if v.certificate.trust != "" || v.certificate.consumed {
		d.effects = append(d.effects, EffectTrustCertificate)
	}
	if v.operation() == "" && v.asks() {
		d.effects = append(d.effects, EffectRefuseOperation)
	}
	d.effects = append(d.effects, effects(v.operation())...)
	return d
}

// effects lists what must hold, for the operation that the annotation asks for.
func effects(operation string) []string {
	var list []string
	switch operation {
	case "":
	case v1alpha1.OperationGracefulRestartBMC:
		list = append(list, EffectRestartBMC)
	case v1alpha1.OperationRetry, v1alpha1.OperationRetryFailedStateResource:
		list = append(list, EffectRetryAccess)
	default:
		list = append(list, EffectRefuseOperation)
	}
	return append(list, EffectFollowLabels, EffectRegisterSystems)
}

// asks says that the operation annotation is written, with an empty value also.
func (v *scope) asks() bool {
	_, written := v.bmc.Annotations[v1alpha1.OperationAnnotation]
	return written
}

func (v *scope) operation() string { return v.bmc.Annotations[v1alpha1.OperationAnnotation] }
