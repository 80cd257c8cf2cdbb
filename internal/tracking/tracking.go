// SPDX-License-Identifier: Apache-2.0

// Package tracking knows the labels by which tools tell what they installed. A tool deletes an object that bears its
// label and that its source does not name, so that such a label must not be copied to an object of the manager.
package tracking

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// prefixes are those of the tools' label keys: the common labels that Argo CD and Helm track by, Argo CD, kapp, Flux
// and Velero.
var prefixes = []string{
	"app.kubernetes.io/", "argocd.argoproj.io/", "kapp.k14s.io/", "kustomize.toolkit.fluxcd.io/", "helm.toolkit.fluxcd.io/",
	"velero.io/",
}

// The annotations by which Argo CD leaves an object alone, and does not call its application out of sync because of it.
const (
	SyncOptions      = "argocd.argoproj.io/sync-options"
	NoPrune          = "Prune=false"
	CompareOptions   = "argocd.argoproj.io/compare-options"
	IgnoreExtraneous = "IgnoreExtraneous"
)

// Label says that a label is one by which a tool tracks an object.
func Label(key string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
}

// Without returns a copy of labels without those of tools; nil where none is left.
func Without(labels map[string]string) map[string]string {
	var kept map[string]string
	for key, value := range labels {
		if Label(key) {
			continue
		}
		if kept == nil {
			kept = map[string]string{}
		}
		kept[key] = value
	}
	return kept
}

// Keep annotates an object so that Argo CD does not delete it. An annotation that the object has is the decision of a
// user, or of the repository that the object is in: it stays.
func Keep(o *metav1.ObjectMeta) {
	for key, value := range map[string]string{SyncOptions: NoPrune, CompareOptions: IgnoreExtraneous} {
		if _, set := o.Annotations[key]; !set {
			metav1.SetMetaDataAnnotation(o, key, value)
		}
	}
}
