// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"strings"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/webhooks/review"
)

// Server warns that what a user said of the machine outlives the object, and how to end that.
func Server(s *v1alpha1.Server, found *review.Findings) {
	var said, ends []string
	if _, asked := s.Annotations[v1alpha1.DecommissionAnnotation]; asked {
		said, ends = append(said, "that it is decommissioned"), append(ends, "metalaw server recommission")
	}
	if s.Spec.Unclaimable {
		said, ends = append(said, "that it is cordoned"), append(ends, "metalaw server uncordon")
	}
	if len(s.Spec.Taints) > 0 {
		said = append(said, "the taints that no ServerReadinessRule sets")
	}
	if len(said) == 0 {
		return
	}
	ends = append(ends, "kubectl delete serverinventory "+s.Spec.SystemUUID)
	found.Warn("the ServerInventory of machine %s keeps %s; a new Server of the machine gets it back. To end that: %s",
		s.Spec.SystemUUID, strings.Join(said, ", and "), strings.Join(ends, ", or "))
}
