// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ServerInventorySpec says whose inventory it is.
type ServerInventorySpec struct {
	// systemUUID is the machine's UUID in lower case, and the name of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	SystemUUID string `json:"systemUUID,omitempty"`
}

// AgentPurpose is what the agent that reported was booted for.
// +kubebuilder:validation:Enum=Probe;Wipe
type AgentPurpose string

const (
	// PurposeProbe is an agent that was booted to report the hardware.
	PurposeProbe AgentPurpose = "Probe"
	// PurposeWipe is an agent that was booted to erase the disks.
	PurposeWipe AgentPurpose = "Wipe"
)

// ProbeReport is the last report of the agent in the machine.
type ProbeReport struct {
	// receivedAt is when the report arrived, by the manager's clock.
	// +required
	ReceivedAt metav1.MicroTime `json:"receivedAt,omitzero"`
	// entry is the lifecycle entry to which the report belongs.
	// +required
	// +kubebuilder:validation:Minimum=0
	Entry int64 `json:"entry"`
	// purpose is what the agent was booted for.
	// +required
	Purpose AgentPurpose `json:"purpose,omitempty"`
	// unauthenticated says that the agent showed no token; such a report never proves a wipe.
	// +optional
	Unauthenticated bool `json:"unauthenticated,omitempty"`
	// voided says that two agents with different keys reported for the entry, so that the report does not count.
	// +optional
	Voided bool `json:"voided,omitempty"`
	// agentVersion is the agent's version; empty where it did not say.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	AgentVersion string `json:"agentVersion,omitempty"`
	// digest is the digest of the report's data, by which an unchanged report is recognised.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Digest string `json:"digest,omitempty"`
	// identity is what the registry made of the identity of the machine; absent in a report that a former registry took in.
	// +optional
	Identity *JudgedIdentity `json:"identity,omitempty"`
	// data is what the agent found.
	// +required
	Data ProbeData `json:"data"`
}

// Custody is what must be remembered of a machine when its Server is gone.
type Custody struct {
	// marks are those of the Server's lifecycle that outlive it: Dirty, because a holder's data may be on the disks, and
	// Stranger, because the machine was found running and nobody has given it to us since.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	Marks []string `json:"marks,omitempty"`
	// lastHolder is the claim that held the machine last; it is cleared by a verified wipe.
	// +optional
	LastHolder *Holder `json:"lastHolder,omitempty"`
	// minimumTerm is what the last holder asked for by annotation, where that is more than the policy asks for.
	// +optional
	MinimumTerm SanitizationTerm `json:"minimumTerm,omitempty"`
	// dataFound is the data that an agent of ours found on the disks, where no claim is known to have left it. It is cleared by a
	// verified wipe, and by a claim that boots the machine.
	// +optional
	DataFound *FoundData `json:"dataFound,omitempty"`
	// clean is the record that the disks hold no claim's data. The manager takes it away in the write that adds the mark Dirty.
	// A wipe that was waived leaves none.
	// +optional
	Clean *CleanRecord `json:"clean,omitempty"`
	// dirtiedAt is when the mark Dirty was added last.
	// +optional
	DirtiedAt *metav1.MicroTime `json:"dirtiedAt,omitempty"`
	// timesClaimed is how many claims booted the machine.
	// +optional
	// +kubebuilder:validation:Minimum=0
	TimesClaimed int64 `json:"timesClaimed,omitempty"`
	// serverName is the name of the Server that stands, or stood, for the machine.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ServerName string `json:"serverName,omitempty"`
	// disks are the fixed disks that the agent saw in the machine. A wipe is verified only when it covers each of them:
	// a disk that the wipe does not see may still hold data. The probe of a machine that holds no data replaces the list;
	// while it holds data, disks are only added. Take an entry away by hand only for a disk that is out of the machine.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=512
	Disks []CustodyDisk `json:"disks,omitempty"`
	// attested are the disks for which a person answers: they were destroyed, or are out of the machine. A wipe need not see them.
	// One that the wipe does see is erased like any other. The list is emptied in the write that adds the mark Dirty.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=512
	Attested []AttestedDisk `json:"attested,omitempty"`
	// attestedHidden is hidden storage for which a person answers: it holds no data, or is out of the machine. It fails no wipe. The
	// list is emptied in the write that adds the mark Dirty.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	AttestedHidden []AttestedHidden `json:"attestedHidden,omitempty"`
	// doubt says that the cluster's store was restored, so that what is stored of the machine may be older than its disks. The
	// manager writes it, and ends it once a user has compared.
	// +optional
	Doubt *RestoredDoubt `json:"doubt,omitempty"`
}

// AttestMethod is what became of a disk for which a person answers.
// +kubebuilder:validation:Enum=destroy;removed
type AttestMethod string

const (
	// AttestDestroy says that the disk is destroyed.
	AttestDestroy AttestMethod = "destroy"
	// AttestRemoved says that the disk was taken out of the machine for good.
	AttestRemoved AttestMethod = "removed"
)

// AttestedDisk is a disk for which a person answers.
type AttestedDisk struct {
	// CustodyDisk says which disk it is.
	CustodyDisk `json:",inline"`
	// method is what became of the disk.
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

// FoundData is data that an agent found on the disks of a machine before it was offered.
type FoundData struct {
	// at is when the manager marked the machine Dirty for it.
	// +required
	At metav1.MicroTime `json:"at,omitzero"`
	// disks are the disks, each with what was found there.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=768
	Disks []string `json:"disks,omitempty"`
}

// CleanCause is what proves that the disks of a machine hold no claim's data.
// +kubebuilder:validation:Enum=Wiped;NeverBooted
type CleanCause string

const (
	// CleanWiped says that a wipe was verified.
	CleanWiped CleanCause = "Wiped"
	// CleanNeverBooted says that no claim booted the machine since its first Server.
	CleanNeverBooted CleanCause = "NeverBooted"
)

// CleanRecord says since when, and by what, a machine is known to hold no claim's data.
type CleanRecord struct {
	// since is when the record was made, by the manager's clock.
	// +required
	Since metav1.MicroTime `json:"since,omitzero"`
	// cause is what proves it.
	// +required
	Cause CleanCause `json:"cause,omitempty"`
	// serverUID is the Server for which the record was made. A Server that was restored from a backup has another UID.
	// +required
	ServerUID types.UID `json:"serverUID,omitempty"`
}

// CustodyDisk is one remembered disk. It is known by its wwid, without one by its serial, without both by its name. Zeros and
// placeholders identify nothing.
type CustodyDisk struct {
	// name is the disk's name, for example nvme0n1.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name,omitempty"`
	// serial is the disk's serial number.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Serial string `json:"serial,omitempty"`
	// wwid is the disk's world-wide identifier.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	WWID string `json:"wwid,omitempty"`
	// sizeBytes is the disk's size in bytes.
	// +optional
	// +kubebuilder:validation:Minimum=0
	SizeBytes int64 `json:"sizeBytes,omitempty"`
	// transport is how the disk is attached, such as sata, sas or nvme/pcie; empty where the agent does not say. With SATA, and NVMe
	// over PCIe, two serial numbers under one wwid are two disks.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Transport string `json:"transport,omitempty"`
	// removable says that it is a removable medium, which a wipe erases only under wipe.removable: Erase.
	// +optional
	Removable bool `json:"removable,omitempty"`
	// entry is the lifecycle entry whose agent first told of the disk; absent where that is not known.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Entry int64 `json:"entry,omitempty"`
	// voided says that nothing but a voided entry told of the disk. A wipe of this machine has to cover it all the same, and it keeps
	// no other machine from erasing a disk.
	// +optional
	Voided bool `json:"voided,omitempty"`
}

// Holder is a claim that held a machine.
type Holder struct {
	// namespace is the claim's namespace.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
	// name is the claim's name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
	// uid is the claim's UID; empty for a binding made before UIDs were recorded.
	// +optional
	UID types.UID `json:"uid,omitempty"`
}

// ServerInventory is what is known of a machine beyond the life of its Server: nobody owns it, and its name is the
// machine's UUID. Only the manager writes it, and so it has no status subresource: a report is one write.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=sinv
// +kubebuilder:printcolumn:name="UUID",type=string,JSONPath=`.spec.systemUUID`
// +kubebuilder:printcolumn:name="Server",type=string,JSONPath=`.custody.serverName`
// +kubebuilder:printcolumn:name="Reported",type=date,JSONPath=`.report.receivedAt`
// +kubebuilder:printcolumn:name="Wiped",type=string,JSONPath=`.wipe.state`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name == self.spec.systemUUID",message="a ServerInventory is named by its spec.systemUUID (lower case)"
type ServerInventory struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec says whose inventory it is.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec is immutable"
	Spec ServerInventorySpec `json:"spec,omitzero"`
	// report is the last report of the agent in the machine.
	// +optional
	Report *ProbeReport `json:"report,omitempty"`
	// previous is the report before the last one that found other hardware.
	// +optional
	Previous *ProbeReport `json:"previous,omitempty"`
	// differences are what the last report lacks or has besides, compared with the previous one.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Differences []HardwareDifference `json:"differences,omitempty"`
	// wipe is the last report of the agent that erases the machine's disks.
	// +optional
	Wipe *WipeReport `json:"wipe,omitempty"`
	// custody is what must be remembered of the machine when its Server is gone.
	// +optional
	Custody *Custody `json:"custody,omitempty"`
	// phase is what the agent said last that it is doing.
	// +optional
	Phase *AgentPhase `json:"phase,omitempty"`
	// enrolment is the key that the agent of the present entry showed.
	// +optional
	Enrolment *Enrolment `json:"enrolment,omitempty"`
	// lastRecord is the machine's last SanitizationRecord; the next one continues its chain.
	// +optional
	LastRecord *RecordReference `json:"lastRecord,omitempty"`
	// bmcStorage is what the machine's own BMC said of its drives. Only the leader writes it.
	// +optional
	BMCStorage *BMCStorage `json:"bmcStorage,omitempty"`
	// bmcStorageWanted is when the registry asked for a newer reading of bmcStorage, because the end of a wipe waits for it.
	// +optional
	BMCStorageWanted *metav1.MicroTime `json:"bmcStorageWanted,omitempty"`
	// identity tells the machine from another one that shows the same UUID.
	// +optional
	Identity *MachineIdentity `json:"identity,omitempty"`
}

// ServerInventoryList is a list of inventories.
//
// +kubebuilder:object:root=true
type ServerInventoryList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []ServerInventory `json:"items"`
}
