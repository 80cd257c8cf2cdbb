// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"time"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine"
)

// The names of the effects that a state may ensure.
const (
	EffectPowerOn        = "PowerOn"
	EffectPowerOff       = "PowerOff"
	EffectPowerAsClaimed = "PowerAsClaimed"
	EffectBootProbe      = "BootProbe"
	EffectBootWipe       = "BootWipe"
	EffectBootAsClaimed  = "BootAsClaimed"
	EffectClearBoot      = "ClearBoot"
	EffectReleaseClaim   = "ReleaseClaim"
	EffectForgetHolder   = "ForgetHolder"
	EffectResetAsAsked   = "ResetAsAsked"
	EffectLocate         = "Locate"
	EffectApplyBootOrder = "ApplyBootOrder"
	EffectMaintain       = "AsMaintenanceAsks"
)

// The marks that the engine and the shipped bundles use.
const (
	// MarkManaged says that this system booted what we told it to, or was booted for a claim.
	MarkManaged = "Managed"
	// MarkDirty says that a holder's data may be on the disks.
	MarkDirty = "Dirty"
	// MarkStranger says that a machine was seen running that is not ours.
	MarkStranger = "Stranger"
	// MarkLocated says that this system switched the locator light on because a state asks for it.
	MarkLocated = "Located"
)

// longestShutdown is more than any operating system takes.
const longestShutdown = 24 * time.Hour

var marks = map[string]string{
	MarkManaged: "The system booted what we told it to; its power is ours to change. " +
		"Stored with the record of a power-on of ours from off, and before the first boot for a claim.",
	MarkDirty: "A holder's data may be on the disks. Set by the engine before the first boot for a claim; cleared by a verified wipe.",
	MarkStranger: "The machine was seen running, and is not ours to touch: we did not boot it, no claim holds it, and no user consented. " +
		"Kept by the engine from then on, whatever the machine does by itself, until one of these changes; no bundle sets or clears it.",
	MarkLocated: "The system switched the locator light on because a state asks for it. It switches the light off once it is in a state " +
		"that has Locate and does not ask for the light. " +
		"Stored before the light is; gone once it shows off, or a user asks for a light.",
}

// The names of the operations that a user may ask for by annotation and that a state may accept.
const (
	OperationPark    = "park"
	OperationUnpark  = "unpark"
	OperationRetry   = "retry"
	OperationRelease = "release"
	OperationUndo    = v1alpha1.OperationUndoRelease
	OperationErase   = v1alpha1.OperationSanitize
	// OperationRecommission leads a decommissioned server back. Decommission itself is a wish that the shell takes in anywhere, so
	// that no rule sees the operation: rules ask for the fact server.decommission.
	OperationRecommission = v1alpha1.OperationRecommission
)

var operations = append([]string{OperationPark, OperationUnpark, OperationRetry, OperationRelease, OperationUndo, OperationErase,
	OperationRecommission}, resets...)

// resets are the operations that ask for one reset or power change.
var resets = []string{v1alpha1.OperationGracefulRestartServer, v1alpha1.OperationHardRestartServer, v1alpha1.OperationPowerCycleServer,
	v1alpha1.OperationForceOffServer, v1alpha1.OperationForceOnServer}

// operationWords are the words of the fact operation.name.
var operationWords = append([]string{none}, operations...)

var effects = []engine.EffectType{
	{
		Name: EffectPowerOff, Disruptive: true, Touches: true,
		Asserts: "The system is off and no boot override is set.",
		Proof:   "The BMC says Off.",
		Repeat:  "Nothing while off; asks again only after a fresh read and not before the last request had its time.",
		Params: []engine.ParamType{
			{Name: "graceful", Kind: engine.Duration, Most: longestShutdown, MostBecause: "an operating system that takes longer hangs",
				Doc: "How long the operating system may take to shut down; 0 forces at once. Under releasePower Immediate, " +
					"releaseShutdown takes its place once the claim has ended."},
			{Name: "thenForce", Kind: engine.Bool, FalseNeeds: "graceful",
				Doc: "Force off once the graceful time is over; false asks for a graceful time, because 0 forces at once."},
		},
		Requires: []engine.Requirement{sameMachine, notInUse, neverCutAnErase, notAStranger, leftToItself, handsOff},
	},
	{
		Name: EffectPowerOn, Disruptive: true, Touches: true,
		Asserts: "The system is on and booted from the prepared boot configuration.",
		Proof:   "The BMC says On. The boot override is asserted while off, right before power-on.",
		Repeat:  "Nothing while on, but that a boot override still set is cleared.",
		Requires: []engine.Requirement{sameMachine, powerIsTheHolders, wipeBootNeedsRecord, wipeBootNeverClaimed, wipeBootNeverRetained,
			leftToItself, handsOff, offForMaintenance, ownBoot},
		Earns:  []string{MarkManaged},
		Undoes: []string{EffectPowerOff, EffectPowerAsClaimed},
	},
	{
		Name: EffectPowerAsClaimed, Disruptive: true, Touches: true,
		Asserts: "The system is on or off as the bound claim asks.",
		Proof:   "As PowerOn and PowerOff. A boot that is not ready holds back On, never Off.",
		Repeat:  "As PowerOn and PowerOff.",
		Requires: []engine.Requirement{sameMachine, onlyForTheHolder, neverCutAnErase, noWipeForTheHolder, noProbeForTheHolder,
			handsOff},
		Undoes: []string{EffectPowerOff},
	},
	{
		Name:     EffectBootProbe,
		Asserts:  "A boot configuration for the probe image exists for this entry, with a token of its own.",
		Proof:    "The configuration carries this entry and our UID; the boot operator says Ready.",
		Repeat:   "Nothing while it stands; written anew in another entry.",
		Brings:   `boot.purpose == "Probe"`,
		Requires: []engine.Requirement{neverOnAClaim, probeBeginsFromOff, leftToItself, handsOff},
	},
	{
		Name:     EffectBootWipe,
		Asserts:  "A boot configuration for the wipe image exists for this entry, with a token of its own.",
		Proof:    "The configuration carries this entry and our UID; the boot operator says Ready.",
		Repeat:   "Nothing while it stands; written anew in another entry.",
		Brings:   `boot.purpose == "Wipe"`,
		Requires: []engine.Requirement{sameMachine, wipeNeedsRecord, neverWipeClaimed, neverWipeRetained, wipeBeginsFromOff, leftToItself, handsOff},
		Stays:    []engine.Requirement{wipeStaysOnRecord, wipeStaysUnclaimed, wipeStaysUnretained},
		Undoes:   []string{EffectBootProbe, EffectBootAsClaimed},
	},
	{
		Name:     EffectBootAsClaimed,
		Asserts:  "The claim's boot configuration stands in the claim's namespace and the server's reference names it.",
		Proof:    "The configuration is owned by the claim's UID and has its image and ignition; the boot operator says Ready.",
		Repeat:   "Nothing while it stands; follows the claim's image and ignition and then asks for Ready anew.",
		Requires: []engine.Requirement{onlyForTheHolder, handsOff},
		Undoes:   []string{EffectBootProbe},
		Marks:    []string{MarkDirty, MarkManaged},
	},
	{
		Name:     EffectClearBoot,
		Asserts:  "No boot configuration of ours is left and the server names none; of a machine that is not ours, none of ours.",
		Proof:    "Our configurations are gone, and spec.bootConfigurationRef is empty or another's.",
		Repeat:   "Nothing.",
		Requires: []engine.Requirement{neverOnAClaim},
		Undoes:   []string{EffectBootProbe, EffectBootWipe, EffectBootAsClaimed},
	},
	{
		Name:     EffectReleaseClaim,
		Asserts:  "The reference to a claim that was released is gone from the server.",
		Proof:    "spec.serverClaimRef is empty.",
		Repeat:   "Nothing.",
		Requires: []engine.Requirement{wipeNeedsRecord, neverWipeClaimed, neverWipeRetained},
	},
	{
		Name:     EffectForgetHolder,
		Asserts:  "Neither the last holder's UID nor its release record is kept any longer.",
		Proof:    "Both annotations are gone, and the inventory names no holder.",
		Repeat:   "Nothing.",
		Requires: []engine.Requirement{neverOnAClaim, forgetOnlyWhenClean},
	},
	{
		Name: EffectResetAsAsked, Disruptive: true, Touches: true,
		Asserts:  "The reset or power change asked for by annotation was carried out once.",
		Proof:    "status.operation says how it ended.",
		Repeat:   "Nothing: an operation of one id happens at most once, and is reported as interrupted where that cannot be told.",
		Serves:   resets,
		Requires: []engine.Requirement{sameMachine, neverCutAnErase, noResetIntoAWipe, noResetIntoTheProbe, notAStranger, leftToItself, handsOff},
	},
	{
		Name: EffectLocate, Touches: true,
		Asserts: "The locator light shows what spec.indicatorLED asks, or what the state asks where nothing is asked. " +
			"Where neither asks, a light that a state had switched on is off, and any other is left alone.",
		Proof:  "The BMC says so; a BMC without a light is left alone.",
		Repeat: "Nothing while it shows.",
		Params: []engine.ParamType{{Name: "unlessAsked", Kind: engine.Enum, Values: []string{"Lit", "Blinking", "Off"},
			Doc: "What to show where spec.indicatorLED asks for nothing; nothing by default."}},
		Requires: []engine.Requirement{sameMachine, handsOff},
	},
	{
		Name: EffectApplyBootOrder, Touches: true,
		Asserts:  "The persistent boot order is that of spec.bootOrder.",
		Proof:    "The BMC lists it; nothing is asserted where spec.bootOrder is empty.",
		Repeat:   "Nothing while it holds.",
		Requires: []engine.Requirement{sameMachine, orderOnlyWhileOff, leftToItself, handsOff},
	},
	{
		Name: EffectMaintain, Disruptive: true,
		Asserts: "Power, boot and locator light are as the granted maintenance asks; under a reference that the manager did not grant, nothing.",
		Proof:   "The BMC says so; the boot configuration is owned by the maintenance, and the boot operator says Ready.",
		Repeat:  "Nothing while it holds; follows each change of what the maintenance asks.",
		Brings:  `boot.purpose == "Maintenance"`,
		Requires: []engine.Requirement{maintainsTheSameMachine, maintainsInMaintenance, maintainsWithConsent, maintainsNoErase,
			maintainsNothingLeftToItself, maintainsNoStranger},
		Earns:      []string{MarkManaged},
		EarnsWhere: maintains,
	},
}
