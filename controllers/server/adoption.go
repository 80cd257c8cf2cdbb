// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"time"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/controllers/server/operations"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/redfish"
)

// A server is governed by the revision that it is pinned to. It comes under another one, the one that it is to be governed
// by, in one of two ways:
//
//   - While it rests in a stable state: the revision changes, and nothing else does. A fleet does so at a pace: when what
//     governs becomes another, its servers are woken one after the other.
//   - While the revision halts it: as a new entry, so that no report and no wipe of the former one counts. A state that the
//     other revision has dropped is left as its migrate says.
//
// It does neither in the middle of an erase, nor while a power change that was asked for may still come true. Under a canary it comes
// only in its turn, once enough of those before it have shown how they fare; a server that is new begins under what is in force else.

// governance is what governs a server in one reconcile.
type governance struct {
	// bundle decides. It is nil where nothing may be decided: unloaded says why then.
	bundle *bundle.Bundle
	// unloaded is the halt of a server whose revision cannot be loaded, or is held.
	unloaded *engine.Halt
	// observing is the bundle whose settings say how to look at the machine, where none decides; nil for the active one.
	observing *bundle.Bundle
	// successor is the bundle that the server comes under if it is halted; nil where there is none to come under.
	successor *bundle.Bundle
	// lost says that the revision which governed the server is gone.
	lost bool
	// resting is the bundle under which the server rested, where the one that takes over begins with an entry of its own: nobody
	// may rest in the state under that one, or it boots no image of ours there; nil else.
	resting *bundle.Bundle
	// dropping is the bundle that the server is to come under and cannot, because it has dropped the server's state; nil else.
	dropping *bundle.Bundle
	// because is why the server is taken over as a new entry; empty where it is not.
	because string
}

// govern finds what governs the server.
func (v *scope) govern() governance {
	target := v.governing()
	why, refused := v.Bundles.Held(target.Revision.Name)
	if target.StandsIn && !refused { // it was mended between the two questions
		why, refused = "its content was not to be had a moment ago, and is looked at anew", true
	}
	l, state := v.server.Status.Lifecycle, engine.State(v.server.Status.State)
	if l == nil || l.Revision == "" || l.Revision == target.Revision.Name {
		if refused {
			return governance{unloaded: heldHalt(target.Revision.Name, why), observing: target}
		}
		return governance{bundle: target}
	}
	target, dropping := successor(target, state, refused)
	pinned, loaded := v.Bundles.Revision(l.Revision)
	why, held := v.Bundles.Held(l.Revision)
	rests := loaded && pinned.Lifecycle.Stable(state)
	if rests && target != nil && v.mayAdoptAtRest(target) {
		return v.atRest(pinned, target, state)
	}
	if rests {
		target = nil // its turn comes
	}
	switch {
	case held:
		return governance{unloaded: heldHalt(l.Revision, why), observing: pinned, successor: target, dropping: dropping}
	case !loaded:
		return governance{unloaded: unloadedHalt(l.Revision), successor: target, dropping: dropping, lost: v.Bundles.Lost(l.Revision)}
	}
	return governance{bundle: pinned, successor: target, dropping: dropping}
}

// governing is the bundle that the server is to be governed by. A new one does not wait for a place under a canary.
func (v *scope) governing() *bundle.Bundle {
	target, l := v.Bundles.Governing(v.server), v.server.Status.Lifecycle
	if isNew := l == nil || l.Revision == ""; isNew && !v.hasPlace(target) {
		return v.Bundles.Active()
	}
	return target
}

// successor is the bundle that a server in a state can come under, or the one that it cannot, because that has dropped the state.
func successor(target *bundle.Bundle, state engine.State, refused bool) (takes, dropping *bundle.Bundle) {
	switch {
	case refused:
		return nil, nil
	case !target.Takes(state):
		return nil, target
	}
	return target, nil
}

// atRest is what governs a server that rests and comes under another revision. Where nobody may rest in its state any more,
// the time that it has rested counts against no deadline. Where a boot of ours stands that its state does not ask for any
// more, that boot counts for nothing.
func (v *scope) atRest(pinned, target *bundle.Bundle, state engine.State) governance {
	g := governance{bundle: target}
	switch {
	case !target.Lifecycle.Defines(state):
	case !target.Lifecycle.Stable(state):
		g.resting, g.because = pinned, fmt.Sprintf("under policy revision %s it rested in %s", pinned.Revision.Name, state)
	case v.bootsAgent() && !target.Lifecycle.Ensures(state, agentEffects[policies.BootFactsOf(v.boot).Purpose]):
		g.resting, g.because = pinned, fmt.Sprintf("under policy revision %s an image of ours was to boot in %s", pinned.Revision.Name, state)
	}
	return g
}

// agentEffects are the effects that boot an image of ours, by the purpose of its boot. A wipe's boot is none for a state that
// boots the probe.
var agentEffects = map[string]string{
	v1alpha1.BootPurposeProbe: policies.EffectBootProbe,
	v1alpha1.BootPurposeWipe:  policies.EffectBootWipe,
}

// hasPlace says whether the server may come under a bundle now. Under a canary it does so only where its BMC answers for it: nothing
// else shows how it fares there.
func (v *scope) hasPlace(b *bundle.Bundle) bool {
	if v.Probation == nil || b.Revision.Name == v.Bundles.Active().Revision.Name {
		return true
	}
	known := v.Cache.Reading(v.server.Name)
	if !known.Reachable() || !redfish.SameSystem(v.want(), known.Value.Identity) {
		return false // its next word wakes it
	}
	if !v.Probation.Admit(v.server, b) {
		v.wakeIn(nextTurn())
		return false
	}
	return true
}

// mayAdoptAtRest says whether a server that rests comes under another revision now.
func (v *scope) mayAdoptAtRest(target *bundle.Bundle) bool {
	if why, left := v.changing(); why != "" {
		v.wakeIn(left)
		return false
	}
	if !v.hasPlace(target) {
		return false
	}
	turn := v.pace.rests
	if isHalted(v.server) {
		turn = v.pace.halts
	}
	if !turn(v.now) {
		v.wakeIn(nextTurn())
		return false
	}
	return true
}

// changing says what is under way with the machine, so that no other revision takes over meanwhile, and how long at most
// until that is over; empty where nothing is.
func (v *scope) changing() (why string, left time.Duration) {
	if left := policies.WipeQuietIn(v.inventory, v.now); left > 0 {
		return "the wipe that runs has ended", left
	}
	if v.Cache.Busy(v.server.Name) {
		return "the BMC has answered a request", slowestPoll // its end tells
	}
	if left := max(v.requested().UnsettledFor(redfish.PowerOn), v.requested().UnsettledFor(redfish.PowerOff)); left > 0 {
		return "the power change that was asked for has shown or lapsed", left
	}
	return "", 0
}

// leaveHalt brings a server that is halted under the revision that it should not be governed by any more under the other one.
// It stays halted where the cause lies outside of the policy, until the halt is stored, and while the machine changes.
func (v *scope) leaveHalt(halted engine.Decision) engine.Decision {
	if !v.mayLeave(halted.Halt) {
		return halted
	}
	if why, now := v.untilSettled(halted.From); !now {
		if why == "" {
			return halted
		}
		return stillHalted(halted, fmt.Sprintf("; policy revision %s takes over once %s", v.successor.Revision.Name, why))
	}
	if !v.hasPlace(v.successor) && !v.takesInForce(halted.From) {
		return halted
	}
	if !v.lost && !v.pace.halts(v.now) {
		v.wakeIn(nextTurn()) // its turn comes; to say so would cost the write that is put off
		return halted
	}
	return v.enterUnder(v.successor, halted)
}

// takesInForce has a halted server for which a canary has no place come under what is in force instead, where that ends its halt as well:
// nobody stays halted for want of a place. It says whether that can be now.
func (v *scope) takesInForce(state engine.State) bool {
	active := v.Bundles.Active()
	_, held := v.Bundles.Held(active.Revision.Name)
	takes, _ := successor(active, state, held)
	if l := v.server.Status.Lifecycle; takes == nil || l != nil && l.Revision == active.Revision.Name {
		return false
	}
	v.successor = takes
	_, now := v.untilSettled(state)
	return now
}

// mayLeave says that a halt is the policy's own, and one that another revision may end.
func (v *scope) mayLeave(halt *engine.Halt) bool {
	switch {
	case v.successor == nil:
		return false
	case v.lost:
		return true
	case v.unloaded != nil && halt.Cause != haltRevisionHeld: // it cannot be read at the moment
		return false
	case halt.Cause == engine.HaltSafety && v.facts.BMC.Identity == policies.IdentityOther:
		return false // whatever the policy, nothing may be done to another machine
	}
	return isHalted(v.server) // it is stored first; that write has the server looked at again
}

// untilSettled says what a halted server waits for before another revision takes over: that nothing is under way with its
// machine, and where its state boots an image of ours, that its power is known. It is not worth telling where that is short.
func (v *scope) untilSettled(state engine.State) (why string, now bool) {
	if why, left := v.changing(); why != "" {
		v.wakeIn(left)
		return why, false
	}
	if _, migrates := v.successor.Lifecycle.Migrates(state); migrates || !operations.BootsOurs(v.successor, state) {
		return "", true
	}
	p, known := v.powerKnown()
	if known {
		return "", true
	}
	v.wakeIn(p.Again)
	if v.reading.Reachable() || !v.reading.Tried {
		return "", false // the reading is under way
	}
	return "the power of the machine is known: it waits for " + p.Message, false
}

// enterUnder is the entry with which a halted server begins anew under another revision. It stays halted as it was where
// that revision would not have it either.
func (v *scope) enterUnder(target *bundle.Bundle, halted engine.Decision) engine.Decision {
	former := v.governance
	v.governance = governance{bundle: target, lost: former.lost,
		because: fmt.Sprintf("policy revision %s halted it: %s", v.server.Status.Lifecycle.Revision, haltText(halted.Halt))}
	v.makeFacts()
	d := v.takeOver()
	if d.Moves() {
		return d
	}
	v.governance = former
	v.makeFacts()
	if d.Halt == nil {
		return halted // it waits for the first word of its BMC
	}
	return stillHalted(halted, fmt.Sprintf("; policy revision %s cannot take over: %s", target.Revision.Name, haltText(d.Halt)))
}

// takeOver is a move out of a state that the bundle has dropped, else a new entry in the state that the server is in. A state
// that boots an image of ours begins from Off: where the machine runs what was booted in the former entry, it finds its place
// anew from the initial state.
func (v *scope) takeOver() engine.Decision {
	l, state := v.bundle.Lifecycle, engine.State(v.server.Status.State)
	d := policies.Adopt(l, v.facts, v.reading.Tried)
	if _, migrates := l.Migrates(state); migrates {
		d = l.Decide(v.facts)
	} else if operations.BootsOurs(v.bundle, state) && !v.shows(redfish.PowerOff) {
		d = l.Enter(v.facts, l.Initial())
		d.Rule = ruleAdopted
	}
	d.Revision = v.bundle.Revision
	return d
}

// beginAnew is the entry with which a server goes on that rested under another revision. It rests there as before where that
// entry may not be made.
func (v *scope) beginAnew() engine.Decision {
	if d := v.takeOver(); d.Moves() {
		return d
	}
	v.governance = governance{bundle: v.resting}
	v.makeFacts()
	return v.decide()
}

// stillHalted is a halt that says more.
func stillHalted(d engine.Decision, more string) engine.Decision {
	halt := *d.Halt
	halt.Message += more
	d.Halt = &halt
	return d
}

func haltText(h *engine.Halt) string {
	if h.Rule == "" {
		return h.Message
	}
	return h.Rule + ": " + h.Message
}

// haltRevisionHeld is the cause of a halt under a revision that this engine refuses.
const haltRevisionHeld = engine.HaltCause(v1alpha1.ReasonRevisionHeld)

func heldHalt(revision, why string) *engine.Halt {
	return &engine.Halt{Cause: haltRevisionHeld, Rule: "Revision", Message: fmt.Sprintf("this version of metalaw refuses the policy revision %q, "+
		"which governs this server; nothing moves and nothing is done until a version of metalaw that accepts it runs, or a bundle that "+
		"this one accepts is promoted: %s", revision, loop.Shortened(why, loop.MaxNote))}
}

func unloadedHalt(revision string) *engine.Halt {
	return &engine.Halt{Cause: engine.HaltUnknownState, Rule: "Revision",
		Message: fmt.Sprintf("the policy revision %q, which governs this server, cannot be loaded", revision)}
}

// decideUnloaded is the decision about a server that no bundle may decide about.
func (v *scope) decideUnloaded() engine.Decision {
	state := engine.State(v.server.Status.State)
	return v.leaveHalt(engine.Decision{From: state, To: state, Message: v.unloaded.Message, Halt: v.unloaded})
}
