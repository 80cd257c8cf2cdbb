// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/internal/mergepatch"
)

// voidedWords are what the wipe and the record of a voided entry say.
const voidedWords = "two agents with different keys reported for this entry, so that no report of it counts, and no wipe"

// void marks the entry as voided, and says whether it did. The first agent is refused from now on as well: nothing tells which of the
// two runs on the machine. The report and the end of a wipe that the entry has already count no longer. A wipe that runs goes silent
// by itself, and power stays until then.
func void(stored *policyv1alpha1.ServerInventory, g grant) bool {
	e := stored.Enrolment
	if e == nil || e.Entry != g.entry || e.Voided {
		return false
	}
	e.Voided = true
	doubt(stored.Custody, g.entry)
	if report := stored.Report; report != nil && report.Entry == g.entry {
		report.Voided = true
	}
	if wipe := stored.Wipe; wipe != nil && wipe.Entry == g.entry && wipe.State == policyv1alpha1.WipeVerified {
		wipe.State, wipe.Message = policyv1alpha1.WipeFailed, voidedWords
	}
	return true
}

// isVoided says that the entry was voided before.
func isVoided(refused *refusal) bool { return refused != nil && refused.outcome == OutcomeVoided }

// recorded is a refusal, once the record is kept that a voided entry owes. The agent of an entry whose record cannot be kept comes
// again, and the registry tries again then.
func (a archive) recorded(ctx context.Context, g grant, refused *refusal) *refusal {
	if !isConflict(refused) && !isVoided(refused) {
		return refused
	}
	failure := a.recordVoid(ctx, g)
	switch {
	case failure == nil:
		return refused
	case isVoided(refused):
		return failure
	}
	a.Log.Warn("the record of a voided entry is not kept yet", "server", g.server.Name, "error", failure.err)
	return refused
}

// owesRecord says that a wipe had begun in a voided entry, and that no record tells yet that the wipe does not count.
func owesRecord(stored *policyv1alpha1.ServerInventory, entry int64) bool {
	if stored == nil || stored.Enrolment == nil || stored.Wipe == nil {
		return false
	}
	e := stored.Enrolment
	return e.Voided && !e.Recorded && e.Entry == entry && stored.Wipe.Entry == entry
}

// recordVoid appends the record that a voided entry owes. Records stay as they are: the new one names the one that it takes back.
func (a archive) recordVoid(ctx context.Context, g grant) *refusal {
	uuid := g.server.Spec.SystemUUID
	for range writeAttempts {
		stored, err := inventory(ctx, a.Live, uuid)
		if err != nil {
			return failed(err)
		}
		if !owesRecord(stored, g.entry) {
			return nil
		}
		before := stored.DeepCopy()
		kept, refused := a.void(ctx, g, stored)
		if refused != nil {
			return refused
		}
		stored.LastRecord, stored.Enrolment.Recorded = kept, true
		patch := mergepatch.Locked(before)
		switch err := a.Writer.Patch(ctx, stored, patch); {
		case err == nil:
			return nil
		case !apierrors.IsConflict(err):
			return failed(fmt.Errorf("writing inventory %s: %w", uuid, err))
		}
	}
	return failed(fmt.Errorf("writing inventory %s: others wrote it %d times meanwhile", uuid, writeAttempts))
}

// void makes the record that the wipe of an entry does not count.
func (a archive) void(ctx context.Context, g grant, stored *policyv1alpha1.ServerInventory) (*policyv1alpha1.RecordReference, *refusal) {
	voids, err := a.ofEntry(ctx, stored, g.entry)
	if err != nil {
		return nil, notRecorded(err)
	}
	told := stored.DeepCopy()
	told.Wipe.State, told.Wipe.Message = policyv1alpha1.WipeFailed, voidedWords
	return a.keep(ctx, g, told, voids)
}

// ofEntry is the last record of a machine where it is of a wipe in an entry; nil where there is none.
func (a archive) ofEntry(ctx context.Context, stored *policyv1alpha1.ServerInventory, entry int64) (*policyv1alpha1.RecordReference, error) {
	last := stored.LastRecord
	if last == nil {
		return nil, nil
	}
	var there policyv1alpha1.SanitizationRecord
	err := client.IgnoreNotFound(a.Live.Get(ctx, client.ObjectKey{Name: last.Name}, &there))
	if err != nil {
		return nil, fmt.Errorf("reading record %s: %w", last.Name, err)
	}
	if there.Name == "" || there.Spec.Entry != entry || there.Spec.Voids != nil {
		return nil, nil
	}
	return last.DeepCopy(), nil
}
