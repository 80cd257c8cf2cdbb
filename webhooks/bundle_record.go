// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

// edit is one change of an object, as JSON patch spells it, of which the value may be of any form.
type edit struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// bundleMutator writes who puts a bundle where it governs, whatever the client writes there, and tells of ConfigMaps that
// grow too large, which the API server refuses before a validating webhook is asked.
func (l *bundleRules) bundleMutator(now func() time.Time) admission.Handler {
	return admission.HandlerFunc(func(ctx context.Context, req admission.Request) admission.Response {
		after, err := object[corev1.ConfigMap](req.Object.Raw)
		if err != nil {
			return admission.Errored(http.StatusBadRequest, fmt.Errorf("the object cannot be read: %w", err))
		}
		before, err := object[corev1.ConfigMap](req.OldObject.Raw)
		if err != nil {
			return admission.Errored(http.StatusBadRequest, fmt.Errorf("the stored object cannot be read: %w", err))
		}
		if after == nil || after.Namespace != l.namespace {
			return admission.Allowed("")
		}
		response := admission.Allowed("").WithWarnings(sizeWarnings(after)...)
		is := headOf(after)
		if is == nil {
			return response
		}
		ctx, cancel := context.WithTimeout(ctx, bundleTime)
		defer cancel()
		wanted := l.recordFor(ctx, req.UserInfo, headOf(before), is, now())
		changes := rewriteAnnotation(after, policyv1alpha1.ActivatedByAnnotation, wanted)
		if len(changes) == 0 {
			return response
		}
		patch, err := json.Marshal(changes)
		if err != nil {
			return admission.Errored(http.StatusInternalServerError, err)
		}
		jsonPatch := admissionv1.PatchTypeJSONPatch
		response.Patch, response.PatchType = patch, &jsonPatch
		return response
	})
}

// recordFor is what the head is to say of its last activation. Where the content is not accepted it stays as it was: the
// request is refused, and the validating webhook says why.
func (l *bundleRules) recordFor(ctx context.Context, user authenticationv1.UserInfo, was, is *head, now time.Time) string {
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
	text := record(user, c.digest, now)
	if was == nil && recordsSome(is.object.Annotations[policyv1alpha1.ActivatedByAnnotation], c.digest) {
		text += policyv1alpha1.ActivationRestored
	}
	return text
}

// rewriteAnnotation makes an annotation what it should be; an empty value takes it away.
func rewriteAnnotation(cm *corev1.ConfigMap, name, value string) []edit {
	stored, set := cm.Annotations[name]
	switch {
	case value == "" && set:
		return []edit{{Op: "remove", Path: annotationPath(name)}}
	case value == "" || value == stored:
		return nil
	case cm.Annotations == nil:
		return []edit{{Op: "add", Path: "/metadata/annotations", Value: map[string]string{name: value}}}
	}
	return []edit{{Op: "add", Path: annotationPath(name), Value: value}}
}

const (
	// lastApplied is where client-side apply keeps a copy of the object.
	lastApplied = "kubectl.kubernetes.io/last-applied-configuration"
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
	if copied := len(cm.Annotations[lastApplied]); copied > 0 && annotations > maxAnnotations*3/4 {
		warnings = append(warnings, fmt.Sprintf("%s: kubectl apply keeps a copy of the object in an annotation, and %d KiB of the 256 KiB that "+
			"annotations may take are taken; use kubectl apply --server-side, which keeps none", cm.Name, annotations>>10))
	}
	size := 0
	for _, text := range cm.Data {
		size += len(text)
	}
	for _, data := range cm.BinaryData {
		size += len(data)
	}
	if size > maxData*3/4 {
		warnings = append(warnings, fmt.Sprintf("%s: the files take %d KiB of the 1024 KiB that a ConfigMap can hold; keep some in ConfigMaps "+
			"labelled %s, and list them with their digests in %s", cm.Name, size>>10, policyv1alpha1.BundlePartLabel, policyv1alpha1.ManifestKey))
	}
	return warnings
}
