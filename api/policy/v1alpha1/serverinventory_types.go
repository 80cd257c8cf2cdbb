// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"time"

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
	// agentVersion is the agent's version; empty where it did not say.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	AgentVersion string `json:"agentVersion,omitempty"`
	// digest is the digest of the report's data, by which an unchanged report is recognised.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Digest string `json:"digest,omitempty"`
	// data is what the agent found.
	// +required
	Data ProbeData `json:"data"`
}

// WipeState is how far a wipe has come.
// +kubebuilder:validation:Enum=Running;Verified;Failed
type WipeState string

const (
	// WipeRunning is under way.
	WipeRunning WipeState = "Running"
	// WipeVerified is done: every disk was erased and checked.
	WipeVerified WipeState = "Verified"
	// WipeFailed could not be done; the message says why.
	WipeFailed WipeState = "Failed"
)

const (
	// WipeReportInterval is how often an agent that erases must be heard at least. A running wipe is stored anew at that
	// rate even where nothing changed: updatedAt is the sign of life by which others know that an erase is under way.
	WipeReportInterval = 30 * time.Second
	// WipeSilence is how long a running wipe may say nothing before it no longer keeps power from being cut. It leaves
	// room for several reports that are lost.
	WipeSilence = 2 * time.Minute
)

// WipeReport is the last report of the agent that erases the machine's disks.
type WipeReport struct {
	// entry is the lifecycle entry to which the report belongs.
	// +required
	// +kubebuilder:validation:Minimum=0
	Entry int64 `json:"entry"`
	// state is how far the wipe has come.
	// +required
	State WipeState `json:"state,omitempty"`
	// startedAt is when the wipe was first reported.
	// +required
	StartedAt metav1.MicroTime `json:"startedAt,omitzero"`
	// updatedAt is when the wipe was last reported; while it runs it is the agent's sign of life.
	// +required
	UpdatedAt metav1.MicroTime `json:"updatedAt,omitzero"`
	// disks are the machine's disks.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Disks []DiskWipe `json:"disks,omitempty"`
	// skipped are what the wipe left alone because it is no fixed disk, such as CD drives and SD cards.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Skipped []SkippedDisk `json:"skipped,omitempty"`
	// message says what the agent wants to be known.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// DiskWipeState is how far the wipe of one disk has come.
// +kubebuilder:validation:Enum=Pending;Erasing;Erased;Verified;Failed
type DiskWipeState string

const (
	// DiskPending waits for its turn.
	DiskPending DiskWipeState = "Pending"
	// DiskErasing is being erased.
	DiskErasing DiskWipeState = "Erasing"
	// DiskErased is erased and not checked yet.
	DiskErased DiskWipeState = "Erased"
	// DiskVerified is erased and checked.
	DiskVerified DiskWipeState = "Verified"
	// DiskFailed could not be erased; the message says why.
	DiskFailed DiskWipeState = "Failed"
)

// DiskWipe is the wipe of one disk.
type DiskWipe struct {
	// path is the disk's device, for example /dev/nvme0n1.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Path string `json:"path,omitempty"`
	// name is the disk's name.
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
	// transport is how the disk is attached, for example nvme/pcie, sata or iscsi.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Transport string `json:"transport,omitempty"`
	// state is how far the wipe of the disk has come.
	// +required
	State DiskWipeState `json:"state,omitempty"`
	// manufacturer is the maker of the disk.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Manufacturer string `json:"manufacturer,omitempty"`
	// model is the model of the disk.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Model string `json:"model,omitempty"`
	// firmware is the firmware version of the disk.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Firmware string `json:"firmware,omitempty"`
	// mediaType is the kind of medium.
	// +optional
	MediaType MediaType `json:"mediaType,omitempty"`
	// slot is where the disk sits, for example a PCI address or an enclosure bay.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Slot string `json:"slot,omitempty"`
	// percent is how much of the disk is erased, while it is being erased.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Percent int32 `json:"percent,omitempty"`
	// method is how the disk was erased: the names of the steps that succeeded, joined by a plus, for example nvme-format+zero.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Method string `json:"method,omitempty"`
	// steps are the methods that were tried, in this order, each with the answer of the drive.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Steps []EraseStep `json:"steps,omitempty"`
	// term is the NIST SP 800-88 term that the erase reached; empty where nothing is proved.
	// +optional
	Term SanitizationTerm `json:"term,omitempty"`
	// verification is how the erase was checked.
	// +optional
	Verification *EraseVerification `json:"verification,omitempty"`
	// startedAt is when the erase of the disk began, by the clock of the agent.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// finishedAt is when the erase of the disk ended, by the clock of the agent.
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
	// message says what went wrong, why the disk was refused, or what the method leaves.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// MediaType is a kind of storage medium.
// +kubebuilder:validation:Enum=HDD;SSD;NVMe;eMMC;NVDIMM;Volume
type MediaType string

const (
	// MediaHDD is a disk with spinning platters.
	MediaHDD MediaType = "HDD"
	// MediaSSD is a flash drive over SATA, SAS or virtio.
	MediaSSD MediaType = "SSD"
	// MediaNVMe is a flash drive over NVMe.
	MediaNVMe MediaType = "NVMe"
	// MediaEMMC is flash on the main board.
	MediaEMMC MediaType = "eMMC"
	// MediaNVDIMM is persistent memory in a DIMM slot.
	MediaNVDIMM MediaType = "NVDIMM"
	// MediaVolume is a volume behind a RAID adapter: the drives behind it are not visible.
	MediaVolume MediaType = "Volume"
)

// SanitizationTerm is a term of NIST SP 800-88 revision 1.
// +kubebuilder:validation:Enum=Clear;Purge;Destroy
type SanitizationTerm string

const (
	// TermClear protects against reading through the ordinary interface of the drive.
	TermClear SanitizationTerm = "Clear"
	// TermPurge protects against reading in a laboratory.
	TermPurge SanitizationTerm = "Purge"
	// TermDestroy is stated by a person: no erase reaches it.
	TermDestroy SanitizationTerm = "Destroy"
)

// EraseResult is how a step of an erase ended.
// +kubebuilder:validation:Enum=Succeeded;Failed;Unsupported
type EraseResult string

const (
	// EraseSucceeded means that the drive reported success, which proves nothing.
	EraseSucceeded EraseResult = "Succeeded"
	// EraseFailed means that the drive reported an error.
	EraseFailed EraseResult = "Failed"
	// EraseUnsupported means that the drive does not offer the method, and it was not asked for.
	EraseUnsupported EraseResult = "Unsupported"
)

// EraseStep is one method that was tried on a disk.
type EraseStep struct {
	// method is the name of the method, for example nvme-sanitize-block, ata-security-erase, zero.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Method string `json:"method,omitempty"`
	// parameters are those of the command, for example "ses=2 lbaf=0".
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Parameters string `json:"parameters,omitempty"`
	// result is how the step ended.
	// +required
	Result EraseResult `json:"result,omitempty"`
	// answer is what the drive or the kernel said.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Answer string `json:"answer,omitempty"`
}

// VerificationKind is how an erase was checked.
// +kubebuilder:validation:Enum=Zeros;SamplesGone
type VerificationKind string

const (
	// VerifiedZeros means that what was read back held zeros only.
	VerifiedZeros VerificationKind = "Zeros"
	// VerifiedSamplesGone means that no sample from before the erase was found again, and no signature of a file system or
	// partition table.
	VerifiedSamplesGone VerificationKind = "SamplesGone"
)

// EraseVerification is how an erase was checked, and what the check cannot see.
type EraseVerification struct {
	// kind is what was looked for.
	// +required
	Kind VerificationKind `json:"kind,omitempty"`
	// readBytes is how many bytes were read back.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ReadBytes int64 `json:"readBytes,omitempty"`
	// passed says that nothing was found.
	// +optional
	Passed bool `json:"passed,omitempty"`
	// limits says what the check cannot see.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Limits string `json:"limits,omitempty"`
}

// SkippedDisk is a block device that a wipe leaves as it is, because it is no fixed disk. It does not fail the wipe.
type SkippedDisk struct {
	// path is the device, for example /dev/sr0.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Path string `json:"path,omitempty"`
	// name is the device's name.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name,omitempty"`
	// serial is the device's serial number.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Serial string `json:"serial,omitempty"`
	// wwid is the device's world-wide identifier.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	WWID string `json:"wwid,omitempty"`
	// sizeBytes is the device's size in bytes.
	// +optional
	// +kubebuilder:validation:Minimum=0
	SizeBytes int64 `json:"sizeBytes,omitempty"`
	// transport is how the device is attached.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Transport string `json:"transport,omitempty"`
	// reason says why it is no fixed disk.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`
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
	// +kubebuilder:validation:Enum=Clear;Purge
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

// CustodyDisk is one remembered disk. It is known by its wwid, without one by its serial, without both by its name.
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
}

// ServerInventoryList is a list of inventories.
//
// +kubebuilder:object:root=true
type ServerInventoryList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []ServerInventory `json:"items"`
}
