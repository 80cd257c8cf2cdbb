// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the kinds of metal.ironcore.dev/v1alpha1, the API that clients of bare-metal servers speak.
//
// The names of its fields are an agreement with clients that other people wrote; fields are added, never renamed.
//
// +kubebuilder:object:generate=true
// +groupName=metal.ironcore.dev
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	// GroupVersion names this API group and version.
	GroupVersion = schema.GroupVersion{Group: "metal.ironcore.dev", Version: "v1alpha1"}

	// SchemeBuilder collects what AddToScheme registers.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme registers every kind of this package in a scheme. A repeated call does no harm.
	AddToScheme = SchemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&Endpoint{}, &EndpointList{},
		&BMC{}, &BMCList{},
		&BMCSecret{}, &BMCSecretList{},
		&Server{}, &ServerList{},
		&ServerClaim{}, &ServerClaimList{},
		&ServerBootConfiguration{}, &ServerBootConfigurationList{},
		&ServerMaintenance{}, &ServerMaintenanceList{},
		&ServerReadinessRule{}, &ServerReadinessRuleList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

// FieldManager is the field manager of everything that the manager writes. Managed fields that name another one for a
// server's status tell of another operator.
const FieldManager = "metalaw"
