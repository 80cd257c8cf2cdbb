// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// HiddenSource says who knows of hidden storage.
// +kubebuilder:validation:Enum=Agent;BMC
type HiddenSource string

const (
	// HiddenByAgent is what the agent in the machine saw: a function, a controller or an adapter without a disk.
	HiddenByAgent HiddenSource = "Agent"
	// HiddenByBMC is a drive that the BMC lists and that the agent did not see.
	HiddenByBMC HiddenSource = "BMC"
)

// HiddenStorage is storage that the machine has and that the kernel of the agent shows as no disk. It may hold data that no wipe reached.
type HiddenStorage struct {
	// source says who knows of it.
	// +required
	Source HiddenSource `json:"source,omitempty"`
	// address is the PCI address of the function, for example 0000:03:00.0; empty where it is not known.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Address string `json:"address,omitempty"`
	// pciID is the vendor and device of the function in lower-case hex, for example 1000:0014.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	PCIID string `json:"pciID,omitempty"`
	// slot is where it sits, as the BMC or the kernel names it.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Slot string `json:"slot,omitempty"`
	// name is its name: that of the kernel, such as nvme1, or that of the BMC.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name,omitempty"`
	// model is its model.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Model string `json:"model,omitempty"`
	// serial is the serial number of the drive.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Serial string `json:"serial,omitempty"`
	// sizeBytes is its capacity in bytes, where it is known.
	// +optional
	// +kubebuilder:validation:Minimum=0
	SizeBytes int64 `json:"sizeBytes,omitempty"`
	// reason says why it counts as hidden, and what to do.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`
	// excusedBy says who excuses it: "policy", or the user who attested it. Empty where nobody does.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ExcusedBy string `json:"excusedBy,omitempty"`
}

// AttestedHidden is hidden storage for which a person answers.
type AttestedHidden struct {
	// address is the PCI address of the function.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Address string `json:"address,omitempty"`
	// pciID is the vendor and device of the function.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	PCIID string `json:"pciID,omitempty"`
	// slot is where it sits.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Slot string `json:"slot,omitempty"`
	// name is its name.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name,omitempty"`
	// serial is the serial number of the drive.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Serial string `json:"serial,omitempty"`
	// method is what became of it.
	// +required
	Method AttestMethod `json:"method,omitempty"`
	// by is who answers for it, as the API server knows the user.
	// +required
	// +kubebuilder:validation:MaxLength=253
	By string `json:"by,omitempty"`
	// reason is why, in the words of that person.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`
	// at is when the manager recorded it.
	// +required
	At metav1.MicroTime `json:"at,omitzero"`
}
