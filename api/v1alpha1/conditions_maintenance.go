// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Reasons of conditions on a ServerMaintenance.
const (
	// ReasonNothingGrants: the manager does not grant maintenances (--maintenance=off).
	ReasonNothingGrants = "NothingGrants"
	// ReasonMaintenanceGranted: the server was handed over.
	ReasonMaintenanceGranted = "ServerGranted"
	// ReasonPlanOnly: the manager, or the maintenance by annotation, only plans; the message says when it would be granted.
	ReasonPlanOnly = "PlanOnly"
	// ReasonNotAdopted: the maintenance is older than the manager's consent to grant maintenances, and nobody adopted it.
	ReasonNotAdopted = "NotAdopted"
	// ReasonNotPermitted: its maker lacks a right that it takes.
	ReasonNotPermitted = "NotPermitted"
	// ReasonServerHeld: another maintenance, of this manager or of another program, holds the server.
	ReasonServerHeld = "ServerHeld"
	// ReasonMaintenanceAhead: another maintenance of the server goes first.
	ReasonMaintenanceAhead = "MaintenanceAhead"
	// ReasonServerNotReady: the server is in a state that no maintenance interrupts, such as an erase that runs.
	ReasonServerNotReady = "ServerNotReady"
	// ReasonWaitsForApproval: the holder of the claim has not approved.
	ReasonWaitsForApproval = "WaitsForApproval"
	// ReasonApprovalOlder: the claim's approval is older than this maintenance, and does not cover it.
	ReasonApprovalOlder = "ApprovalOlder"
	// ReasonWaitsForNotice: an enforced maintenance waits until the notice that its policy gives the holder is over.
	ReasonWaitsForNotice = "WaitsForNotice"
	// ReasonWaitsForDrain: the claim says that a drainer approves, and none has.
	ReasonWaitsForDrain = "WaitsForDrain"
	// ReasonReleaseGrace: the server was just released, and claims wait for one.
	ReasonReleaseGrace = "ReleaseGrace"
	// ReasonWindowClosed: no window of the policy is open.
	ReasonWindowClosed = "WindowClosed"
	// ReasonWindowTooShort: the open window closes before the maintenance is expected to end.
	ReasonWindowTooShort = "WindowTooShort"
	// ReasonLimitReached: as many servers as a limit of the policy, or a budget of the FleetControl, allows are down.
	ReasonLimitReached = "LimitReached"
	// ReasonWaveWaits: an earlier wave of the policy has not ended, or its pause is not over.
	ReasonWaveWaits = "WaveWaits"
	// ReasonStopped: too many maintenances failed or are overdue.
	ReasonStopped = "Stopped"
	// ReasonCheckFails: a check of the policy does not hold.
	ReasonCheckFails = "CheckFails"
	// ReasonGroupWaits: another maintenance of the same group cannot be granted now.
	ReasonGroupWaits = "GroupWaits"
	// ReasonAborted: a user stopped it.
	ReasonAborted = "Aborted"
	// ReasonServed: the machine is as the maintenance asks.
	ReasonServed = "Served"
	// ReasonBootFailed: the boot operator cannot prepare the boot of the maintenance.
	ReasonBootFailed = "BootFailed"
	// ReasonEnding: the maintenance ends, and its machine is brought to where it can be handed back.
	ReasonEnding = "Ending"
)

// Reasons of the condition Decommission on a Server.
const (
	// ReasonDecommissioned: the server is out of service.
	ReasonDecommissioned = "Decommissioned"
	// ReasonWaitsForClaim: a claim holds the server that is to go out of service, or its data is retained.
	ReasonWaitsForClaim = "WaitsForClaim"
	// ReasonWaitsForWipe: the disks of the server that is to go out of service are erased first.
	ReasonWaitsForWipe = "WaitsForWipe"
	// ReasonWaitsForDisks: disks of the server that is to go out of service hold data, and a user has to say what becomes of them.
	ReasonWaitsForDisks = "WaitsForDisks"
	// ReasonWaitsForOthers: a maintenance or another program has the server that is to go out of service.
	ReasonWaitsForOthers = "WaitsForOthers"
	// ReasonWaitsForInspection: the disks of the server that is to go out of service are not known yet.
	ReasonWaitsForInspection = "WaitsForInspection"
	// ReasonWaitsForPowerOff: the machine that is to go out of service is not seen to be off.
	ReasonWaitsForPowerOff = "WaitsForPowerOff"
)

// Reasons of the condition FaultyHardware on a Server.
const (
	// ReasonFaultProposed: the server is proposed to go out of service, and the manager does not cordon it.
	ReasonFaultProposed = "Proposed"
	// ReasonFaultCordoned: the manager cordoned the server.
	ReasonFaultCordoned = "Cordoned"
	// ReasonCordonLimit: the manager cordoned as many servers of the model in a day as the policy allows.
	ReasonCordonLimit = "CordonLimitReached"
	// ReasonFaultKept: a person uncordoned the server, and the fault is the same.
	ReasonFaultKept = "KeptInService"
	// ReasonFaultGone: no fault is reported any more, and the cordon stays until a person lifts it. The condition is False.
	ReasonFaultGone = "FaultGone"
)
