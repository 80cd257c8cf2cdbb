// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/policies"
)

// checkGang refuses a member of a gang that names its server beforehand: the servers of a gang are chosen for all its members
// together, and who could not get one would never get any, because serverRef cannot change. A member that has its server keeps
// it, also one that comes back from a backup: its server names it, its status says so, or, where the backup is without a status
// and its server is free, its finalizer tells that this is not its first life. Then the status may follow, and only a warning is due.
func checkGang(c change[v1alpha1.ServerClaim], s *v1alpha1.Server, found *findings) {
	const together = "a claim of a gang cannot name its server in spec.serverRef"
	switch {
	case c.byManager, !joinsByName(c), policies.HadServer(c.new):
	case policies.ComesBack(c.new, s):
	case !refChanges(c) && !found.pass(): // the placement is refused already
	case c.created() && slices.Contains(c.new.Finalizers, v1alpha1.FinalizerServerClaim):
		found.warn("%s: %s; unless its status is restored, or its server names it, this one gets no server, and serverRef cannot be changed: "+
			"claim anew without it", serverRefPath, together)
	default:
		found.deny(field.Invalid(serverRefPath.Child("name"), refOf(c.new),
			together+"; serverRef cannot be changed, so claim without it, or take gang out of the placement"))
	}
}

// joinsByName says that by a change a claim comes to be a member of a gang and to name its server. Placements are compiled for
// that only where the change touches either.
func joinsByName(c change[v1alpha1.ServerClaim]) bool {
	if c.deleted() || refOf(c.new) == "" {
		return false
	}
	_, placed := written(c.old, c.new, v1alpha1.PlacementAnnotation)
	if !refChanges(c) && !placed || policies.GangOf(c.new) == nil {
		return false
	}
	return c.created() || refOf(c.old) == "" || policies.GangOf(c.old) == nil
}
