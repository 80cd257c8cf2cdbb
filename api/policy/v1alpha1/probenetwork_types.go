// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// ProbeNetworkInterface is one network interface as the operating system sees it.
type ProbeNetworkInterface struct {
	// name is the interface's name.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name,omitempty"`
	// ipAddresses are the interface's addresses.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=64
	IPAddresses []string `json:"ipAddresses,omitempty"`
	// macAddress is the MAC address.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	MACAddress string `json:"macAddress,omitempty"`
	// carrierStatus says whether the link is up.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	CarrierStatus string `json:"carrierStatus,omitempty"`
}

// LLDPInterface is what was seen by LLDP on one interface.
type LLDPInterface struct {
	// name is the interface's name.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name,omitempty"`
	// neighbors are the neighbours seen.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Neighbors []LLDPNeighbor `json:"neighbors,omitempty"`
}

// LLDPNeighbor is what a neighbour announced by LLDP.
type LLDPNeighbor struct {
	// chassisId identifies the neighbour.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	ChassisID string `json:"chassisId,omitempty"`
	// portId identifies the neighbour's port.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	PortID string `json:"portId,omitempty"`
	// portDescription describes the neighbour's port.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	PortDescription string `json:"portDescription,omitempty"`
	// systemName is the neighbour's name.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	SystemName string `json:"systemName,omitempty"`
	// systemDescription describes the neighbour.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	SystemDescription string `json:"systemDescription,omitempty"`
	// mgmtIp is the neighbour's management address.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	MgmtIP string `json:"mgmtIp,omitempty"`
	// capabilities lists what the neighbour is, for example bridge or router.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=128
	Capabilities []string `json:"capabilities,omitempty"`
	// vlanId is the port's VLAN.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	VLANID string `json:"vlanId,omitempty"`
}

// NIC is one network card.
type NIC struct {
	// name is the interface's name.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name,omitempty"`
	// mac is the MAC address.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	MAC string `json:"mac,omitempty"`
	// pciAddress is the PCI address.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	PCIAddress string `json:"pciAddress,omitempty"`
	// speed is the link's speed, with its unit.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Speed string `json:"speed,omitempty"`
	// linkModes lists the link modes offered.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=128
	LinkModes []string `json:"linkModes,omitempty"`
	// supportedPorts lists the kinds of port offered.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=128
	SupportedPorts []string `json:"supportedPorts,omitempty"`
	// driver is the kernel's driver of the card.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Driver string `json:"driver,omitempty"`
	// firmwareVersion is the firmware's version.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	FirmwareVersion string `json:"firmwareVersion,omitempty"`
}
