// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/fleet"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/controllers/server/gates"
	"github.com/metalaw/metalaw/controllers/server/proof"
	"github.com/metalaw/metalaw/controllers/server/said"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/policies"
)

// custodyShell keeps what must outlive the Server in its inventory.
type custodyShell struct{ *scope }

// storeMark writes a mark that guards data where it outlives the Server first; then it goes into the status. The effects that need it follow in
// the next reconcile, once both are stored (order 2: custody before the mark in status, and both before the first boot for a claim).
func (v custodyShell) storeMark(ctx context.Context, mark string) loop.Progress {
	switch mark {
	case policies.MarkStranger:
		return v.storeStranger(ctx)
	case gates.DoubtEnded:
		return v.endDoubt(ctx)
	}
	if v.server.Status.Lifecycle != nil { // before there is one no decision can be stale, and a fear may always be kept
		if p, ok := v.confirm(ctx, fleet.Record); !ok {
			return p
		}
	}
	if !policies.OutlivesServer(mark) {
		return v.marked(mark)
	}
	if err := v.keepMark(ctx, mark); err != nil {
		return conflictOrBroken(err)
	}
	return v.marked(mark)
}

// dirtiedByMove keeps the mark Dirty in the inventory before a move into a state that would store it before its first effects. The mark
// then goes into the status with the move (order 2: custody comes first). Where custody cannot be written now, the state stores both.
func (v custodyShell) dirtiedByMove(ctx context.Context, d engine.Decision) engine.Decision {
	if !d.Moves() || d.From == "" || v.server.Status.Lifecycle == nil || v.bundle == nil || v.force.Made() ||
		!slices.Contains(v.bundle.Lifecycle.MarksAhead(v.facts, d), policies.MarkDirty) {
		return d
	}
	if _, ok := v.confirm(ctx, fleet.Record); !ok || v.keepMark(ctx, policies.MarkDirty) != nil {
		return d
	}
	d.Marks = append(slices.Clone(d.Marks), policies.MarkDirty)
	return d
}

// keepMark writes a mark into custody, and who holds the machine.
func (v custodyShell) keepMark(ctx context.Context, mark string) error {
	return v.writeCustody(ctx, func(c *policyv1alpha1.Custody) {
		v.addMark(c, mark)
		if v.facts.Probe.DataFound && mark == policies.MarkDirty && v.server.Spec.ServerClaimRef == nil {
			c.DataFound = &policyv1alpha1.FoundData{At: metav1.NewMicroTime(v.now), Disks: policies.FoundWords(v.observed)}
		}
		if ref := v.server.Spec.ServerClaimRef; ref != nil {
			c.DataFound, c.MinimumTerm = nil, v.askedTerm()
			holder := policyv1alpha1.Holder{Namespace: ref.Namespace, Name: ref.Name,
				UID: types.UID(v.server.Annotations[v1alpha1.ClaimUIDAnnotation])}
			if c.LastHolder == nil || *c.LastHolder != holder {
				c.Attested, c.AttestedHidden = nil, nil
				c.TimesClaimed++
			}
			c.LastHolder = &holder
		}
		c.ServerName = v.server.Name
	})
}

// askedTerm is the term that the claim asks for its disks; empty where it asks for none, or for a word that is no term.
func (v custodyShell) askedTerm() policyv1alpha1.SanitizationTerm {
	if v.claim == nil {
		return ""
	}
	return policyv1alpha1.SanitizationTerm(bundle.Stronger("", v.claim.Annotations[v1alpha1.MinimumTermAnnotation]))
}

// addMark adds a mark to custody. With Dirty the record goes that says the opposite.
func (v custodyShell) addMark(c *policyv1alpha1.Custody, mark string) {
	if mark == policies.MarkDirty && (c.Clean != nil || !slices.Contains(c.Marks, mark)) {
		at := metav1.NewMicroTime(v.now)
		c.Clean, c.DirtiedAt, c.Attested, c.AttestedHidden = nil, &at, nil, nil // who answered for a disk did so for other data
	}
	if !slices.Contains(c.Marks, mark) {
		c.Marks = append(c.Marks, mark)
		slices.Sort(c.Marks)
	}
}

func (v *scope) marked(mark string) loop.Progress {
	if v.server.Status.Lifecycle == nil {
		return loop.Waiting("MarkStored", mark+" is kept in its inventory first", time.Millisecond)
	}
	v.server.Status.Lifecycle.Marks = engine.Decision{Marks: []string{mark}}.MarksAfter(v.server.Status.Lifecycle.Marks)
	return loop.Waiting("MarkStored", mark+" is stored first", time.Millisecond)
}

// storeStranger writes MarkStranger where it outlives the Server, or takes it away there. Nothing has to be confirmed for
// that: the next look puts right what was read too early.
func (v custodyShell) storeStranger(ctx context.Context) loop.Progress {
	err := v.writeCustody(ctx, func(c *policyv1alpha1.Custody) {
		c.Marks = slices.DeleteFunc(c.Marks, func(m string) bool { return m == policies.MarkStranger })
		if slices.Contains(v.facts.Lifecycle.Marks, policies.MarkStranger) && !v.force.Made() {
			c.Marks = append(c.Marks, policies.MarkStranger)
			slices.Sort(c.Marks)
		}
		c.ServerName = v.server.Name
	})
	if err != nil {
		return conflictOrBroken(err)
	}
	return loop.Waiting("MarkStored", policies.MarkStranger+" is kept in its inventory first", time.Millisecond)
}

// endDoubt forgets the doubt about a machine whose disks were read since the restore, before it is offered.
func (v custodyShell) endDoubt(ctx context.Context) loop.Progress {
	if p, ok := v.confirm(ctx, fleet.Record); !ok {
		return p
	}
	if err := v.writeCustody(ctx, func(c *policyv1alpha1.Custody) { c.Doubt = nil }); err != nil {
		return conflictOrBroken(err)
	}
	return loop.Waiting(gates.RestoredDoubt, "the annotation that marks the doubt to go", time.Second)
}

// writeCustody changes what must be remembered of the machine when its Server is gone.
func (v custodyShell) writeCustody(ctx context.Context, change func(*policyv1alpha1.Custody)) error {
	return v.writeInventory(ctx, func(i *policyv1alpha1.ServerInventory) {
		if i.Custody == nil {
			i.Custody = &policyv1alpha1.Custody{}
		}
		change(i.Custody)
	})
}

// writeInventory changes what is kept of the machine.
func (v custodyShell) writeInventory(ctx context.Context, change func(*policyv1alpha1.ServerInventory)) error {
	inventory, err := v.storedInventory(ctx)
	if err != nil {
		return err
	}
	if inventory == nil {
		inventory = &policyv1alpha1.ServerInventory{ObjectMeta: metav1.ObjectMeta{Name: v.server.Spec.SystemUUID},
			Spec: policyv1alpha1.ServerInventorySpec{SystemUUID: v.server.Spec.SystemUUID}}
		change(inventory)
		return v.wroteInventory(inventory, v.Client.Create(ctx, inventory))
	}
	before := inventory.DeepCopy()
	change(inventory)
	if equality.Semantic.DeepEqual(before, inventory) {
		return nil // an earlier look wrote it, whose write of the server was refused
	}
	return v.wroteInventory(inventory, v.Client.Patch(ctx, inventory, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})))
}

// wroteInventory notes what the next write begins from.
func (v custodyShell) wroteInventory(inventory *policyv1alpha1.ServerInventory, err error) error {
	if err == nil {
		v.stored = inventory
	}
	return err
}

// storedInventory is the inventory as it was read when the server was confirmed, or is now. The API server refuses a write to it
// where it changed since.
func (v custodyShell) storedInventory(ctx context.Context) (*policyv1alpha1.ServerInventory, error) {
	if v.confirmed {
		return v.stored.DeepCopy(), nil
	}
	return find[policyv1alpha1.ServerInventory](ctx, v.Reader, "", v.inventoryName())
}

// releaseClaim takes the reference to a released claim off the server. The holder's UID and the release record stay
// until the server is wiped.
func (v custodyShell) releaseClaim(ctx context.Context) loop.Progress {
	if v.server.Spec.ServerClaimRef == nil {
		return loop.Holds()
	}
	if p, ok := v.confirmClaim(ctx); !ok {
		return p
	}
	v.server.Spec.ServerClaimRef = nil
	return loop.Waiting("ReferenceCleared", "the claim reference is cleared first", time.Millisecond)
}

// forgetHolder clears what is remembered of the last holder of a server that is clean, and records in the same write that it is
// where that is proven. A server that never had a holder costs one write in its life.
func (v custodyShell) forgetHolder(ctx context.Context) loop.Progress {
	kept := policies.KeptDirty(v.inventory) || (v.inventory != nil && v.inventory.Custody != nil && v.inventory.Custody.LastHolder != nil)
	earns := policies.NextCleanRecord(v.server, v.inventory, v.now) != nil && !v.Gate.ObserveOnly
	if kept || earns {
		if p, ok := v.confirm(ctx, fleet.Record); !ok {
			return p
		}
		if p := proof.Rest(ctx, v.Reader, v.server.Status.Lifecycle.Entry-1, v.inventory, v.stored); p.Phase != loop.Done {
			return p
		}
		err := v.writeCustody(ctx, func(c *policyv1alpha1.Custody) {
			if record := policies.NextCleanRecord(v.server, v.withCustody(c), v.now); record != nil {
				c.Clean = record
			}
			c.Marks = slices.DeleteFunc(c.Marks, func(m string) bool { return m == policies.MarkDirty })
			c.LastHolder, c.DataFound, c.MinimumTerm = nil, nil, ""
		})
		if err != nil {
			return conflictOrBroken(err)
		}
	}
	for _, name := range []string{
		v1alpha1.ClaimUIDAnnotation, v1alpha1.ReleasedClaimAnnotation, v1alpha1.ReleasedAtAnnotation, v1alpha1.ReleasedSpecAnnotation,
		v1alpha1.ReleasedCountedAnnotation,
		v1alpha1.BindingAnnotation, v1alpha1.ClaimEndedByAnnotation,
	} {
		delete(v.server.Annotations, name)
	}
	return loop.Holds()
}

// proven keeps a server where it is whose move clears Dirty, until the store proves the wipe.
func (v custodyShell) proven(ctx context.Context, d engine.Decision) (engine.Decision, loop.Outcome) {
	if v.server.Status.Lifecycle == nil || !proof.Takes(d, v.settings()) {
		return d, loop.Outcome{}
	}
	return proof.Move(ctx, v.Reader, d, v.server.Status.Lifecycle.Entry, v.decided().inventoryNow)
}

// withCustody is the inventory with its custody as it is stored.
func (v custodyShell) withCustody(c *policyv1alpha1.Custody) *policyv1alpha1.ServerInventory {
	inventory := &policyv1alpha1.ServerInventory{Custody: c}
	if v.stored != nil {
		inventory.Wipe = v.stored.Wipe
	}
	return inventory
}

// holdsData says that a claim holds the server, or that its status or its inventory marks it Dirty.
func (v custodyShell) holdsData() bool {
	s := v.server
	if s.Spec.ServerClaimRef != nil || (s.Status.Lifecycle != nil && slices.Contains(s.Status.Lifecycle.Marks, policies.MarkDirty)) {
		return true
	}
	return policies.KeptDirty(v.inventory)
}

// Finalize implements loop.Scope. A server that holds data, or that a claim holds, goes only when an annotation says so;
// what must be remembered of the machine stays in its inventory.
func (v *scope) Finalize(ctx context.Context) loop.Progress {
	s := v.server
	holds := custodyShell{v}.holdsData() && !policies.HoldsNothing(s, v.inventory)
	if holds && s.Annotations[v1alpha1.DeleteDataAnnotation] != "true" {
		message := "the server holds data or a claim; annotation " + v1alpha1.DeleteDataAnnotation + "=true lets it go"
		v.condition(v1alpha1.ConditionReady, metav1.ConditionFalse, "HoldsData", message)
		return loop.Waiting("HoldsData", message, 0)
	}
	if holds {
		err := custodyShell{v}.writeCustody(ctx, func(c *policyv1alpha1.Custody) {
			custodyShell{v}.addMark(c, policies.MarkDirty)
			c.ServerName = s.Name
		})
		if err != nil {
			return loop.Broken(err)
		}
	}
	if err := said.Keep(ctx, v.Client, s, v.inventory, custodyShell{v}.writeInventory); err != nil {
		return conflictOrBroken(err)
	}
	v.memory.forget(s.Name)
	v.Cache.Forget(s.Name)
	return loop.Holds()
}
