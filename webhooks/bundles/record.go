// SPDX-License-Identifier: Apache-2.0

package bundles

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/webhooks/review"
)

// Mutate writes who puts a bundle where it governs, and not what the client writes there, and tells of ConfigMaps that
// grow too large, which the API server refuses before a validating webhook is asked.
func (l *Rules) Mutate(now func() time.Time) func(context.Context, review.Change[corev1.ConfigMap]) ([]review.Edit, []string) {
	return func(ctx context.Context, c review.Change[corev1.ConfigMap]) (edits []review.Edit, warnings []string) {
		if c.New.Namespace != l.Namespace {
			return nil, nil
		}
		if is := headOf(c.New); is != nil {
			ctx, cancel := context.WithTimeout(ctx, Time)
			defer cancel()
			wanted := l.recordFor(ctx, c.User, headOf(c.Old), is, now())
			edits = rewriteAnnotation(c.New, policyv1alpha1.ActivatedByAnnotation, wanted)
		}
		return edits, sizeWarnings(c.New)
	}
}

// recordFor is what the head is to say of its last activation. Where the content is not accepted it stays as it was: the
// request is refused, and the validating webhook says why.
func (l *Rules) recordFor(ctx context.Context, user authenticationv1.UserInfo, was, is *head, now time.Time) string {
	former := formerRecord(was)
	if !puts(was, is) {
		return former
	}
	c, err := l.examine(ctx, is)
	if err != nil {
		logf.FromContext(ctx).Error(err, "who activates a bundle could not be recorded")
		return former
	}
	if !c.accepted() {
		return former
	}
	text := Record(user, c.digest, now)
	if was == nil && recordsSome(is.object.Annotations[policyv1alpha1.ActivatedByAnnotation], c.digest) {
		text += policyv1alpha1.ActivationRestored
	}
	return text
}

// rewriteAnnotation makes an annotation what it should be; an empty value takes it away.
func rewriteAnnotation(cm *corev1.ConfigMap, name, value string) []review.Edit {
	stored, set := cm.Annotations[name]
	switch {
	case value == "" && set:
		return []review.Edit{{Op: "remove", Path: review.AnnotationPath(name)}}
	case value == "" || value == stored:
		return nil
	case cm.Annotations == nil:
		return []review.Edit{{Op: "add", Path: "/metadata/annotations", Value: map[string]string{name: value}}}
	}
	return []review.Edit{{Op: "add", Path: review.AnnotationPath(name), Value: value}}
}

const (
	// LastApplied is where client-side apply keeps a copy of the object.
	LastApplied = "kubectl.kubernetes.io/last-applied-configuration"
	// maxAnnotations and maxData are what the API server stores of an object's annotations and of a ConfigMap's data, in bytes.
	maxAnnotations = 256 << 10
	maxData        = 1 << 20
)

// sizeWarnings tells of limits that are near or passed, and of the way round them.
func sizeWarnings(cm *corev1.ConfigMap) []string {
	var warnings []string
	annotations := 0
	for key, value := range cm.Annotations {
		annotations += len(key) + len(value)
	}
	if copied := len(cm.Annotations[LastApplied]); copied > 0 && annotations > maxAnnotations*3/4 {
		warnings = append(warnings, fmt.Sprintf("%s: kubectl apply keeps a copy of the object in an annotation, and %d KiB of the 256 KiB that "+
			"annotations may take are taken. Use kubectl apply --server-side, which keeps none", cm.Name, annotations>>10))
	}
	size := 0
	for _, text := range cm.Data {
		size += len(text)
	}
	for _, data := range cm.BinaryData {
		size += len(data)
	}
	if size > maxData*3/4 {
		warnings = append(warnings, fmt.Sprintf("%s: the files take %d KiB of the 1024 KiB that a ConfigMap can hold. Keep some in ConfigMaps "+
			"labelled %s, and list them with their digests in %s", cm.Name, size>>10, policyv1alpha1.BundlePartLabel, policyv1alpha1.ManifestKey))
	}
	return warnings
}
