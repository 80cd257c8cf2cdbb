// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Finalizers, one for each kind that has something to undo.
const (
	// FinalizerEndpoint holds an Endpoint until the BMC made from it is gone.
	FinalizerEndpoint = "metal.ironcore.dev/endpoint"
	// FinalizerBMC holds a BMC until its session and subscriptions are given back.
	FinalizerBMC = "metal.ironcore.dev/bmc"
	// FinalizerServer holds a Server until its data is accounted for; it is added only after status.lifecycle was stored.
	FinalizerServer = "metal.ironcore.dev/server"
	// FinalizerServerClaim holds a ServerClaim until the release of its server is recorded.
	FinalizerServerClaim = "metal.ironcore.dev/serverclaim"
	// FinalizerServerMaintenance holds a ServerMaintenance until its server was handed back.
	FinalizerServerMaintenance = "metal.ironcore.dev/servermaintenance"
	// FinalizerServerReadinessRule holds a ServerReadinessRule until its taint is off the servers that it selects.
	FinalizerServerReadinessRule = "readiness.metal.ironcore.dev/cleanup-taints"
)

// The operation annotation.
const (
	// OperationAnnotation asks for one operation; it is removed when the operation is done or refused.
	OperationAnnotation = "metal.ironcore.dev/operation"
)

// Values of OperationAnnotation.
const (
	// OperationIgnore leaves the object alone until the annotation is removed by hand. So does every other value that begins
	// with it, known or not.
	OperationIgnore = "ignore"
	// OperationIgnoreReconciliation is the old spelling of OperationIgnore.
	OperationIgnoreReconciliation = "ignore-reconciliation"
	// OperationIgnoreChild on a BMC leaves the BMC and its Servers alone. So does every other value that begins with it.
	OperationIgnoreChild = "ignore-child"
	// OperationDecommission takes a server out of service for good: its claim ends first, its disks are erased, and it stays off.
	OperationDecommission = "decommission"
	// OperationRecommission takes a decommissioned server back into service, or withdraws a decommission that has not ended.
	OperationRecommission = "recommission"
	// OperationAttestDisk records that a person answers for a disk which no wipe will reach; AttestDiskAnnotation names the disk and
	// AttestMethodAnnotation what became of it. It takes a right of its own.
	OperationAttestDisk = "attest-disk"
	// OperationProve records that a person answers for the machine of the server: it is the one that reported last, or that reports
	// next. It takes a right of its own.
	OperationProve = "prove"
	// OperationPark powers a server off and hands it to somebody outside.
	OperationPark = "park"
	// OperationUnpark takes a parked server back.
	OperationUnpark = "unpark"
	// OperationRetry acknowledges an error and tries again.
	OperationRetry = "retry"
	// OperationRetryFailedStateResource is the old spelling of OperationRetry.
	OperationRetryFailedStateResource = "retry-failed-state-resource"
	// OperationRelease records by hand that a claim which vanished has ended; refused while the claim exists.
	OperationRelease = "release"
	// OperationUndoRelease takes a release back before the erase begins: the claim may be applied again then.
	OperationUndoRelease = "undo-release"
	// OperationSanitize erases a server in which disks hold data and that no claim holds; it takes a right of its own.
	OperationSanitize = "sanitize"
	// OperationForce moves a server into the state of ForceToAnnotation, past the rules of the policy.
	OperationForce = "force"
	// OperationDeclareClean offers a server in Error whose status was lost: somebody answers for its disks. It is refused for
	// a server that a claim holds or held.
	OperationDeclareClean = "declare-clean"
	// OperationRotateCredentials gives a BMC a new password.
	OperationRotateCredentials = "rotate-credentials"
	// OperationGracefulRestartServer asks the operating system to restart.
	OperationGracefulRestartServer = "graceful-restart-server"
	// OperationHardRestartServer restarts a server without asking its operating system.
	OperationHardRestartServer = "hard-restart-server"
	// OperationPowerCycleServer cuts a server's power and restores it.
	OperationPowerCycleServer = "power-cycle-server"
	// OperationForceOffServer cuts a server's power.
	OperationForceOffServer = "force-off-server"
	// OperationForceOnServer powers a server on.
	OperationForceOnServer = "force-on-server"
	// OperationGracefulRestartBMC restarts a BMC.
	OperationGracefulRestartBMC = "graceful-restart-bmc"
	// OperationAllowInProgressDelete allows an object to be deleted while its work is under way.
	OperationAllowInProgressDelete = "allow-in-progress-delete"
	// OperationAllowInProgressUpdate allows an object to be changed while its work is under way.
	OperationAllowInProgressUpdate = "allow-in-progress-update"
)

// Annotations of metal.ironcore.dev.
const (
	// ParkedAnnotation marks a Server for as long as it is parked, so that losing its status does not unpark it.
	ParkedAnnotation = "metal.ironcore.dev/parked"
	// PreParkStateAnnotation on a Server is the state in which it was parked, for as long as it is parked. Only the manager writes it.
	PreParkStateAnnotation = "metal.ironcore.dev/pre-park-state"
	// TypeAnnotation says for whom a ServerBootConfiguration was made.
	TypeAnnotation = "metal.ironcore.dev/type"
	// TypeInternal is the value of TypeAnnotation on a boot configuration that the manager made for itself.
	TypeInternal = "Internal"
	// IsDefaultOSImageAnnotation, with the value "true", says that a boot configuration boots the default image.
	IsDefaultOSImageAnnotation = "metal.ironcore.dev/is-default-os-image"
	// MaintenanceReasonAnnotation says why a maintenance is needed.
	MaintenanceReasonAnnotation = "metal.ironcore.dev/maintenance-reason"
	// MaintenanceReasonColumnAnnotation is the name under which released metal-operators show the reason of a ServerMaintenance. The column
	// Reason shows it where MaintenanceReasonAnnotation is not set.
	MaintenanceReasonColumnAnnotation = "metal.ironcore.dev/reason"
	// LoopbackAddressAnnotation on a Server is the loopback address that clients give the machine.
	LoopbackAddressAnnotation = "metal.ironcore.dev/loopback-address"
	// MetadataAnnotationPrefix begins the annotations that the metadata service exports.
	MetadataAnnotationPrefix = "metadata.metal.ironcore.dev/"
)

// Labels that clients read or set.
const (
	// InstanceTypeLabel on a Server is the instance type that the cloud controller reports.
	InstanceTypeLabel = "metal.ironcore.dev/instance-type"
	// RegionLabel on a Server is the region that the cloud controller reports.
	RegionLabel = "topology.kubernetes.io/region"
	// ZoneLabel on a Server is the zone that the cloud controller reports.
	ZoneLabel = "topology.kubernetes.io/zone"
	// InventoryLabelPrefix begins the labels of a Server that show its hardware. The manager writes them, and takes others
	// of that prefix away.
	InventoryLabelPrefix = "inventory.metalaw.dev/"
	// MaintenanceNeededLabel, with the value "true", on a ServerClaim says that its server is wanted for maintenance.
	MaintenanceNeededLabel = "metal.ironcore.dev/maintenance-needed"
	// MaintenanceApprovedLabel on a ServerClaim approves a maintenance by its presence.
	MaintenanceApprovedLabel = "metal.ironcore.dev/maintenance-approved"
	// MaintenanceApprovalLabel is the old name of MaintenanceApprovedLabel. Programs of that age write and read either as a label or
	// as an annotation.
	MaintenanceApprovalLabel = "metal.ironcore.dev/maintenance-approval"
	// MaintenanceRequestedLabel on a Node, with the value "true", has the cloud controller ask for a maintenance.
	MaintenanceRequestedLabel = "metal.ironcore.dev/maintenance-requested"
)

// Annotations of readiness.metal.ironcore.dev.
const (
	// BootstrapCompletedPrefix, followed by the name of a ServerReadinessRule with the mode BootstrapOnly, is the annotation of a
	// Server on which the rule does not act any more. Its value is "true".
	BootstrapCompletedPrefix = "readiness.metal.ironcore.dev/bootstrap-completed-"
)

// Annotations of policy.metalaw.dev, by which safety is kept beyond the life of a status.
const (
	// ClaimUIDAnnotation on a Server is the UID of the claim that serverClaimRef means; a claim of the same name but
	// another UID inherits nothing.
	ClaimUIDAnnotation = "policy.metalaw.dev/claim-uid"
	// ReleasedClaimAnnotation on a Server is the UID of the claim that ended; without it nothing is wiped.
	ReleasedClaimAnnotation = "policy.metalaw.dev/released-claim"
	// ReleasedAtAnnotation on a Server is when that claim ended (RFC 3339). It is only shown.
	ReleasedAtAnnotation = "policy.metalaw.dev/released-at"
	// ReleasedCountedAnnotation on a Server is when that claim ended in counted time, by which the grace is measured. Where
	// a former build made the record, it is when the leader first saw that. ReleasedNoGrace stands for a release by hand.
	ReleasedCountedAnnotation = "policy.metalaw.dev/released-counted"
	// ReleasedNoGrace is the value of ReleasedCountedAnnotation by which the release takes effect at once.
	ReleasedNoGrace = "noGrace"
	// ReleasedSpecAnnotation on a Server is the claim that ended, as JSON, with the labels and annotations of its user, so that a
	// user can apply it again. It decides nothing.
	ReleasedSpecAnnotation = "policy.metalaw.dev/released-spec"
	// LeftOutAnnotation on the claim that ReleasedSpecAnnotation keeps names its annotations that were too long to be kept, with
	// commas between. It decides nothing.
	LeftOutAnnotation = "policy.metalaw.dev/left-out"
	// ClaimEndedByAnnotation on a Server says who ended the claim that held it: the claim's UID, a space and the user. Admission
	// writes it when it lets a deletion of the claim pass.
	ClaimEndedByAnnotation = "policy.metalaw.dev/claim-ended-by"
	// MinimumTermAnnotation on a ServerClaim is the NIST SP 800-88 term, Clear or Purge, that the erase of its disks must reach at
	// least. It counts from when the claim boots its server, and never weakens what the policy asks for.
	MinimumTermAnnotation = "policy.metalaw.dev/minimum-term"
	// ConsentAnnotation, with the value ConsentTakeOver, on a Server allows a machine found running to be managed. It is
	// removed once the machine is ours (mark Managed).
	ConsentAnnotation = "policy.metalaw.dev/consent"
	// ConsentTakeOver is the value of ConsentAnnotation.
	ConsentTakeOver = "take-over"
	// AcceptSystemAnnotation on a BMC is the UUID of the new system behind it that may be managed.
	AcceptSystemAnnotation = "policy.metalaw.dev/accept-system"
	// AcceptCertificateAnnotation on a BMC is the SHA-256 fingerprint of the certificate that is trusted from now on. The manager
	// writes it into spec.trust and removes the annotation.
	AcceptCertificateAnnotation = "policy.metalaw.dev/accept-certificate"
	// CertificatePinnedAnnotation on a BMC or its Endpoint is when the certificate was pinned at first use (RFC 3339). What has it
	// is never pinned at first use again.
	CertificatePinnedAnnotation = "policy.metalaw.dev/certificate-pinned"
	// OldTLSAnnotation on a BMC lists what it is allowed of TLS that is refused by default: rsa-key-exchange,
	// negative-serial.
	OldTLSAnnotation = "policy.metalaw.dev/old-tls"
	// HostMACsAnnotation on a BMC gives the MAC addresses of systems of which the BMC reports no network interface: a YAML object
	// of lists by the URI of the system. They count until the machine itself reports its interfaces.
	HostMACsAnnotation = "policy.metalaw.dev/host-macs"
	// SystemUUIDsAnnotation on a BMC assigns UUIDs to systems that show none: a YAML object by the URI of the system, with uuid and
	// with serial, mac or both, which prove the system at each reading. To write it takes the verb assign-uuid on the BMC.
	SystemUUIDsAnnotation = "policy.metalaw.dev/system-uuids"
	// DeleteDataAnnotation, with the value "true", allows a Server to be deleted while it holds data, and a
	// ServerInventory to lose what it remembers of data.
	DeleteDataAnnotation = "policy.metalaw.dev/delete-data"
	// DisklessAnnotation, with the value "true", on a Server says that the machine has no disk, so that a wipe which saw none
	// is a wipe of the whole machine. It counts only where nothing else knows of a disk.
	DisklessAnnotation = "policy.metalaw.dev/diskless"
	// FactoryCredentialsAnnotation on a BMCSecret that holds the factory account of a device is the UID of the Endpoint that
	// it was made for, a salt and the digest of its data. Such a secret goes with the Endpoint unless its data is another or
	// something else names it.
	FactoryCredentialsAnnotation = "policy.metalaw.dev/factory-credentials-of"
	// LabelsAnnotation on a Server holds the labels that were copied from its BMC, as a JSON object; it tells a label that
	// went away from the BMC from one that somebody set on the Server.
	LabelsAnnotation = "policy.metalaw.dev/bmc-labels"
	// HeldByBMCAnnotation on a Server names the BMC whose OperationAnnotation asks to leave its Servers alone. The manager
	// writes it, and takes it away when the BMC no longer asks.
	HeldByBMCAnnotation = "policy.metalaw.dev/held-by-bmc"
	// BindingAnnotation on a Server records how the claim was bound: a JSON object with revision, score, runnersUp and at.
	BindingAnnotation = "policy.metalaw.dev/binding"
	// BootPurposeAnnotation on a ServerBootConfiguration says what it boots: one of the BootPurpose values.
	BootPurposeAnnotation = "policy.metalaw.dev/boot-purpose"
	// BootOwnerGenerationAnnotation on a ServerBootConfiguration is the generation of the claim or maintenance for which the
	// manager wrote its spec last. A spec that differs from what that generation asks was changed by another program.
	BootOwnerGenerationAnnotation = "policy.metalaw.dev/boot-owner-generation"
	// BootEntryAnnotation on a ServerBootConfiguration is the lifecycle entry for which it was written.
	BootEntryAnnotation = "policy.metalaw.dev/boot-entry"
	// BootImageAnnotation on a ServerBootConfiguration is the image by digest that metalaw boot serves. It writes it.
	BootImageAnnotation = "policy.metalaw.dev/boot-image"
	// BootIgnitionAnnotation on a ServerBootConfiguration says how long metalaw boot serves the ignition: IgnitionUntilFirstSign, or
	// always where it is absent. The manager writes it by boot.ignition of the bundle.
	BootIgnitionAnnotation = "policy.metalaw.dev/boot-ignition"
	// BootAnySourceAnnotation on a Server, set to true by a user, has metalaw boot serve the ignition of its claims to any address:
	// the machine has another address than at its inspection.
	BootAnySourceAnnotation = "policy.metalaw.dev/boot-any-source"
	// MediaURLAnnotation on a ServerBootConfiguration is the URL of the ISO that metalaw boot serves to the server's BMC while the
	// boot configuration is in force. metalaw boot writes it; who knows it and sends from the BMC's address can read the ISO.
	MediaURLAnnotation = "policy.metalaw.dev/media-url"
	// MediaInsertedAnnotation on a Server says that an image of metalaw boot may be in a virtual drive. The manager writes it before
	// an image is inserted, and removes it once an eject was read back.
	MediaInsertedAnnotation = "policy.metalaw.dev/media-inserted"
	// BootWaysAnnotation on a BMC lists the ways in which its machines boot, the preferred one first, in place of boot.ways of the
	// bundle: VirtualMedia, Network, or both with a comma.
	BootWaysAnnotation = "policy.metalaw.dev/boot-ways"
	// PriorityAnnotation on a ServerClaim is a whole number; claims with a higher one are served first.
	PriorityAnnotation = "policy.metalaw.dev/priority"
	// PlacementAnnotation on a ServerClaim is a YAML document that says which servers the claim may have and which it prefers,
	// beyond labels. Once spec.serverRef is set it cannot change.
	PlacementAnnotation = "policy.metalaw.dev/placement"
	// ProtectAnnotation on a ServerClaim or a Server, with any value but "false", has admission refuse its deletion. Write "true".
	ProtectAnnotation = "policy.metalaw.dev/protect"
	// OperationReasonAnnotation on a Server says why an operation was asked for.
	OperationReasonAnnotation = "policy.metalaw.dev/operation-reason"
	// OperationByAnnotation on a Server is who asked for an operation; admission writes it.
	OperationByAnnotation = "policy.metalaw.dev/operation-by"
	// ForceToAnnotation on a Server is the state that operation force leads to.
	ForceToAnnotation = "policy.metalaw.dev/force-to"
	// ForceOverrideAnnotation, with the value "true", on a Server lets operation force set safety rules aside that guard
	// data. Which were is recorded.
	ForceOverrideAnnotation = "policy.metalaw.dev/force-override"
	// UnclaimableReasonAnnotation on a Server says why spec.unclaimable was last set or cleared by metalaw server cordon or
	// uncordon.
	UnclaimableReasonAnnotation = "policy.metalaw.dev/unclaimable-reason"
	// OperationIDAnnotation on a Server or a ServerClaim tells a repeated request of the same operation from the former one;
	// optional.
	OperationIDAnnotation = "policy.metalaw.dev/operation-id"
)

// Annotations of policy.metalaw.dev about maintenance and the end of service.
const (
	// MaintenanceUIDAnnotation on a Server is the UID of the ServerMaintenance that the manager granted it to. The manager writes it in
	// the write that sets spec.serverMaintenanceRef. A reference without it is another program's, and is never cleared.
	MaintenanceUIDAnnotation = "policy.metalaw.dev/maintenance-uid"
	// MaintenanceClaimAnnotation on a Server is the UID of the claim that held it when it was granted, and that approved or, for an
	// enforced maintenance, was told. It is absent where no claim held the server.
	MaintenanceClaimAnnotation = "policy.metalaw.dev/maintenance-claim-uid"
	// MakerAnnotation on a ServerMaintenance is the user who made it or changed it last, as a JSON object of username, uid, groups and
	// extra. Admission writes it.
	MakerAnnotation = "policy.metalaw.dev/maker"
	// AdoptAnnotation, with the value "true", on an object has the manager act on it although it is older than the manager's consent
	// to act on its kind.
	AdoptAnnotation = "policy.metalaw.dev/adopt"
	// PlanOnlyAnnotation, with the value "true", on a ServerMaintenance has the manager say when it would be granted, and no more.
	PlanOnlyAnnotation = "policy.metalaw.dev/plan-only"
	// ExpectedDurationAnnotation on a ServerMaintenance is how long it is expected to hold its server, such as 45m.
	ExpectedDurationAnnotation = "policy.metalaw.dev/expected-duration"
	// AbortAnnotation on a ServerMaintenance stops it at the next safe point; its value is the reason.
	AbortAnnotation = "policy.metalaw.dev/abort"
	// ForceOffReasonAnnotation on a ServerMaintenance that ends allows its machine's power to be cut where the operating system does
	// not shut down; its value is the reason.
	ForceOffReasonAnnotation = "policy.metalaw.dev/force-off-reason"
	// DrainRequiredAnnotation, with the value "true", on a ServerClaim says that its approval is the word of a drainer, so that an
	// enforced maintenance waits for it too.
	DrainRequiredAnnotation = "policy.metalaw.dev/drain-required"
	// ApprovalReasonAnnotation on a ServerClaim says why metalaw maintenance approve last approved. It decides nothing.
	ApprovalReasonAnnotation = "policy.metalaw.dev/approval-reason"
	// DecommissionAnnotation on a Server is the reason for which it goes out of service. The manager writes it when it takes in
	// operation decommission and removes it with recommission, so that losing the status does not put the server back into service.
	DecommissionAnnotation = "policy.metalaw.dev/decommission"
	// KeptAnnotation on a ServerInventory is what people said of the machine, as a JSON object: that it is decommissioned, cordoned,
	// or tainted by hand. The manager writes it. A new Server of the machine gets it back.
	KeptAnnotation = "policy.metalaw.dev/kept-for-server"
	// ParkRequestedAnnotation on a Server is a request to park it that was not served yet, as a JSON object of by, reason, claim and at.
	// Only the manager writes it. No claim gets the server meanwhile; operation unpark withdraws it.
	ParkRequestedAnnotation = "policy.metalaw.dev/park-requested"
	// RestoredDoubtAnnotation on a Server says that the cluster's store was restored, and that what is stored of its machine may be
	// older than its disks: RestoredDoubted, RestoredConfirmed or RestoredInspect. Writing it takes the verb restore on fleetcontrols.
	RestoredDoubtAnnotation = "policy.metalaw.dev/restored-doubt"
	// RestoredReasonAnnotation on a Server says why it is in doubt. It decides nothing.
	RestoredReasonAnnotation = "policy.metalaw.dev/restored-reason"
	// RestoredByAnnotation on a Server is who wrote RestoredDoubtAnnotation last; admission writes it.
	RestoredByAnnotation = "policy.metalaw.dev/restored-by"
	// AttestDiskAnnotation on a Server names the disk of operation attest-disk by its wwid, serial number or name, as the
	// ServerInventory lists it.
	AttestDiskAnnotation = "policy.metalaw.dev/attest-disk"
	// AttestMethodAnnotation on a Server is what became of the disk of operation attest-disk: destroy or removed.
	AttestMethodAnnotation = "policy.metalaw.dev/attest-method"
	// FaultCordonedAtAnnotation on a Server is when the manager cordoned it last for faulty hardware (RFC 3339). The manager writes it
	// with spec.unclaimable, and counts by it how many of a model it cordoned in a day. It stays when a person uncordons the server.
	FaultCordonedAtAnnotation = "policy.metalaw.dev/fault-cordoned-at"
	// UnclaimableFaulty is the value of UnclaimableReasonAnnotation by which a cordon of the manager is known.
	UnclaimableFaulty = "FaultyHardware: cordoned by the manager; the condition FaultyHardware names the parts"
)

// Values of BootIgnitionAnnotation.
const (
	// IgnitionUntilFirstSign serves the ignition until the condition BootStateReceived is true.
	IgnitionUntilFirstSign = "UntilFirstSign"
)

// Values of BootPurposeAnnotation.
const (
	// BootPurposeProbe boots the agent that reports the hardware.
	BootPurposeProbe = "Probe"
	// BootPurposeWipe boots the agent that erases the disks.
	BootPurposeWipe = "Wipe"
	// BootPurposeClaim boots what a claim asks for.
	BootPurposeClaim = "Claim"
	// BootPurposeMaintenance boots what a maintenance asks for.
	BootPurposeMaintenance = "Maintenance"
)

// Marks in status.lifecycle.marks that the engine itself knows.
const (
	// MarkManaged says that the machine was powered by us before, so that we may stop it.
	MarkManaged = "Managed"
	// MarkDirty says that the machine may hold somebody's data, so that it is not offered before a verified wipe.
	MarkDirty = "Dirty"
)
