// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/fleet"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/controllers/server/power"
)

// bootMessage says what a power-on waits for.
func (v *scope) bootMessage() string {
	if v.boot == nil {
		return "the boot configuration to be written"
	}
	state := v.boot.Status.State
	if state == "" {
		state = v1alpha1.ServerBootConfigurationStatePending
	}
	return fmt.Sprintf("the boot operator to prepare %s/%s, which is %s", v.boot.Namespace, v.boot.Name, state)
}

// bootAsClaimed keeps the claim's boot configuration in the claim's namespace as the claim asks.
func (v *scope) bootAsClaimed(ctx context.Context) loop.Progress {
	if p, ok := v.interfacesKnown(); !ok {
		return p
	}
	if v.claimBootStands() {
		return loop.Holds()
	}
	if p, ok := v.permitted(ctx, fleet.Setting); !ok {
		return p
	}
	key := types.NamespacedName{Namespace: v.claim.Namespace, Name: v.claim.Name}
	boot := v.boot
	if boot == nil || client.ObjectKeyFromObject(boot) != key {
		boot = &v1alpha1.ServerBootConfiguration{}
		err := v.Reader.Get(ctx, key, boot)
		switch {
		case apierrors.IsNotFound(err):
			if boot, err = v.createClaimBoot(ctx); err != nil {
				return goingOrBroken(err, key.Namespace)
			}
		case err != nil:
			return loop.Broken(err)
		}
	}
	if !ownedByClaim(boot, v.claim) {
		return loop.Failing(v1alpha1.ReasonBootConfigurationTaken, fmt.Sprintf(
			"the boot configuration %s exists and does not belong to this claim; delete it, or claim under another name", key), time.Minute)
	}
	if !boot.DeletionTimestamp.IsZero() {
		return loop.Waiting(power.WaitsForBoot, "a former boot configuration to go", time.Second)
	}
	if p, ok := v.followClaim(ctx, boot); !ok {
		return p
	}
	v.server.Spec.BootConfigurationRef = &v1alpha1.ObjectReference{Namespace: key.Namespace, Name: key.Name}
	return loop.Holds()
}

// claimBootStands says that the cache shows the claim's boot configuration as the claim asks, and the reference to it.
func (v *scope) claimBootStands() bool {
	return v.boot != nil && v.boot.Namespace == v.claim.Namespace && v.boot.Name == v.claim.Name &&
		equality.Semantic.DeepEqual(v.boot.Spec, v.claimBootSpec()) && specHandedOver(v.boot)
}

func (v *scope) claimBootSpec() v1alpha1.ServerBootConfigurationSpec {
	spec := v1alpha1.ServerBootConfigurationSpec{Image: v.claim.Spec.Image, IgnitionSecretRef: v.claim.Spec.IgnitionSecretRef.DeepCopy()}
	spec.ServerRef.Name = v.server.Name
	return spec
}

func (v *scope) createClaimBoot(ctx context.Context) (*v1alpha1.ServerBootConfiguration, error) {
	boot := &v1alpha1.ServerBootConfiguration{
		ObjectMeta: metav1.ObjectMeta{Namespace: v.claim.Namespace, Name: v.claim.Name, Annotations: v.bootAnnotations(v1alpha1.BootPurposeClaim)},
		Spec:       v.claimBootSpec(),
	}
	if err := controllerutil.SetControllerReference(v.claim, boot, v.Client.Scheme()); err != nil {
		return nil, err
	}
	return boot, v.Client.Create(ctx, boot)
}

// followClaim carries a change of the claim's image or ignition into the boot configuration, and then takes back the
// Ready that spoke of the former spec. Both writes are under the optimistic lock; a crash between them is found by the
// generation that nobody has handed over.
func (v *scope) followClaim(ctx context.Context, boot *v1alpha1.ServerBootConfiguration) (loop.Progress, bool) {
	wanted := v.claimBootSpec()
	stands := equality.Semantic.DeepEqual(boot.Spec, wanted)
	if v1alpha1.Ignored(boot) && !(stands && specHandedOver(boot)) {
		return loop.Waiting(v1alpha1.ReasonIgnored, fmt.Sprintf(
			"the annotation %s to be removed from the boot configuration %s/%s, which differs from what the claim asks for and is left alone",
			v1alpha1.IgnoredBy(boot), boot.Namespace, boot.Name), 0), false
	}
	if !stands {
		changed := boot.DeepCopy()
		changed.Spec = wanted
		if err := v.Client.Update(ctx, changed); err != nil {
			return conflictOrBroken(err), false
		}
		boot = changed
	}
	if specHandedOver(boot) {
		return loop.Progress{}, true
	}
	reset := boot.DeepCopy()
	reset.Status.State = v1alpha1.ServerBootConfigurationStatePending
	meta.SetStatusCondition(&reset.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionSpecHandedOver, Status: metav1.ConditionTrue,
		Reason: "SpecChanged", Message: "the spec was changed by its claim; what was Ready before does not count",
		ObservedGeneration: boot.Generation})
	if err := v.Client.Status().Patch(ctx, reset, client.MergeFromWithOptions(boot, client.MergeFromWithOptimisticLock{})); err != nil {
		return conflictOrBroken(err), false
	}
	return loop.Waiting(power.WaitsForBoot, "the boot operator to prepare the changed boot configuration", 0), false
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
		return loop.Waiting("LostRace", "somebody else wrote first", 100*time.Millisecond)
	}
	return loop.Broken(err)
}

func ownedByClaim(boot *v1alpha1.ServerBootConfiguration, claim *v1alpha1.ServerClaim) bool {
	owner := metav1.GetControllerOf(boot)
	return owner != nil && owner.Kind == "ServerClaim" && owner.UID == claim.UID
}

func (v *scope) bootAnnotations(purpose string) map[string]string {
	return map[string]string{
		v1alpha1.BootPurposeAnnotation: purpose,
		v1alpha1.BootEntryAnnotation:   entryText(v.server.Status.Lifecycle.Entry),
	}
}
