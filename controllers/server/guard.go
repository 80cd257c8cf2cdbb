// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"slices"
	"time"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/fleet"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/controllers/server/call"
	"github.com/metalaw/metalaw/controllers/server/operations"
	"github.com/metalaw/metalaw/controllers/server/power"
	"github.com/metalaw/metalaw/controllers/server/recheck"
	"github.com/metalaw/metalaw/controllers/server/seen"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/internal/restored"
	"github.com/metalaw/metalaw/internal/stored"
	"github.com/metalaw/metalaw/internal/uuids"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/redfish"
)

// permitted asks the gate whether something may be done at present (order 5: budgets count from here on, and not from the
// recheck).
func (x *executor) permitted(ctx context.Context, actions ...fleet.Action) loop.Progress {
	for _, action := range actions {
		verdict, err := x.Gate.Permit(ctx, x.server, action)
		if p := x.letBy(verdict, err); p.Phase != loop.Done {
			return p
		}
	}
	x.answers.LetThrough = true
	return loop.Holds()
}

// letBy records why the gate holds an action back, if it does.
func (x *executor) letBy(verdict fleet.Verdict, err error) loop.Progress {
	if err != nil {
		return loop.Broken(err)
	}
	if !verdict.Allowed {
		verdict.Message = fmt.Sprintf("the %s is held back: %s", verdict.Of, verdict.Message)
		x.answers.Verdict = &verdict
		return loop.Waiting(verdict.Reason, verdict.Message, verdict.Again)
	}
	return loop.Holds()
}

// confirm asks the gate, which waits for what is frozen by now, and then looks past the cache, once in a reconcile, whether
// the server is as the decision took it to be. After a wait it looks again.
func (x *executor) confirm(ctx context.Context, action fleet.Action) loop.Progress {
	if p := x.permitted(ctx, action); p.Phase != loop.Done || (x.confirmed && !action.Uncached()) {
		return p
	}
	if p := x.letBy(x.Gate.Recheck(ctx, x.server, action)); p.Phase != loop.Done {
		return p
	}
	d := x.decided()
	d.stored = &x.stored
	now, stale, err := d.look(ctx)
	if p := staleRead(stale, err); p.Phase != loop.Done {
		return p
	}
	x.confirmed = true
	return x.letBy(x.Gate.Look(ctx, now, action))
}

// confirmClaim looks at the BMC and the claim only.
func (x *executor) confirmClaim(ctx context.Context) loop.Progress {
	if p := x.permitted(ctx, fleet.Record); p.Phase != loop.Done || x.confirmed {
		return p
	}
	stale, err := x.decided().bmcHolds(ctx)
	if err == nil && stale == "" {
		stale, err = x.decided().claimDiffers(ctx)
	}
	return staleRead(stale, err)
}

// staleRead waits for the cache if something is stored otherwise than it shows.
func staleRead(stale string, err error) loop.Progress {
	switch {
	case err != nil:
		return loop.Broken(err)
	case stale != "":
		return loop.Waiting("StaleRead", "the cache to show that "+stale+" changed", 100*time.Millisecond)
	}
	return loop.Holds()
}

// confirmByHand confirms what is asked for by hand before anything is made of it: no effect does, because a record is all
// that it is.
func (v *scope) confirmByHand(ctx context.Context) error {
	if v.server.Status.Lifecycle == nil || !operations.ByHand(v.server) {
		return nil
	}
	if v.seen.Unconfirmed = restored.Of(v.server, v.seen.Inventory) == restored.Stands; v.seen.Unconfirmed {
		return nil // what a release or a declaration relies on may be older than the disks
	}
	p := v.x.confirm(ctx, fleet.Record)
	v.seen.Unconfirmed = p.Phase != loop.Done
	v.x.wakeIn(p.Again)
	return p.Err
}

// guarded has the BMC client look past the cache right before each write whether the server is still as decided, and
// whether a freeze or the breaker has come to hold one of the actions back that the write amounts to: it may have waited
// for its turn (order 4: it is read uncached, after queueing). It waits for the gate first, so that the read of the server is
// the last one (order 10).
func (x *executor) guarded(run call.Call, actions ...fleet.Action) func(context.Context, redfish.BMC) error {
	d, uri, want := x.decided(actions...), x.server.Spec.SystemURI, x.seen.Want()
	return func(ctx context.Context, bmc redfish.BMC) error {
		return run.Run(redfish.WithGuard(ctx, func(ctx context.Context) error {
			if err := d.heldBack(ctx, actions); err != nil {
				return err
			}
			now, stale, err := d.look(ctx)
			if err != nil {
				return &power.PostponedError{Cause: fmt.Errorf("not asked, because the server could not be read: %w", err)}
			}
			if stale != "" {
				return fmt.Errorf("not asked, because %s changed meanwhile", stale)
			}
			return d.held(d.Gate.Look(ctx, now, actions...)) // its labels may be others by now, which a freeze selects
		}), bmc, uri, want)
	}
}

// decided is what a decision was made on, as far as an action relies on it. It never changes.
type decided struct {
	*Options
	server    *v1alpha1.Server
	claim     *v1alpha1.ServerClaim
	inventory *policyv1alpha1.ServerInventory
	settings  bundle.Settings
	wiping    bool
	// heard is when the last word of the wipe in inventory was first seen.
	heard time.Time
	// stored takes the inventory as it was read; nil if no caller wants it.
	stored **policyv1alpha1.ServerInventory
	// switchesOn says that the action only has the machine boot.
	switchesOn bool
	// maintenance is what is asked for by which the action is done; nil where it is done for something else.
	maintenance *v1alpha1.ServerMaintenance
}

func (x *executor) decided(actions ...fleet.Action) decided {
	s := x.seen
	d := decided{Options: x.Options, server: x.server.DeepCopy(), claim: s.Claim, inventory: s.Inventory, settings: s.Settings,
		wiping: s.Facts.Wipe.Running, heard: s.WipeHeard, switchesOn: slices.Equal(actions, []fleet.Action{fleet.PowerOn})}
	if s.Served() {
		d.maintenance = s.Maintenance
	}
	return d
}

// heldBack says why one of the actions may not be done any more, though it was permitted.
func (d decided) heldBack(ctx context.Context, actions []fleet.Action) error {
	return d.held(d.Gate.Recheck(ctx, d.server, actions...))
}

// held is the error that postpones what the gate holds back.
func (d decided) held(verdict fleet.Verdict, err error) error {
	if err != nil {
		return &power.PostponedError{Cause: fmt.Errorf("not asked, because it cannot be told what is frozen: %w", err)}
	}
	if !verdict.Allowed {
		return &power.PostponedError{Cause: fmt.Errorf("not asked, because the %s is held back meanwhile: %s", verdict.Of, verdict.Message)}
	}
	return nil
}

// look names the first thing that is stored otherwise than the decision took it to be, empty where there is none, and gives
// the server as it is stored; nil where it is gone or cannot be read.
func (d decided) look(ctx context.Context) (now *v1alpha1.Server, stale string, err error) {
	now, err = stored.One[v1alpha1.Server](ctx, d.Reader, "", d.server.Name)
	switch {
	case err != nil:
		return nil, "", err
	case now == nil:
		return nil, "the server's existence", nil
	}
	stale, err = d.differsFrom(ctx, now)
	return now, stale, err
}

func (d decided) differsFrom(ctx context.Context, now *v1alpha1.Server) (string, error) {
	if stale := recheck.Server(d.server, now); stale != "" {
		return stale, nil
	}
	for _, look := range []func(context.Context) (string, error){d.bmcHolds, d.claimDiffers, d.maintenanceDiffers} {
		if stale, err := look(ctx); err != nil || stale != "" {
			return stale, err
		}
	}
	if d.switchesOn && !d.wiping && recheck.CannotErase(now) {
		return "", nil
	}
	return d.wipeDiffers(ctx)
}

// bmcHolds says that the BMC has come to ask to leave its Servers alone; the annotation that tells them so may still be under
// way.
func (d decided) bmcHolds(ctx context.Context) (string, error) {
	if d.server.Spec.BMCRef == nil {
		return "", nil
	}
	bmc, err := stored.One[v1alpha1.BMC](ctx, d.Reader, "", d.server.Spec.BMCRef.Name)
	if bmc != nil && v1alpha1.IgnoresChildren(bmc) { // without the object nothing can be asked of the BMC
		return "the ignore annotation of its BMC", nil
	}
	return "", err
}

// wipeDiffers says whether an erase has begun or ended meanwhile; any replica may have heard of that, and the inventory may
// have been written since.
func (d decided) wipeDiffers(ctx context.Context) (string, error) {
	now, err := d.inventoryNow(ctx)
	if err != nil {
		return "", err
	}
	if d.stored != nil {
		*d.stored = now
	}
	at := d.Now()
	looked := policies.Observation{Server: d.server, Now: at, Settings: d.settings, Inventory: now,
		WipeHeard: seen.HeardAgain(d.inventory, now, d.heard, at)}
	if looked.Facts().Wipe.Running != d.wiping {
		return "the wipe", nil
	}
	return "", nil
}

// inventoryNow is the inventory as it is stored; nil where there is none. One that the decision did not know was made since,
// and every new one is named by the server's own spelling of the UUID. One of the other spelling is older than that, so that
// the cache shows it.
func (d decided) inventoryNow(ctx context.Context) (*policyv1alpha1.ServerInventory, error) {
	names := uuids.Spellings(d.server.Spec.SystemUUID)
	if d.inventory != nil {
		names = []string{d.inventory.Name}
	}
	from := d.Reader
	for _, name := range names {
		if now, err := stored.One[policyv1alpha1.ServerInventory](ctx, from, "", name); err != nil || now != nil {
			return now, err
		}
		from = d.Client
	}
	return nil, nil
}

func (d decided) claimDiffers(ctx context.Context) (string, error) {
	was, ref := d.claim, d.server.Spec.ServerClaimRef
	switch {
	case was != nil:
		ref = &v1alpha1.ObjectReference{Namespace: was.Namespace, Name: was.Name}
	case ref == nil:
		return "", nil
	}
	now, err := stored.One[v1alpha1.ServerClaim](ctx, d.Reader, ref.Namespace, ref.Name)
	if err != nil || !recheck.ClaimDiffers(was, now, d.server) {
		return "", err
	}
	return "the claim", nil
}

// maintenanceDiffers says whether the maintenance is gone, ends, or asks for something else than what was decided on. It is the consent to
// what is done, so that it is read past the cache.
func (d decided) maintenanceDiffers(ctx context.Context) (string, error) {
	was := d.maintenance
	if was == nil {
		return "", nil
	}
	now, err := stored.One[v1alpha1.ServerMaintenance](ctx, d.Reader, was.Namespace, was.Name)
	if err != nil || !recheck.MaintenanceDiffers(was, now, d.server.Name) {
		return "", err
	}
	return "the maintenance", nil
}
