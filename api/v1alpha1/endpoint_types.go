// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// EndpointSpec is one device on the management network.
type EndpointSpec struct {
	// macAddress is the device's MAC address; it is stored in lower case with colons, and no two endpoints share one.
	// +required
	// +kubebuilder:validation:Pattern=`^([0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}$`
	// +kubebuilder:validation:MaxLength=17
	MACAddress string `json:"macAddress,omitempty"`
	// ip is the device's address, IPv4 or IPv6; it may change, and the change is followed.
	// +required
	// +kubebuilder:validation:MaxLength=45
	// +kubebuilder:validation:XValidation:rule="isIP(self)",message="ip must be an IPv4 or IPv6 address, for example 10.0.0.7 or fd00::7"
	IP string `json:"ip,omitempty"`
}

// EndpointStatus says what became of a device.
type EndpointStatus struct {
	// conditions say whether the device was recognised, and what for.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// observedGeneration is the generation of the spec that this status speaks of.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// Endpoint is a device that got an address on the management network; a MAC prefix tells whether it is a BMC.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=mep,categories=metal
// +kubebuilder:printcolumn:name="MACAddress",type=string,JSONPath=`.spec.macAddress`
// +kubebuilder:printcolumn:name="IP",type=string,JSONPath=`.spec.ip`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,priority=1
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,priority=1
type Endpoint struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the device.
	// +required
	Spec EndpointSpec `json:"spec,omitzero"`
	// status says what became of it.
	// +optional
	Status EndpointStatus `json:"status,omitzero"`
}

// EndpointList is a list of endpoints.
//
// +kubebuilder:object:root=true
type EndpointList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []Endpoint `json:"items"`
}
