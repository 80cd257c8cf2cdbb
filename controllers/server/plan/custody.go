// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/fleet"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/controllers/server/gates"
	"github.com/metalaw/metalaw/controllers/server/status"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/policies"
)

// storeMark writes a mark that guards data where it outlives the Server first; then it goes into the status. The effects that
// need it follow in the next reconcile (order 2: custody before the mark in status, both before the first boot for a claim).
func storeMark(d *draft, effect engine.Effect) loop.Progress {
	mark := effect.Param("mark").Text()
	switch mark {
	case policies.MarkStranger: // nothing to confirm: the next look corrects what was read too early
		keepCustody(d, d.stranger())
		return loop.Waiting("MarkStored", mark+" is kept in its inventory first", time.Millisecond)
	case gates.DoubtEnded: // the disks were read since the restore
		d.do(Confirm{Action: fleet.Record})
		keepCustody(d, func(c *policyv1alpha1.Custody) { c.Doubt = nil })
		return loop.Waiting(gates.RestoredDoubt, "the annotation that marks the doubt to go", time.Second)
	}
	if d.Server.Status.Lifecycle != nil { // before there is one no decision can be stale, and a fear may always be kept
		d.do(Confirm{Action: fleet.Record})
	}
	if policies.OutlivesServer(mark) {
		keepCustody(d, d.keptMark(mark))
	}
	return d.addMark(mark)
}

// Ahead are the steps before a move into a state that would store the mark Dirty before its first effects; ok says that
// there are any. The mark goes into the status with the move once they are done (order 2: custody comes first). If custody
// cannot be written now, the state stores both.
func Ahead(s Seen, decision engine.Decision) (steps Steps, ok bool) {
	if !decision.Moves() || decision.From == "" || s.Server.Status.Lifecycle == nil || s.Bundle == nil || s.Forced.Made() ||
		!slices.Contains(s.Bundle.Lifecycle.MarksAhead(s.Facts, decision), policies.MarkDirty) {
		return Steps{}, false
	}
	return drafted(s, func(d *draft) loop.Progress {
		d.do(Confirm{Action: fleet.Record})
		keepCustody(d, d.keptMark(policies.MarkDirty))
		return loop.Holds()
	}), true
}

// keepCustody changes what must be remembered of the machine when its Server is gone.
func keepCustody(d *draft, to func(*policyv1alpha1.Custody)) { d.do(Keep{To: InCustody(to)}) }

// InCustody is a change of an inventory that changes its custody.
func InCustody(to func(*policyv1alpha1.Custody)) func(*policyv1alpha1.ServerInventory) {
	return func(i *policyv1alpha1.ServerInventory) {
		if i.Custody == nil {
			i.Custody = &policyv1alpha1.Custody{}
		}
		to(i.Custody)
	}
}

// keptMark adds a mark to custody, and who holds the machine.
func (s *Seen) keptMark(mark string) func(*policyv1alpha1.Custody) {
	return func(c *policyv1alpha1.Custody) {
		addMark(c, mark, s.Now)
		ref := s.Server.Spec.ServerClaimRef
		if s.Facts.Probe.DataFound && mark == policies.MarkDirty && ref == nil {
			c.DataFound = &policyv1alpha1.FoundData{At: metav1.NewMicroTime(s.Now), Disks: policies.FoundWords(s.Observation)}
		}
		if ref != nil {
			c.DataFound, c.MinimumTerm = nil, askedTerm(s.Claim)
			holder := policyv1alpha1.Holder{Namespace: ref.Namespace, Name: ref.Name,
				UID: types.UID(s.Server.Annotations[v1alpha1.ClaimUIDAnnotation])}
			if c.LastHolder == nil || *c.LastHolder != holder {
				c.Attested, c.AttestedHidden = nil, nil
				c.TimesClaimed++
			}
			c.LastHolder = &holder
		}
		c.ServerName = s.Server.Name
	}
}

// askedTerm is the term that a claim asks for its disks; empty if it asks for none, or for a word that is no term.
func askedTerm(c *v1alpha1.ServerClaim) policyv1alpha1.SanitizationTerm {
	if c == nil {
		return ""
	}
	return policyv1alpha1.SanitizationTerm(bundle.Stronger("", c.Annotations[v1alpha1.MinimumTermAnnotation]))
}

// addMark adds a mark to custody. With Dirty the record goes that says the opposite.
func addMark(c *policyv1alpha1.Custody, mark string, now time.Time) {
	if mark == policies.MarkDirty && (c.Clean != nil || !slices.Contains(c.Marks, mark)) {
		at := metav1.NewMicroTime(now)
		c.Clean, c.DirtiedAt, c.Attested, c.AttestedHidden = nil, &at, nil, nil // a disk was attested for other data
	}
	if !slices.Contains(c.Marks, mark) {
		c.Marks = append(c.Marks, mark)
		slices.Sort(c.Marks)
	}
}

// stranger writes MarkStranger into custody, or takes it away there.
func (s *Seen) stranger() func(*policyv1alpha1.Custody) {
	is := slices.Contains(s.Facts.Lifecycle.Marks, policies.MarkStranger) && !s.Forced.Made()
	return func(c *policyv1alpha1.Custody) {
		c.Marks = slices.DeleteFunc(c.Marks, func(m string) bool { return m == policies.MarkStranger })
		if is {
			c.Marks = append(c.Marks, policies.MarkStranger)
			slices.Sort(c.Marks)
		}
		c.ServerName = s.Server.Name
	}
}

// releaseClaim takes the reference to a released claim off the server. The holder's UID and the release record stay until
// the server is wiped.
func releaseClaim(d *draft, _ engine.Effect) loop.Progress {
	if d.Server.Spec.ServerClaimRef == nil {
		return loop.Holds()
	}
	d.do(ConfirmClaim{})
	d.set(func(s *v1alpha1.Server) { s.Spec.ServerClaimRef = nil })
	return loop.Waiting("ReferenceCleared", "the claim reference is cleared first", time.Millisecond)
}

// ofHolder are the annotations that tell of the last holder.
var ofHolder = []string{v1alpha1.ClaimUIDAnnotation, v1alpha1.ReleasedClaimAnnotation, v1alpha1.ReleasedAtAnnotation,
	v1alpha1.ReleasedSpecAnnotation, v1alpha1.ReleasedCountedAnnotation, v1alpha1.BindingAnnotation, v1alpha1.ClaimEndedByAnnotation}

// forgetHolder clears what is remembered of the last holder of a server that is clean, and records in the same write that it
// is, if that is proven. A server that never had a holder costs one write in its life.
func forgetHolder(d *draft, _ engine.Effect) loop.Progress {
	kept := policies.KeptDirty(d.Inventory) || d.Inventory != nil && d.Inventory.Custody != nil && d.Inventory.Custody.LastHolder != nil
	if kept || policies.NextCleanRecord(d.Server, d.Inventory, d.Now) != nil && !d.ObserveOnly {
		server, now := d.Server, d.Now
		d.do(Confirm{Action: fleet.Record}, ProveRest{Entry: server.Status.Lifecycle.Entry - 1},
			Keep{To: func(i *policyv1alpha1.ServerInventory) {
				InCustody(func(c *policyv1alpha1.Custody) {
					if record := policies.NextCleanRecord(server, i, now); record != nil {
						c.Clean = record
					}
					c.Marks = slices.DeleteFunc(c.Marks, func(m string) bool { return m == policies.MarkDirty })
					c.LastHolder, c.DataFound, c.MinimumTerm = nil, nil, ""
				})(i)
			}})
	}
	if slices.ContainsFunc(ofHolder, func(name string) bool { _, ok := d.Server.Annotations[name]; return ok }) {
		d.set(func(s *v1alpha1.Server) {
			for _, name := range ofHolder {
				delete(s.Annotations, name)
			}
		})
	}
	return loop.Holds()
}

// HoldsData says that a claim holds the server, or that its status or its inventory marks it Dirty.
func HoldsData(s *v1alpha1.Server, inventory *policyv1alpha1.ServerInventory) bool {
	holds := s.Spec.ServerClaimRef != nil || policies.KeptDirty(inventory) ||
		s.Status.Lifecycle != nil && slices.Contains(s.Status.Lifecycle.Marks, policies.MarkDirty)
	return holds && !policies.HoldsNothing(s, inventory)
}

// Finalize are the steps before a Server goes. One that holds data, or that a claim holds, goes only when an annotation says
// so. Its inventory keeps what must be remembered of the machine.
func Finalize(s Seen) Steps {
	return drafted(s, func(d *draft) loop.Progress {
		if !HoldsData(d.Server, d.Inventory) {
			return loop.Holds()
		}
		if d.Server.Annotations[v1alpha1.DeleteDataAnnotation] != "true" {
			message := "the server holds data or a claim; annotation " + v1alpha1.DeleteDataAnnotation + "=true lets it go"
			d.set(func(s *v1alpha1.Server) {
				status.SetCondition(s, d.Now, v1alpha1.ConditionReady, metav1.ConditionFalse, "HoldsData", message)
			})
			return loop.Waiting("HoldsData", message, 0)
		}
		name, now := d.Server.Name, d.Now
		keepCustody(d, func(c *policyv1alpha1.Custody) {
			addMark(c, policies.MarkDirty, now)
			c.ServerName = name
		})
		return loop.Holds()
	})
}
