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

// recordEvents records what changed, once for each change: the conditions, and an operation that was refused.
func (s *subject) recordEvents(ctx context.Context, before, after *v1alpha1.BMC, _ decision) {
	for _, kind := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionSystemsAccepted, v1alpha1.ConditionReset} {
		was := meta.FindStatusCondition(before.Status.Conditions, kind)
		is := meta.FindStatusCondition(after.Status.Conditions, kind)
		if is == nil || was != nil && was.Reason == is.Reason && was.Status == is.Status {
			continue
		}
		if kind == v1alpha1.ConditionSystemsAccepted && was == nil && is.Status == metav1.ConditionTrue {
			continue // the usual case needs no event
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
