// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Power is the power that somebody asks for.
// +kubebuilder:validation:Enum=On;Off
type Power string

const (
	// PowerOn asks for a running machine.
	PowerOn Power = "On"
	// PowerOff asks for a stopped machine.
	PowerOff Power = "Off"
)

// IndicatorLED is the state of a locator light.
// +kubebuilder:validation:Enum=Unknown;Lit;Blinking;Off
type IndicatorLED string

const (
	// IndicatorLEDUnknown says that the light's state cannot be read; as a wish it leaves the light alone.
	IndicatorLEDUnknown IndicatorLED = "Unknown"
	// IndicatorLEDLit is a steady light.
	IndicatorLEDLit IndicatorLED = "Lit"
	// IndicatorLEDBlinking is a blinking light.
	IndicatorLEDBlinking IndicatorLED = "Blinking"
	// IndicatorLEDOff is no light.
	IndicatorLEDOff IndicatorLED = "Off"
)

// ObjectReference names an object in a namespace; its kind follows from the field that holds it.
// +structType=atomic
type ObjectReference struct {
	// namespace is the namespace of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
	// name is the name of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
}

// ProtocolName names the protocol by which a BMC is asked.
// +kubebuilder:validation:Enum=Redfish;RedfishLocal;RedfishWithRegistryPatch;IPMI;SSH
type ProtocolName string

const (
	// ProtocolRedfish is Redfish as the standard says.
	ProtocolRedfish ProtocolName = "Redfish"
	// ProtocolRedfishLocal is Redfish as an emulator without boot hardware speaks it.
	ProtocolRedfishLocal ProtocolName = "RedfishLocal"
	// ProtocolRedfishWithRegistryPatch is Redfish of a BMC whose attribute registries need mending.
	ProtocolRedfishWithRegistryPatch ProtocolName = "RedfishWithRegistryPatch"
	// ProtocolIPMI is reserved: accepted, and reported as unsupported.
	ProtocolIPMI ProtocolName = "IPMI"
	// ProtocolSSH is reserved: accepted, and reported as unsupported.
	ProtocolSSH ProtocolName = "SSH"
)

// ProtocolScheme is the URL scheme of a BMC's service.
// +kubebuilder:validation:Enum=http;https
type ProtocolScheme string

const (
	// ProtocolSchemeHTTP is plain HTTP, for emulators and closed networks.
	ProtocolSchemeHTTP ProtocolScheme = "http"
	// ProtocolSchemeHTTPS is HTTP over TLS.
	ProtocolSchemeHTTPS ProtocolScheme = "https"
)

// Protocol says how a BMC is spoken to.
type Protocol struct {
	// name is the protocol: Redfish, RedfishLocal or RedfishWithRegistryPatch; IPMI and SSH are reserved.
	// +required
	Name ProtocolName `json:"name,omitempty"`
	// port is the TCP port of the BMC's service; 0 or nothing means the usual port of the scheme.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`
	// scheme is http or https; nothing means https.
	// +optional
	Scheme ProtocolScheme `json:"scheme,omitempty"`
}

// ConsoleProtocolName names the protocol of a serial console.
// +kubebuilder:validation:Enum=IPMI;SSH;SSHLenovo
type ConsoleProtocolName string

const (
	// ConsoleProtocolIPMI is serial over LAN.
	ConsoleProtocolIPMI ConsoleProtocolName = "IPMI"
	// ConsoleProtocolSSH is the BMC's own SSH service.
	ConsoleProtocolSSH ConsoleProtocolName = "SSH"
	// ConsoleProtocolSSHLenovo is SSH with the command that Lenovo's BMCs need to reach the console.
	ConsoleProtocolSSHLenovo ConsoleProtocolName = "SSHLenovo"
)

// ConsoleProtocol says how the serial console is reached.
type ConsoleProtocol struct {
	// name is the protocol: IPMI, SSH or SSHLenovo.
	// +required
	Name ConsoleProtocolName `json:"name,omitempty"`
	// port is the port of the console's service.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port"`
}
