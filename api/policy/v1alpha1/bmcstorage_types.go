// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BMCStorageState says how a reading of the drives that a BMC lists ended.
// +kubebuilder:validation:Enum=Listed;NotOffered;Unread
type BMCStorageState string

const (
	// BMCStorageListed means that the BMC listed its drives, and that all of it was read.
	BMCStorageListed BMCStorageState = "Listed"
	// BMCStorageNotOffered means that the BMC has no list of drives. Which drives the machine has is not known from it.
	BMCStorageNotOffered BMCStorageState = "NotOffered"
	// BMCStorageUnread means that the list, or a part of it, could not be read. It is read again.
	BMCStorageUnread BMCStorageState = "Unread"
)

// BMCStorage is what a BMC said of the drives of the machine. The leader reads it after the first word of the agent, because many BMCs
// list drives only after POST, and again when a wipe or a blank check is about to end.
type BMCStorage struct {
	// state says how the last reading ended.
	// +required
	State BMCStorageState `json:"state,omitempty"`
	// readAt is when it was read last, by the manager's clock.
	// +required
	ReadAt metav1.MicroTime `json:"readAt,omitzero"`
	// entry is the lifecycle entry in which it was read.
	// +required
	// +kubebuilder:validation:Minimum=0
	Entry int64 `json:"entry"`
	// problem says why it could not be read, or which drives are listed that do not count.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Problem string `json:"problem,omitempty"`
	// listedBefore says that the BMC of this machine has listed drives at some time.
	// +optional
	ListedBefore bool `json:"listedBefore,omitempty"`
	// drives are those that count: enabled, with a capacity and a serial number, neither USB nor virtual. They are the last that
	// were listed where the state is not Listed.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=512
	Drives []BMCDrive `json:"drives,omitempty"`
}

// BMCDrive is a drive that a BMC lists.
type BMCDrive struct {
	// name is the name that the BMC gives it.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name,omitempty"`
	// slot is where it sits, in the words of the BMC.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Slot string `json:"slot,omitempty"`
	// model is its model.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Model string `json:"model,omitempty"`
	// serial is its serial number.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Serial string `json:"serial,omitempty"`
	// durableNames are its world-wide names, in lower case without punctuation.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=256
	DurableNames []string `json:"durableNames,omitempty"`
	// capacityBytes is its capacity in bytes.
	// +optional
	// +kubebuilder:validation:Minimum=0
	CapacityBytes int64 `json:"capacityBytes,omitempty"`
	// protocol is how it is attached, in the words of the BMC, for example NVMe or SAS.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Protocol string `json:"protocol,omitempty"`
	// behindVolume says that it belongs to an adapter that shows volumes: the machine sees a volume in its place.
	// +optional
	BehindVolume bool `json:"behindVolume,omitempty"`
	// spare says that no volume uses it: it is a hot spare, or unassigned.
	// +optional
	Spare bool `json:"spare,omitempty"`
}
