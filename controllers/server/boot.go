// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/fleet"
	"github.com/metalaw/metalaw/controllers/loop"
	boots "github.com/metalaw/metalaw/controllers/server/boot"
	"github.com/metalaw/metalaw/controllers/server/power"
)

// bootShell carries out what is decided about the boot of a machine, for one effect.
type bootShell struct{ *scope }

// asClaimed keeps the claim's boot configuration in the claim's namespace as the claim asks.
func (v bootShell) asClaimed(ctx context.Context) loop.Progress {
	if p, ok := v.interfacesKnown(); !ok {
		return p
	}
	in := boots.ClaimInput{Server: v.server, Claim: v.claim, Found: v.boot}
	if boots.ClaimStands(in) {
		return loop.Holds()
	}
	if p, ok := v.permitted(ctx, fleet.Setting); !ok {
		return p
	}
	key := types.NamespacedName{Namespace: v.claim.Namespace, Name: v.claim.Name}
	if in.Found == nil || client.ObjectKeyFromObject(in.Found) != key {
		var err error
		if in.Found, err = find[v1alpha1.ServerBootConfiguration](ctx, v.Reader, key.Namespace, key.Name); err != nil {
			return loop.Broken(err)
		}
	}
	return v.followClaim(ctx, in)
}

// followClaim takes the steps that bring the claim's boot configuration to what the claim asks.
func (v bootShell) followClaim(ctx context.Context, in boots.ClaimInput) loop.Progress {
	for {
		switch out := boots.ForClaim(in); out.Step {
		case boots.Create:
			if err := v.create(ctx, v.claim, out.Boot); err != nil {
				return goingOrBroken(err, v.claim.Namespace)
			}
			in.Found = out.Boot
		case boots.Update:
			if err := v.Client.Update(ctx, out.Boot); err != nil {
				return conflictOrBroken(err)
			}
			in.Found, in.Updated = out.Boot, true
		case boots.HandOver:
			err := v.Client.Status().Patch(ctx, out.Boot, client.MergeFromWithOptions(in.Found, client.MergeFromWithOptimisticLock{}))
			if err != nil {
				return conflictOrBroken(err)
			}
			return out.Progress
		case boots.Refer:
			v.server.Spec.BootConfigurationRef = &v1alpha1.ObjectReference{Namespace: v.claim.Namespace, Name: v.claim.Name}
			return loop.Holds()
		default:
			return out.Progress
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

// goingOrBroken waits for what comes of a namespace that is being deleted: the API server makes nothing in it any more, and
// takes what is in it away, the claim included.
func goingOrBroken(err error, namespace string) loop.Progress {
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return loop.Waiting(power.WaitsForBoot, fmt.Sprintf("the end of namespace %s, which is being deleted", namespace), time.Minute)
	}
	return loop.Broken(err)
}

func conflictOrBroken(err error) loop.Progress {
	if apierrors.IsConflict(err) {
		return loop.Waiting("LostRace", "another program wrote first", 100*time.Millisecond)
	}
	return loop.Broken(err)
}
