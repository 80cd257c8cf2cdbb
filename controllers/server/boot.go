// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/denied"
	"github.com/metalaw/metalaw/controllers/fleet"
	"github.com/metalaw/metalaw/controllers/loop"
	boots "github.com/metalaw/metalaw/controllers/server/boot"
	"github.com/metalaw/metalaw/controllers/server/leftover"
)

// bootShell carries out what is decided about the boot of a machine, for one effect.
type bootShell struct{ *scope }

// asClaimed keeps the claim's boot configuration in the claim's namespace as the claim asks.
func (v bootShell) asClaimed(ctx context.Context) loop.Progress {
	if p, ok := v.interfacesKnown(); !ok {
		return p
	}
	owner := boots.OfClaim(v.server, v.claim, v.settings().Boot.Ignition)
	in := boots.OwnedInput{Server: v.server, Owner: owner, Found: v.boot}
	if in.Stands() {
		return loop.Holds()
	}
	return v.keepOwned(ctx, in, v.claim, &v.server.Spec.BootConfigurationRef)
}

// keepOwned brings the boot configuration of an owner to what the owner asks, and has the server name it.
func (v bootShell) keepOwned(ctx context.Context, in boots.OwnedInput, owner client.Object, ref **v1alpha1.ObjectReference,
	actions ...fleet.Action) loop.Progress {
	actions = append([]fleet.Action{fleet.Setting}, actions...)
	if p, ok := v.permitted(ctx, actions...); !ok {
		return p
	}
	if p, ok := v.letBy(v.Gate.Recheck(ctx, v.server, actions...)); !ok {
		return p
	}
	key := client.ObjectKeyFromObject(owner)
	if in.Found == nil || client.ObjectKeyFromObject(in.Found) != key {
		var err error
		if in.Found, err = v.findBoot(ctx, key); err != nil {
			return loop.Broken(err)
		}
	}
	in.Now = v.now
	p, stands := v.followOwner(ctx, in, owner)
	if stands {
		*ref = &v1alpha1.ObjectReference{Namespace: key.Namespace, Name: key.Name}
	}
	return p
}

// findBoot reads a boot configuration past the cache where the cache shows one. Where it shows none there may be one all the same:
// then creating it fails.
func (v bootShell) findBoot(ctx context.Context, key client.ObjectKey) (*v1alpha1.ServerBootConfiguration, error) {
	found, err := find[v1alpha1.ServerBootConfiguration](ctx, v.Client, key.Namespace, key.Name)
	if found == nil || err != nil {
		return nil, err
	}
	return find[v1alpha1.ServerBootConfiguration](ctx, v.Reader, key.Namespace, key.Name)
}

// followOwner takes the steps that bring the boot configuration of an owner to what the owner asks, and says whether it stands.
func (v bootShell) followOwner(ctx context.Context, in boots.OwnedInput, owner client.Object) (p loop.Progress, stands bool) {
	unwritten := func(err error) (loop.Progress, bool) {
		return boots.Unwritten(err, boots.Configuration, in.Owner.GetNamespace(), in.Owner.GetName()), false
	}
	for {
		switch out := boots.ForOwner(in); out.Step {
		case boots.Create:
			if err := leftover.Drop(ctx, v.Client, v.server.Name, in.Owner.Purpose); err != nil {
				return unwritten(err)
			}
			err := v.create(ctx, owner, out.Boot)
			if apierrors.IsAlreadyExists(err) { // the cache did not show it yet
				in.Found, err = find[v1alpha1.ServerBootConfiguration](ctx, v.Reader, out.Boot.Namespace, out.Boot.Name)
			} else {
				in.Found = out.Boot
			}
			if err != nil {
				return unwritten(err)
			}
			if in.Found == nil { // it went between the two
				return loop.Waiting("LostRace", "another program wrote first", 100*time.Millisecond), false
			}
		case boots.Replace:
			uid := in.Found.UID
			if err := client.IgnoreNotFound(v.Client.Delete(ctx, in.Found, client.Preconditions{UID: &uid})); err != nil {
				return unwritten(err)
			}
			in.Found = nil
		case boots.Update:
			if err := v.Client.Update(ctx, out.Boot); err != nil {
				return unwritten(err)
			}
			in.Found, in.Updated = out.Boot, true
		case boots.HandOver:
			err := v.Client.Status().Patch(ctx, out.Boot, client.MergeFromWithOptions(in.Found, client.MergeFromWithOptimisticLock{}))
			if err != nil {
				return unwritten(err)
			}
			return out.Progress, false
		case boots.Refer:
			return loop.Holds(), true
		default:
			return out.Progress, false
		}
	}
}

// create makes a boot configuration that goes with its owner.
func (v bootShell) create(ctx context.Context, owner client.Object, boot *v1alpha1.ServerBootConfiguration) error {
	if err := controllerutil.SetControllerReference(owner, boot, v.Client.Scheme()); err != nil {
		return err
	}
	return v.Client.Create(ctx, boot)
}

// conflictOrBroken is the progress of an effect whose write of the inventory failed.
func conflictOrBroken(err error) loop.Progress {
	return denied.Write(err, v1alpha1.ReasonWriteRefused, "the ServerInventory of the machine")
}
