// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"fmt"
	"slices"
	"time"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/redfish"
)

// releaseByHand records the release of a claim that is gone. It is refused while the claim exists, and where nobody is
// known to have held the server.
func (d *decision) releaseByHand() {
	s := d.server
	d.take(v1alpha1.OperationRelease)
	switch {
	case d.Holder != "":
		d.finish(v1alpha1.OperationRefused, holdsWords(&d.Input))
	case foundOnly(d.server, d.Inventory):
		d.finish(v1alpha1.OperationRefused, "its disks held data when it was inspected, and no claim is known to have left it; "+
			"operation sanitize has it erased")
	case !hasHolder(d.server):
		d.finish(v1alpha1.OperationRefused, "no claim is known to have held this server")
	default:
		ref := s.Spec.ServerClaimRef
		letGo(s, d.Now, d.NewID)
		s.Spec.ServerClaimRef = ref // the state that wipes clears it
		d.succeed("the release of holder " + s.Annotations[v1alpha1.ClaimUIDAnnotation] + " was recorded by hand")
	}
}

// undoRelease takes the record of a release away, as long as nothing of a wipe was prepared. The server then waits for the
// claim: without a record nothing on it is erased, and a claim of the same name that names it takes it over. In Released one
// without a record is led back too: the record may have gone in a write of which the other half failed.
func (d *decision) undoRelease() {
	s := d.server
	d.take(v1alpha1.OperationUndoRelease)
	ref, credential := s.Spec.ServerClaimRef, s.Status.Lifecycle.Credential
	switch {
	case !v1alpha1.ReleaseRecorded(s) && (s.Status.State != v1alpha1.StateReleased || ref == nil):
		d.finish(v1alpha1.OperationRefused, "no release of its claim is recorded")
	case ref == nil:
		d.finish(v1alpha1.OperationRefused, d.tooLate("its reference to the claim is cleared already, so that its disks may have been erased"))
	case d.Facts.Boot.Purpose == v1alpha1.BootPurposeWipe || credential != nil && credential.Purpose == v1alpha1.ProbePurposeWipe ||
		d.Facts.Wipe.Running || d.Facts.Wipe.Entry == s.Status.Lifecycle.Entry:
		d.finish(v1alpha1.OperationRefused, d.tooLate("a wipe was prepared, so that its disks may have been erased"))
	default:
		policies.UndoRelease(s)
		if s.Status.State == v1alpha1.StateReleased {
			return // a rule leads it back to its claim, and ends the operation
		}
		d.succeed("the release was undone" + d.undone())
	}
}

// tooLate says since when a release cannot be taken back, and what became of the machine.
func (d *decision) tooLate(what string) string {
	at, ok := policies.ReleaseEffective(d.server, d.Settings.ReleaseGrace)
	if released, _ := policies.Released(d.server, d.Settings.ReleaseGrace, d.CountedNow); !ok || !released {
		return what
	}
	return fmt.Sprintf("too late: the release took effect at %s; %s", at.Format(time.RFC3339), what)
}

// holdsWords says why a claim that exists stands in the way of a release by hand. One that holds another server is not to
// be deleted for the sake of this one.
func holdsWords(in *Input) string {
	if c := in.Claim; c != nil && c.Namespace+"/"+c.Name == in.Holder && c.Spec.ServerRef != nil && c.Spec.ServerRef.Name != in.Server.Name {
		return fmt.Sprintf("the server names the claim %s, which names server %q and holds nothing here; "+
			"clear spec.serverClaimRef of this server instead", in.Holder, c.Spec.ServerRef.Name)
	}
	return "the claim " + in.Holder + " exists and holds this server; delete the claim instead"
}

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

// mayNotSanitize says why the disks of a server are not erased for a user who answers for their data; empty where they are.
func (d *decision) mayNotSanitize() string {
	s := d.server
	switch ref := s.Spec.ServerClaimRef; {
	case d.Holder != "":
		return holdsWords(&d.Input)
	case ref != nil:
		return fmt.Sprintf("it names the claim %s/%s; delete the claim, or clear the reference", ref.Namespace, ref.Name)
	case !slices.Contains(s.Status.Lifecycle.Marks, policies.MarkDirty):
		return "it is not marked Dirty, so that nothing on it is to be erased"
	}
	return ""
}

// admitSanitize takes in the wish to have the disks erased. The release that it takes is recorded once the wish is stored.
func (d *decision) admitSanitize() {
	d.beginOperation(v1alpha1.OperationSanitize)
	if why := d.mayNotSanitize(); why != "" {
		d.dropRequest()
		d.finish(v1alpha1.OperationRefused, why)
	}
}

// beginSanitize records that nobody holds the server, in the write that takes the request away. A rule of the policy moves on it.
func (d *decision) beginSanitize() {
	if why := d.mayNotSanitize(); why != "" {
		d.finish(v1alpha1.OperationRefused, why)
		return
	}
	letGo(d.server, d.Now, d.NewID)
}

// foundOnly says that the server is marked Dirty for data that was found on its disks, and that no claim is known to
// have left it.
func foundOnly(s *v1alpha1.Server, inv *policyv1alpha1.ServerInventory) bool {
	return inv != nil && inv.Custody != nil && inv.Custody.DataFound != nil && inv.Custody.LastHolder == nil &&
		s.Spec.ServerClaimRef == nil && s.Annotations[v1alpha1.ClaimUIDAnnotation] == ""
}
