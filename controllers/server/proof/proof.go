// SPDX-License-Identifier: Apache-2.0

// Package proof says whether the store proves the wipe on which a server is called clean. A cache may show a wipe that the store
// does not have, such as after a restore of etcd.
package proof

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/policies"
)

// Effect is what conditions call the clearing of the mark Dirty.
const Effect = "Clear" + policies.MarkDirty

// again is when to look again at what the store does not prove yet.
const again = 10 * time.Second

// Takes says that a decision clears Dirty on the word of a wipe. A waiver of the policy, and a person who sets rules aside, need none.
func Takes(d engine.Decision, settings bundle.Settings) bool {
	return d.Moves() && slices.Contains(d.Clears, policies.MarkDirty) && d.Rule != v1alpha1.RuleForced &&
		settings.Sanitization != bundle.SanitizationNone
}

// Tells says that an inventory tells of a verified wipe in an entry; inv may be nil.
func Tells(entry int64, inv *policyv1alpha1.ServerInventory) bool {
	return inv != nil && inv.Wipe != nil && inv.Wipe.Entry == entry && inv.Wipe.State == policyv1alpha1.WipeVerified
}

// Lacks says what the store lacks to prove a wipe in an entry; empty where it proves the wipe. Either object is nil where the store has none.
func Lacks(entry int64, inv *policyv1alpha1.ServerInventory, record *policyv1alpha1.SanitizationRecord) string {
	switch {
	case inv == nil:
		return "no ServerInventory"
	case policies.EntryVoided(inv, entry):
		return fmt.Sprintf("two agents with different keys for entry %d, so that its wipe does not count", entry)
	case !Tells(entry, inv):
		return fmt.Sprintf("no verified wipe of entry %d in the ServerInventory", entry)
	case inv.LastRecord == nil:
		return fmt.Sprintf("no SanitizationRecord of the wipe of entry %d", entry)
	case record == nil:
		return "no SanitizationRecord " + inv.LastRecord.Name
	case record.Spec.Hash != inv.LastRecord.Hash, record.Spec.Entry != entry, record.Spec.State != policyv1alpha1.WipeVerified:
		return fmt.Sprintf("no verified wipe of entry %d in SanitizationRecord %s", entry, record.Name)
	}
	return ""
}

// Look reads the record that a stored inventory names, and says what the store lacks. The reader reads past the cache.
func Look(ctx context.Context, from client.Reader, entry int64, inv *policyv1alpha1.ServerInventory) (lacks string, err error) {
	if inv == nil || inv.LastRecord == nil {
		return Lacks(entry, inv, nil), nil
	}
	record := &policyv1alpha1.SanitizationRecord{}
	switch err := from.Get(ctx, client.ObjectKey{Name: inv.LastRecord.Name}, record); {
	case client.IgnoreNotFound(err) != nil:
		return "", fmt.Errorf("reading SanitizationRecord %s: %w", inv.LastRecord.Name, err)
	case err != nil:
		record = nil
	}
	return Lacks(entry, inv, record), nil
}

// Move is the decision, which clears Dirty in an entry, once the store proves the wipe of the entry. Until then it is a decision that
// leaves the server where it is, with the effect that waits.
func Move(ctx context.Context, from client.Reader, d engine.Decision, entry int64,
	inventory func(context.Context) (*policyv1alpha1.ServerInventory, error),
) (engine.Decision, loop.Outcome) {
	stored, err := inventory(ctx)
	lacks := ""
	if err == nil {
		lacks, err = Look(ctx, from, entry, stored)
	}
	p := progress(lacks, err)
	if p.Phase == loop.Done {
		return d, loop.Outcome{}
	}
	return engine.Decision{From: d.From, To: d.From, Revision: d.Revision, Message: "The end of its wipe is looked up in the store."},
		loop.Outcome{Effect: Effect, Progress: p}
}

// Rest is the progress of a server that rests after an entry: it holds where neither the cache nor the store tells of a verified wipe in
// that entry, or the store proves the wipe.
func Rest(ctx context.Context, from client.Reader, entry int64, cached, stored *policyv1alpha1.ServerInventory) loop.Progress {
	if !Tells(entry, cached) && !Tells(entry, stored) {
		return loop.Holds()
	}
	return progress(Look(ctx, from, entry, stored))
}

// progress is that of what waits for the proof; it holds where nothing lacks.
func progress(lacks string, err error) loop.Progress {
	switch {
	case err != nil:
		return loop.Broken(err)
	case lacks == "":
		return loop.Holds()
	}
	return loop.Failing(v1alpha1.ReasonWipeUnproven, fmt.Sprintf("the cache shows a verified wipe; the store has %s. "+
		"The server keeps its mark and is looked at again. After a restore of etcd restart the manager", lacks), again)
}
