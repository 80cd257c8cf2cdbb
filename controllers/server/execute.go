// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"time"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/denied"
	"github.com/metalaw/metalaw/controllers/hardware"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/controllers/server/identity"
	"github.com/metalaw/metalaw/controllers/server/operations"
	"github.com/metalaw/metalaw/controllers/server/plan"
	"github.com/metalaw/metalaw/controllers/server/proof"
	"github.com/metalaw/metalaw/controllers/trigger"
	"github.com/metalaw/metalaw/internal/machineid"
	"github.com/metalaw/metalaw/policies"
)

// executor carries out acts for one server in one reconcile.
type executor struct {
	*Options
	// server is the server as it is about to be stored, which seen speaks of too.
	server *v1alpha1.Server
	seen   *plan.Seen
	target hardware.Target
	// answers are what became of the acts.
	answers plan.Answers
	// requests ask the BMC for what the write of this reconcile records, and notes are its Events besides moves.
	requests []func()
	notes    []operations.Note
	// wake is when to look again; 0 leaves it to what wakes the server.
	wake time.Duration
	// confirmed says that the server was read uncached in this reconcile and is as it was seen. stored is the inventory as
	// it was read then, or written since; nil if there was none.
	confirmed bool
	stored    *policyv1alpha1.ServerInventory
}

// carryOut does the acts of steps in order (order 8). The first that is not done ends them with its progress.
func (x *executor) carryOut(ctx context.Context, steps plan.Steps) loop.Progress {
	for _, a := range steps.Acts {
		if p := x.do(ctx, a); p.Phase != loop.Done {
			return p
		}
	}
	return steps.Then
}

// do does one act. Permission, the looks past the cache and the guard are acts or stand in the row of an act, and nowhere else.
func (x *executor) do(ctx context.Context, act plan.Act) loop.Progress {
	switch a := act.(type) {
	case plan.Permit:
		return x.permitted(ctx, a.Actions...)
	case plan.Recheck:
		return x.letBy(x.Gate.Recheck(ctx, x.server, a.Actions...))
	case plan.Confirm:
		return x.confirm(ctx, a.Action)
	case plan.ConfirmClaim:
		return x.confirmClaim(ctx)
	case plan.ProveRest:
		return proof.Rest(ctx, x.Reader, a.Entry, x.seen.Inventory, x.stored)
	case plan.Ask:
		x.ask(a)
		return loop.Holds()
	case plan.Try:
		x.carryOut(ctx, a.Steps)
		return loop.Holds()
	case plan.Keep, plan.Attest, plan.Prove, plan.Ignition, plan.AgentBoot, plan.MendIgnition, plan.DropAgentBoot, plan.OwnedBoot:
		return x.write(ctx, act)
	}
	return x.note(act)
}

// note does an act that changes something in memory alone.
func (x *executor) note(act plan.Act) loop.Progress {
	switch a := act.(type) {
	case plan.Set:
		had := x.server.Spec.BootConfigurationRef != nil
		a.To(x.server)
		x.answers.Unbooted = x.answers.Unbooted || had && x.server.Spec.BootConfigurationRef == nil
	case plan.Remember:
		a.To(&x.seen.Memory)
	case plan.Tell:
		x.notes = append(x.notes, a.Note)
	case plan.Wake:
		x.wakeIn(a.In)
		x.answers.AwaitsBMC = x.answers.AwaitsBMC || a.ForBMC
	case plan.Refresh:
		x.refresh()
	case plan.RefreshIdentity:
		x.Identities.Refresh(x.server.Name, x.target, identity.MaxAge)
	case plan.Forget:
		x.Cache.Repeat(x.server.Name, a.ID)
	default:
		return loop.Failing("UnknownEffect", fmt.Sprintf("this version cannot carry out a %T", act), 0)
	}
	return loop.Holds()
}

// write does an act that writes to the API server.
func (x *executor) write(ctx context.Context, act plan.Act) loop.Progress {
	switch a := act.(type) {
	case plan.Keep:
		return x.kept(x.writeInventory(ctx, a.To))
	case plan.Attest:
		return x.attest(ctx, a)
	case plan.Prove:
		return x.prove(ctx, a)
	case plan.Ignition:
		return x.writeIgnition(ctx, a)
	case plan.AgentBoot:
		return x.writeAgentBoot(ctx, a.Agent)
	case plan.MendIgnition:
		return x.mendIgnition(ctx, a.Agent)
	case plan.DropAgentBoot:
		return x.dropAgentBoot(ctx, a)
	case plan.OwnedBoot:
		return x.followOwner(ctx, a.In)
	}
	return x.note(act)
}

// ask has the BMC asked behind the guard: at once, or once the record of that is stored (order 1).
func (x *executor) ask(a plan.Ask) {
	name, target, guarded, cache := x.server.Name, x.target, x.guarded(a.Call, a.Actions...), x.Cache
	if !a.Stored {
		cache.Do(name, target, a.ID, guarded)
		return
	}
	do := cache.Do
	if a.ShowsLater {
		do = cache.DoLater
	}
	x.requests = append(x.requests, func() {
		cache.Repeat(name, a.ID) // a call that was postponed is known, and forgotten only now that it is recorded anew
		do(name, target, a.ID, guarded)
	})
}

// wakeIn notes a moment at which to look again; the earliest counts.
func (x *executor) wakeIn(d time.Duration) { x.wake = trigger.Earlier(x.wake, d) }

// refresh asks for a reading that a decision waits for. A BMC that has just answered for another machine, or did not say
// for which, is read again in its own time. A reading that has ended since this reconcile looked is not taken again: its end
// woke the server, and the next reconcile sees whether it may rely on it.
func (x *executor) refresh() {
	if x.seen.BMC.Reachable() && x.seen.Facts.BMC.Identity != policies.IdentitySame {
		x.poll()
		return
	}
	if x.seen.Memory.Waits.IsZero() {
		x.seen.Memory.Waits = x.seen.Now
	}
	known := x.Cache.Reading(x.server.Name)
	if known.Begun.After(x.seen.BMC.Begun) && x.seen.Recent(known.Reachable(), known.Begun, known.At) {
		return
	}
	x.Cache.Refresh(x.server.Name, x.target, 0)
}

// attest writes the disk for which a person answers.
func (x *executor) attest(ctx context.Context, a plan.Attest) loop.Progress {
	p := x.kept(x.writeInventory(ctx, plan.InCustody(a.Answer.Write)))
	if p.Phase == loop.Done {
		x.answers.Attested = &a.Answer
	}
	return p
}

// prove writes that a person answers for the machine.
func (x *executor) prove(ctx context.Context, a plan.Prove) loop.Progress {
	var proved *policyv1alpha1.MachineIdentity
	p := x.kept(x.writeInventory(ctx, func(i *policyv1alpha1.ServerInventory) {
		i.Identity = machineid.Settle(i, a.Settled)
		proved = i.Identity
	}))
	if p.Phase == loop.Done {
		x.answers.Proved = proved
	}
	return p
}

// kept is the progress of a write of the inventory.
func (x *executor) kept(err error) loop.Progress {
	if err != nil {
		return conflictOrBroken(err)
	}
	return loop.Holds()
}

// lostRace is why an act waits whose write came second.
const lostRace = "LostRace"

// conflictOrBroken is the progress of an act whose write of the inventory failed.
func conflictOrBroken(err error) loop.Progress {
	return denied.Write(err, v1alpha1.ReasonWriteRefused, "the ServerInventory of the machine")
}

// poll has the BMC read again until it shows what is waited for.
func (x *executor) poll() {
	x.wakeIn(x.seen.Shortly())
	x.answers.AwaitsBMC = true
}
