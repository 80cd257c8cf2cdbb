// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/internal/uuids"
	"github.com/metalaw/metalaw/webhooks/review"
)

// uuidForm is a UUID as a BMC's is stored: in lower case with dashes, in either byte order.
var uuidForm = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// unusualForm is a UUID without its dashes. In another form than the usual one a UUID would give one machine two Servers.
var unusualForm = regexp.MustCompile(`^[0-9a-fA-F]{32}$`)

// checkSystemUUID refuses what no machine can be known by, and warns of text that is no UUID: upstream stores it, and a machine
// is known by it only if its BMC shows that text. known says that a ServerInventory of that name is there, so that the Server comes
// back out of a backup; one that bears what the manager writes comes out of a backup too, before its inventory.
func checkSystemUUID(c review.Change[v1alpha1.Server], known bool, found *review.Findings) {
	if c.ByManager || !uuidChanges(c) {
		return
	}
	uuid := c.New.Spec.SystemUUID
	switch {
	case uuids.Shared(uuid):
		found.Deny(field.Invalid(systemUUIDPath, uuid,
			"it is what firmware shows that was never given a UUID, and tells no machine from another; give the machine a UUID in its firmware"))
	case uuidForm.MatchString(uuid) || known:
	case c.Created() && restored(c.New):
		found.Warn("spec.systemUUID: %q is no UUID, and no ServerInventory of that name exists. As the Server bears what the manager writes, "+
			"it is taken to come out of a backup. Restore ServerInventories before Servers, or metalaw does not know what data is on the disks", uuid)
	case namesSystem(uuid) && !unusualForm.MatchString(strings.ReplaceAll(uuid, "-", "")):
		found.Warn("spec.systemUUID: %q is no UUID like 4c4c4544-0051-3610-8052-b4c04f4d4d32. Nothing is written to a BMC until it shows a system "+
			"by this very text. Write the UUID that the BMC shows for the system (UUID at its Redfish URI)", uuid)
	default:
		found.Deny(field.Invalid(systemUUIDPath, uuid, "it is no UUID like 4c4c4544-0051-3610-8052-b4c04f4d4d32. Write the one that the BMC shows "+
			"for the system (UUID at its Redfish URI), in either byte order. Or leave the Server to be made when its BMC is read"))
	}
}

// restored says that a Server bears what only the manager writes there: it was one of ours.
func restored(s *v1alpha1.Server) bool {
	return slices.Contains(s.Finalizers, v1alpha1.FinalizerServer) ||
		s.Annotations[v1alpha1.ClaimUIDAnnotation] != "" || s.Annotations[v1alpha1.ReleasedClaimAnnotation] != ""
}

// checkReach tells what a Server lacks to be reached. It may be made so: a BMC that shows its UUID fills both in.
func checkReach(c review.Change[v1alpha1.Server], found *review.Findings) {
	if !c.Created() || c.ByManager {
		return
	}
	const filled = "until a BMC object whose BMC shows its systemUUID fills that in, nothing is known of the machine"
	spec := c.New.Spec
	switch {
	case spec.BMC != nil && spec.BMCRef == nil && spec.SystemURI == "":
		found.Warn("spec.systemURI is empty, and nothing fills it in beside spec.bmc; " +
			"write the URI of the system at its BMC, like /redfish/v1/Systems/1")
	case spec.BMC == nil && spec.BMCRef == nil:
		found.Warn("the Server names no BMC (spec.bmcRef or spec.bmc); %s", filled)
	case spec.SystemURI == "":
		found.Warn("spec.systemURI is empty; until BMC %s shows a system with this systemUUID, nothing is known of the machine", spec.BMCRef.Name)
	}
}
