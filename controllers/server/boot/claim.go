// SPDX-License-Identifier: Apache-2.0

package boot

import (
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/controllers/server/power"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/internal/orphaned"
	"github.com/metalaw/metalaw/policies"
)

// Step is the one thing that is due about a boot configuration.
type Step uint8

const (
	// Wait: nothing can be done now; Progress says why.
	Wait Step = iota
	// Refer: the boot configuration stands, and the server is to name it.
	Refer
	// Create: it is to be made.
	Create
	// Update: its spec is to be changed.
	Update
	// HandOver: the Ready that spoke of its former spec is to be taken back.
	HandOver
	// Replace: one of a former entry is to go, and another is to be made.
	Replace
)

// Output is what is due about a boot configuration.
type Output struct {
	Step     Step
	Progress loop.Progress
	// Boot is the object as it is to be written.
	Boot *v1alpha1.ServerBootConfiguration
}

// Owner is an object that has a boot configuration of its own name, which goes with it.
type Owner struct {
	metav1.Object
	// Kind is its kind, and Called what messages call it.
	Kind, Called string
	// Purpose is what the boot is for, and Spec what it boots.
	Purpose string
	Spec    v1alpha1.ServerBootConfigurationSpec
	// Ignition is the value of BootIgnitionAnnotation; empty serves the ignition always.
	Ignition string
	// Remedy is what to do where another object has the name.
	Remedy string
}

// OfClaim is a claim, as the owner of the boot that it asks for. ignition is boot.ignition of the bundle.
func OfClaim(s *v1alpha1.Server, claim *v1alpha1.ServerClaim, ignition string) Owner {
	spec := v1alpha1.ServerBootConfigurationSpec{Image: claim.Spec.Image, IgnitionSecretRef: claim.Spec.IgnitionSecretRef.DeepCopy()}
	spec.ServerRef.Name = s.Name
	owner := Owner{Object: claim, Kind: "ServerClaim", Called: "claim", Purpose: v1alpha1.BootPurposeClaim, Spec: spec,
		Remedy: "delete it, or claim under another name"}
	if ignition == bundle.IgnitionUntilFirstSign {
		owner.Ignition = v1alpha1.IgnitionUntilFirstSign
	}
	return owner
}

// Owns says that a boot configuration is the owner's, whoever wrote it.
func (o Owner) Owns(b *v1alpha1.ServerBootConfiguration) bool {
	owner := metav1.GetControllerOf(b)
	return owner != nil && owner.Kind == o.Kind && owner.UID == o.GetUID()
}

// asked says that a boot configuration is what the owner asks for. The annotation of one that is left alone stays as it is.
func (o Owner) asked(b *v1alpha1.ServerBootConfiguration) bool {
	marked := b.Annotations[v1alpha1.BootIgnitionAnnotation] == o.Ignition || v1alpha1.Ignored(b)
	return marked && equality.Semantic.DeepEqual(b.Spec, o.Spec)
}

// put makes a boot configuration what the owner asks for.
func (o Owner) put(b *v1alpha1.ServerBootConfiguration) *v1alpha1.ServerBootConfiguration {
	b.Spec = *o.Spec.DeepCopy()
	metav1.SetMetaDataAnnotation(&b.ObjectMeta, v1alpha1.BootOwnerGenerationAnnotation, strconv.FormatInt(o.GetGeneration(), 10))
	delete(b.Annotations, v1alpha1.BootIgnitionAnnotation)
	if o.Ignition != "" {
		metav1.SetMetaDataAnnotation(&b.ObjectMeta, v1alpha1.BootIgnitionAnnotation, o.Ignition)
	}
	return b
}

// OwnedInput is everything that a decision about the boot configuration of an owner depends on. ForOwner changes none of it.
type OwnedInput struct {
	Server *v1alpha1.Server
	Owner  Owner
	// Found is the object of the owner's name; nil where there is none.
	Found *v1alpha1.ServerBootConfiguration
	// Updated says that its spec was just written.
	Updated bool
	// Now is when a change of the spec is handed over.
	Now time.Time
}

// Stands says that a boot configuration is the owner's, as the owner asks.
func (in OwnedInput) Stands() bool {
	return in.Found != nil && in.Found.Namespace == in.Owner.GetNamespace() && in.Found.Name == in.Owner.GetName() &&
		in.Owner.asked(in.Found) && policies.Armed(in.Found)
}

// ForOwner keeps the boot configuration of an owner as the owner asks. A change of what it boots is carried over, and
// then the Ready that spoke of the former spec is taken back. One that lost its owner is made anew. Both writes are
// under the optimistic lock; a crash between them is found by the generation that was not handed over.
func ForOwner(in OwnedInput) Output {
	found, owner := in.Found, in.Owner
	if found == nil {
		return Output{Step: Create, Boot: owner.put(&v1alpha1.ServerBootConfiguration{ObjectMeta: metav1.ObjectMeta{
			Namespace: owner.GetNamespace(), Name: owner.GetName(), Annotations: Annotations(in.Server, owner.Purpose)}})}
	}
	stands := in.Updated || owner.asked(found)
	lost := orphaned.Boot(found, owner.Purpose, in.Server) && !v1alpha1.Ignored(found)
	switch {
	case !owner.Owns(found) && !lost:
		return Output{Progress: loop.Failing(v1alpha1.ReasonBootConfigurationTaken, fmt.Sprintf(
			"the boot configuration %s/%s exists and does not belong to this %s; %s",
			owner.GetNamespace(), owner.GetName(), owner.Called, owner.Remedy), time.Minute)}
	case !found.DeletionTimestamp.IsZero():
		return Output{Progress: loop.Waiting(power.WaitsForBoot, "a former boot configuration to go", time.Second)}
	case lost: // what it boots, and its Ready, may be those of a former holder (order 6)
		return Output{Step: Replace}
	case stands && policies.Armed(found):
		return Output{Step: Refer}
	case v1alpha1.Ignored(found):
		return Output{Progress: loop.Waiting(v1alpha1.ReasonIgnored, fmt.Sprintf(
			"the annotation %s to be removed from the boot configuration %s/%s, which differs from what the %s asks for and is left alone",
			v1alpha1.IgnoredBy(found), found.Namespace, found.Name, owner.Called), 0)}
	case !stands:
		return Output{Step: Update, Boot: owner.put(found.DeepCopy())}
	}
	return handOver(found, owner, in.Now)
}

// handOver takes back the Ready that spoke of the former spec. The time of the condition is that of the last change, by which
// a claim knows whether its machine booted since.
func handOver(found *v1alpha1.ServerBootConfiguration, owner Owner, now time.Time) Output {
	reset := found.DeepCopy()
	reset.Status.State = v1alpha1.ServerBootConfigurationStatePending
	meta.RemoveStatusCondition(&reset.Status.Conditions, v1alpha1.ConditionSpecHandedOver)
	meta.SetStatusCondition(&reset.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionSpecHandedOver, Status: metav1.ConditionTrue,
		Reason: "SpecChanged", Message: fmt.Sprintf("the spec was changed by its %s; what was Ready before does not count", owner.Called),
		ObservedGeneration: found.Generation, LastTransitionTime: metav1.NewTime(now)})
	return Output{Step: HandOver, Boot: reset,
		Progress: loop.Waiting(power.WaitsForBoot, "the boot operator to prepare the changed boot configuration", 0)}
}

// OwnedByClaim says that a boot configuration is the claim's, whoever wrote it.
func OwnedByClaim(b *v1alpha1.ServerBootConfiguration, claim *v1alpha1.ServerClaim) bool {
	return Owner{Object: claim, Kind: "ServerClaim"}.Owns(b)
}

// Annotations say for what a boot configuration is, and for which entry.
func Annotations(s *v1alpha1.Server, purpose string) map[string]string {
	return map[string]string{
		v1alpha1.BootPurposeAnnotation: purpose,
		v1alpha1.BootEntryAnnotation:   strconv.FormatInt(s.Status.Lifecycle.Entry, 10),
	}
}

// Waits says what a power-on waits for.
func Waits(b *v1alpha1.ServerBootConfiguration) string {
	if b == nil {
		return "the boot configuration to be written"
	}
	state := b.Status.State
	if state == "" {
		state = v1alpha1.ServerBootConfigurationStatePending
	}
	return fmt.Sprintf("the boot operator to prepare %s/%s, which is %s", b.Namespace, b.Name, state)
}
