// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ServerBootConfigurationSpec says what a server shall boot.
type ServerBootConfigurationSpec struct {
	// serverRef names the server.
	// +required
	// +kubebuilder:validation:XValidation:rule="self.name != ''",message="serverRef.name must not be empty"
	ServerRef corev1.LocalObjectReference `json:"serverRef,omitzero"`
	// image is the boot image.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Image string `json:"image,omitempty"`
	// ignitionSecretRef names the Secret with the ignition, in the namespace of the boot configuration.
	// +optional
	IgnitionSecretRef *corev1.LocalObjectReference `json:"ignitionSecretRef,omitempty"`
}

// ServerBootConfigurationState says whether a boot service has prepared the boot.
// +kubebuilder:validation:Enum=Pending;Ready;Error
type ServerBootConfigurationState string

const (
	// ServerBootConfigurationStatePending waits for a boot service.
	ServerBootConfigurationStatePending ServerBootConfigurationState = "Pending"
	// ServerBootConfigurationStateReady is prepared: the server may be powered on.
	ServerBootConfigurationStateReady ServerBootConfigurationState = "Ready"
	// ServerBootConfigurationStateError could not be prepared; a boot service may still mend it.
	ServerBootConfigurationStateError ServerBootConfigurationState = "Error"
)

// ServerBootConfigurationStatus is what the boot services said.
type ServerBootConfigurationStatus struct {
	// conditions belong to several writers: boot services, and the registry of booted machines.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// observedGeneration is the generation of the spec that this status speaks of.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// state says whether the boot is prepared.
	// +optional
	State ServerBootConfigurationState `json:"state,omitempty"`
}

// ServerBootConfiguration says what a server shall boot; a boot service prepares it and says when it is ready.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=sbc,categories=metal
// +kubebuilder:printcolumn:name="ServerRef",type=string,JSONPath=`.spec.serverRef.name`
// +kubebuilder:printcolumn:name="Image",type=string,JSONPath=`.spec.image`
// +kubebuilder:printcolumn:name="IgnitionRef",type=string,JSONPath=`.spec.ignitionSecretRef.name`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:selectablefield:JSONPath=`.spec.serverRef.name`
type ServerBootConfiguration struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec says what the server shall boot.
	// +required
	Spec ServerBootConfigurationSpec `json:"spec,omitzero"`
	// status is what the boot services said.
	// +optional
	Status ServerBootConfigurationStatus `json:"status,omitzero"`
}

// ServerBootConfigurationList is a list of boot configurations.
//
// +kubebuilder:object:root=true
type ServerBootConfigurationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []ServerBootConfiguration `json:"items"`
}
