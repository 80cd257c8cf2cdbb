// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Condition types that every kind may bear; they follow the conventions of kstatus.
const (
	// ConditionReady says that the object is as its spec asks.
	ConditionReady = "Ready"
	// ConditionReconciling, while True, says that work towards the spec is under way.
	ConditionReconciling = "Reconciling"
	// ConditionStalled, while True, says that no progress is made and somebody has to act.
	ConditionStalled = "Stalled"
	// ConditionPolicyHalted, while True, says that the policy could not decide, and names the rule; nothing moves and
	// nothing is done.
	ConditionPolicyHalted = "PolicyHalted"
)

// Condition types of single kinds.
const (
	// ConditionBound on a ServerClaim says that it has its server; while False its message counts why not.
	ConditionBound = "Bound"
	// ConditionWithheld on a Server, while True, says that something its state asks for is held back: by a freeze, a
	// budget, the breaker, or because the manager only observes.
	ConditionWithheld = "Withheld"
	// ConditionRestoredDoubt on a Server, while True, says that the cluster's store was restored, and that what is stored of the
	// machine may be older than its disks: nothing is done to it until a user has compared.
	ConditionRestoredDoubt = "RestoredDoubt"
	// ConditionInBandPhase on a Server, while True, says what the agent that was booted for this entry is doing; its reason is the phase.
	ConditionInBandPhase = "InBandPhase"
	// ConditionClaimMissing on a Server, while True, says that its claim is gone without a release record.
	ConditionClaimMissing = "ClaimMissing"
	// ConditionAdopted on a Server, while True, says how its lifecycle began anew on a machine that has a past, and what was
	// made of it. It goes with the first move.
	ConditionAdopted = "Adopted"
	// ConditionMaintenanceWaits on a Server, while True, says that the maintenance which it names has not begun, and what it waits for.
	ConditionMaintenanceWaits = "MaintenanceWaits"
	// ConditionGranted on a ServerMaintenance, while False, says why its server is not handed over.
	ConditionGranted = "Granted"
	// ConditionServed on a ServerMaintenance says whether its machine is as it asks; while False, what that waits for.
	ConditionServed = "Served"
	// ConditionOverdue on a ServerMaintenance, while True, says that it holds its server longer than was expected.
	ConditionOverdue = "Overdue"
	// ConditionDecommission on a Server that is to go out of service says how far that has come; True once it is Decommissioned.
	ConditionDecommission = "Decommission"
	// ConditionFaultyHardware on a Server, while True, proposes to decommission it, and names the parts that are at fault.
	ConditionFaultyHardware = "FaultyHardware"
	// ConditionPolicyBehind on a Server, while True, says that it cannot come under the policy revision that it is to be governed
	// by, and stays under the former one.
	ConditionPolicyBehind = "PolicyBehind"
	// ConditionServerMissing on a ServerClaim, while True, says that the server it is bound to is gone.
	ConditionServerMissing = "ServerMissing"
	// ConditionBMCReachable on a Server says that its BMC answers.
	ConditionBMCReachable = "BMCReachable"
	// ConditionHealthy on a Server says what its BMC reported last of the machine's health; it is left out where it never did.
	ConditionHealthy = "Healthy"
	// ConditionInterfacesUnknown on a Server, while True, says that no MAC address of the machine is known, although its network
	// boot needs one, so that nothing is booted.
	ConditionInterfacesUnknown = "InterfacesUnknown"
	// ConditionBootOverrideMissing on a Server, while True, says that its BMC shows no boot override, and what follows: it is never
	// wiped, and is switched on only where the policy says boot.withoutOverride.
	ConditionBootOverrideMissing = "BootOverrideMissing"
	// ConditionStorageHidden on a Server, while True, names storage of its machine that no disk of the kernel shows, and that neither the
	// policy nor a person excuses. It may hold data.
	ConditionStorageHidden = "StorageHidden"
	// ConditionIdentityUnproven on a Server, while True, says that nothing proves which machine reports for it, or that another one did.
	ConditionIdentityUnproven = "IdentityUnproven"
	// ConditionIdentityMismatch on a Server, while True, says that another machine answers in its place.
	ConditionIdentityMismatch = "IdentityMismatch"
	// ConditionOperationDone on a Server says how the last operation asked for by annotation ended.
	ConditionOperationDone = "OperationDone"
	// ConditionPoweringOn on a Server, while True, says that it was asked to power on and has not done so yet.
	ConditionPoweringOn = "PoweringOn"
	// ConditionWaitingForPowerOff on a Server, while True, says that it was asked to power off and has not done so yet.
	ConditionWaitingForPowerOff = "WaitingForPowerOff"
	// ConditionReset on a BMC says whether it is being reset.
	ConditionReset = "Reset"
	// ConditionUnreachable on a BMC, while True, says since when it has given no answer of any kind.
	ConditionUnreachable = "Unreachable"
	// ConditionCertificateChanged on a BMC, while True, says that it shows another certificate than the trusted one. No request and
	// no password is sent until the annotation policy.metalaw.dev/accept-certificate names the new one.
	ConditionCertificateChanged = "CertificateChanged"
	// ConditionSystemsAccepted on a BMC, while False, names systems behind it that wait for an accept annotation.
	ConditionSystemsAccepted = "SystemsAccepted"
	// ConditionMatched on an Endpoint says whether its MAC address was found in the prefix database.
	ConditionMatched = "Matched"
	// ConditionSpecHandedOver on a ServerBootConfiguration bears the generation for which we last reset its state, so that
	// a Ready that speaks of a former spec never boots a machine.
	ConditionSpecHandedOver = "SpecHandedOver"
	// ConditionBootStateReceived on a ServerBootConfiguration says that the machine reported having booted it.
	ConditionBootStateReceived = "BootStateReceived"
	// ConditionImageValidation on a ServerBootConfiguration belongs to the boot service: the image is usable.
	ConditionImageValidation = "ImageValidation"
	// ConditionIPXEScriptFetched on a ServerBootConfiguration belongs to the boot service: the script was fetched.
	ConditionIPXEScriptFetched = "IPXEScriptFetched"
	// ConditionIgnitionDataFetched on a ServerBootConfiguration belongs to the boot service: the ignition was fetched.
	ConditionIgnitionDataFetched = "IgnitionDataFetched"
	// ConditionIgnitionRefused on a ServerBootConfiguration belongs to metalaw boot: the ignition was asked for, and not served, because
	// the request came from another address than the machine's, or after the machine's first sign.
	ConditionIgnitionRefused = "IgnitionRefused"
)

// Reasons of Ready on a BMC, and of BMCReachable on a Server.
const (
	// ReasonConnected: the BMC answers and accepts our credentials.
	ReasonConnected = "Connected"
	// ReasonAuthenticationFailed: the BMC refuses our credentials.
	ReasonAuthenticationFailed = "AuthenticationFailed"
	// ReasonInternalServerError: the BMC answers with an error of its own.
	ReasonInternalServerError = "InternalServerError"
	// ReasonConnectionFailed: the BMC does not answer, or its certificate is not trusted.
	ReasonConnectionFailed = "ConnectionFailed"
	// ReasonUnknownError: the BMC cannot be used for another reason, which the message says.
	ReasonUnknownError = "UnknownError"
	// ReasonSecretMissing: the BMCSecret does not exist or lacks a key.
	ReasonSecretMissing = "SecretMissing"
	// ReasonEndpointMissing: the Endpoint that the BMC names does not exist, or spec.access has no address.
	ReasonEndpointMissing = "EndpointMissing"
	// ReasonTrustUnusable: what says by what the BMC's certificate is trusted cannot be read.
	ReasonTrustUnusable = "TrustUnusable"
	// ReasonProtocolUnsupported: the protocol is reserved and not spoken.
	ReasonProtocolUnsupported = "ProtocolUnsupported"
	// ReasonBMCMissing: the Server names no BMC, or one that does not exist.
	ReasonBMCMissing = "BMCMissing"
	// ReasonSystemURIMissing: the Server does not say which system of its BMC it is.
	ReasonSystemURIMissing = "SystemURIMissing"
)

// Reasons of Reset on a BMC.
const (
	// ReasonUserRequested: somebody asked for the reset by annotation.
	ReasonUserRequested = "UserRequested"
	// ReasonResetComplete: the BMC answers again after its reset.
	ReasonResetComplete = "ResetComplete"
	// ReasonResetFailed: the BMC refused its reset, or was not asked because another one answers in its place.
	ReasonResetFailed = "ResetFailed"
	// ReasonInterrupted: the reset was recorded by a manager that ended since, so that nobody knows whether the BMC was
	// asked; it answers, and is not asked again.
	ReasonInterrupted = "Interrupted"
)

// Reasons of SystemsAccepted on a BMC.
const (
	// ReasonSystemUnaccepted: a system with a new UUID answers behind a known BMC and waits for the accept annotation.
	ReasonSystemUnaccepted = "SystemUnaccepted"
	// ReasonSystemConflict: a system is shown by two BMCs; the incumbent keeps it, and without one neither gets it.
	ReasonSystemConflict = "SystemConflict"
	// ReasonSystemUnidentified: a system shows no UUID, so that it cannot be managed.
	ReasonSystemUnidentified = "SystemUnidentified"
	// ReasonServerRefused: the API server refuses the Server of a system, or no name for it is free. On Ready of the BMC as well.
	ReasonServerRefused = "ServerRefused"
	// ReasonSystemsKnown: every system behind the BMC is known.
	ReasonSystemsKnown = "SystemsKnown"
)

// Reasons of events on a BMC.
const (
	// ReasonOperationUnavailable: the operation is known, and this version cannot do it.
	ReasonOperationUnavailable = "OperationUnavailable"
	// ReasonRetriedLately: credentials that the BMC refused were tried again by hand a while ago already; they are not yet
	// tried once more, so that no account is locked.
	ReasonRetriedLately = "RetriedLately"
	// ReasonAcceptanceWaits: the annotation policy.metalaw.dev/accept-system names a system that is not behind the BMC, cannot
	// be read, or is kept away by something else; it stays, and the message says what it waits for.
	ReasonAcceptanceWaits = "AcceptanceWaits"
	// ReasonAcceptanceRemoved: the annotation policy.metalaw.dev/accept-system could not serve any purpose; it was removed.
	ReasonAcceptanceRemoved = "AcceptanceRemoved"
	// ReasonCertificatePinned: the certificate that the BMC showed at first use is trusted from now on.
	ReasonCertificatePinned = "CertificatePinned"
	// ReasonCertificateAccepted: the certificate that the annotation policy.metalaw.dev/accept-certificate named is trusted from now
	// on.
	ReasonCertificateAccepted = "CertificateAccepted"
	// ReasonCertificateRefused: the annotation policy.metalaw.dev/accept-certificate is no SHA-256 fingerprint; it was removed.
	ReasonCertificateRefused = "CertificateRefused"
	// ReasonOtherCertificate: the BMC shows another certificate than the trusted one.
	ReasonOtherCertificate = "OtherCertificate"
	// ReasonTrustedCertificate: the BMC shows the trusted certificate again.
	ReasonTrustedCertificate = "TrustedCertificate"
	// ReasonServerCreated: a Server was made for a system behind the BMC.
	ReasonServerCreated = "ServerCreated"
	// ReasonServerTakenOver: a Server that named another BMC, or none, names this one now.
	ReasonServerTakenOver = "ServerTakenOver"
)

// Reasons of conditions on an Endpoint.
const (
	// ReasonPrefixFound: a row of the prefix database matches the MAC address.
	ReasonPrefixFound = "PrefixFound"
	// ReasonBMCCreated: the device is a BMC, and its BMC object exists.
	ReasonBMCCreated = "BMCCreated"
	// ReasonUnknownPrefix: no row of the prefix database matches the MAC address.
	ReasonUnknownPrefix = "UnknownPrefix"
	// ReasonInvalidMAC: the MAC address cannot be parsed.
	ReasonInvalidMAC = "InvalidMAC"
	// ReasonNotABMC: the prefix is known, but not that of a BMC.
	ReasonNotABMC = "NotABMC"
	// ReasonNameTaken: a BMC of the endpoint's name exists and belongs to something else.
	ReasonNameTaken = "NameTaken"
	// ReasonBMCRefused: the API server refuses the BMC or the BMCSecret that is made of the device.
	ReasonBMCRefused = "BMCRefused"
	// ReasonNoCredentials: neither a BMCSecret of the endpoint's name nor default credentials exist.
	ReasonNoCredentials = "NoCredentials"
	// ReasonNotRedfish: something answers at the address, and it is no Redfish service.
	ReasonNotRedfish = "NotRedfish"
	// ReasonCredentialsRefused: the device answers and accepts none of the default credentials; the condition's
	// lastTransitionTime is when they were last refused.
	ReasonCredentialsRefused = "CredentialsRefused"
)

// Reasons of Bound and Ready on a ServerClaim.
const (
	// ReasonServerInDoubt: the claim's end waits, because its server is in doubt since the store was restored.
	ReasonServerInDoubt = "ServerInDoubt"
	// ReasonBound: both references and the claim's UID agree.
	ReasonBound = "Bound"
	// ReasonPending: the claim waits for its turn.
	ReasonPending = "Pending"
	// ReasonNoServers: no server in the fleet matches serverRef and serverSelector.
	ReasonNoServers = "NoServers"
	// ReasonNoneClaimable: servers match, but none can be claimed now; the message counts why.
	ReasonNoneClaimable = "NoneClaimable"
	// ReasonPolicyRejected: the policy rejected every server that could be claimed; the message counts by code.
	ReasonPolicyRejected = "PolicyRejected"
	// ReasonClaimDenied: a rule of admission of the policy in force forbids the claim, which was stored before the rule was or while
	// nobody could ask it.
	ReasonClaimDenied = "ClaimDenied"
	// ReasonServerNotFound: the server that serverRef names does not exist.
	ReasonServerNotFound = "ServerNotFound"
	// ReasonServerTaken: the server that serverRef names is held by another claim, or kept free for a gang that has waited for long.
	ReasonServerTaken = "ServerTaken"
	// ReasonInvalidSelector: serverSelector cannot be parsed, or it or the tolerations are longer than is judged.
	ReasonInvalidSelector = "InvalidSelector"
	// ReasonQuotaExceeded: the claims of the namespace have as many servers as the policy bundle allows it, or the claim's gang takes
	// more.
	ReasonQuotaExceeded = "QuotaExceeded"
	// ReasonInvalidPlacement: the annotation policy.metalaw.dev/placement cannot be read, or contradicts itself or the rest of
	// its gang; the message says where.
	ReasonInvalidPlacement = "InvalidPlacement"
	// ReasonGangWaiting: the claim is of a gang that is not complete, or cannot have servers for all its members at once; the
	// message says how many are missing.
	ReasonGangWaiting = "GangWaiting"
	// ReasonBindingRefused: servers could be had, and the API server denied writing the claim on each of them; the message
	// says why.
	ReasonBindingRefused = "BindingRefused"
	// ReasonReserving: a server was found and is being reserved.
	ReasonReserving = "Reserving"
	// ReasonBindingLost: the claim was bound, and the server that serverRef names no longer refers to it; the message says
	// what became of the server and what to do.
	ReasonBindingLost = "BindingLost"
	// ReasonAdopting: the server names this claim as the claim names it, and is about to record the claim's UID, as after a
	// restore or another operator of this API.
	ReasonAdopting = "Adopting"
	// ReasonServerNotReserved: the server is bound to the claim but is in a state in which the claim does not own it, such
	// as Maintenance or Parked.
	ReasonServerNotReserved = "ServerNotReserved"
	// ReasonServerHalted: nothing is done for the server, because its policy is halted or another machine answers in its
	// place; the message names the server's condition.
	ReasonServerHalted = "ServerHalted"
	// ReasonPowerUnknown: the server's BMC does not say whether the machine is on.
	ReasonPowerUnknown = "PowerUnknown"
	// ReasonBooting: the server is bound, and its boot is being prepared or under way.
	ReasonBooting = "Booting"
	// ReasonBootError: the boot service reports an error; it may still mend it.
	ReasonBootError = "BootError"
	// ReasonBootConfigurationChanged: another program, such as a mutating policy of the cluster, changed what the manager wrote
	// into the boot configuration; the message names the fields.
	ReasonBootConfigurationChanged = "BootConfigurationChanged"
	// ReasonRunning: the BMC says On, and the boot configuration is as the claim asks; an image or ignition that was changed
	// after the machine was switched on is used at its next boot.
	ReasonRunning = "Running"
	// ReasonPoweringOff: the claim asks for Off, and the machine is not off yet.
	ReasonPoweringOff = "PoweringOff"
	// ReasonPoweredOff: the machine is off, as the claim asks.
	ReasonPoweredOff = "PoweredOff"
	// ReasonServerAdopted: the claim took a server over that named a former claim of its name, with the data that is on it.
	ReasonServerAdopted = "ServerAdopted"
	// ReasonServerVanished: the server that the claim is bound to no longer exists; the claim keeps its reference.
	ReasonServerVanished = "ServerVanished"
	// ReasonOperationRefused: the operation cannot be done now; the annotation was removed.
	ReasonOperationRefused = "OperationRefused"
)

// Reasons of conditions on a Server that are not the name of a rule.
const (
	// ReasonStable: the server rests in a state that is marked stable.
	ReasonStable = "Stable"
	// ReasonMoving: the server is on its way to a stable state.
	ReasonMoving = "Moving"
	// ReasonFoundInState: another operator of this API, or a policy revision that is gone, left the server in its state.
	ReasonFoundInState = "FoundInState"
	// ReasonTakenFromHalt: the revision that governed the server halted it, and another one took over in the state that it had.
	ReasonTakenFromHalt = "TakenFromHalt"
	// ReasonRestEnded: the server rested in a state in which nobody may rest under the revision that took over.
	ReasonRestEnded = "RestEnded"
	// ReasonStateDropped: the policy revision that is to govern the server neither defines nor migrates its state.
	ReasonStateDropped = "StateDropped"
	// ReasonStatusLost: the server has no status, and what is known besides tells that its machine was in use.
	ReasonStatusLost = "StatusLost"
	// ReasonClaimNotFound: the claim that the server names does not exist, and no release record says that it ended.
	ReasonClaimNotFound = "ClaimNotFound"
	// ReasonClaimUIDMismatch: a claim of that name exists, but it is another one.
	ReasonClaimUIDMismatch = "ClaimUIDMismatch"
	// ReasonClaimNamesAnother: the claim that holds the server names another one in its serverRef.
	ReasonClaimNamesAnother = "ClaimNamesAnother"
	// ReasonNotCompared: the store was restored, and no user has compared the server with its machine since.
	ReasonNotCompared = "NotCompared"
	// ReasonInspects: a user has confirmed the server, which no claim holds, and its disks are to be read.
	ReasonInspects = "InspectedFirst"
	// ReasonFrozen: a freeze of the FleetControl covers the server.
	ReasonFrozen = "Frozen"
	// ReasonBreakerTripped: the breaker of the FleetControl has tripped.
	ReasonBreakerTripped = "BreakerTripped"
	// ReasonBudgetExhausted: as many machines as a budget of the FleetControl allows are counted.
	ReasonBudgetExhausted = "BudgetExhausted"
	// ReasonStarting: the manager has started and has not seen every server yet, so that it cannot count for budgets and breaker.
	ReasonStarting = "Starting"
	// ReasonObserveOnly: the manager runs with --observe-only.
	ReasonObserveOnly = "ObserveOnly"
	// ReasonHealthOK: the BMC reports no trouble of the machine.
	ReasonHealthOK = "HealthOK"
	// ReasonHealthWarning: the BMC reports a part of the machine that needs attention.
	ReasonHealthWarning = "HealthWarning"
	// ReasonHealthCritical: the BMC reports a part of the machine that has failed.
	ReasonHealthCritical = "HealthCritical"
	// ReasonHealthTolerated: the BMC reports critical health, and all that it names is no hardware or the policy lets that
	// stop nothing.
	ReasonHealthTolerated = "HealthTolerated"
	// ReasonNotShown: the agent or the BMC names storage that no disk of the kernel shows.
	ReasonNotShown = "NotShown"
	// ReasonDrivesNotListed: the BMC listed drives before and does not now, and the policy asks for its list.
	ReasonDrivesNotListed = "DrivesNotListed"
	// ReasonRemovableInDoubt: the kernel calls a disk removable, and how it is attached is not known.
	ReasonRemovableInDoubt = "RemovableInDoubt"
	// ReasonBootOverrideMissing: the BMC shows no boot override that could be set.
	ReasonBootOverrideMissing = "BootOverrideMissing"
	// ReasonInterfacesUnreported: neither the BMC nor the machine has named a network interface, and no annotation gives one.
	ReasonInterfacesUnreported = "InterfacesUnreported"
	// ReasonMachineUnproven: neither a serial number nor an address of the last report is what the BMC shows, or what was proved before.
	ReasonMachineUnproven = "MachineUnproven"
	// ReasonMachineContradicts: a report showed another machine than the BMC, or than was proved before, and was refused.
	ReasonMachineContradicts = "MachineContradicts"
	// ReasonRivalBMC: another BMC shows the UUID of the server, and nothing proves the machine, so that no agent is booted.
	ReasonRivalBMC = "RivalBMC"
	// ReasonOtherSystem: the BMC answers for another machine than the server's.
	ReasonOtherSystem = "OtherSystem"
	// ReasonUnknownState: the policy neither defines nor migrates the server's state.
	ReasonUnknownState = "UnknownState"
	// ReasonGuardError: a guard of the policy could not be evaluated.
	ReasonGuardError = "GuardError"
	// ReasonSafetyRule: the policy asked for what a safety rule forbids.
	ReasonSafetyRule = "SafetyRule"
	// ReasonInvariantViolated: an invariant of the policy does not hold.
	ReasonInvariantViolated = "InvariantViolated"
	// ReasonRevisionHeld: this version of metalaw refuses the revision that governs the server.
	ReasonRevisionHeld = "RevisionHeld"
	// ReasonPromotionMissing: a policy revision was restored that another cluster promoted, and none was promoted here:
	// nothing governs.
	ReasonPromotionMissing = "PromotionMissing"
	// ReasonIgnored: the operation annotation asks to leave the object alone; one that is being deleted stays for that long.
	ReasonIgnored = "Ignored"
	// ReasonBootConfigurationTaken: the boot configuration that is to be written exists and belongs to something else.
	ReasonBootConfigurationTaken = "BootConfigurationTaken"
	// ReasonBootConfigurationRefused: the API server refuses a boot configuration or its Secret, by a quota, a policy of the
	// cluster or a missing right; the message has its words. On the ServerClaim as well.
	ReasonBootConfigurationRefused = "BootConfigurationRefused"
	// ReasonWriteRefused: the API server refuses another object that the manager keeps for the server, such as its ServerInventory.
	ReasonWriteRefused = "WriteRefused"
	// ReasonRequestFailed: the BMC refused a power change, or the operating system did not shut down in time; it is asked again.
	ReasonRequestFailed = "RequestFailed"
	// ReasonBootOverrideIgnored: the BMC took the boot override of a power-on and does not show it, so the machine stays off.
	ReasonBootOverrideIgnored = "BootOverrideIgnored"
	// ReasonWipeUnproven: the cache shows a verified wipe, and the store does not have it or its record. The server keeps the mark Dirty.
	ReasonWipeUnproven = "WipeUnproven"
	// ReasonPowerRefused is that of an event: the BMC refused a power change, and would refuse the same again.
	ReasonPowerRefused = "PowerRefused"
	// ReasonSwitchedOnByHand: the machine is on, and was not switched on to boot what its claim asks for.
	ReasonSwitchedOnByHand = "SwitchedOnByHand"
	// ReasonShutdownAsked is that of an event: a machine that the manager did not switch on is asked to shut down.
	ReasonShutdownAsked = "ShutdownAsked"
	// ReasonForcedOff is that of an event: the power of such a machine is cut.
	ReasonForcedOff = "ForcedOff"
	// ReasonSwitchedOff is that of an event: such a machine is off.
	ReasonSwitchedOff = "SwitchedOff"
	// ReasonBMCUnreachable: the BMC does not answer, and what is known of the machine without it does not suffice. On the
	// ServerClaim as well, where it does not go on without that BMC.
	ReasonBMCUnreachable = "BMCUnreachable"
	// ReasonRuleWaits: what the rule of the policy asks for is not so yet.
	ReasonRuleWaits = "RuleWaits"
	// ReasonNoRule: no rule of the policy leads there from the present state.
	ReasonNoRule = "NoRule"
	// ReasonParkDeferred: a request to park the server is kept until its state allows it; no claim gets the server meanwhile.
	ReasonParkDeferred = "ParkDeferred"
	// ReasonParkRequestDropped: a request to park the server was dropped, because a claim got the server that did not hold it then.
	ReasonParkRequestDropped = "ParkRequestDropped"
	// ReasonParkedOperationDropped: the operation was not done, because the server is parked; the annotation was removed.
	ReasonParkedOperationDropped = "ParkedOperationDropped"
	// ReasonUnknownOperation: the operation annotation has a value that nobody knows; it was removed.
	ReasonUnknownOperation = "UnknownOperation"
	// ReasonSelectionPolicyFailed: the selection policy cannot be evaluated for the server and some claim, which does not get it. An Event.
	ReasonSelectionPolicyFailed = "SelectionPolicyFailed"
)
