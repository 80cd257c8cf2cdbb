// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// HardwareFault says by what a part is taken to be broken.
// +kubebuilder:validation:Enum=Health;Disk;Memory
type HardwareFault string

const (
	// FaultHealth is a part that the BMC reports as critical.
	FaultHealth HardwareFault = "Health"
	// FaultDisk is a disk that failed its erase, or that the agent cannot read.
	FaultDisk HardwareFault = "Disk"
	// FaultMemory is a memory module of a former report that is missing in the last one, by the same version of the agent.
	FaultMemory HardwareFault = "Memory"
)

// FaultyPart is a part of a machine that is taken to be broken.
type FaultyPart struct {
	// fault says by what the part is taken to be broken.
	// +required
	Fault HardwareFault `json:"fault,omitempty"`
	// name tells the part from others: the name that the BMC gives it, the serial number of a disk, the slot of a memory module.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name,omitempty"`
	// detail says more of the part and of the fault.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Detail string `json:"detail,omitempty"`
	// since is when the manager saw the fault first.
	// +required
	Since metav1.Time `json:"since,omitzero"`
	// agentVersion is the version of the agent whose reports were compared. The fault of a memory module goes with it: another version
	// may name slots in another way.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	AgentVersion string `json:"agentVersion,omitempty"`
}

// Processor is one processor of a machine.
type Processor struct {
	// id names the processor at its BMC.
	// +required
	ID string `json:"id"`
	// type is the kind of processor, for example CPU or GPU.
	// +optional
	Type string `json:"type,omitempty"`
	// architecture is the processor's architecture, for example x86.
	// +optional
	Architecture string `json:"architecture,omitempty"`
	// instructionSet is the processor's instruction set, for example x86-64.
	// +optional
	InstructionSet string `json:"instructionSet,omitempty"`
	// manufacturer is the processor's manufacturer.
	// +optional
	Manufacturer string `json:"manufacturer,omitempty"`
	// model is the processor's model.
	// +optional
	Model string `json:"model,omitempty"`
	// maxSpeedMHz is the highest clock in MHz.
	// +optional
	MaxSpeedMHz int32 `json:"maxSpeedMHz,omitempty"`
	// totalCores is the number of cores.
	// +optional
	TotalCores int32 `json:"totalCores,omitempty"`
	// totalThreads is the number of hardware threads.
	// +optional
	TotalThreads int32 `json:"totalThreads,omitempty"`
}

// NetworkInterface is one network interface of a machine.
type NetworkInterface struct {
	// name is the interface's name, as the operating system or else the BMC calls it.
	// +required
	Name string `json:"name"`
	// ip is deprecated: the first of ips, for old clients.
	// +optional
	IP string `json:"ip,omitempty"`
	// ips are the addresses of the interface.
	// +optional
	// +listType=atomic
	IPs []string `json:"ips,omitempty"`
	// macAddress is the interface's MAC address in lower case with colons.
	// +required
	MACAddress string `json:"macAddress"`
	// carrierStatus says whether the link is up, as the operating system says it.
	// +optional
	CarrierStatus string `json:"carrierStatus,omitempty"`
	// neighbors are the devices that announced themselves by LLDP on this interface.
	// +optional
	// +listType=atomic
	Neighbors []LLDPNeighbor `json:"neighbors,omitempty"`
}

// LLDPNeighbor is what a neighbour announced by LLDP.
type LLDPNeighbor struct {
	// macAddress is the neighbour's MAC address.
	// +optional
	MACAddress string `json:"macAddress,omitempty"`
	// portID identifies the neighbour's port.
	// +optional
	PortID string `json:"portID,omitempty"`
	// portDescription describes the neighbour's port.
	// +optional
	PortDescription string `json:"portDescription,omitempty"`
	// systemName is the neighbour's name.
	// +optional
	SystemName string `json:"systemName,omitempty"`
	// systemDescription describes the neighbour.
	// +optional
	SystemDescription string `json:"systemDescription,omitempty"`
}

// StorageState is the state of a storage controller, drive or volume. metal-operator copies the word of the BMC, such as
// StandbyOffline; the manager writes these.
type StorageState string

const (
	// StorageStateEnabled is in use.
	StorageStateEnabled StorageState = "Enabled"
	// StorageStateDisabled is there but not in use.
	StorageStateDisabled StorageState = "Disabled"
	// StorageStateAbsent is a slot without a device.
	StorageStateAbsent StorageState = "Absent"
)

// Storage is one storage controller of a machine.
type Storage struct {
	// name is the controller's name.
	// +optional
	Name string `json:"name,omitempty"`
	// state is the controller's state.
	// +optional
	State StorageState `json:"state,omitempty"`
	// volumes are the volumes that the controller offers.
	// +optional
	// +listType=atomic
	Volumes []StorageVolume `json:"volumes,omitempty"`
	// drives are the drives behind the controller.
	// +optional
	// +listType=atomic
	Drives []StorageDrive `json:"drives,omitempty"`
}

// StorageVolume is one volume of a storage controller.
type StorageVolume struct {
	// name is the volume's name.
	// +optional
	Name string `json:"name,omitempty"`
	// capacity is the volume's size in bytes.
	// +optional
	Capacity *resource.Quantity `json:"capacity,omitempty"`
	// state is the volume's state.
	// +optional
	State StorageState `json:"state,omitempty"`
	// raidType is the volume's RAID level, for example RAID1.
	// +optional
	RAIDType string `json:"raidType,omitempty"`
	// volumeUsage says what the volume is for, for example Data or SystemData.
	// +optional
	VolumeUsage string `json:"volumeUsage,omitempty"`
}

// StorageDrive is one drive behind a storage controller.
type StorageDrive struct {
	// name is the drive's name.
	// +optional
	Name string `json:"name,omitempty"`
	// mediaType is the drive's medium, for example SSD or HDD.
	// +optional
	MediaType string `json:"mediaType,omitempty"`
	// type is the protocol by which the drive is attached, for example NVMe or SATA.
	// +optional
	Type string `json:"type,omitempty"`
	// capacity is the drive's size in bytes.
	// +optional
	Capacity *resource.Quantity `json:"capacity,omitempty"`
	// vendor is the drive's manufacturer.
	// +optional
	Vendor string `json:"vendor,omitempty"`
	// model is the drive's model.
	// +optional
	Model string `json:"model,omitempty"`
	// state is the drive's state.
	// +optional
	State StorageState `json:"state,omitempty"`
}
