// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// IsIgnore says that a value of OperationAnnotation asks to leave an object alone. Each release of the API has further words
// for that, and all begin alike; a word that is not known yet protects too, because its author meant it to.
func IsIgnore(operation string) bool { return strings.HasPrefix(operation, OperationIgnore) }

// Ignored says that an object is to be left alone: its operation annotation asks for that, or the BMC of a Server holds it.
func Ignored(o metav1.Object) bool { return IgnoredBy(o) != "" }

// IgnoredBy names the annotation that asks to leave an object alone, so that a reader knows what to take away; empty where
// none does.
func IgnoredBy(o metav1.Object) string {
	annotations := o.GetAnnotations()
	if operation := annotations[OperationAnnotation]; IsIgnore(operation) {
		return OperationAnnotation + "=" + operation
	}
	if bmc := annotations[HeldByBMCAnnotation]; bmc != "" {
		return OperationAnnotation + " of BMC " + bmc
	}
	return ""
}

// ToBeParked says that a request to park a server stands, or that its marker says that it is parked: no claim gets it.
func ToBeParked(s *Server) bool {
	_, requested := s.Annotations[ParkRequestedAnnotation]
	_, parked := s.Annotations[ParkedAnnotation]
	return requested || parked || s.Annotations[OperationAnnotation] == OperationPark
}

// IgnoresChildren says that the operation annotation of a BMC asks to leave its Servers alone too, in any release's spelling.
func IgnoresChildren(b *BMC) bool {
	return strings.HasPrefix(b.GetAnnotations()[OperationAnnotation], OperationIgnoreChild)
}

// Active says that the operation was recorded and has not ended; no operation is not active.
func (o *OperationStatus) Active() bool {
	return o != nil && (o.State == OperationPending || o.State == OperationInProgress)
}
