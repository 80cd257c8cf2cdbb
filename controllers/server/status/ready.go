// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/controllers/server/gates"
	"github.com/metalaw/metalaw/controllers/server/power"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/diag"
	"github.com/metalaw/metalaw/internal/counted"
	"github.com/metalaw/metalaw/policies"
)

// recordReady follows kstatus: Ready in a stable state whose effects hold, Reconciling on the way, Stalled where
// somebody has to act.
func (r *record) recordReady() {
	state := r.s.Status.State
	stable := r.Governance.Bundle != nil && r.Governance.Bundle.Lifecycle.Stable(engine.State(state))
	switch {
	case r.Decision.Halt != nil:
		r.stalled(string(r.Decision.Halt.Cause), r.Decision.Halt.Message)
	case waitsInDoubt(r):
		r.stalled(gates.RestoredDoubt, r.Decision.Message)
	case state == v1alpha1.StateError:
		rule, says := r.s.Status.Lifecycle.Rule, r.says(r.Decision.Message)
		r.stalled(rule, says+inBand(r.Inventory, r.s.Status.Lifecycle.Entry-1))
	case recordRefused(r):
	case r.Decision.Moves() || !stable:
		r.moving()
	case meta.IsStatusConditionTrue(r.s.Status.Conditions, v1alpha1.ConditionClaimMissing):
		missing := meta.FindStatusCondition(r.s.Status.Conditions, v1alpha1.ConditionClaimMissing)
		r.stalled(missing.Reason, missing.Message)
	case r.Outcome.Progress.Phase == loop.Failed && r.Outcome.Progress.Err == nil:
		r.reconciling(r.Outcome.Progress.Reason, r.Outcome.Effect+": "+r.Outcome.Progress.Message)
	case r.heldBriefly():
	case r.Gated.Postponed || !r.Outcome.Settled():
		r.recordWaiting()
	default:
		message := r.Decision.Message + releaseWaits(r.s, &r.Settings, r.Now, r.CountedNow)
		r.condition(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonStable, message)
		r.drop(v1alpha1.ConditionReconciling)
		r.drop(v1alpha1.ConditionStalled)
	}
}

// releaseWaits says that the claim of a server has ended, and when that takes effect; empty where it does already, or has not ended.
// The time is as the record says, so that the message stays alike, unless the clock was changed since.
func releaseWaits(s *v1alpha1.Server, settings *bundle.Settings, now time.Time, clock counted.Time) string {
	grace := settings.ReleaseGrace
	_, left := policies.Released(s, grace, clock)
	if left == 0 {
		return ""
	}
	when := "once its grace of " + grace.String() + " is over"
	if at, ok := policies.ReleaseEffective(s, grace); ok && at.Sub(now.Add(left)).Abs() < time.Minute {
		when = "at " + at.Format(time.RFC3339)
	}
	powered := ""
	if settings.ReleasePower == bundle.PowerImmediate {
		powered = "the machine is powered off, and "
	}
	return fmt.Sprintf(" Its claim has ended: %sthe release takes effect %s. Until then metalaw server undo-release %s takes it back.",
		powered, when, s.Name)
}

// recordWaiting says what a server at rest waits for: an effect that does not hold yet, or a move that is put off.
func (r *record) recordWaiting() {
	if !r.Gated.Postponed && saidOverrideIgnored(r.s) && r.Power.Unsolved {
		return // it is being tried again; whether that helps is not known yet
	}
	if !r.Gated.Postponed && !r.saysNothingYet() && r.awaitsFirstReading() {
		return // nothing is known that was not told before
	}
	if r.Gated.Postponed || r.saysNothingYet() || r.pendingFor() > WorthTelling {
		r.moving()
	}
}

// says is what the policy has to say of the rule that led here; what the state means where it says nothing.
func (r *record) says(means string) string {
	l := r.s.Status.Lifecycle
	switch {
	case r.Governance.Bundle.Lifecycle.Says(l.Rule) != "":
		return r.Governance.Bundle.Lifecycle.Says(l.Rule)
	case l.Rule == v1alpha1.RuleForced:
		return "A user forced it here; status.lifecycle.history says who and why. When that is over, retry."
	case l.Rule == v1alpha1.RuleEntryVoided:
		return "Two agents with different keys reported for its entry, twice in a row. Find out who has the credential of this server, then retry."
	case l.Rule == v1alpha1.RuleAdopted:
		return "The operator that ran it before left it here. See to the cause, then retry."
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
		return diag.Shortened(wipe.Message, maxQuote)
	}
	var words []string
	for _, disk := range wipe.Disks {
		if disk.State == policyv1alpha1.DiskFailed {
			words = append(words, disk.Path+": "+disk.Message)
		}
	}
	return diag.Shortened(strings.Join(words, "; "), maxQuote)
}

// moving says where the server is on its way to, and what it waits for once that is worth telling.
func (r *record) moving() {
	message := r.Decision.Message
	switch {
	case r.Decision.Moves():
	case r.heldBriefly():
		return
	case r.Outcome.Progress.Reason == power.OverrideIgnored, r.Outcome.Progress.Reason == v1alpha1.ReasonWipeUnproven:
		message = r.Outcome.Effect + ": " + r.Outcome.Progress.Message
		r.reconciling(r.Outcome.Progress.Reason, message)
		return
	case saidOverrideIgnored(r.s) && r.Power.Unsolved:
		return
	}
	if !r.Outcome.Settled() && r.pendingFor() > WorthTelling {
		if r.Facts.Claim.Ended {
			message += releaseWaits(r.s, &r.Settings, r.Now, r.CountedNow)
		}
		message = fmt.Sprintf("%s Waits in %s: %s", message, r.Outcome.Effect, r.Outcome.Progress.Message)
	}
	why, cause := causeOf(r)
	r.condition(v1alpha1.ConditionReady, metav1.ConditionFalse, cmp.Or(why, v1alpha1.ReasonMoving), cause+message)
	r.underWay(cmp.Or(r.Gated.Gate, why, v1alpha1.ReasonMoving), cause+message) // names the gate that holds the server
}

// reconciling says why the server is not Ready, and that it is on its way.
func (r *record) reconciling(reason, message string) {
	r.condition(v1alpha1.ConditionReady, metav1.ConditionFalse, reason, message)
	r.underWay(reason, message)
}

func (r *record) underWay(reason, message string) {
	r.condition(v1alpha1.ConditionReconciling, metav1.ConditionTrue, reason, message)
	r.drop(v1alpha1.ConditionStalled)
}

// stalled says why the server is not Ready, and that somebody has to act.
func (r *record) stalled(reason, message string) {
	r.condition(v1alpha1.ConditionReady, metav1.ConditionFalse, reason, message)
	r.condition(v1alpha1.ConditionStalled, metav1.ConditionTrue, reason, message)
	r.drop(v1alpha1.ConditionReconciling)
}

// stand shows a condition as True as long as there is a reason for it.
func (r *record) stand(kind, reason, message string) {
	if reason == "" {
		r.drop(kind)
		return
	}
	r.condition(kind, metav1.ConditionTrue, reason, message)
}

// drop takes a condition away. It copies the conditions only where there is one: most servers never have it.
func (r *record) drop(kind string) {
	if meta.FindStatusCondition(r.s.Status.Conditions, kind) != nil {
		meta.RemoveStatusCondition(&r.s.Status.Conditions, kind)
	}
}

// saidOverrideIgnored says that Ready names the reason for which the machine was not switched on.
func saidOverrideIgnored(s *v1alpha1.Server) bool {
	ready := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionReady)
	return ready != nil && ready.Reason == power.OverrideIgnored
}

func (r *record) saysNothingYet() bool {
	return meta.FindStatusCondition(r.s.Status.Conditions, v1alpha1.ConditionReady) == nil
}

// recordRefused says that the API server refuses an object without which the server does not go on: no time mends that. It
// says whether Ready stands. What was refused stays told while the BMC is read before the next try.
func recordRefused(r *record) bool {
	p := r.Outcome.Progress
	switch {
	case r.Decision.Moves():
		return false
	case p.Phase == loop.Failed && isRefusal(p.Reason):
		r.stalled(p.Reason, p.Message)
		return true
	}
	told := meta.FindStatusCondition(r.s.Status.Conditions, v1alpha1.ConditionStalled)
	return p.Phase == loop.Pending && p.Reason == power.WaitsForReading && told != nil && isRefusal(told.Reason)
}

func isRefusal(reason string) bool {
	return reason == v1alpha1.ReasonBootConfigurationRefused || reason == v1alpha1.ReasonWriteRefused
}

// causeOf is what keeps a server from going on, the cause before what follows from it: a BMC that cannot be used, then what
// is withheld. Both are empty for a server that goes on.
func causeOf(r *record) (reason, message string) {
	if r.Decision.Moves() {
		return "", ""
	}
	reach := meta.FindStatusCondition(r.s.Status.Conditions, v1alpha1.ConditionBMCReachable)
	if reach != nil && reach.Status == metav1.ConditionFalse {
		return v1alpha1.ReasonBMCUnreachable, fmt.Sprintf("Its BMC cannot be used (%s). ", reach.Reason)
	}
	held := meta.FindStatusCondition(r.s.Status.Conditions, v1alpha1.ConditionWithheld)
	if held != nil && held.Status == metav1.ConditionTrue {
		return held.Reason, ""
	}
	return "", ""
}
