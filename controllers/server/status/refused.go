// SPDX-License-Identifier: Apache-2.0

package status

import (
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/controllers/server/power"
)

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
