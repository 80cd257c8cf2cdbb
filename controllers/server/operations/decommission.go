// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/policies"
)

const keepsAway = "spec.unclaimable stays set; metalaw server uncordon --reason offers it again"

// takesLeave takes in what is asked for about the end of service, and says whether it was that.
func (d *decision) takesLeave(asked string) bool {
	switch {
	case asked == v1alpha1.OperationDecommission:
		d.decommission()
	case asked == v1alpha1.OperationRecommission && d.server.Status.State != v1alpha1.StateDecommissioned:
		d.withdrawDecommission()
	case asked == v1alpha1.OperationAttestDisk:
		_, why := Attestation(d.Input)
		d.keep(asked, d.Attested.words(), why)
	case asked == v1alpha1.OperationProve:
		_, why := Proof(d.Input)
		d.keep(asked, proved(d.Proved), why)
	default:
		return false
	}
	return true
}

// decommission takes in the wish to have the server out of service. Nothing is done for it here: rules of the policy lead there.
func (d *decision) decommission() {
	s := d.server
	d.take(v1alpha1.OperationDecommission)
	if why := d.mayNotDecommission(); why != "" {
		d.finish(v1alpha1.OperationRefused, why)
		return
	}
	metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.DecommissionAnnotation, s.Status.Operation.Reason)
	s.Spec.Unclaimable = true
	_, waits := DecommissionWaits(d.Observation, d.Facts)
	d.succeed("it is to go out of service, and no new claim gets it. " + waits)
}

// mayNotDecommission says why the wish is not taken in; empty where it is.
func (d *decision) mayNotDecommission() string {
	s := d.server
	_, asked := s.Annotations[v1alpha1.DecommissionAnnotation]
	switch {
	case !d.Bundle.Lifecycle.Defines(engine.State(v1alpha1.StateDecommissioned)):
		return fmt.Sprintf("policy revision %s defines no state %s; promote a bundle that does, such as %s", d.Bundle.Revision.Name,
			v1alpha1.StateDecommissioned, policies.DefaultBundle)
	case s.Status.State == v1alpha1.StateDecommissioned:
		return "the server is out of service already"
	case asked:
		return "the server is to go out of service already; condition " + v1alpha1.ConditionDecommission + " says what that waits for"
	case s.Status.State == v1alpha1.StateParked:
		return "the server is parked; unpark it first (metalaw server unpark)"
	case s.Status.State == v1alpha1.StateObserving:
		return fmt.Sprintf("the machine was found running and is not ours; take it over first (annotation %s=%s), or delete the Server",
			v1alpha1.ConsentAnnotation, v1alpha1.ConsentTakeOver)
	case strings.TrimSpace(s.Status.Operation.Reason) == "":
		return "say why, in annotation " + v1alpha1.OperationReasonAnnotation
	}
	return ""
}

// withdrawDecommission takes the wish back before it came true.
func (d *decision) withdrawDecommission() {
	d.take(v1alpha1.OperationRecommission)
	if _, asked := d.server.Annotations[v1alpha1.DecommissionAnnotation]; !asked {
		d.finish(v1alpha1.OperationRefused, "the server is neither out of service nor to go there")
		return
	}
	delete(d.server.Annotations, v1alpha1.DecommissionAnnotation)
	d.succeed("it stays in service; " + keepsAway)
}

// recommissioned takes the wish away in the write that leads a server back into service, and says what is left to do.
func (d *decision) recommissioned() string {
	if d.server.Status.Operation.Name != v1alpha1.OperationRecommission {
		return ""
	}
	delete(d.server.Annotations, v1alpha1.DecommissionAnnotation)
	return "; " + keepsAway
}

// DecommissionWaits says what a server that is to go out of service waits for: a reason, and what to do.
func DecommissionWaits(o policies.Observation, f *policies.Facts) (reason, message string) {
	s, ref := o.Server, o.Server.Spec.ServerClaimRef
	switch s.Status.State { //nolint:exhaustive // the others wait for what the facts say
	case v1alpha1.StateMaintenance:
		return v1alpha1.ReasonWaitsForOthers, "Waits for the end of its maintenance."
	case v1alpha1.StateParked:
		return v1alpha1.ReasonWaitsForOthers, "Waits until it is unparked (metalaw server unpark)."
	case v1alpha1.StateObserving:
		return v1alpha1.ReasonWaitsForOthers, fmt.Sprintf("Its machine runs and is not ours. Waits until a user takes it over (annotation %s=%s).",
			v1alpha1.ConsentAnnotation, v1alpha1.ConsentTakeOver)
	}
	dirty := slices.Contains(f.Lifecycle.Marks, policies.MarkDirty)
	switch {
	case f.Claim.Missing:
		return v1alpha1.ReasonWaitsForClaim, fmt.Sprintf("Waits for claim %s/%s, which is not found. If it ended, release the server "+
			"(metalaw server release).", ref.Namespace, ref.Name)
	case ref != nil && !v1alpha1.BindingEnded(s):
		return v1alpha1.ReasonWaitsForClaim, fmt.Sprintf("Waits until claim %s/%s is deleted.", ref.Namespace, ref.Name)
	case v1alpha1.KeptAfterRelease(s):
		return v1alpha1.ReasonWaitsForClaim, "Its data is retained. Set spec.reclaimPolicy to Recycle to have it erased."
	case dirty && s.Status.State == v1alpha1.StateError:
		return v1alpha1.ReasonWaitsForDisks, disksWait(o, f)
	case dirty || f.Claim.Released:
		return v1alpha1.ReasonWaitsForWipe, "Waits for the wipe of its disks."
	case f.Probe.Entry < 0 && s.Status.State == v1alpha1.StateError:
		return v1alpha1.ReasonWaitsForInspection, "No agent has reported its disks. Mend what condition Ready says and retry, or delete the Server."
	case f.Probe.Entry < 0:
		return v1alpha1.ReasonWaitsForInspection, "Waits for the report of its disks."
	}
	return v1alpha1.ReasonWaitsForPowerOff, "Waits until its machine is off."
}

// disksWait says what becomes of disks with data that no wipe has erased.
func disksWait(o policies.Observation, f *policies.Facts) string {
	known, left := 0, 0
	if o.Inventory != nil && o.Inventory.Custody != nil {
		known, left = len(o.Inventory.Custody.Disks), len(o.Inventory.Custody.Unattested(o.Inventory.Custody.Disks))
	}
	switch {
	case known > 0 && left == 0 && f.Wipe.Attested:
		return "Waits until its machine is off; every disk is attested."
	case known > 0 && left == 0:
		return "Every disk is attested, and the release of its holder is not recorded. Release it (metalaw server release)."
	}
	answer := fmt.Sprintf("attest each disk (metalaw server attest); %d of %d are", known-left, known)
	if foundOnly(o.Server, o.Inventory) {
		return "Its disks hold data of which nothing is known. Have them erased (metalaw server sanitize), or " + answer + "."
	}
	return "Its disks were not erased; condition Ready says why. Mend that and retry, or " + answer + "."
}

// disksOf lists the disks that custody remembers, and those of the last report that custody does not.
func disksOf(inv *policyv1alpha1.ServerInventory) []policyv1alpha1.CustodyDisk {
	var all []policyv1alpha1.CustodyDisk
	if inv == nil {
		return nil
	}
	if inv.Custody != nil {
		all = append(all, inv.Custody.Disks...)
	}
	if inv.Report == nil {
		return all
	}
	for i := range inv.Report.Data.Storage {
		device := &inv.Report.Data.Storage[i]
		if !device.Removable && !device.ReadOnly && !device.Remote() {
			all = append(all, policyv1alpha1.Besides([]policyv1alpha1.CustodyDisk{device.RememberedDisk()}, all)...)
		}
	}
	return all
}

// maxNamed bounds the disks that a message names.
const maxNamed = 5

func namesOf(disks []policyv1alpha1.CustodyDisk) string {
	if len(disks) == 0 {
		return "none"
	}
	var names []string
	for i, d := range disks {
		if i == maxNamed {
			names = append(names, fmt.Sprintf("and %d more", len(disks)-maxNamed))
			break
		}
		name, serial := fmt.Sprintf("%.60s", d.Key().Value), fmt.Sprintf("%.60s", d.Serial)
		twin := func(other policyv1alpha1.CustodyDisk) bool {
			return d.Key() == other.Key() && policyv1alpha1.TwoDisks(d, other)
		}
		if slices.ContainsFunc(disks, twin) {
			name += " serial " + serial
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}
