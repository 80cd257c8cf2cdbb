// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"fmt"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish"
)

// undone says what a user does after undo-release, and what the machine does then: its power may have gone with its claim.
// It is empty for every other operation.
func (d *decision) undone() string {
	s := d.server
	ref := s.Spec.ServerClaimRef
	if s.Status.Operation.Name != v1alpha1.OperationUndoRelease || ref == nil {
		return ""
	}
	words := fmt.Sprintf("; apply the claim %s/%s again with serverRef: {name: %s}", ref.Namespace, ref.Name, s.Name)
	if d.Facts.BMC.Power != string(redfish.PowerOn) || stops(s.Status.Lifecycle.Request) {
		words += "; its machine was powered off, and boots again as the claim asks once that is back"
	}
	return words
}

// stops says that the last power request asks the machine to stop.
func stops(r *v1alpha1.PowerRequest) bool {
	return r != nil && (r.Action == v1alpha1.PowerActionGracefulShutdown || r.Action == v1alpha1.PowerActionForceOff)
}
