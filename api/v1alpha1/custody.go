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

// ReleaseRecorded says that a durable record names the last holder of a server: without it nothing on the server is
// erased. A grace period is for whoever begins a wipe to wait for.
func ReleaseRecorded(s *Server) bool {
	record := s.Annotations[ReleasedClaimAnnotation]
	return record != "" && record == s.Annotations[ClaimUIDAnnotation]
}
