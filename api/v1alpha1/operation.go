// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Ignored says that the operation annotation asks to leave an object alone, in its present or old spelling.
func Ignored(o metav1.Object) bool {
	switch o.GetAnnotations()[OperationAnnotation] {
	case OperationIgnore, OperationIgnoreReconciliation:
		return true
	}
	return false
}

// Active says that the operation was recorded and has not ended; no operation is not active.
func (o *OperationStatus) Active() bool {
	return o != nil && (o.State == OperationPending || o.State == OperationInProgress)
}
