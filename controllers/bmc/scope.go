// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/bmc/reset"
	"github.com/metalaw/metalaw/controllers/bmc/status"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/controllers/trigger"
)

// scope is one BMC in one reconcile.
type scope struct {
	*subject
	observed
	plan plan
	// requeue is when to look again; 0 for never.
	requeue time.Duration
	// restarted is what becomes of the restart that the annotation asks for.
	restarted restarted
	// consumed says that the annotation that accepts a system was taken away.
	consumed bool
	// notices are recorded as events once the BMC is stored.
	notices []notice
}

// notice is an event about the BMC; kind is Normal or Warning.
type notice struct{ kind, reason, action, message string }

func (n notice) record(r events.EventRecorder, b *v1alpha1.BMC) {
	r.Eventf(b, nil, n.kind, n.reason, n.action, "%s", loop.Shortened(n.message, loop.MaxNote))
}

// Decide implements loop.Scope.
func (v *scope) Decide() decision { return decide(v.observed) }

// Apply implements loop.Scope.
func (v *scope) Apply(ctx context.Context, d decision) loop.Outcome {
	v.plan = d.plan
	outcome := loop.InOrder(d.effects, func(effect string) string { return effect },
		func(effect string) loop.Progress { return v.ensure(ctx, effect) })
	controllerutil.AddFinalizer(v.bmc, v1alpha1.FinalizerBMC)
	v.bmc.Status = status.Decide(v.statusInput(outcome.Progress))
	outcome.Again = trigger.Earlier(v.requeue, v.plan.requeueAfter)
	outcome.Reports = []func(context.Context){v.report}
	return outcome
}

// ensure makes one effect hold.
func (v *scope) ensure(ctx context.Context, effect string) loop.Progress {
	switch effect {
	case EffectRefuseOperation:
		dropOperation(v.bmc)
		return loop.Holds()
	case EffectTrustCertificate:
		v.certificate.write(v.bmc, v.now)
		v.notices = append(v.notices, v.certificate.notice())
		return loop.Holds()
	case EffectRestartBMC:
		var p loop.Progress
		p, v.restarted = v.restart(ctx)
		return p
	case EffectRetryAccess:
		return v.retryAccess()
	case EffectFollowLabels:
		return v.followLabels(ctx)
	case EffectRegisterSystems:
		p := v.register(ctx)
		v.consumed = v.plan.consumed && p.Phase == loop.Done
		return p
	}
	return loop.Failing("UnknownEffect", fmt.Sprintf("a BMC has no effect %q", effect), 0)
}

// statusInput gathers what status says once the effects were applied.
func (v *scope) statusInput(p loop.Progress) status.Input {
	accepted, reason, message := v.plan.verdict()
	unmade := p.Reason == v1alpha1.ReasonServerRefused
	if unmade {
		accepted, reason, message = false, p.Reason, p.Message
	}
	return status.Input{
		Former: v.bmc.Status, Generation: v.bmc.Generation, Now: v.now, IP: v.location.IP, MACAddress: v.location.MACAddress,
		Answer: v.answer(), TakeOverAfter: v.TakeOverAfter,
		Systems: status.Systems{Accepted: accepted, Refused: unmade, Reason: reason, Message: message},
		Reset: status.Reset{RequestedAt: v.restarted.at, Failed: v.restarted.failed, Current: reset.Current{
			Wanted: v.operation() != "", Reachable: v.reading.Reachable(), ReadAt: v.reading.At, Settle: v.ResetSettle, Known: v.sent.Known,
		}},
	}
}

// retryAccess has the BMC asked again at once, and forgets the identities of its systems. A repeated call within a
// cool-down asks with refused credentials only once.
func (v *scope) retryAccess() loop.Progress {
	dropOperation(v.bmc)
	if v.targetErr != nil {
		return loop.Holds() // the manager looks for what is missing without being asked
	}
	v.systemsRead.forget(v.target.Key)
	defer v.cache.Refresh(v.name, v.target, anew)
	if done, again := v.Clients.Retry(v.target.Key); !done {
		v.notices = append(v.notices, notice{corev1.EventTypeWarning, v1alpha1.ReasonRetriedLately, EffectRetryAccess, fmt.Sprintf(
			"the credentials were refused or tried again by hand a short while ago. To lock no account, the manager does not "+
				"try them once more before %s; correct the BMCSecret, which is then tried at once", again.UTC().Format("15:04:05 MST"))})
		return loop.Holds()
	}
	v.cache.Retry(v.name)
	v.requeue = time.Millisecond
	return loop.Holds()
}

// anew is an age that no reading has, so that one is begun.
const anew = -time.Nanosecond

// report records the events that no difference of the BMC shows.
func (v *scope) report(context.Context) {
	if n, due := v.acceptanceNotice(); due {
		v.notices = append(v.notices, n)
	}
	for _, n := range v.notices {
		n.record(v.Recorder, v.bmc)
	}
}

// acceptanceNotice says what becomes of an acceptance, once for each change of that.
func (v *scope) acceptanceNotice() (n notice, due bool) {
	n = notice{corev1.EventTypeWarning, v1alpha1.ReasonAcceptanceWaits, EffectRegisterSystems, v.plan.remark}
	if v.consumed {
		n.reason = v1alpha1.ReasonAcceptanceRemoved
	}
	if n.message == "" || v.consumed {
		return n, n.message != ""
	}
	seen := v.acceptances.get(string(v.bmc.UID))
	if seen.value == "" || seen.message == n.message {
		return n, false
	}
	seen.message = n.message
	v.acceptances.put(string(v.bmc.UID), seen)
	return n, true
}

// Finalize implements loop.Scope: it gives the session back. The Servers stay as they are.
func (v *scope) Finalize(context.Context) loop.Progress {
	v.release(v.bmc)
	return loop.Holds()
}
