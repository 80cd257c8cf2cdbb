// SPDX-License-Identifier: Apache-2.0

// Package rollout decides how far each policy revision governs. It is pure: what was read goes in, what is to be written
// comes out.
package rollout

import (
	"time"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/internal/canary"
)

// Look is everything that one decision is made from.
type Look struct {
	Now time.Time
	// Embedded is the revision built into this manager.
	Embedded string
	// Last is the highest promotion that this manager has seen in force, also of a revision that is gone.
	Last int64
	// Missing is the restored revision for which nothing governs (PromotionMissing of the API); empty where none is.
	Missing   string
	Heads     []Head
	Revisions []Revision
	Replicas  []Replica
}

// Head is a ConfigMap that holds a bundle, or names the ConfigMaps that do.
type Head struct {
	// Name is the ConfigMap's.
	Name string
	// Revision is the PolicyRevision with its content; empty where there is none because the content cannot be used.
	Revision string
	// Digest is that of its files, before those that it leaves out were filled in; empty where they could not be read.
	Digest string
	// Stage is what its label asks for.
	Stage policyv1alpha1.LabelledStage
	// Canary is whom it governs as a canary.
	Canary canary.Scope
	// ActivatedBy is who put it where it governs, as admission recorded it.
	ActivatedBy string
	// Problem is why the head changes nothing: it is broken or half-written; empty where it can be used.
	Problem string
}

// Revision is one PolicyRevision as it is stored, and what is known of it besides.
type Revision struct {
	Name, Bundle, Version, Digest string
	Generation                    int64
	CreatedAt                     time.Time
	// Promotion is that which took effect here; 0 where none did. Elsewhere is that which came from a backup.
	Promotion, Elsewhere int64
	Status               policyv1alpha1.PolicyRevisionStatus
	// Test is what this manager makes of the content; nil where it has not looked.
	Test *Test
	// Servers is how many are pinned to it; Troubles is what was counted of them since the canary began.
	Servers  int32
	Troubles Troubles
	// Dropped are the servers that it is to govern and that cannot come under it, by their state, which it neither defines nor
	// migrates.
	Dropped map[string]int32
	// Unshown are the servers under it that a canary waits for: they have not shown yet how they fare.
	Unshown []string
	// Shadow is what its evaluation beside the revision in force has shown since the last look.
	Shadow ShadowDelta
}

// Test is what one manager makes of a revision's content.
type Test struct {
	Compiled bool
	// Refused is why the content does not compile, or does not pass its tests; empty where it does.
	Refused string
	// Findings are what the checks had to say, one line each; Total counts those that are left out as well.
	Findings []string
	Total    int
	// MaxHalts and MaxErrors are the budget of a canary.
	MaxHalts, MaxErrors int32
	// NoError says that it has no state Error, so that MaxErrors bounds nothing.
	NoError bool
}

// Troubles counts the servers that a canary has brought into trouble.
type Troubles struct{ Halts, Errors int32 }

// ShadowDelta is what a shadow's evaluation has shown since the last look.
type ShadowDelta struct {
	Evaluated   int64
	Differences []policyv1alpha1.ShadowDifference
}

// Replica is a manager as its lease shows it.
type Replica struct {
	Name          string
	EngineVersion string
	// RenewedAt is when its lease was seen to have been renewed, by the clock of whoever looks.
	RenewedAt time.Time
	Lasts     time.Duration
	// Compiled are the digests that it has compiled and tested, Refused those that it refuses, and why.
	Compiled map[string]bool
	Refused  map[string]string
}

func (r *Replica) live(now time.Time) bool { return r.RenewedAt.Add(r.Lasts).After(now) }

// Outcome is what is to be written, in this order.
type Outcome struct {
	// InForce is the revision that newly adopting servers come under; empty where nothing governs.
	InForce string
	Writes  []Write
	// Obsolete are the revisions that are to be deleted after that.
	Obsolete []string
	// Again is when to look again though nothing may have changed; 0 for no particular time.
	Again time.Duration
}

// Write is how one PolicyRevision is to be stored.
type Write struct {
	Revision string
	// Promotion is the number of the promotion that takes effect; 0 leaves the annotation as it is. It is written before the
	// status.
	Promotion int64
	Status    policyv1alpha1.PolicyRevisionStatus
}
