// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/policies"
)

// pastRules says that an operation goes past the rules of the policy: the manager asks about its state itself.
func pastRules(operation string) bool {
	return operation == v1alpha1.OperationForce || operation == v1alpha1.OperationDeclareClean
}

// declaresClean says that somebody declares the server clean, asked for or recorded.
func (v *scope) declaresClean() bool {
	op := v.server.Status.Operation
	return v.asked() == v1alpha1.OperationDeclareClean || (op.Active() && op.Name == v1alpha1.OperationDeclareClean)
}

// planDeclareClean is the forced move that offers a server whose status was lost. Unlike a force it lets no claim go, and knows no
// override: only the rule that asks for a proof is set aside.
func (v *scope) planDeclareClean() (forcing, string) {
	if v.holder != "" {
		return forcing{}, "the claim " + v.holder + " names this server; delete the claim, which has it wiped"
	}
	if why := policies.MayNotDeclareClean(v.server, v.inventory); why != "" {
		return forcing{}, why
	}
	to := engine.State(v1alpha1.StateAvailable)
	if !v.bundle.Lifecycle.Defines(to) {
		return forcing{}, fmt.Sprintf("the policy defines no state %s", to)
	}
	f, why := v.forced(to, false, true)
	f.overrides = []string{policies.RuleClearOnlyOnProof}
	return f, why
}

// admitDeclareClean takes the declaration in, before anything is done.
func (v *scope) admitDeclareClean() {
	f, why := v.planDeclareClean()
	if why != "" {
		v.note(reasonOperationRefused, v1alpha1.OperationDeclareClean+": "+why)
		v.dropRequest()
		return
	}
	v.beginOperation(v1alpha1.OperationDeclareClean)
	op := v.server.Status.Operation
	op.To, op.Overrides = v1alpha1.StateAvailable, f.overrides
}

// planAgain plans an operation that was recorded, on what is known now.
func (v *scope) planAgain(op *v1alpha1.OperationStatus) (forcing, string) {
	if op.Name == v1alpha1.OperationDeclareClean {
		return v.planDeclareClean()
	}
	return v.planForce(engine.State(op.To), op.Override || len(op.Overrides) > 0)
}
