// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// InlineEndpoint is where a BMC without an Endpoint is reached.
type InlineEndpoint struct {
	// macAddress is the BMC's MAC address.
	// +optional
	// +kubebuilder:validation:Pattern=`^([0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}$`
	// +kubebuilder:validation:MaxLength=17
	MACAddress string `json:"macAddress,omitempty"`
	// ip is the BMC's address, IPv4 or IPv6. A BMC without it is not asked, and says so.
	// +optional
	// +kubebuilder:validation:MaxLength=45
	// +kubebuilder:validation:XValidation:rule="isIP(self.split('%')[0]) || self.lowerAscii().startsWith('::ffff:') && isIP(self.substring(7))",message="ip must be an IPv4 or IPv6 address, for example 10.0.0.7 or fd00::7"
	IP string `json:"ip,omitempty"`
}

// BMCSpec says where a BMC is and how it is spoken to.
// +kubebuilder:validation:XValidation:rule="has(self.access) != has(self.endpointRef)",message="exactly one of access and endpointRef must be set"
// +kubebuilder:validation:XValidation:rule="has(self.access) == has(oldSelf.access)",message="a BMC keeps the way in which it is reached (access or endpointRef); delete and create it instead"
type BMCSpec struct {
	// bmcUUID is the UUID of the Redfish manager; nothing means the first one that the service lists.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	BMCUUID string `json:"bmcUUID,omitempty"`
	// endpointRef names the Endpoint by which the BMC is reached; exclusive with access, immutable.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="endpointRef is immutable"
	// +kubebuilder:validation:XValidation:rule="self.name != ''",message="endpointRef.name must not be empty"
	EndpointRef *corev1.LocalObjectReference `json:"endpointRef,omitempty"`
	// access says where the BMC is reached without an Endpoint; exclusive with endpointRef, immutable.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="access is immutable"
	Access *InlineEndpoint `json:"access,omitempty"`
	// bmcSecretRef names the BMCSecret with the credentials.
	// +required
	// +kubebuilder:validation:XValidation:rule="self.name != ''",message="bmcSecretRef.name must not be empty"
	BMCSecretRef corev1.LocalObjectReference `json:"bmcSecretRef,omitzero"`
	// protocol says how the BMC is spoken to.
	// +required
	Protocol Protocol `json:"protocol,omitzero"`
	// consoleProtocol says how the serial console is reached.
	// +optional
	ConsoleProtocol *ConsoleProtocol `json:"consoleProtocol,omitempty"`
	// hostname is the BMC's DNS name; where it is set, TLS certificates are checked against it.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Hostname string `json:"hostname,omitempty"`
	// trust says by what the BMC's certificate is trusted; nothing means as the BMCSecret, the bundle and the manager say.
	// +optional
	Trust *BMCTrust `json:"trust,omitempty"`
	// bmcSettingsRef names the BMCSettings that are applied to this BMC.
	// +optional
	BMCSettingsRef *corev1.LocalObjectReference `json:"bmcSettingsRef,omitempty"`
}

// BMCTrust says by what the certificate of a BMC is trusted. It goes before what the BMCSecret, the bundle and the manager
// say.
// +kubebuilder:validation:XValidation:rule="!(has(self.caBundle) && has(self.certificateSHA256))",message="caBundle and certificateSHA256 exclude each other; keep one"
type BMCTrust struct {
	// caBundle holds the PEM certificates of the authorities that sign the BMC's certificate.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	CABundle string `json:"caBundle,omitempty"`
	// certificateSHA256 is the SHA-256 fingerprint of the one certificate that is trusted, as hexadecimal digits with or without
	// colons. Authority, name and dates of that certificate do not count then.
	// +optional
	// +kubebuilder:validation:Pattern=`^([0-9A-Fa-f]{64}|([0-9A-Fa-f]{2}:){31}[0-9A-Fa-f]{2})$`
	// +kubebuilder:validation:MaxLength=95
	CertificateSHA256 string `json:"certificateSHA256,omitempty"`
}

// BMCState is the state of the connection to a BMC. Other programs may have written words of their own; the manager writes these.
type BMCState string

const (
	// BMCStateEnabled says that the BMC answers and accepts our credentials.
	BMCStateEnabled BMCState = "Enabled"
	// BMCStateError says that the BMC cannot be used; the condition Ready says why.
	BMCStateError BMCState = "Error"
	// BMCStatePending says that the BMC was not asked yet, or is being reset.
	BMCStatePending BMCState = "Pending"
)

// BMCPowerState is the power of the BMC itself.
// +kubebuilder:validation:Enum=On;Off;Paused;PoweringOn;PoweringOff;Unknown
type BMCPowerState string

const (
	// BMCPowerStateOn says that the BMC runs.
	BMCPowerStateOn BMCPowerState = "On"
	// BMCPowerStateOff says that the BMC is off.
	BMCPowerStateOff BMCPowerState = "Off"
	// BMCPowerStatePaused says that the BMC is paused.
	BMCPowerStatePaused BMCPowerState = "Paused"
	// BMCPowerStatePoweringOn says that the BMC is starting.
	BMCPowerStatePoweringOn BMCPowerState = "PoweringOn"
	// BMCPowerStatePoweringOff says that the BMC is stopping.
	BMCPowerStatePoweringOff BMCPowerState = "PoweringOff"
	// BMCPowerStateUnknown says that the BMC does not tell.
	BMCPowerStateUnknown BMCPowerState = "Unknown"
)

// BMCStatus is what the BMC said of itself.
type BMCStatus struct {
	// conditions say whether the BMC can be used (Ready) and whether it is being reset (Reset).
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// observedGeneration is the generation of the spec that this status speaks of.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// macAddress is the BMC's MAC address.
	// +optional
	// +kubebuilder:validation:MaxLength=17
	MACAddress string `json:"macAddress,omitempty"`
	// ip is the address at which the BMC is asked.
	// +optional
	// +kubebuilder:validation:MaxLength=45
	IP string `json:"ip,omitempty"`
	// manufacturer is the BMC's manufacturer.
	// +optional
	Manufacturer string `json:"manufacturer,omitempty"`
	// model is the BMC's model.
	// +optional
	Model string `json:"model,omitempty"`
	// sku is the BMC's stock keeping unit.
	// +optional
	SKU string `json:"sku,omitempty"`
	// serialNumber is the BMC's serial number.
	// +optional
	SerialNumber string `json:"serialNumber,omitempty"`
	// firmwareVersion is the version of the firmware that the BMC runs.
	// +optional
	FirmwareVersion string `json:"firmwareVersion,omitempty"`
	// state is the state of the connection to the BMC.
	// +optional
	// +default="Pending"
	State BMCState `json:"state,omitempty"`
	// powerState is the power of the BMC itself.
	// +optional
	PowerState BMCPowerState `json:"powerState,omitempty"`
	// lastResetTime is when the BMC was last reset, as it says itself.
	// +optional
	LastResetTime *metav1.Time `json:"lastResetTime,omitempty"`
	// metricsReportSubscriptionLink is the URI of our subscription to metric reports.
	// +optional
	MetricsReportSubscriptionLink string `json:"metricsReportSubscriptionLink,omitempty"`
	// eventsSubscriptionLink is the URI of our subscription to events.
	// +optional
	EventsSubscriptionLink string `json:"eventsSubscriptionLink,omitempty"`
}

// BMC is the management controller of one or more servers.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=metal
// +kubebuilder:printcolumn:name="MACAddress",type=string,JSONPath=`.status.macAddress`
// +kubebuilder:printcolumn:name="IP",type=string,JSONPath=`.status.ip`
// +kubebuilder:printcolumn:name="Model",type=string,JSONPath=`.status.model`
// +kubebuilder:printcolumn:name="SKU",type=string,JSONPath=`.status.sku`,priority=1
// +kubebuilder:printcolumn:name="SerialNumber",type=string,JSONPath=`.status.serialNumber`,priority=1
// +kubebuilder:printcolumn:name="FirmwareVersion",type=string,JSONPath=`.status.firmwareVersion`,priority=1
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="PowerState",type=string,JSONPath=`.status.powerState`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
type BMC struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec says where the BMC is and how it is spoken to.
	// +required
	Spec BMCSpec `json:"spec,omitzero"`
	// status is what the BMC said of itself.
	// +optional
	Status BMCStatus `json:"status,omitzero"`
}

// BMCList is a list of BMCs.
//
// +kubebuilder:object:root=true
type BMCList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []BMC `json:"items"`
}
