// SPDX-License-Identifier: Apache-2.0

package machineid

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

// OtherOf is what another machine shows, by its inventory.
func OtherOf(name string, inventory *policyv1alpha1.ServerInventory) Other {
	other := Other{Name: name}
	if inventory.Identity != nil && inventory.Identity.BMC != nil {
		other.Serials, other.Addresses = inventory.Identity.BMC.Serials, inventory.Identity.BMC.PhysicalAddresses
	}
	if inventory.Report.Believed() {
		report := Reported(&inventory.Report.Data)
		other.Reported = Serials(report.SystemSerial, report.BoardSerial)
	}
	return other
}

// Rivals are the other BMCs that show the UUID of the machine.
func Rivals(identity *policyv1alpha1.MachineIdentity) []Other {
	if identity == nil {
		return nil
	}
	var others []Other
	for _, rival := range identity.Rivals {
		others = append(others, Other{Name: "the machine of BMC " + rival.Name, Serials: rival.Serials})
	}
	return others
}

// Passed is what is known of a machine after its report passed. A person's word counts once; it stays with what it
// settled for as long as nothing but that proves the machine.
func Passed(
	identity *policyv1alpha1.MachineIdentity, report policyv1alpha1.ReportedIdentity, verdict Verdict, now time.Time,
) *policyv1alpha1.MachineIdentity {
	next := &policyv1alpha1.MachineIdentity{}
	if identity != nil {
		next = identity.DeepCopy()
	}
	proved := policyv1alpha1.ProvedIdentity{ReportedIdentity: report, At: metav1.NewMicroTime(now)}
	switch former := next.Proved; {
	case verdict.ByPerson && next.Settled != nil:
		proved.By, proved.Reason = next.Settled.By, next.Settled.Reason
	case former != nil && sameReport(former.ReportedIdentity, report):
		proved = *former
	case former != nil && !verdict.ByBMC:
		proved.By, proved.Reason = former.By, former.Reason
	}
	next.Proved, next.Settled, next.Refused = &proved, nil, nil
	return next
}

func sameReport(a, b policyv1alpha1.ReportedIdentity) bool {
	return a.SystemSerial == b.SystemSerial && a.BoardSerial == b.BoardSerial &&
		slices.Equal(a.PhysicalAddresses, b.PhysicalAddresses)
}

// sameWord is the time within which the same words of the same person are one word.
const sameWord = 5 * time.Minute

// Settle has a person answer for the machine: for what it reported last where that is neither proved nor refused,
// else for what it reports next.
func Settle(
	inventory *policyv1alpha1.ServerInventory, settled policyv1alpha1.SettledIdentity,
) *policyv1alpha1.MachineIdentity {
	next := &policyv1alpha1.MachineIdentity{}
	if inventory.Identity != nil {
		next = inventory.Identity.DeepCopy()
	}
	report, reported := Of(inventory)
	if p := next.Proved; p != nil && p.By == settled.By && p.Reason == settled.Reason &&
		settled.At.Sub(p.At.Time).Abs() < sameWord && sameReport(p.ReportedIdentity, report) {
		return next // the same word, which is written again because the write of the server failed
	}
	verdict := Judge(Input{Identity: next, Report: report, Others: Rivals(next)})
	if reported && verdict.Kind == Unproven && next.Refused == nil {
		next.Proved = &policyv1alpha1.ProvedIdentity{ReportedIdentity: report, At: settled.At, By: settled.By,
			Reason: settled.Reason}
		return next
	}
	next.Settled = &settled
	return next
}
