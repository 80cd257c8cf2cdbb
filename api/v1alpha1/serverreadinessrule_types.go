// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// EnforcementMode says how long a rule acts on a server.
// +kubebuilder:validation:Enum=BootstrapOnly;Continuous
type EnforcementMode string

const (
	// EnforcementModeBootstrapOnly acts until the conditions of a server are once as required, and never again on that server.
	EnforcementModeBootstrapOnly EnforcementMode = "BootstrapOnly"
	// EnforcementModeContinuous acts whenever a condition changes.
	EnforcementModeContinuous EnforcementMode = "Continuous"
)

// ConditionRequirement is a condition that a server is to have, and its status.
type ConditionRequirement struct {
	// type is the type of the condition.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=316
	Type string `json:"type,omitempty"`
	// requiredStatus is the status that the condition is to have. A condition that is absent has none, Unknown neither.
	// +required
	// +kubebuilder:validation:Enum=True;False;Unknown
	RequiredStatus metav1.ConditionStatus `json:"requiredStatus,omitempty"`
}

// ServerReadinessRuleSpec keeps claims away from servers until their conditions are as required.
type ServerReadinessRuleSpec struct {
	// conditions are those that a server is to have, all of them.
	// +required
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="conditions is immutable"
	Conditions []ConditionRequirement `json:"conditions,omitempty"`
	// enforcementMode says how long the rule acts on a server.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="enforcementMode is immutable"
	EnforcementMode EnforcementMode `json:"enforcementMode,omitempty"`
	// taint is what a server has while a condition is not as required.
	// +required
	// +kubebuilder:validation:XValidation:rule="self.key.size() <= 253",message="taint key must have at most 253 characters"
	// +kubebuilder:validation:XValidation:rule="self.key == oldSelf.key",message="taint key is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.effect) == has(oldSelf.effect) && (!has(self.effect) || self.effect == oldSelf.effect)",message="taint effect is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.value) == has(oldSelf.value) && (!has(self.value) || self.value == oldSelf.value)",message="taint value is immutable"
	Taint Taint `json:"taint,omitzero"`
	// serverSelector selects the servers that the rule acts on; an empty one selects all. A server that it no longer selects keeps
	// its taint.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="serverSelector is immutable"
	ServerSelector metav1.LabelSelector `json:"serverSelector,omitempty"`
}

// ServerReadinessRuleStatus is there for clients that write conditions of their own; the manager writes none.
type ServerReadinessRuleStatus struct {
	// conditions say how the rule fares.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ServerReadinessRule turns conditions of servers into a taint.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=metal
// +kubebuilder:printcolumn:name="Mode",type=string,JSONPath=`.spec.enforcementMode`
// +kubebuilder:printcolumn:name="Taint",type=string,JSONPath=`.spec.taint.key`
// +kubebuilder:printcolumn:name="Value",type=string,JSONPath=`.spec.taint.value`,priority=1
// +kubebuilder:printcolumn:name="Effect",type=string,JSONPath=`.spec.taint.effect`
// +kubebuilder:printcolumn:name="Conditions",type=string,JSONPath=`.spec.conditions[*].type`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ServerReadinessRule struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the rule.
	// +required
	Spec ServerReadinessRuleSpec `json:"spec,omitzero"`
	// status is not used by the manager.
	// +optional
	Status ServerReadinessRuleStatus `json:"status,omitzero"`
}

// ServerReadinessRuleList is a list of rules.
//
// +kubebuilder:object:root=true
type ServerReadinessRuleList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []ServerReadinessRule `json:"items"`
}
