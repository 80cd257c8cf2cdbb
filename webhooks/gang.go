// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/webhooks/review"
)

// checkGang refuses a member of a gang that names its server beforehand: the servers of a gang are chosen for all its members
// together, and who could not get one would never get any, because serverRef cannot change. A member that has its server keeps
// it, also one that comes back from a backup: its server names it, its status says so, or, where the backup is without a status
// and its server is free, its finalizer tells that this is not its first life. Then the status may follow, and only a warning is due.
func checkGang(c review.Change[v1alpha1.ServerClaim], s *v1alpha1.Server, found *review.Findings) {
	const together = "a claim of a gang cannot name its server in spec.serverRef"
	switch {
	case c.ByManager, !joinsByName(c), policies.HadServer(c.New):
	case policies.ComesBack(c.New, s):
	case !refChanges(c) && !found.Pass(): // the placement is refused already
	case c.Created() && slices.Contains(c.New.Finalizers, v1alpha1.FinalizerServerClaim):
		found.Warn("%s: %s; unless its status is restored, or its server names it, this one gets no server, and serverRef cannot be changed: "+
			"claim anew without it", serverRefPath, together)
	default:
		found.Deny(field.Invalid(serverRefPath.Child("name"), refOf(c.New),
			together+"; serverRef cannot be changed, so claim without it, or take gang out of the placement"))
	}
}

// joinsByName says that by a change a claim comes to be a member of a gang and to name its server. Placements are compiled for
// that only where the change touches either.
func joinsByName(c review.Change[v1alpha1.ServerClaim]) bool {
	if c.Deleted() || refOf(c.New) == "" {
		return false
	}
	_, placed := review.Written(c.Old, c.New, v1alpha1.PlacementAnnotation)
	if !refChanges(c) && !placed || policies.GangOf(c.New) == nil {
		return false
	}
	return c.Created() || refOf(c.Old) == "" || policies.GangOf(c.Old) == nil
}
