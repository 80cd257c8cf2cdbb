// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// UserDataSecretType is the type of the Secret that ServerClaim.spec.userDataRef names.
const UserDataSecretType corev1.SecretType = "metal.ironcore.dev/user-data"

// TolerationOperator says how a toleration's value is compared.
// +kubebuilder:validation:Enum=Equal;Exists
type TolerationOperator string

const (
	// TolerationOpEqual tolerates a taint with the same key and value.
	TolerationOpEqual TolerationOperator = "Equal"
	// TolerationOpExists tolerates a taint with the same key and any value.
	TolerationOpExists TolerationOperator = "Exists"
)

// Toleration lets a claim take a server that bears a taint.
type Toleration struct {
	// key is the taint's key; nothing, with the operator Exists, tolerates every key.
	// +optional
	// +kubebuilder:validation:MaxLength=316
	Key string `json:"key,omitempty"`
	// operator says how the value is compared; nothing means Equal.
	// +optional
	Operator TolerationOperator `json:"operator,omitempty"`
	// value is the taint's value, for the operator Equal.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Value string `json:"value,omitempty"`
	// effect is the taint's effect; nothing tolerates every effect.
	// +optional
	Effect TaintEffect `json:"effect,omitempty"`
}

// ServerClaimSpec says what machine is wanted, and what it shall run.
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.serverRef) || has(self.serverRef)",message="serverRef is required once set: a claim never loses its server"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.serverSelector) || has(self.serverSelector)",message="serverSelector is required once set"
type ServerClaimSpec struct {
	// power is the wanted power; it may change at any time.
	// +required
	Power Power `json:"power,omitempty"`
	// serverRef names the server, where one is asked for, or the one that was found; immutable once set.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="serverRef is immutable"
	// +kubebuilder:validation:XValidation:rule="self.name != ''",message="serverRef.name must not be empty"
	ServerRef *corev1.LocalObjectReference `json:"serverRef,omitempty"`
	// serverSelector selects servers by label; with serverRef as well, both must match. Immutable once set.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="serverSelector is immutable"
	ServerSelector *metav1.LabelSelector `json:"serverSelector,omitempty"`
	// ignitionSecretRef names the Secret with the ignition, in the claim's namespace; it may change.
	// +optional
	IgnitionSecretRef *corev1.LocalObjectReference `json:"ignitionSecretRef,omitempty"`
	// userDataRef names a Secret of type metal.ironcore.dev/user-data that the metadata service serves to the machine.
	// +optional
	UserDataRef *corev1.LocalObjectReference `json:"userDataRef,omitempty"`
	// image is the boot image; it may change.
	// +required
	// +kubebuilder:validation:MaxLength=2048
	Image string `json:"image"`
	// tolerations let the claim take servers that bear these taints.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Tolerations []Toleration `json:"tolerations,omitempty"`
}

// Phase says whether a claim has its server.
// +kubebuilder:validation:Enum=Unbound;Bound
type Phase string

const (
	// PhaseUnbound is a claim that waits for a server; the condition Bound says why.
	PhaseUnbound Phase = "Unbound"
	// PhaseBound is a claim that has its server.
	PhaseBound Phase = "Bound"
)

// ServerClaimStatus says how far a claim has come.
type ServerClaimStatus struct {
	// conditions say whether the claim is bound (Bound) and its machine runs as asked (Ready), and why not.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// observedGeneration is the generation of the spec that this status speaks of; -1 before the manager wrote a status.
	// +optional
	// +kubebuilder:validation:Minimum=-1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// phase says whether the claim has its server.
	// +optional
	Phase Phase `json:"phase,omitempty"`
}

// ServerClaim asks for a machine.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=scl,categories=metal
// +kubebuilder:printcolumn:name="Server",type=string,JSONPath=`.spec.serverRef.name`
// +kubebuilder:printcolumn:name="Ignition",type=string,JSONPath=`.spec.ignitionSecretRef.name`
// +kubebuilder:printcolumn:name="Image",type=string,JSONPath=`.spec.image`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:selectablefield:JSONPath=`.spec.serverRef.name`
type ServerClaim struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec says what machine is wanted, and what it shall run.
	// +required
	Spec ServerClaimSpec `json:"spec,omitzero"`
	// status says how far the claim has come. By its default a claim without a status is in progress for tools that follow
	// kstatus, and not ready.
	// +optional
	// +default={"observedGeneration":-1}
	Status ServerClaimStatus `json:"status,omitzero"`
}

// ServerClaimList is a list of claims.
//
// +kubebuilder:object:root=true
type ServerClaimList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []ServerClaim `json:"items"`
}
