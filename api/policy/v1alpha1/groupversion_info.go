// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the kinds of policy.metalaw.dev/v1alpha1: what decides about servers, and what is known of a
// machine beyond the life of its Server.
//
// +kubebuilder:object:generate=true
// +groupName=policy.metalaw.dev
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	// GroupVersion names this API group and version.
	GroupVersion = schema.GroupVersion{Group: "policy.metalaw.dev", Version: "v1alpha1"}

	// SchemeBuilder collects what AddToScheme registers.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme registers every kind of this package in a scheme. A repeated call does no harm.
	AddToScheme = SchemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&FleetControl{}, &FleetControlList{},
		&PolicyRevision{}, &PolicyRevisionList{},
		&SanitizationRecord{}, &SanitizationRecordList{},
		&ServerInventory{}, &ServerInventoryList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
