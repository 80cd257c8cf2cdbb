// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

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
