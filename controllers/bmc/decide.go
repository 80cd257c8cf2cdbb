// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/loop"
)

// The effects of a BMC.
const (
	// EffectRefuseOperation takes an operation annotation away that a BMC cannot act upon, with a Warning event.
	EffectRefuseOperation = "RefuseOperation"
	// EffectTrustCertificate writes into spec.trust the certificate that an operator accepted, or that was pinned at first use.
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

// decide says what is to be done about a BMC.
func decide(o observed) decision {
	var d decision
	if o.usable() {
		d.plan = makePlan(o.facts)
	}
	if o.certificate.trust != "" || o.certificate.consumed {
		d.effects = append(d.effects, EffectTrustCertificate)
	}
	if _, written := o.bmc.Annotations[v1alpha1.OperationAnnotation]; written && o.operation() == "" {
		d.effects = append(d.effects, EffectRefuseOperation)
	}
	d.effects = append(d.effects, effects(o.operation())...)
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

// maxOperation keeps a hostile value from filling an event.
const maxOperation = 60

// refusalOf is the reason and the message of the event about an operation that is refused.
func refusalOf(operation string) (reason, message string) {
	if operation == v1alpha1.OperationRotateCredentials {
		return v1alpha1.ReasonOperationUnavailable, "rotate-credentials is not available in this version; " +
			"change the password at the BMC and in the BMCSecret; the annotation was removed"
	}
	if operation == "" {
		return v1alpha1.ReasonUnknownOperation, "the operation annotation names no operation (a BMC knows graceful-restart-bmc, retry and ignore); " +
			"it was removed"
	}
	return v1alpha1.ReasonUnknownOperation, "a BMC knows no operation \"" + loop.Shortened(operation, maxOperation) +
		"\" (it knows graceful-restart-bmc, retry and ignore); the annotation was removed"
}

// recordEvents records what changed, once for each change: the conditions, and an operation that was refused.
func (s *subject) recordEvents(ctx context.Context, before, after *v1alpha1.BMC, _ decision) {
	for _, kind := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionSystemsAccepted, v1alpha1.ConditionReset} {
		was := meta.FindStatusCondition(before.Status.Conditions, kind)
		is := meta.FindStatusCondition(after.Status.Conditions, kind)
		if is == nil || was != nil && was.Reason == is.Reason && was.Status == is.Status {
			continue
		}
		if kind != v1alpha1.ConditionReset && was == nil && is.Status == metav1.ConditionTrue {
			continue // the usual case needs no event: the Servers that are made have theirs
		}
		s.Recorder.Eventf(after, nil, severity(kind, is), is.Reason, kind, "%s", loop.Shortened(is.Message, loop.MaxNote))
		log.FromContext(ctx).Info("bmc condition changed", "bmc", after.Name,
			"condition", kind, "status", is.Status, "reason", is.Reason, "message", is.Message)
	}
	asked, written := before.Annotations[v1alpha1.OperationAnnotation]
	_, still := after.Annotations[v1alpha1.OperationAnnotation]
	if written && !still && refused(asked) {
		reason, message := refusalOf(asked)
		s.Recorder.Eventf(after, nil, corev1.EventTypeWarning, reason, EffectRefuseOperation, "%s", message)
	}
}

// refused says that a BMC cannot act upon an operation.
func refused(operation string) bool {
	return operation == "" || effects(operation)[0] == EffectRefuseOperation
}

func severity(kind string, c *metav1.Condition) string {
	good := c.Status == metav1.ConditionTrue
	if kind == v1alpha1.ConditionReset {
		good = c.Reason != v1alpha1.ReasonResetFailed && c.Reason != v1alpha1.ReasonInterrupted
	}
	if good {
		return corev1.EventTypeNormal
	}
	return corev1.EventTypeWarning
}
