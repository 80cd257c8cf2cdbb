// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/loop"
)

// told is an event: Kind is Normal or Warning.
type told struct{ Kind, Reason, Note string }

// eventsOf are what changed in the status of a maintenance, as events.
func eventsOf(before, after *v1alpha1.ServerMaintenanceStatus) []told {
	var all []told
	was, is := conditionOf(before, v1alpha1.ConditionGranted), conditionOf(after, v1alpha1.ConditionGranted)
	switch {
	case is.Reason == was.Reason:
	case is.Status == metav1.ConditionTrue:
		all = append(all, told{corev1.EventTypeNormal, "Granted", is.Message})
	case after.State != v1alpha1.ServerMaintenanceStateFailed:
		all = append(all, told{corev1.EventTypeNormal, "Waits", is.Reason + ": " + is.Message})
	}
	if after.State == v1alpha1.ServerMaintenanceStateFailed && before.State != after.State {
		note := is.Message
		if served := conditionOf(after, v1alpha1.ConditionServed); served.Status == metav1.ConditionFalse {
			note = served.Message
		}
		all = append(all, told{corev1.EventTypeWarning, "Failed", note})
	}
	if over := conditionOf(after, v1alpha1.ConditionOverdue); over.Status == metav1.ConditionTrue &&
		conditionOf(before, v1alpha1.ConditionOverdue).Status != metav1.ConditionTrue {
		all = append(all, told{corev1.EventTypeWarning, "Overdue", over.Message})
	}
	return all
}

// recordEvents reports a status that was stored.
func (r *round) recordEvents(before, after *v1alpha1.ServerMaintenance) {
	for _, e := range eventsOf(&before.Status, &after.Status) {
		r.event(after, e)
	}
}

// asks is what the holder of a claim may do.
const asks = "To approve, set label " + v1alpha1.MaintenanceApprovedLabel + " on this claim."

func (r *round) event(of client.Object, e told) {
	if r.recorder != nil {
		r.recorder.Eventf(of, nil, e.Kind, e.Reason, "Maintain", "%s", loop.Shortened(e.Note, loop.MaxNote))
	}
}
