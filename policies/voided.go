// SPDX-License-Identifier: Apache-2.0

package policies

import (
	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

// EntryVoided says that two agents with different keys reported for an entry, so that nothing of it counts; inv may be nil.
func EntryVoided(inv *policyv1alpha1.ServerInventory, entry int64) bool {
	return inv != nil && inv.Enrolment != nil && inv.Enrolment.Voided && inv.Enrolment.Entry == entry
}

// ReportVoided says that the last report is of a voided entry, as the report says itself or the entry that is still bound; inv may be nil.
func ReportVoided(inv *policyv1alpha1.ServerInventory) bool {
	return inv != nil && inv.Report != nil && (inv.Report.Voided || EntryVoided(inv, inv.Report.Entry))
}
