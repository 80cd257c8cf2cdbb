// SPDX-License-Identifier: Apache-2.0

package bootservice

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/internal/bootserver"
	"github.com/metalaw/metalaw/internal/bootserver/images"
)

// Input is everything that the state of a boot configuration depends on.
type Input struct {
	Boot *v1alpha1.ServerBootConfiguration
	// UUID is the machine's; empty where the server has none.
	UUID string
	// Image is what the image resolved to, and ImageErr why it or one of its layers is not there.
	Image    images.Image
	ImageErr error
	// IgnitionErr says why the ignition cannot be served.
	IgnitionErr error
	// PXE and Media say what the service serves.
	PXE, Media bool
	// Name is for the ISO, where none is recorded; it cannot be guessed.
	Name string
	// MediaURL is where BMCs reach the service, without a slash at the end.
	MediaURL string
}

// Output is the boot configuration as it is to be written.
type Output struct {
	// Boot has the annotations and the status.
	Boot *v1alpha1.ServerBootConfiguration
	// Retry says that what is missing may come without a change of the boot configuration.
	Retry bool
}

// Decide says whether a boot is prepared: everything that the machine will ask for can be served.
func Decide(in Input) Output {
	boot := in.Boot.DeepCopy()
	boot.Status.ObservedGeneration = boot.Generation
	problem := in.problem()
	if problem != nil {
		boot.Status.State = v1alpha1.ServerBootConfigurationStateError
		delete(boot.Annotations, v1alpha1.MediaURLAnnotation)
		meta.SetStatusCondition(&boot.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionImageValidation, Status: metav1.ConditionFalse,
			Reason: in.reason(), Message: short(problem.Error()), ObservedGeneration: boot.Generation})
		return Output{Boot: boot, Retry: true}
	}
	boot.Status.State = v1alpha1.ServerBootConfigurationStateReady
	meta.RemoveStatusCondition(&boot.Status.Conditions, v1alpha1.ConditionImageValidation)
	if boot.Annotations == nil {
		boot.Annotations = map[string]string{}
	}
	boot.Annotations[v1alpha1.BootImageAnnotation] = in.Image.Reference()
	delete(boot.Annotations, v1alpha1.MediaURLAnnotation)
	if in.Media && in.Image.Has(images.UKI) {
		boot.Annotations[v1alpha1.MediaURLAnnotation] = in.isoURL()
	}
	return Output{Boot: boot}
}

// isoURL keeps the URL that is recorded, if it is one of this service.
func (in Input) isoURL() string {
	recorded := in.Boot.Annotations[v1alpha1.MediaURLAnnotation]
	if strings.HasPrefix(recorded, in.MediaURL+bootserver.MediaPath) && mediaNameOf(recorded) != "" {
		return recorded
	}
	return in.MediaURL + bootserver.MediaPath + in.Name + ".iso"
}

// problem is why the boot cannot be served; nil where it can.
func (in Input) problem() error {
	switch {
	case in.UUID == "":
		return fmt.Errorf("server %s has no systemUUID; machines ask by it. It comes with the first reading of the BMC", in.Boot.Spec.ServerRef.Name)
	case in.ImageErr != nil:
		return in.ImageErr
	case !(in.PXE && in.Image.PXE()) && !(in.Media && in.Image.Has(images.UKI)):
		return errors.New(in.servesNone())
	}
	return in.IgnitionErr
}

func (in Input) servesNone() string {
	if in.PXE {
		return fmt.Sprintf("image %s has no kernel and initramfs, and this service has no --media-url for its UKI; "+
			"push an image with both layers, or set the URL", in.Image.Reference())
	}
	return fmt.Sprintf("image %s has no UKI, and this service has no --boot-url for its kernel; push an image with a UKI, or set the URL",
		in.Image.Reference())
}

// reason names what is wrong.
func (in Input) reason() string {
	if in.UUID != "" && in.ImageErr == nil && in.IgnitionErr != nil {
		return "IgnitionMissing"
	}
	return "ValidationFailed"
}

// short cuts a message to what a condition is meant for.
func short(message string) string {
	const limit = 1024
	if len(message) > limit {
		return strings.ToValidUTF8(message[:limit], "")
	}
	return message
}
