// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ReclaimPolicy says what becomes of a server whose claim ended.
// +kubebuilder:validation:Enum=Recycle;Retain
type ReclaimPolicy string

const (
	// ReclaimPolicyRecycle cleans the server and offers it again.
	ReclaimPolicyRecycle ReclaimPolicy = "Recycle"
	// ReclaimPolicyRetain keeps the server and its data until somebody clears its claim reference.
	ReclaimPolicyRetain ReclaimPolicy = "Retain"
)

// TaintEffect says what a taint does to claims that do not tolerate it.
// +kubebuilder:validation:Enum=NoBind;Evict
type TaintEffect string

const (
	// TaintEffectNoBind keeps new claims away.
	TaintEffectNoBind TaintEffect = "NoBind"
	// TaintEffectEvict speaks of claims that are there. It is accepted and does nothing yet.
	TaintEffectEvict TaintEffect = "Evict"
)

// Taint keeps claims away from a server unless they tolerate it.
type Taint struct {
	// key names the taint.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=316
	Key string `json:"key,omitempty"`
	// value refines the key. A server may have one key and effect with several values.
	// +optional
	// +default=""
	// +kubebuilder:validation:MaxLength=253
	Value string `json:"value,omitempty"`
	// effect says what the taint does; nothing means NoBind.
	// +optional
	// +default="NoBind"
	Effect TaintEffect `json:"effect,omitempty"`
}

// BootOrder is one device of the persistent boot order.
type BootOrder struct {
	// name is a name for people.
	// +required
	Name string `json:"name"`
	// priority orders the devices, lowest first.
	// +required
	Priority int32 `json:"priority"`
	// device is the boot option's reference as the BMC knows it, for example Boot0003.
	// +required
	Device string `json:"device"`
}

// BMCAccess is the inline access to a server's BMC, where there is no BMC object.
type BMCAccess struct {
	// protocol says how the BMC is spoken to.
	// +required
	Protocol Protocol `json:"protocol,omitzero"`
	// address is the BMC's IP address or DNS name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Address string `json:"address,omitempty"`
	// bmcSecretRef names the BMCSecret with the credentials.
	// +required
	// +kubebuilder:validation:XValidation:rule="self.name != ''",message="bmcSecretRef.name must not be empty"
	BMCSecretRef corev1.LocalObjectReference `json:"bmcSecretRef,omitzero"`
}

// ServerSpec is what is asked of a server.
type ServerSpec struct {
	// systemUUID identifies the machine; it is stored in lower case, and no two servers share one.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self == self.lowerAscii()",message="systemUUID must be stored in lower case; write it so, or see why the admission webhook, which lowers it, was not asked"
	// +kubebuilder:validation:XValidation:rule="self.lowerAscii().matches('^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$')",message="systemUUID must consist of letters, digits, '-' and '.', and begin and end with a letter or digit, because the ServerInventory of the machine is named by it"
	SystemUUID string `json:"systemUUID,omitempty"`
	// systemURI is the URI of the system at its BMC.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	SystemURI string `json:"systemURI,omitempty"`
	// power is deprecated: accepted from old clients, ignored and cleared; the power of a server follows from its claim
	// and its state.
	// +optional
	Power Power `json:"power,omitempty"`
	// indicatorLED is the wanted state of the locator light; nothing, or Unknown, leaves it alone.
	// +optional
	IndicatorLED IndicatorLED `json:"indicatorLED,omitempty"`
	// reclaimPolicy says what becomes of the server when its claim ends.
	// +optional
	// +default="Recycle"
	ReclaimPolicy ReclaimPolicy `json:"reclaimPolicy,omitempty"`
	// serverClaimRef names the claim that holds the server; it may be set and cleared, but not changed to another claim.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="serverClaimRef cannot be changed from one claim to another; clear it first"
	ServerClaimRef *ObjectReference `json:"serverClaimRef,omitempty"`
	// serverMaintenanceRef names the maintenance that the server is handed to.
	// +optional
	ServerMaintenanceRef *ObjectReference `json:"serverMaintenanceRef,omitempty"`
	// bmcRef names the BMC that manages the server.
	// +optional
	BMCRef *corev1.LocalObjectReference `json:"bmcRef,omitempty"`
	// bmc is the access to the BMC where there is no BMC object.
	// +optional
	BMC *BMCAccess `json:"bmc,omitempty"`
	// bootConfigurationRef names the boot configuration that is in force; boot services serve the one named here.
	// +optional
	BootConfigurationRef *ObjectReference `json:"bootConfigurationRef,omitempty"`
	// maintenanceBootConfigurationRef names the boot configuration for a maintenance.
	// +optional
	MaintenanceBootConfigurationRef *ObjectReference `json:"maintenanceBootConfigurationRef,omitempty"`
	// biosSettingsRef names the BIOSSettings that are applied to this server.
	// +optional
	BIOSSettingsRef *corev1.LocalObjectReference `json:"biosSettingsRef,omitempty"`
	// bootOrder is the persistent boot order; nothing leaves it alone.
	// +optional
	// +listType=atomic
	BootOrder []BootOrder `json:"bootOrder,omitempty"`
	// taints keep claims away that do not tolerate them.
	// +optional
	// +listType=map
	// +listMapKey=key
	// +listMapKey=value
	// +listMapKey=effect
	// +kubebuilder:validation:MaxItems=64
	Taints []Taint `json:"taints,omitempty"`
	// unclaimable keeps every new claim away (a cordon); a claim that is there stays.
	// +optional
	// +default=false
	Unclaimable bool `json:"unclaimable,omitempty"`
}

// ServerState is the name of a lifecycle state; the policy in force defines which there are.
type ServerState string

const (
	// StateInitial is where a server begins: routed by what is known of it.
	StateInitial ServerState = "Initial"
	// StateObserving is a machine found running that is not ours: nothing is touched.
	StateObserving ServerState = "Observing"
	// StateDiscovery is a server booted into the probe image.
	StateDiscovery ServerState = "Discovery"
	// StateAvailable is a server that is inspected, clean and free to claim.
	StateAvailable ServerState = "Available"
	// StateReserved is a server bound to a claim.
	StateReserved ServerState = "Reserved"
	// StateReleased is a server kept with its data after its claim ended.
	StateReleased ServerState = "Released"
	// StateCleanup is a server whose disks are being erased and checked.
	StateCleanup ServerState = "Cleanup"
	// StateMaintenance is a server handed to a granted maintenance.
	StateMaintenance ServerState = "Maintenance"
	// StateParked is a server handed to somebody outside: nothing is touched.
	StateParked ServerState = "Parked"
	// StateError is a server stopped until somebody acknowledges it.
	StateError ServerState = "Error"
	// StateDecommissioned is a server that went out of service: off, erased, never claimable, and not touched.
	StateDecommissioned ServerState = "Decommissioned"
)

// PowerState is the power of a machine as its BMC says; empty is unknown, which is not Off.
// +kubebuilder:validation:Enum=On;Off;Paused;PoweringOn;PoweringOff;""
type PowerState string

const (
	// PowerStateUnknown says that nobody knows: the BMC was not asked, did not answer, or does not tell.
	PowerStateUnknown PowerState = ""
	// PowerStateOn is a running machine.
	PowerStateOn PowerState = "On"
	// PowerStateOff is a stopped machine.
	PowerStateOff PowerState = "Off"
	// PowerStatePaused is a paused machine.
	PowerStatePaused PowerState = "Paused"
	// PowerStatePoweringOn is a machine that is starting.
	PowerStatePoweringOn PowerState = "PoweringOn"
	// PowerStatePoweringOff is a machine that is stopping.
	PowerStatePoweringOff PowerState = "PoweringOff"
)

// ServerStatus is what is known of a server.
type ServerStatus struct {
	// conditions say how the server fares.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// observedGeneration is the generation of the spec that this status speaks of.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// state is the lifecycle state; it moves only along the edges of the policy in force.
	// +optional
	State ServerState `json:"state,omitempty"`
	// lifecycle is the manager's record of the lifecycle; nobody else writes it.
	// +optional
	Lifecycle *LifecycleStatus `json:"lifecycle,omitempty"`
	// operation is the operation that was last asked for by annotation.
	// +optional
	Operation *OperationStatus `json:"operation,omitempty"`
	// powerState is the power as the BMC said last; empty is unknown.
	// +optional
	PowerState PowerState `json:"powerState,omitempty"`
	// indicatorLED is the state of the locator light as the BMC said last.
	// +optional
	IndicatorLED IndicatorLED `json:"indicatorLED,omitempty"`
	// manufacturer is the machine's manufacturer.
	// +optional
	Manufacturer string `json:"manufacturer,omitempty"`
	// model is the machine's model.
	// +optional
	Model string `json:"model,omitempty"`
	// sku is the machine's stock keeping unit.
	// +optional
	SKU string `json:"sku,omitempty"`
	// serialNumber is the machine's serial number.
	// +optional
	SerialNumber string `json:"serialNumber,omitempty"`
	// biosVersion is the version of the machine's BIOS.
	// +optional
	BIOSVersion string `json:"biosVersion,omitempty"`
	// faultyParts are the parts of the machine that are taken to be broken, by what its BMC and its agent reported.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	FaultyParts []FaultyPart `json:"faultyParts,omitempty"`
	// totalSystemMemory is the installed memory in bytes.
	// +optional
	TotalSystemMemory *resource.Quantity `json:"totalSystemMemory,omitempty"`
	// networkInterfaces are the machine's network interfaces; boot services find the machine by them.
	// +optional
	// +listType=atomic
	NetworkInterfaces []NetworkInterface `json:"networkInterfaces,omitempty"`
	// processors are the machine's processors.
	// +optional
	// +listType=atomic
	Processors []Processor `json:"processors,omitempty"`
	// storages are the machine's storage controllers with their drives and volumes.
	// +optional
	// +listType=atomic
	Storages []Storage `json:"storages,omitempty"`
}

// Server is one machine.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=srv,categories=metal
// +kubebuilder:printcolumn:name="SystemUUID",type=string,JSONPath=`.spec.systemUUID`
// +kubebuilder:printcolumn:name="Manufacturer",type=string,JSONPath=`.status.manufacturer`
// +kubebuilder:printcolumn:name="Model",type=string,JSONPath=`.status.model`
// +kubebuilder:printcolumn:name="Memory",type=string,JSONPath=`.status.totalSystemMemory`
// +kubebuilder:printcolumn:name="SKU",type=string,JSONPath=`.status.sku`,priority=1
// +kubebuilder:printcolumn:name="SerialNumber",type=string,JSONPath=`.status.serialNumber`,priority=1
// +kubebuilder:printcolumn:name="PowerState",type=string,JSONPath=`.status.powerState`
// +kubebuilder:printcolumn:name="IndicatorLED",type=string,JSONPath=`.status.indicatorLED`,priority=1
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Unclaimable",type=boolean,JSONPath=`.spec.unclaimable`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Claim",type=string,JSONPath=`.spec.serverClaimRef.name`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Revision",type=string,JSONPath=`.status.lifecycle.revision`,priority=1
// +kubebuilder:selectablefield:JSONPath=`.spec.systemUUID`
// +kubebuilder:selectablefield:JSONPath=`.spec.bmcRef.name`
// +kubebuilder:selectablefield:JSONPath=`.spec.serverClaimRef.name`
// +kubebuilder:selectablefield:JSONPath=`.spec.serverClaimRef.namespace`
type Server struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is what is asked of the server.
	// +required
	Spec ServerSpec `json:"spec,omitzero"`
	// status is what is known of the server.
	// +optional
	Status ServerStatus `json:"status,omitzero"`
}

// ServerList is a list of servers.
//
// +kubebuilder:object:root=true
type ServerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []Server `json:"items"`
}
