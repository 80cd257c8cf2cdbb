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

// ClaimInput is everything that a decision about a claim's boot configuration depends on. ForClaim changes none of it.
type ClaimInput struct {
	Server *v1alpha1.Server
	Claim  *v1alpha1.ServerClaim
	// Found is the object of the claim's name; nil where there is none.
	Found *v1alpha1.ServerBootConfiguration
	// Updated says that its spec was just written.
	Updated bool
}

// ForClaim keeps the claim's boot configuration as the claim asks. A change of the claim's image or ignition is carried over,
// and then the Ready that spoke of the former spec is taken back. Both writes are under the optimistic lock; a crash between
// them is found by the generation that was not handed over.
func ForClaim(in ClaimInput) Output {
	found := in.Found
	if found == nil {
		return Output{Step: Create, Boot: &v1alpha1.ServerBootConfiguration{ObjectMeta: metav1.ObjectMeta{Namespace: in.Claim.Namespace,
			Name: in.Claim.Name, Annotations: Annotations(in.Server, v1alpha1.BootPurposeClaim)}, Spec: in.spec()}}
	}
	stands := in.Updated || equality.Semantic.DeepEqual(found.Spec, in.spec())
	switch {
	case !OwnedByClaim(found, in.Claim):
		return Output{Progress: loop.Failing(v1alpha1.ReasonBootConfigurationTaken, fmt.Sprintf(
			"the boot configuration %s/%s exists and does not belong to this claim; delete it, or claim under another name",
			in.Claim.Namespace, in.Claim.Name), time.Minute)}
	case !found.DeletionTimestamp.IsZero():
		return Output{Progress: loop.Waiting(power.WaitsForBoot, "a former boot configuration to go", time.Second)}
	case stands && policies.Armed(found):
		return Output{Step: Refer}
	case v1alpha1.Ignored(found):
		return Output{Progress: loop.Waiting(v1alpha1.ReasonIgnored, fmt.Sprintf(
			"the annotation %s to be removed from the boot configuration %s/%s, which differs from what the claim asks for and is left alone",
			v1alpha1.IgnoredBy(found), found.Namespace, found.Name), 0)}
	case !stands:
		changed := found.DeepCopy()
		changed.Spec = in.spec()
		return Output{Step: Update, Boot: changed}
	}
	reset := found.DeepCopy()
	reset.Status.State = v1alpha1.ServerBootConfigurationStatePending
	meta.SetStatusCondition(&reset.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionSpecHandedOver, Status: metav1.ConditionTrue,
		Reason: "SpecChanged", Message: "the spec was changed by its claim; what was Ready before does not count",
		ObservedGeneration: found.Generation})
	return Output{Step: HandOver, Boot: reset,
		Progress: loop.Waiting(power.WaitsForBoot, "the boot operator to prepare the changed boot configuration", 0)}
}

// ClaimStands says that a boot configuration is the claim's, as the claim asks.
func ClaimStands(in ClaimInput) bool {
	return in.Found != nil && in.Found.Namespace == in.Claim.Namespace && in.Found.Name == in.Claim.Name &&
		equality.Semantic.DeepEqual(in.Found.Spec, in.spec()) && policies.Armed(in.Found)
}

func (in ClaimInput) spec() v1alpha1.ServerBootConfigurationSpec {
	spec := v1alpha1.ServerBootConfigurationSpec{Image: in.Claim.Spec.Image, IgnitionSecretRef: in.Claim.Spec.IgnitionSecretRef.DeepCopy()}
	spec.ServerRef.Name = in.Server.Name
	return spec
}

// OwnedByClaim says that a boot configuration is the claim's, whoever wrote it.
func OwnedByClaim(b *v1alpha1.ServerBootConfiguration, claim *v1alpha1.ServerClaim) bool {
	owner := metav1.GetControllerOf(b)
	return owner != nil && owner.Kind == "ServerClaim" && owner.UID == claim.UID
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
