// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/access"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/controllers/server/operations"
	"github.com/metalaw/metalaw/controllers/server/power"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/redfish"
)

// worthTelling is how long an effect may be pending before the condition says what it waits for. What passes sooner is
// not worth a write.
const worthTelling = 15 * time.Second

// recordConditions brings all conditions up to date. A condition that has nothing to say is left out, not set to False,
// so that a healthy server costs few writes; Ready and BMCReachable are always there.
func (v *scope) recordConditions(d engine.Decision, outcome loop.Outcome) {
	if v.server.Status.Lifecycle == nil && d.Halt == nil {
		return // there is nothing to say before the first state
	}
	v.recordReachable()
	v.recordIdentity()
	v.recordInterfaces()
	v.recordOverrideMissing()
	v.recordHealth()
	v.recordClaimMissing()
	v.recordHalt(d)
	v.recordBehind()
	v.recordMaintenance(d)
	v.recordPowerWait(outcome)
	v.recordWithheld(d, outcome)
	v.recordReady(d, outcome)
}

func (v *scope) recordReachable() {
	if !v.reading.Tried || redfish.Crowded(v.reading.Err) {
		return
	}
	if v.reading.Reachable() {
		v.condition(v1alpha1.ConditionBMCReachable, metav1.ConditionTrue, v1alpha1.ReasonConnected, "the BMC answers")
		return
	}
	reason := redfish.Reason(v.reading.Err)
	var missing *access.Error
	if errors.As(v.reading.Err, &missing) {
		reason = missing.Reason
	}
	message, news := access.Describe(v.reading.Err)
	if !news && meta.IsStatusConditionFalse(v.server.Status.Conditions, v1alpha1.ConditionBMCReachable) {
		return // it was not even asked; what was said before says more
	}
	if ref := v.server.Spec.BMCRef; ref != nil {
		message += access.Retry(v.reading.Err, ref.Name)
	}
	v.condition(v1alpha1.ConditionBMCReachable, metav1.ConditionFalse, reason, loop.Shortened(message, loop.MaxMessage))
}

// recordIdentity says it plainly when another machine answers in the server's place.
func (v *scope) recordIdentity() {
	if v.facts.BMC.Identity == policies.IdentityOther {
		v.condition(v1alpha1.ConditionIdentityMismatch, metav1.ConditionTrue, v1alpha1.ReasonOtherSystem,
			fmt.Sprintf("the BMC answers for system %q (serial %q), this server is system %q; nothing is written to it",
				v.reading.Value.Identity.UUID, v.reading.Value.Identity.SerialNumber, v.server.Spec.SystemUUID))
		return
	}
	if v.facts.BMC.Identity == policies.IdentitySame {
		v.drop(v1alpha1.ConditionIdentityMismatch)
	}
}

// recordClaimMissing names a claim that is gone without a release record: that is unknown, not ended.
func (v *scope) recordClaimMissing() {
	ref := v.server.Spec.ServerClaimRef
	if !v.facts.Claim.Missing || ref == nil {
		v.drop(v1alpha1.ConditionClaimMissing)
		return
	}
	if v.claim == nil {
		v.condition(v1alpha1.ConditionClaimMissing, metav1.ConditionTrue, v1alpha1.ReasonClaimNotFound,
			fmt.Sprintf("the claim %s/%s does not exist and no release is recorded; "+
				"the server is kept as it is until the claim returns or %s", ref.Namespace, ref.Name, v.lettingGo()))
		return
	}
	holder := string(v.claim.UID) == v.server.Annotations[v1alpha1.ClaimUIDAnnotation]
	if named := v.claim.Spec.ServerRef; holder && named != nil && named.Name != v.server.Name {
		v.condition(v1alpha1.ConditionClaimMissing, metav1.ConditionTrue, v1alpha1.ReasonClaimNamesAnother, fmt.Sprintf(
			"the claim %s/%s that holds this server names server %q: where nothing was booted for it the reference is taken back, "+
				"else the server is kept until it is released", ref.Namespace, ref.Name, named.Name))
		return
	}
	if holder {
		v.drop(v1alpha1.ConditionClaimMissing) // the binding is being written
		return
	}
	if named := v.claim.Spec.ServerRef; named != nil && named.Name != v.server.Name && v.server.Annotations[v1alpha1.ClaimUIDAnnotation] == "" {
		v.condition(v1alpha1.ConditionClaimMissing, metav1.ConditionTrue, v1alpha1.ReasonClaimNamesAnother, fmt.Sprintf(
			"the claim %s/%s names server %q and holds nothing here: clear spec.serverClaimRef of this server; do not delete the claim for it",
			ref.Namespace, ref.Name, named.Name))
		return
	}
	v.condition(v1alpha1.ConditionClaimMissing, metav1.ConditionTrue, v1alpha1.ReasonClaimUIDMismatch,
		fmt.Sprintf("the claim %s/%s is not the one that holds this server: it has UID %q, the holder had %q; "+
			"the server is kept as it is until the holder returns, that claim takes it over by naming it in serverRef, "+
			"or %s",
			ref.Namespace, ref.Name, v.claim.UID, v.server.Annotations[v1alpha1.ClaimUIDAnnotation], v.lettingGo()))
}

// lettingGo says what somebody does with a server whose claim is gone, by what its state takes.
func (v *scope) lettingGo() string {
	state := v.server.Status.State
	switch {
	case v.bundle == nil || v.bundle.Lifecycle.Accepts(engine.State(state), v1alpha1.OperationRelease):
		return fmt.Sprintf("somebody releases it (annotation %s=%s)", v1alpha1.OperationAnnotation, v1alpha1.OperationRelease)
	case v.bundle.Lifecycle.Ensures(engine.State(state), policies.EffectForgetHolder):
		return "somebody clears spec.serverClaimRef of the server, for which nothing was booted for a claim here"
	}
	return fmt.Sprintf("somebody releases it (annotation %s=%s), which is refused in state %s",
		v1alpha1.OperationAnnotation, v1alpha1.OperationRelease, state) + operations.Instead(v.bundle, v.server, v1alpha1.OperationRelease)
}

func (v *scope) recordHalt(d engine.Decision) {
	if d.Halt == nil {
		v.drop(v1alpha1.ConditionPolicyHalted)
		return
	}
	message := d.Halt.Message
	if d.Halt.Rule != "" {
		message = d.Halt.Rule + ": " + message
	}
	if l := v.server.Status.Lifecycle; l != nil && (!isHalted(v.server) || len(l.Halts) == 0 || l.Halts[len(l.Halts)-1].Revision != l.Revision) {
		l.Halt(metav1.NewMicroTime(v.now))
	}
	v.condition(v1alpha1.ConditionPolicyHalted, metav1.ConditionTrue, string(d.Halt.Cause), loop.Shortened(message, loop.MaxMessage))
}

// recordBehind says that the server cannot come under the revision that it is to be governed by, because that one has dropped
// the state in which it rests, or is halted.
func (v *scope) recordBehind() {
	if b := v.dropping; b != nil && (v.rests() || isHalted(v.server)) {
		v.condition(v1alpha1.ConditionPolicyBehind, metav1.ConditionTrue, v1alpha1.ReasonStateDropped, fmt.Sprintf(
			"policy revision %s neither defines nor migrates state %s, so the server stays under %s; promote a version that says migrate: {%s: ...}",
			b.Revision.Name, v.server.Status.State, v.server.Status.Lifecycle.Revision, v.server.Status.State))
		return
	}
	v.drop(v1alpha1.ConditionPolicyBehind)
}

// rests says that the server is in a state that is stable under the revision which governs it.
func (v *scope) rests() bool {
	return v.bundle != nil && v.bundle.Lifecycle.Stable(engine.State(v.server.Status.State))
}

// recordWithheld says what is held back, until something is let through or nothing is asked for any more.
func (v *scope) recordWithheld(d engine.Decision, outcome loop.Outcome) {
	switch {
	case v.withheld != nil:
		v.condition(v1alpha1.ConditionWithheld, metav1.ConditionTrue, v.withheld.Reason, loop.Shortened(v.withheld.Message, loop.MaxMessage))
	case v.letThrough || d.Moves() || (outcome.Settled() && !v.held):
		v.drop(v1alpha1.ConditionWithheld)
	}
}

// recordPowerWait tells clients that the machine was asked to power on or off and takes its time.
func (v *scope) recordPowerWait(outcome loop.Outcome) {
	if v.server.Status.Lifecycle == nil {
		return
	}
	waits := outcome.Progress.Reason == power.WaitsForPower && v.pendingFor(outcome) > worthTelling
	request := v.server.Status.Lifecycle.Request
	asked := request != nil && request.Action == v1alpha1.PowerActionOn
	switch outcome.Effect { // the request may be one of a former state
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
			v.condition(kind, metav1.ConditionTrue, power.WaitsForPower, "waits for "+outcome.Progress.Message)
		} else {
			v.drop(kind)
		}
	}
}

// recordReady follows kstatus: Ready in a stable state whose effects hold, Reconciling on the way, Stalled where
// somebody has to act.
func (v *scope) recordReady(d engine.Decision, outcome loop.Outcome) {
	state := v.server.Status.State
	stable := v.bundle != nil && v.bundle.Lifecycle.Stable(engine.State(state))
	switch {
	case d.Halt != nil:
		v.ready(metav1.ConditionFalse, string(d.Halt.Cause), d.Halt.Message)
		v.stalled(string(d.Halt.Cause), d.Halt.Message)
	case state == v1alpha1.StateError:
		rule, says := v.server.Status.Lifecycle.Rule, v.says(d.Message)
		if why := wipeFailure(v.inventory, v.server.Status.Lifecycle.Entry-1); why != "" {
			says += " The agent says: " + why
		}
		v.ready(metav1.ConditionFalse, rule, says)
		v.stalled(rule, says)
	case d.Moves() || !stable:
		v.moving(d, outcome)
	case meta.IsStatusConditionTrue(v.server.Status.Conditions, v1alpha1.ConditionClaimMissing):
		missing := meta.FindStatusCondition(v.server.Status.Conditions, v1alpha1.ConditionClaimMissing)
		v.ready(metav1.ConditionFalse, missing.Reason, missing.Message)
		v.stalled(missing.Reason, missing.Message)
	case outcome.Progress.Phase == loop.Failed && outcome.Progress.Err == nil:
		v.ready(metav1.ConditionFalse, outcome.Progress.Reason, outcome.Effect+": "+outcome.Progress.Message)
		v.reconciling(outcome.Progress.Reason, outcome.Effect+": "+outcome.Progress.Message)
	case v.heldBriefly():
	case v.held || !outcome.Settled():
		v.recordWaiting(d, outcome)
	default:
		v.ready(metav1.ConditionTrue, v1alpha1.ReasonStable, d.Message)
		v.drop(v1alpha1.ConditionReconciling)
		v.drop(v1alpha1.ConditionStalled)
	}
}

// recordWaiting says what a server at rest waits for: an effect that does not hold yet, or a move that is put off.
func (v *scope) recordWaiting(d engine.Decision, outcome loop.Outcome) {
	if !v.held && v.saidOverrideIgnored() && v.requested().Unsolved() {
		return // it is being tried again; whether that helps is not known yet
	}
	if !v.held && !v.saysNothingYet() && v.awaitsFirstReading() {
		return // nothing is known that was not told before
	}
	if v.held || v.saysNothingYet() || v.pendingFor(outcome) > worthTelling {
		v.moving(d, outcome)
	}
}

// awaitsFirstReading says that this process has not heard from the BMC yet (or not since it is reached in another way), and that it is
// being asked. Where a manager of a large fleet starts, that takes minutes.
func (v *scope) awaitsFirstReading() bool {
	return v.targetErr == nil && (!v.reading.Tried || v.reading.At.IsZero() && redfish.Crowded(v.reading.Err))
}

// says is what the policy has to say of the rule that led here; what the state means where it says nothing.
func (v *scope) says(means string) string {
	l := v.server.Status.Lifecycle
	switch {
	case v.bundle.Lifecycle.Says(l.Rule) != "":
		return v.bundle.Lifecycle.Says(l.Rule)
	case l.Rule == v1alpha1.RuleForced:
		return "Somebody forced it here; status.lifecycle.history says who and why. When that is over, retry."
	case l.Rule == ruleAdopted:
		return "Whoever ran it before left it here. See to the cause, then retry."
	}
	return means
}

// maxQuote bounds the words of another program in a condition.
const maxQuote = 1024

// wipeFailure is what the agent said of a wipe that failed in an entry: which disks, and why. It is empty where no wipe
// of that entry failed. An agent that says nothing of the whole wipe is quoted disk by disk.
func wipeFailure(inventory *policyv1alpha1.ServerInventory, entry int64) string {
	if inventory == nil || inventory.Wipe == nil || inventory.Wipe.Entry != entry || inventory.Wipe.State != policyv1alpha1.WipeFailed {
		return ""
	}
	wipe := inventory.Wipe
	if wipe.Message != "" {
		return loop.Shortened(wipe.Message, maxQuote)
	}
	var words []string
	for _, disk := range wipe.Disks {
		if disk.State == policyv1alpha1.DiskFailed {
			words = append(words, disk.Path+": "+disk.Message)
		}
	}
	return loop.Shortened(strings.Join(words, "; "), maxQuote)
}

// moving says where the server is on its way to, and what it waits for once that is worth telling.
func (v *scope) moving(d engine.Decision, outcome loop.Outcome) {
	message := d.Message
	switch {
	case d.Moves():
	case v.heldBriefly():
		return
	case outcome.Progress.Reason == power.OverrideIgnored:
		message = outcome.Effect + ": " + outcome.Progress.Message
		v.ready(metav1.ConditionFalse, power.OverrideIgnored, message)
		v.reconciling(power.OverrideIgnored, message)
		return
	case v.saidOverrideIgnored() && v.requested().Unsolved():
		return
	}
	if !outcome.Settled() && v.pendingFor(outcome) > worthTelling {
		message = fmt.Sprintf("%s Waits in %s: %s", d.Message, outcome.Effect, outcome.Progress.Message)
	}
	v.ready(metav1.ConditionFalse, v1alpha1.ReasonMoving, message)
	v.reconciling(v1alpha1.ReasonMoving, message)
}

func (v *scope) ready(status metav1.ConditionStatus, reason, message string) {
	v.condition(v1alpha1.ConditionReady, status, reason, loop.Shortened(message, loop.MaxMessage))
}

func (v *scope) reconciling(reason, message string) {
	v.condition(v1alpha1.ConditionReconciling, metav1.ConditionTrue, reason, loop.Shortened(message, loop.MaxMessage))
	v.drop(v1alpha1.ConditionStalled)
}

func (v *scope) stalled(reason, message string) {
	v.condition(v1alpha1.ConditionStalled, metav1.ConditionTrue, reason, loop.Shortened(message, loop.MaxMessage))
	v.drop(v1alpha1.ConditionReconciling)
}

func (v *scope) drop(kind string) {
	meta.RemoveStatusCondition(&v.server.Status.Conditions, kind)
}

// saidOverrideIgnored says that Ready names the reason for which the machine was not switched on.
func (v *scope) saidOverrideIgnored() bool {
	ready := meta.FindStatusCondition(v.server.Status.Conditions, v1alpha1.ConditionReady)
	return ready != nil && ready.Reason == power.OverrideIgnored
}

func (v *scope) saysNothingYet() bool {
	return meta.FindStatusCondition(v.server.Status.Conditions, v1alpha1.ConditionReady) == nil
}

// pendingFor is how long the present entry has lasted, or how long ago the BMC was last asked for something, or since when a
// reading is awaited from a BMC that answers. What the BMC is only about to be asked for has just begun.
func (v *scope) pendingFor(outcome loop.Outcome) time.Duration {
	if len(outcome.Requests) > 0 {
		return 0
	}
	since := v.server.Status.Lifecycle.EnteredAt.Time
	for _, at := range []time.Time{v.Cache.LastJob(v.server.Name), v.readsSince} {
		if at.After(since) {
			since = at
		}
	}
	return v.now.Sub(since)
}

// heldBriefly says that a move is put off for less than is worth telling, so that what was told before stands.
func (v *scope) heldBriefly() bool {
	left := worthTelling - v.now.Sub(v.heldSince)
	if !v.held || left <= 0 || v.saysNothingYet() {
		return false
	}
	v.wakeIn(left)
	return true
}
