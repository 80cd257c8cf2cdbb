// SPDX-License-Identifier: Apache-2.0

package grant

import (
	"time"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/maintenance"
)

// Consented is whether the holder of a claim gives its server to a maintenance.
type Consented struct {
	// Answer says what it waits for; its Reason is empty where there is consent.
	Answer
	// By says in words whose word it is.
	By string
	// Asks says that the holder was not asked or told yet, and is to be. Where an approval is needed, it is set only while the claim bears
	// none: one that stands there is about something else.
	Asks bool
	// After is when the notice is over.
	After time.Time
}

// Consent decides whether a maintenance has the consent of the claim that holds its server; nil is no claim.
func Consent(m *Maintenance, claim *Claim, p *maintenance.Policy, now time.Time) Consented {
	if claim == nil {
		return Consented{}
	}
	asked := m.Asked == claim.UID && !m.AskedAt.IsZero()
	needs := !m.Enforced || m.Boots || claim.DrainRequired
	asks := !asked && (!needs || !claim.Approved)
	switch {
	case claim.Approved && (asked || p.PerClaim):
		return Consented{By: words("claim %s approved", claim), Asks: asks}
	case !needs:
		return noticed(m, claim, p, now, asked)
	case claim.Approved:
		return Consented{Answer: answer(v1alpha1.ReasonApprovalOlder,
			"The approval of claim %s is older than this maintenance. Take it away, and approve anew.", claim)}
	case claim.DrainRequired:
		return Consented{Asks: asks, Answer: answer(v1alpha1.ReasonWaitsForDrain,
			"Claim %s is to be drained first. The drainer then approves by label %s.", claim, v1alpha1.MaintenanceApprovedLabel)}
	default:
		return Consented{Asks: asks, Answer: answer(v1alpha1.ReasonWaitsForApproval,
			"The holder of claim %s is to approve by label %s.", claim, v1alpha1.MaintenanceApprovedLabel)}
	}
}

// noticed is the consent that an enforced maintenance has once its notice is over.
func noticed(m *Maintenance, claim *Claim, p *maintenance.Policy, now time.Time, asked bool) Consented {
	starts := m.AskedAt.Add(p.EnforcedNotice)
	switch {
	case p.EnforcedNotice <= 0, asked && !starts.After(now):
		return Consented{By: "it is enforced on claim " + claim.String(), Asks: !asked}
	case !asked:
		return Consented{Asks: true, Answer: answer(v1alpha1.ReasonWaitsForNotice,
			"The holder of claim %s is told first. The maintenance begins %s after that.", claim, length(p.EnforcedNotice))}
	default:
		return Consented{After: starts, Answer: answer(v1alpha1.ReasonWaitsForNotice,
			"The holder of claim %s was told. The maintenance begins at %s.", claim, moment(starts))}
	}
}
