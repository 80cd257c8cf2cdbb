// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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
	// failedForHidden says that the wipe failed for hidden storage alone: each disk that the agent saw was erased.
	// +optional
	FailedForHidden bool `json:"failedForHidden,omitempty"`
	// excusedOnly says that the wipe saw disks and that the policy excuses each of them: it erased nothing.
	// +optional
	ExcusedOnly bool `json:"excusedOnly,omitempty"`
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

// SkippedDisk is a block device that a wipe leaves as it is, because it is no fixed disk or the policy excuses it. It does not fail
// the wipe.
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
	// reason says why it is no fixed disk, or by what the policy excuses it.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`
	// excused says that the policy excuses the disk: it is a fixed disk, and may hold data.
	// +optional
	Excused bool `json:"excused,omitempty"`
}
