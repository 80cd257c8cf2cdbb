// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MachineIdentity tells the machine of an inventory from another machine that shows the same UUID.
type MachineIdentity struct {
	// bmc is what the machine's own BMC shows of it. Only the leader writes it, before each boot of an agent.
	// +optional
	BMC *BMCIdentity `json:"bmc,omitempty"`
	// proved is what the last report showed that agreed with the BMC, or for which a person answers.
	// +optional
	Proved *ProvedIdentity `json:"proved,omitempty"`
	// settled says that a person answers for the machine that reports next. The report takes it away.
	// +optional
	Settled *SettledIdentity `json:"settled,omitempty"`
	// refused is the last report that contradicted, of which nothing was stored.
	// +optional
	Refused *RefusedIdentity `json:"refused,omitempty"`
	// rivals are other BMCs that show the UUID of this machine.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Rivals []RivalBMC `json:"rivals,omitempty"`
}

// BMCIdentity is what a BMC shows of a machine.
type BMCIdentity struct {
	// serials are the serial numbers of the system; of a Dell its service tag too.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	Serials []string `json:"serials,omitempty"`
	// physicalAddresses are the MAC addresses of its interfaces, lower case with colons, without those that lead to the
	// BMC and those that are administered locally.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	PhysicalAddresses []string `json:"physicalAddresses,omitempty"`
	// incomplete says that an interface could not be read, so that an address may be missing.
	// +optional
	Incomplete bool `json:"incomplete,omitempty"`
	// readAt is when the BMC showed it.
	// +required
	ReadAt metav1.MicroTime `json:"readAt,omitzero"`
}

// ReportedIdentity is what an agent says of its machine.
type ReportedIdentity struct {
	// systemSerial is the serial number of the system in the DMI table.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	SystemSerial string `json:"systemSerial,omitempty"`
	// boardSerial is the serial number of the main board in the DMI table.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	BoardSerial string `json:"boardSerial,omitempty"`
	// physicalAddresses are the MAC addresses of its interfaces, lower case with colons, without those administered
	// locally.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=512
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	PhysicalAddresses []string `json:"physicalAddresses,omitempty"`
}

// ProvedIdentity is what a report showed that is known to be of the machine.
type ProvedIdentity struct {
	// ReportedIdentity is what it showed.
	ReportedIdentity `json:",inline"`
	// at is when the report passed, or when the person answered for it.
	// +required
	At metav1.MicroTime `json:"at,omitzero"`
	// by is the person who answers for the machine, as the API server knows the user; empty where its BMC does.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	By string `json:"by,omitempty"`
	// reason is why, in the words of that person.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`
}

// SettledIdentity is a person's word for the machine that reports next.
type SettledIdentity struct {
	// by is the person, as the API server knows the user.
	// +required
	// +kubebuilder:validation:MinLength=1
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

// RefusedIdentity is a report that contradicted what is known of the machine.
type RefusedIdentity struct {
	// ReportedIdentity is what it showed.
	ReportedIdentity `json:",inline"`
	// at is when it came first in its entry.
	// +required
	At metav1.MicroTime `json:"at,omitzero"`
	// entry is the lifecycle entry in which it came.
	// +required
	// +kubebuilder:validation:Minimum=0
	Entry int64 `json:"entry"`
	// reason is what it contradicts.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`
}

// RivalBMC is another BMC that shows the UUID of a machine.
type RivalBMC struct {
	// name is the name of its BMC object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
	// managerUUID is the UUID of that BMC itself.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	ManagerUUID string `json:"managerUUID,omitempty"`
	// managerSerial is the serial number of that BMC itself.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	ManagerSerial string `json:"managerSerial,omitempty"`
	// serials are the serial numbers that it shows of the system with the UUID.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	Serials []string `json:"serials,omitempty"`
}

// IdentityVerdict is whether a report is known to be of the machine.
// +kubebuilder:validation:Enum=Proved;Unproven
type IdentityVerdict string

const (
	// IdentityProved agreed with the BMC, or with what was proved before.
	IdentityProved IdentityVerdict = "Proved"
	// IdentityUnproven neither agreed nor contradicted.
	IdentityUnproven IdentityVerdict = "Unproven"
)

// JudgedIdentity is what the registry made of the identity in a report.
type JudgedIdentity struct {
	// verdict is whether the report is known to be of the machine.
	// +required
	Verdict IdentityVerdict `json:"verdict,omitempty"`
	// reason is what agreed, or why nothing did.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`
}
