// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ServerMaintenancePolicy says whether the holder of a server is asked.
// +kubebuilder:validation:Enum=OwnerApproval;Enforced
type ServerMaintenancePolicy string

const (
	// ServerMaintenancePolicyOwnerApproval waits until the holder of the claim approves.
	ServerMaintenancePolicyOwnerApproval ServerMaintenancePolicy = "OwnerApproval"
	// ServerMaintenancePolicyEnforced does not wait for the holder.
	ServerMaintenancePolicyEnforced ServerMaintenancePolicy = "Enforced"
)

// ServerBootConfigurationTemplate describes the boot configuration that a maintenance needs.
type ServerBootConfigurationTemplate struct {
	// name is the name of the boot configuration.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
	// spec is the spec of the boot configuration.
	// +required
	Spec ServerBootConfigurationSpec `json:"spec,omitzero"`
}

// ServerMaintenanceSpec asks for a server to be handed over.
type ServerMaintenanceSpec struct {
	// policy says whether the holder of the server is asked.
	// +optional
	Policy ServerMaintenancePolicy `json:"policy,omitempty"`
	// serverRef names the server.
	// +required
	// +kubebuilder:validation:XValidation:rule="self.name != ''",message="serverRef.name must not be empty"
	ServerRef corev1.LocalObjectReference `json:"serverRef,omitzero"`
	// serverPower is the power that the maintenance wants.
	// +optional
	ServerPower Power `json:"serverPower,omitempty"`
	// serverBootConfigurationTemplate is what the server shall boot for the maintenance.
	// +optional
	ServerBootConfigurationTemplate *ServerBootConfigurationTemplate `json:"serverBootConfigurationTemplate,omitempty"`
	// locatorLED is the state of the locator light while the maintenance lasts.
	// +optional
	LocatorLED IndicatorLED `json:"locatorLED,omitempty"`
	// priority orders the maintenances of one server, highest first; of equals the enforced, then the older one goes first.
	// +optional
	// +default=0
	Priority int32 `json:"priority,omitempty"`
}

// ServerMaintenanceState is how far a maintenance has come.
// +kubebuilder:validation:Enum=Pending;InMaintenance;Failed
type ServerMaintenanceState string

const (
	// ServerMaintenanceStatePending waits for approval, or for its turn.
	ServerMaintenanceStatePending ServerMaintenanceState = "Pending"
	// ServerMaintenanceStateInMaintenance has the server.
	ServerMaintenanceStateInMaintenance ServerMaintenanceState = "InMaintenance"
	// ServerMaintenanceStateFailed could not be carried out.
	ServerMaintenanceStateFailed ServerMaintenanceState = "Failed"
)

// ServerMaintenanceStatus says how far a maintenance has come.
type ServerMaintenanceStatus struct {
	// conditions say how the maintenance fares.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// observedGeneration is the generation of the spec that this status speaks of.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// state is how far the maintenance has come.
	// +optional
	State ServerMaintenanceState `json:"state,omitempty"`
	// asked is the claim whose holder was asked for the server, or told of it. It is written before the claim's labels are, and
	// where the policy says maintenance.approval: PerMaintenance only while the claim bears no approval.
	// +optional
	Asked *MaintenanceAsked `json:"asked,omitempty"`
	// grantedAt is when the server was handed over.
	// +optional
	GrantedAt *metav1.Time `json:"grantedAt,omitempty"`
}

// MaintenanceAsked is one time that the holder of a claim was asked for its server.
type MaintenanceAsked struct {
	// claimUID is the claim.
	// +required
	ClaimUID types.UID `json:"claimUID,omitempty"`
	// at is when.
	// +required
	At metav1.Time `json:"at,omitzero"`
	// counted is at in counted time, which no step of a clock changes.
	// +optional
	Counted metav1.Duration `json:"counted,omitzero"`
}

// ServerMaintenance asks for a server to be handed over for work on it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=sm,categories=metal
// +kubebuilder:printcolumn:name="Server",type=string,JSONPath=`.spec.serverRef.name`
// +kubebuilder:printcolumn:name="Policy",type=string,JSONPath=`.spec.policy`
// +kubebuilder:printcolumn:name="BootConfiguration",type=string,JSONPath=`.spec.serverBootConfigurationTemplate.name`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.metadata.annotations['metal\.ironcore\.dev/maintenance-reason','metal\.ironcore\.dev/reason']`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Priority",type=integer,JSONPath=`.spec.priority`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ServerMaintenance struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec asks for the server.
	// +required
	Spec ServerMaintenanceSpec `json:"spec,omitzero"`
	// status says how far the maintenance has come.
	// +optional
	Status ServerMaintenanceStatus `json:"status,omitzero"`
}

// ServerMaintenanceList is a list of maintenances.
//
// +kubebuilder:object:root=true
type ServerMaintenanceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []ServerMaintenance `json:"items"`
}
