// SPDX-License-Identifier: Apache-2.0

package hold

import (
	"github.com/metalaw/metalaw/api/v1alpha1"
)

// approvals are the keys of labels and annotations by which the holder of a claim approves.
var approvals = [...]string{v1alpha1.MaintenanceApprovedLabel, v1alpha1.MaintenanceApprovalLabel}

// Approved says that a claim bears an approval, in whatever spelling and with whatever value.
func Approved(c *v1alpha1.ServerClaim) bool { return Approval(c) != "" }

// Approval says as what a claim bears an approval, such as "label KEY=true"; empty where it bears none.
func Approval(c *v1alpha1.ServerClaim) string {
	for _, key := range approvals {
		if value, has := c.Labels[key]; has {
			return "label " + key + "=" + value
		}
		if value, has := c.Annotations[key]; has {
			return "annotation " + key + "=" + value
		}
	}
	return ""
}

const wanted = "true"

// Asked says that this manager asked for the claim's server and has not taken that back. The annotation is what tells its label from that
// of another manager, which writes no annotation.
func Asked(c *v1alpha1.ServerClaim) bool {
	return c.Annotations[v1alpha1.MaintenanceNeededLabel] == wanted
}

// Tells says that a claim, in all spellings, says that its server is wanted, or that this manager has nothing to write there.
func Tells(c *v1alpha1.ServerClaim) bool {
	return !c.DeletionTimestamp.IsZero() || v1alpha1.Ignored(c) || Asked(c) && c.Labels[v1alpha1.MaintenanceNeededLabel] == wanted
}

// Labelled changes a claim in memory so that it says that its server is wanted.
func Labelled(c *v1alpha1.ServerClaim) {
	c.Labels, c.Annotations = with(c.Labels, v1alpha1.MaintenanceNeededLabel), with(c.Annotations, v1alpha1.MaintenanceNeededLabel)
}

func with(all map[string]string, key string) map[string]string {
	if all == nil {
		all = map[string]string{}
	}
	all[key] = wanted
	return all
}

// Unlabelled changes a claim in memory so that it says nothing of maintenance any more.
func Unlabelled(c *v1alpha1.ServerClaim) {
	delete(c.Annotations, v1alpha1.ApprovalReasonAnnotation)
	for _, of := range []map[string]string{c.Labels, c.Annotations} {
		delete(of, v1alpha1.MaintenanceNeededLabel)
		for _, key := range approvals {
			delete(of, key)
		}
	}
}

// labels has the claim say that its server is wanted for as long as one of the maintenances waits for its holder or has the server, or
// the server is to go out of service. Then nothing is left on it.
func (d *decision) labels() Step {
	c := d.Claim
	if c == nil || !c.DeletionTimestamp.IsZero() || v1alpha1.Ignored(c) {
		return Step{}
	}
	asks, keeps := d.needs()
	switch {
	case asks && !Tells(c):
		return Step{Kind: Label}
	case !asks && !keeps && (Asked(c) || d.lastGo() && bears(c)):
		return Step{Kind: Unlabel}
	}
	return Step{}
}

// lastGo says that every maintenance of the server is deleted. What another manager asked the claim for them goes with the last one.
func (d *decision) lastGo() bool {
	for i := range d.Maintenances {
		if d.Maintenances[i].DeletionTimestamp.IsZero() {
			return false
		}
	}
	return len(d.Maintenances) > 0
}

// bears says that a claim says anything of maintenance.
func bears(c *v1alpha1.ServerClaim) bool {
	_, label := c.Labels[v1alpha1.MaintenanceNeededLabel]
	return label || Approved(c)
}

// needs says whether the claim is to be labelled, and whether a label that it has stays.
func (d *decision) needs() (asks, keeps bool) {
	if d.Server.Annotations[v1alpha1.DecommissionAnnotation] != "" {
		return true, true
	}
	if Granted(d.Server) {
		return d.Server.Annotations[v1alpha1.MaintenanceClaimAnnotation] == string(d.Claim.UID), true
	}
	for i := range d.Maintenances {
		m := &d.Maintenances[i]
		if !d.live(m) {
			continue
		}
		keeps = true
		if asked := m.Status.Asked; asked != nil && asked.ClaimUID == d.Claim.UID ||
			m.Answer != nil && (m.Answer.Asks || m.Answer.Reason == v1alpha1.ReasonApprovalOlder) {
			return true, true
		}
	}
	return false, keeps
}
