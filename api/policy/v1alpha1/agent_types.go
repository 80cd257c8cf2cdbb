// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AgentPhase is what an agent is doing in the machine.
type AgentPhase struct {
	// entry is the lifecycle entry for which the agent was booted.
	// +required
	// +kubebuilder:validation:Minimum=0
	Entry int64 `json:"entry"`
	// name is the phase, for example network, collect, report or wipe.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Name string `json:"name,omitempty"`
	// detail says more, for example the disk that is erased.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Detail string `json:"detail,omitempty"`
	// percent is how much of a wipe is done, in percent of its bytes.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Percent int32 `json:"percent,omitempty"`
	// since is when the manager first heard of the phase. It stays while only detail and percent change.
	// +required
	Since metav1.MicroTime `json:"since,omitzero"`
	// receivedAt is when the manager heard this, by its own clock.
	// +required
	ReceivedAt metav1.MicroTime `json:"receivedAt,omitzero"`
}

// Enrolment binds a lifecycle entry to the key of the first agent that reported in it.
type Enrolment struct {
	// entry is the lifecycle entry.
	// +required
	// +kubebuilder:validation:Minimum=0
	Entry int64 `json:"entry"`
	// keyHash is the SHA-256, in lower-case hex, of the key that the agent made; empty where the first report showed no key.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^([0-9a-f]{64})?$`
	KeyHash string `json:"keyHash,omitempty"`
	// at is when the entry was bound, by the manager's clock.
	// +required
	At metav1.MicroTime `json:"at,omitzero"`
	// voided says that another key was shown for the same entry. The registry refuses every agent of a voided entry.
	// +optional
	Voided bool `json:"voided,omitempty"`
	// recorded says that a SanitizationRecord tells that the wipe of the voided entry does not count.
	// +optional
	Recorded bool `json:"recorded,omitempty"`
}

// RecordReference names a SanitizationRecord and its place in the chain of the machine.
type RecordReference struct {
	// name is the name of the record.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
	// sequence is the number of the record in the chain.
	// +required
	// +kubebuilder:validation:Minimum=1
	Sequence int64 `json:"sequence,omitempty"`
	// hash is the hash of the record.
	// +required
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{64}$`
	Hash string `json:"hash,omitempty"`
}

// DifferenceKind says what became of a part.
// +kubebuilder:validation:Enum=Added;Removed;Changed
type DifferenceKind string

const (
	// PartAdded is a part that the previous report did not have.
	PartAdded DifferenceKind = "Added"
	// PartRemoved is a part that the last report no longer has.
	PartRemoved DifferenceKind = "Removed"
	// PartChanged is a part with another value, for example another firmware.
	PartChanged DifferenceKind = "Changed"
)

// HardwareDifference is a difference between two reports of one machine.
type HardwareDifference struct {
	// part is the kind of part.
	// +required
	// +kubebuilder:validation:Enum=CPU;DIMM;Disk;NIC;PCIDevice;Firmware
	Part string `json:"part,omitempty"`
	// kind says what became of the part.
	// +required
	Kind DifferenceKind `json:"kind,omitempty"`
	// name tells the part from others, for example the slot and serial number of a DIMM.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name,omitempty"`
	// detail is the former and the present value.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Detail string `json:"detail,omitempty"`
}
