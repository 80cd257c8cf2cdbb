// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

// refusal is what a server says of the boot configuration that the API server refuses; empty if it says nothing of that.
// A reserved server writes that of its claim alone, in the claim's namespace.
func refusal(s *v1alpha1.Server) string {
	ready := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionReady)
	if s.Status.State != v1alpha1.StateReserved || ready == nil || ready.Status != metav1.ConditionFalse ||
		ready.Reason != v1alpha1.ReasonBootConfigurationRefused {
		return ""
	}
	return ready.Message
}
