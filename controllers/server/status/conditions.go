// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/server/gates"
	"github.com/metalaw/metalaw/controllers/server/operations"
	"github.com/metalaw/metalaw/controllers/server/power"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/policies"
)

// recordConditions brings all conditions up to date. A condition that has nothing to say is left out, not set to False,
// so that a healthy server costs few writes. Ready is always there, and so is BMCReachable, but for a server out of service.
func (r *record) recordConditions() {
	if r.s.Status.Lifecycle == nil && r.Decision.Halt == nil {
		return // there is nothing to say before the first state
	}
	r.recordReachable()
	r.recordIdentity()
	recordDoubt(r)
	reason, message := unproven(r.s, r.Inventory)
	r.stand(v1alpha1.ConditionIdentityUnproven, reason, message)
	r.recordInterfaces()
	r.recordOverrideMissing()
	reason, message = hiddenStorage(r.Inventory, r.Settings.Wipe, r.Facts.Probe.Entry >= 0)
	r.stand(v1alpha1.ConditionStorageHidden, reason, message)
	r.recordHealth()
	r.s.Status.FaultyParts = FaultyParts(reported(r.Input, r.s))
	r.recordClaimMissing()
	r.recordPhase()
	r.recordHalt()
	r.recordBehind()
	r.recordMaintenance()
	recordDecommission(r)
	r.recordPowerWait()
	r.recordWithheld()
	r.recordReady()
}

func (r *record) recordReachable() {
	b := r.Reading
	switch {
	case !b.Tried || b.Crowded:
	case r.s.Status.State == v1alpha1.StateDecommissioned && !b.Reachable:
		r.drop(v1alpha1.ConditionBMCReachable) // its BMC may be gone with the machine
	case b.Reachable:
		r.condition(v1alpha1.ConditionBMCReachable, metav1.ConditionTrue, v1alpha1.ReasonConnected, "the BMC answers")
	case !b.News && meta.IsStatusConditionFalse(r.s.Status.Conditions, v1alpha1.ConditionBMCReachable):
		// it was not even asked; what was said before says more
	default:
		r.condition(v1alpha1.ConditionBMCReachable, metav1.ConditionFalse, b.Reason, b.Message)
	}
}

// recordIdentity says it plainly when another machine answers in the server's place.
func (r *record) recordIdentity() {
	if r.Facts.BMC.Identity == policies.IdentityOther && r.s.Status.State != v1alpha1.StateDecommissioned {
		r.condition(v1alpha1.ConditionIdentityMismatch, metav1.ConditionTrue, v1alpha1.ReasonOtherSystem,
			fmt.Sprintf("the BMC answers for system %q (serial %q), this server is system %q; nothing is written to it",
				r.Reading.Snapshot.Identity.UUID, r.Reading.Snapshot.Identity.SerialNumber, r.s.Spec.SystemUUID))
		return
	}
	if r.Facts.BMC.Identity == policies.IdentitySame || r.s.Status.State == v1alpha1.StateDecommissioned {
		r.drop(v1alpha1.ConditionIdentityMismatch)
	}
}

// recordClaimMissing names a claim that is gone without a release record: that is unknown, not ended.
func (r *record) recordClaimMissing() {
	reason, message := claimMissing(r)
	if reason == "" {
		r.drop(v1alpha1.ConditionClaimMissing)
		return
	}
	r.condition(v1alpha1.ConditionClaimMissing, metav1.ConditionTrue, reason, message)
}

// claimMissing says why the claim that the server names does not hold it; empty where one does, or none is named.
func claimMissing(r *record) (reason, message string) {
	ref, claim := r.s.Spec.ServerClaimRef, r.Claim
	if !r.Facts.Claim.Missing || ref == nil {
		return "", ""
	}
	recorded := r.s.Annotations[v1alpha1.ClaimUIDAnnotation]
	switch name := ref.Namespace + "/" + ref.Name; {
	case claim == nil:
		return v1alpha1.ReasonClaimNotFound, fmt.Sprintf("the claim %s does not exist and no release is recorded; "+
			"the server is kept as it is until the claim returns or %s", name, lettingGo(r.Governance.Bundle, r.s))
	case string(claim.UID) == recorded && namedElsewhere(r):
		return v1alpha1.ReasonClaimNamesAnother, fmt.Sprintf(
			"the claim %s that holds this server names server %q. Where nothing was booted for it the reference is taken back, "+
				"else the server is kept until it is released", name, claim.Spec.ServerRef.Name)
	case string(claim.UID) == recorded:
		return "", "" // the binding is being written
	case recorded == "" && namedElsewhere(r):
		return v1alpha1.ReasonClaimNamesAnother, fmt.Sprintf(
			"the claim %s names server %q and holds nothing here: clear spec.serverClaimRef of this server; do not delete the claim for it",
			name, claim.Spec.ServerRef.Name)
	default:
		return v1alpha1.ReasonClaimUIDMismatch, fmt.Sprintf("the claim %s is not the one that holds this server: it has UID %q, the holder had %q. "+
			"The server is kept as it is until the holder returns, that claim takes it over by naming it in serverRef, "+
			"or %s", name, claim.UID, recorded, lettingGo(r.Governance.Bundle, r.s))
	}
}

// namedElsewhere says that the claim names another server.
func namedElsewhere(r *record) bool {
	named := r.Claim.Spec.ServerRef
	return named != nil && named.Name != r.s.Name
}

// lettingGo says what somebody does with a server whose claim is gone, by what its state takes.
func lettingGo(b *bundle.Bundle, s *v1alpha1.Server) string {
	state := s.Status.State
	switch {
	case b == nil || b.Lifecycle.Accepts(engine.State(state), v1alpha1.OperationRelease):
		return fmt.Sprintf("a user releases it (annotation %s=%s)", v1alpha1.OperationAnnotation, v1alpha1.OperationRelease)
	case b.Lifecycle.Ensures(engine.State(state), policies.EffectForgetHolder):
		return "a user clears spec.serverClaimRef of the server, for which nothing was booted for a claim here"
	}
	return fmt.Sprintf("a user releases it (annotation %s=%s), which is refused in state %s",
		v1alpha1.OperationAnnotation, v1alpha1.OperationRelease, state) +
		operations.Instead(b, s, v1alpha1.OperationRelease)
}

func (r *record) recordHalt() {
	if r.Decision.Halt == nil {
		r.drop(v1alpha1.ConditionPolicyHalted)
		return
	}
	message := r.Decision.Halt.Message
	if r.Decision.Halt.Rule != "" {
		message = r.Decision.Halt.Rule + ": " + message
	}
	halted := meta.IsStatusConditionTrue(r.s.Status.Conditions, v1alpha1.ConditionPolicyHalted)
	if l := r.s.Status.Lifecycle; l != nil && (!halted || len(l.Halts) == 0 || l.Halts[len(l.Halts)-1].Revision != l.Revision) {
		l.Halt(metav1.NewMicroTime(r.Now))
	}
	r.condition(v1alpha1.ConditionPolicyHalted, metav1.ConditionTrue, string(r.Decision.Halt.Cause), message)
}

// recordBehind says that the server cannot come under the revision that it is to be governed by, because that one has dropped
// the state in which it rests, or is halted.
func (r *record) recordBehind() {
	if b := r.Governance.Dropping; b != nil && (r.rests() || meta.IsStatusConditionTrue(r.s.Status.Conditions, v1alpha1.ConditionPolicyHalted)) {
		r.condition(v1alpha1.ConditionPolicyBehind, metav1.ConditionTrue, v1alpha1.ReasonStateDropped, fmt.Sprintf(
			"policy revision %s neither defines nor migrates state %s, so the server stays under %s; promote a version that says migrate: {%s: ...}",
			b.Revision.Name, r.s.Status.State, r.s.Status.Lifecycle.Revision, r.s.Status.State))
		return
	}
	r.drop(v1alpha1.ConditionPolicyBehind)
}

// rests says that the server is in a state that is stable under the revision which governs it.
func (r *record) rests() bool {
	return r.Governance.Bundle != nil && r.Governance.Bundle.Lifecycle.Stable(engine.State(r.s.Status.State))
}

// recordWithheld says what is held back, until something is let through or nothing is asked for any more.
func (r *record) recordWithheld() {
	switch {
	case r.Withheld != nil:
		r.condition(v1alpha1.ConditionWithheld, metav1.ConditionTrue, r.Withheld.Reason, r.Withheld.Message)
	case r.LetThrough || r.Decision.Moves() || (r.Outcome.Settled() && !r.Gated.Postponed):
		r.drop(v1alpha1.ConditionWithheld)
	}
}

// recordPowerWait tells clients that the machine was asked to power on or off and takes its time.
func (r *record) recordPowerWait() {
	if r.s.Status.Lifecycle == nil {
		return
	}
	waits := r.Outcome.Progress.Reason == power.WaitsForPower && r.pendingFor() > WorthTelling
	request := r.s.Status.Lifecycle.Request
	asked := request != nil && request.Action == v1alpha1.PowerActionOn
	switch r.Outcome.Effect { // the request may be one of a former state
	case policies.EffectPowerOn:
		asked = true
	case policies.EffectPowerOff:
		asked = false
	}
	for kind, now := range map[string]bool{
		v1alpha1.ConditionPoweringOn:         waits && asked,
		v1alpha1.ConditionWaitingForPowerOff: waits && !asked,
	} {
		if now {
			r.condition(kind, metav1.ConditionTrue, power.WaitsForPower, "waits for "+r.Outcome.Progress.Message)
		} else {
			r.drop(kind)
		}
	}
}

// unproven says of a machine that nothing proves, or that another one reported for, why that is so. Both are empty where it is proved.
func unproven(s *v1alpha1.Server, inventory *policyv1alpha1.ServerInventory) (reason, message string) {
	if s.Status.State == v1alpha1.StateDecommissioned {
		return "", ""
	}
	bmc := "spec.bmc"
	if s.Spec.BMCRef != nil {
		bmc = s.Spec.BMCRef.Name
	}
	return gates.IdentityStanding(bmc, inventory)
}
