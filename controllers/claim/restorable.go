// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

// maxRestorable bounds what is kept of a claim on its server, in bytes. All annotations of an object may have 256 KiB.
const maxRestorable = 64 << 10

// ownOfClaims are the labels and annotations that this manager, an operation or kubectl writes on a claim: they say nothing of
// what its user wants, and are wrong on the claim that is applied again.
var ownOfClaims = []string{v1alpha1.OperationAnnotation, v1alpha1.OperationIDAnnotation, v1alpha1.MaintenanceNeededLabel,
	v1alpha1.MaintenanceReasonAnnotation, "kubectl.kubernetes.io/last-applied-configuration"}

// restorable is the claim as a user would apply it again to get the server back, with its labels and annotations. What is
// too long to be kept is left out, the longest annotation first, and named; empty where the rest is too long.
func restorable(c *v1alpha1.ServerClaim, server string) string {
	spec := c.Spec.DeepCopy()
	spec.ServerRef = &corev1.LocalObjectReference{Name: server}
	meta := metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Name, Labels: wanted(c.Labels), Annotations: wanted(c.Annotations)}
	var leftOut []string
	for {
		text, err := json.Marshal(map[string]any{"apiVersion": v1alpha1.GroupVersion.String(), "kind": "ServerClaim", "metadata": meta, "spec": spec})
		if err == nil && len(text) <= maxRestorable {
			return string(text)
		}
		longest := longestOf(meta.Annotations)
		if err != nil || longest == "" {
			return ""
		}
		delete(meta.Annotations, longest)
		leftOut = append(leftOut, longest)
		slices.Sort(leftOut)
		meta.Annotations[v1alpha1.LeftOutAnnotation] = strings.Join(leftOut, ",")
	}
}

// wanted are the labels or annotations of a claim that its user wants again.
func wanted(all map[string]string) map[string]string {
	kept := maps.Clone(all)
	for _, name := range ownOfClaims {
		delete(kept, name)
	}
	return kept
}

// longestOf names the longest annotation that can be left out; empty where none is left.
func longestOf(annotations map[string]string) (longest string) {
	for _, name := range slices.Sorted(maps.Keys(annotations)) {
		if name != v1alpha1.LeftOutAnnotation && (longest == "" || len(annotations[name]) > len(annotations[longest])) {
			longest = name
		}
	}
	return longest
}
