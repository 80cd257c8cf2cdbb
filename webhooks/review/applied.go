// SPDX-License-Identifier: Apache-2.0

package review

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

// WarnApplied warns of an operation that comes with an apply. The manager removes the annotation once the operation is
// done, so that each sync asks for it again. A value that leaves the object alone stays, and may be applied.
func WarnApplied[T any, P Pointer[T]](before, after *T, found *Findings) {
	value, set := Written[T, P](before, after, v1alpha1.OperationAnnotation)
	if !set || value == "" || v1alpha1.IsIgnore(value) || !appliesAnnotation(P(after), v1alpha1.OperationAnnotation) {
		return
	}
	found.Warn("%s: %s is done once and then removed; each apply of this manifest asks for it again. "+
		"Leave it out, and use kubectl annotate", AnnotationsPath.Key(v1alpha1.OperationAnnotation), value)
}

// appliesAnnotation says that an annotation is part of what a user applies, on the server's side or on the client's.
func appliesAnnotation(o metav1.Object, name string) bool {
	for _, m := range o.GetManagedFields() {
		if m.Operation == metav1.ManagedFieldsOperationApply && m.FieldsV1 != nil && ownsAnnotation(m.FieldsV1.GetRawBytes(), name) {
			return true
		}
	}
	return namesAnnotation([]byte(o.GetAnnotations()[corev1.LastAppliedConfigAnnotation]), name)
}

// ownsAnnotation says that a set of fields, as the API server stores it, has an annotation.
func ownsAnnotation(fields []byte, name string) bool {
	var set struct {
		Metadata struct {
			Annotations map[string]json.RawMessage `json:"f:annotations"`
		} `json:"f:metadata"`
	}
	if json.Unmarshal(fields, &set) != nil {
		return false
	}
	_, owns := set.Metadata.Annotations["f:"+name]
	return owns
}

// namesAnnotation says that a manifest has an annotation.
func namesAnnotation(manifest []byte, name string) bool {
	var is struct {
		Metadata struct {
			Annotations map[string]json.RawMessage `json:"annotations"`
		} `json:"metadata"`
	}
	if json.Unmarshal(manifest, &is) != nil {
		return false
	}
	_, names := is.Metadata.Annotations[name]
	return names
}
