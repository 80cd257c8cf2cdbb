// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SanitizationRecordSpec is what happened to the media of one machine in one wipe.
type SanitizationRecordSpec struct {
	// sequence counts the records of the machine, from 1.
	// +required
	// +kubebuilder:validation:Minimum=1
	Sequence int64 `json:"sequence,omitempty"`
	// previousHash is the hash of the machine's record before; empty for the first.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	PreviousHash string `json:"previousHash,omitempty"`
	// hash is the SHA-256, in lower-case hex, of the JSON of this spec without this field, with sorted keys.
	// +required
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{64}$`
	// +kubebuilder:validation:MaxLength=64
	Hash string `json:"hash,omitempty"`
	// recordedAt is when the record was made, by the clock of the manager.
	// +required
	RecordedAt metav1.Time `json:"recordedAt,omitzero"`
	// machine is the machine that held the media.
	// +required
	Machine SanitizedMachine `json:"machine,omitzero"`
	// holder is the claim whose data the media may have held; absent where no claim held the machine.
	// +optional
	Holder *Holder `json:"holder,omitempty"`
	// endedBy is who ended the claim, as the API server knows the user; empty where that is not known.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	EndedBy string `json:"endedBy,omitempty"`
	// requestedBy is who asked for the wipe; empty where a rule of the policy did.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	RequestedBy string `json:"requestedBy,omitempty"`
	// reason is why, in the words of whoever asked, or the rule that led to the wipe.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`
	// entry is the lifecycle entry of the wipe.
	// +required
	// +kubebuilder:validation:Minimum=0
	Entry int64 `json:"entry"`
	// policyRevision is the PolicyRevision that governed the server.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	PolicyRevision string `json:"policyRevision,omitempty"`
	// policyDigest is the digest of that revision's content.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	PolicyDigest string `json:"policyDigest,omitempty"`
	// agentVersion is the version of the agent that erased.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	AgentVersion string `json:"agentVersion,omitempty"`
	// agentImage is the image that was booted, with its digest where the reference has one.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	AgentImage string `json:"agentImage,omitempty"`
	// media holds one record for each medium: what was done to it, how it was checked, and how that ended.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Media []DiskWipe `json:"media,omitempty"`
	// skipped are what the wipe left alone because it is no fixed disk.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Skipped []SkippedDisk `json:"skipped,omitempty"`
	// hidden is storage that the machine has and that the kernel of the agent shows as no disk.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Hidden []HiddenStorage `json:"hidden,omitempty"`
	// hiddenKnown says that the agent looked for hidden storage; former agents do not.
	// +optional
	HiddenKnown bool `json:"hiddenKnown,omitempty"`
	// bmcStorage is how the BMC's list of drives was read; empty where the machine has no BMC.
	// +optional
	BMCStorage BMCStorageState `json:"bmcStorage,omitempty"`
	// unseenDrives are drives that the BMC lists behind an adapter that shows volumes. The wipe erased the volumes, and saw none of
	// these drives.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=512
	UnseenDrives []HiddenStorage `json:"unseenDrives,omitempty"`
	// excusedOnly says that the wipe saw disks and that the policy excuses each of them: it erased nothing.
	// +optional
	ExcusedOnly bool `json:"excusedOnly,omitempty"`
	// identity is what was known of the machine that erased: whether it is the one of the server. Former registries did not ask.
	// +optional
	Identity *JudgedIdentity `json:"identity,omitempty"`
	// attested are the disks that this wipe did not see and for which a person answers. None of them was erased.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=512
	Attested []AttestedDisk `json:"attested,omitempty"`
	// state is how the wipe ended: Verified or Failed.
	// +required
	State WipeState `json:"state,omitempty"`
	// voids is the earlier record that this one takes back. A wipe that did not end before its entry was voided has none.
	// +optional
	Voids *RecordReference `json:"voids,omitempty"`
	// startedAt is when the wipe was first reported.
	// +required
	StartedAt metav1.MicroTime `json:"startedAt,omitzero"`
	// message is what the agent or the registry said of the wipe.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// SanitizedMachine is the machine of a record.
type SanitizedMachine struct {
	// systemUUID is the machine's UUID in lower case.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	SystemUUID string `json:"systemUUID,omitempty"`
	// serverName is the name of its Server at that time.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ServerName string `json:"serverName,omitempty"`
	// manufacturer is the maker of the machine.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Manufacturer string `json:"manufacturer,omitempty"`
	// model is the model of the machine.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Model string `json:"model,omitempty"`
	// serialNumber is the serial number of the machine.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	SerialNumber string `json:"serialNumber,omitempty"`
}

// SanitizationRecord proves what was done to each medium of a machine in one wipe. Records of a machine are chained by hash.
// They outlive its Server and its ServerInventory.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=sanrec
// +kubebuilder:printcolumn:name="Server",type=string,JSONPath=`.spec.machine.serverName`
// +kubebuilder:printcolumn:name="Result",type=string,JSONPath=`.spec.state`
// +kubebuilder:printcolumn:name="Serials",type=string,JSONPath=`.spec.media[*].serial`
// +kubebuilder:printcolumn:name="Terms",type=string,JSONPath=`.spec.media[*].term`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.spec.recordedAt`
type SanitizationRecord struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is what happened to the medium.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a sanitization record is immutable"
	Spec SanitizationRecordSpec `json:"spec,omitzero"`
}

// SanitizationRecordList is a list of records.
//
// +kubebuilder:object:root=true
type SanitizationRecordList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []SanitizationRecord `json:"items"`
}
