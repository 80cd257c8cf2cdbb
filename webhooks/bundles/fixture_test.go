// SPDX-License-Identifier: Apache-2.0

package bundles

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/webhooks/review"
)

// aHead is the head of bundle fleet of a stage, in a ConfigMap of this name; an empty stage writes no label.
func aHead(name, stage string, change ...func(*corev1.ConfigMap)) *head {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name),
		Labels: map[string]string{policyv1alpha1.BundleLabel: "fleet"}, Annotations: map[string]string{}},
		Data: map[string]string{"bundle.yaml": "name: fleet\nversion: 1.0.0\n"}}
	if stage != "" {
		cm.Labels[policyv1alpha1.StageLabel] = stage
	}
	for _, f := range change {
		f(cm)
	}
	return headOf(cm)
}

func ofBundle(name string) func(*corev1.ConfigMap) {
	return func(cm *corev1.ConfigMap) { cm.Labels[policyv1alpha1.BundleLabel] = name }
}

func annotated(key, value string) func(*corev1.ConfigMap) {
	return func(cm *corev1.ConfigMap) { cm.Annotations[key] = value }
}

func withFile(file, text string) func(*corev1.ConfigMap) {
	return func(cm *corev1.ConfigMap) { cm.Data[file] = text }
}

// aRevision is a revision of bundle fleet that was made from ConfigMap fleet-1.
func aRevision(name string, stage policyv1alpha1.PolicyStage, change ...func(*policyv1alpha1.PolicyRevision)) policyv1alpha1.PolicyRevision {
	r := policyv1alpha1.PolicyRevision{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name)},
		Spec:   policyv1alpha1.PolicyRevisionSpec{Bundle: "fleet", Source: &policyv1alpha1.PolicySource{Name: "fleet-1", UID: "uid-fleet-1"}},
		Status: policyv1alpha1.PolicyRevisionStatus{Stage: stage, Head: "fleet-1"}}
	for _, f := range change {
		f(&r)
	}
	return r
}

func promoted(n int64) func(*policyv1alpha1.PolicyRevision) {
	return func(r *policyv1alpha1.PolicyRevision) { r.SetPromotion(n) }
}

func ofAnother(bundle string) func(*policyv1alpha1.PolicyRevision) {
	return func(r *policyv1alpha1.PolicyRevision) { r.Spec.Bundle = bundle }
}

func shipped(r *policyv1alpha1.PolicyRevision) { r.Spec.Source, r.Status.Head = nil, "" }

// names are those of revisions.
func names(all []*policyv1alpha1.PolicyRevision) string {
	var out []string
	for _, r := range all {
		out = append(out, r.Name)
	}
	return strings.Join(out, " ")
}

// check compares what is denied and warned of, a line each, with a part of each that is wanted.
func check(t *testing.T, found *review.Findings, want ...string) {
	t.Helper()
	var got []string
	for _, d := range found.Denials {
		got = append(got, "denied: "+d.Field+": "+d.Message)
	}
	for _, w := range found.Warnings {
		got = append(got, "warned: "+w)
	}
	if len(got) != len(want) {
		t.Fatalf("got %q, want %q", got, want)
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("got  %q\nwant %q", got[i], want[i])
		}
	}
}
