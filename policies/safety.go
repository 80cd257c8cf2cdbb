// SPDX-License-Identifier: Apache-2.0

package policies

import "github.com/metalaw/metalaw/engine"

// The names of the safety rules that a person may set aside, by forcing a server with the override.
const (
	RuleAbsenceIsNotEvidence = "AbsenceIsNotEvidence"
	RuleNeverWipeClaimed     = "NeverWipeClaimed"
	RuleNeverWipeRetained    = "NeverWipeRetained"
	RuleClearOnlyOnProof     = "ClearOnlyOnProof"
)

// RuleNoRebootWithoutConsent is what a maintenance waits for while a claim holds its server that was not asked.
const RuleNoRebootWithoutConsent = "NoRebootWithoutConsent"

// maintains says where a maintenance may switch its machine on, which makes it ours.
const maintains = `maintenance.ours && maintenance.consented && bmc.power == "Off" && !marked("Stranger")`

// noWipeHere says that nothing of a wipe stands or runs in a state that may have one booted.
const noWipeHere = `(bmc.power == "Off" && boot.purpose != "Wipe" && !wipe.running)`

// The safety rules. No bundle can switch them off: a decision that would break one is halted, and the shell checks again
// before it acts. Each is written over raw facts, so that no definition of a bundle can weaken it.
var (
	// A BMC that cannot be reached, or that starts and does not know its system yet, leaves the identity open: that is
	// waited out. Another machine in the Server's place is not: a user has to act, and the halt says so. A user who
	// writes to a BMC compares once more right before.
	sameMachine = engine.Requirement{
		Rule: "IdentityFirst", Must: `bmc.identity == "Same"`, Awaits: `bmc.identity == "Unknown"`,
		Halts: `bmc.identity == "Other"`,
		Doc:   "nothing is written to a machine whose identity is not the Server's",
	}
	wipeNeedsRecord = engine.Requirement{
		Rule: RuleAbsenceIsNotEvidence, Must: `claim.released`,
		Doc: "without a durable release record a claim that is not found is unknown, not ended",
	}
	neverWipeClaimed = engine.Requirement{
		Rule: RuleNeverWipeClaimed, Must: `!claim.bound`,
		Doc: "a server that a claim holds is never wiped",
	}
	neverWipeRetained = engine.Requirement{
		Rule: RuleNeverWipeRetained, Must: `!(server.claimRefSet && server.reclaimPolicy == "Retain")`,
		Doc: "a server whose data is retained is never wiped",
	}
	// A wipe's boot stays prepared while the facts change. Switching it on begins the erase, so that it needs all over again
	// what preparing it needed.
	wipeBootNeedsRecord = engine.Requirement{
		Rule: RuleAbsenceIsNotEvidence, Must: `boot.purpose != "Wipe" || claim.released`,
		Doc: "a wipe that was prepared is booted only with a durable release record",
	}
	wipeBootNeverClaimed = engine.Requirement{
		Rule: RuleNeverWipeClaimed, Must: `boot.purpose != "Wipe" || !claim.bound`,
		Doc: "a wipe that was prepared is not booted on a server that a claim holds",
	}
	wipeBootNeverRetained = engine.Requirement{
		Rule: RuleNeverWipeRetained, Must: `boot.purpose != "Wipe" || !(server.claimRefSet && server.reclaimPolicy == "Retain")`,
		Doc: "a wipe that was prepared is not booted on a server whose data is retained",
	}
	// An erase goes on by itself, and what was prepared for one boots whenever a person switches the machine on. A
	// state that has a wipe booted is therefore left as soon as the wipe may not be, unless nothing stands or runs
	// there: by the power, because an agent that has not begun to erase yet shows by nothing else once its boot is
	// gone.
	wipeStaysOnRecord = engine.Requirement{
		Rule: RuleAbsenceIsNotEvidence, Must: noWipeHere + ` || claim.released`,
		Doc: "a wipe that was prepared or begun is left as soon as no release record stands",
	}
	wipeStaysUnclaimed = engine.Requirement{
		Rule: RuleNeverWipeClaimed, Must: noWipeHere + ` || !claim.bound`,
		Doc: "a wipe that was prepared or begun is left as soon as a claim holds the server",
	}
	wipeStaysUnretained = engine.Requirement{
		Rule: RuleNeverWipeRetained, Must: noWipeHere + ` || !(server.claimRefSet && server.reclaimPolicy == "Retain")`,
		Doc: "a wipe that was prepared or begun is left as soon as the server's data is retained",
	}
	noWipeForTheHolder = engine.Requirement{
		Rule: RuleNeverWipeClaimed, Must: `claim.power != "On" || boot.purpose != "Wipe"`,
		Doc: "what is switched on for a claim is never a wipe",
	}
	noProbeForTheHolder = engine.Requirement{
		Rule: "NeverOnAClaim", Must: `claim.power != "On" || boot.purpose != "Probe"`,
		Doc: "what is switched on for a claim is never the probe",
	}
	// A reset may switch a machine on, and then boots what is prepared without asserting anything. An erase is begun by PowerOn
	// alone, which the budgets and the freezes of wipes count.
	noResetIntoAWipe = engine.Requirement{
		Rule: "NeverWipeByReset", Must: `operation.name == "force-off-server" || boot.purpose != "Wipe"`,
		Doc: "a reset that a user asks for never boots a wipe",
	}
	noResetIntoTheProbe = engine.Requirement{
		Rule: "NeverOnAClaim",
		Must: `operation.name == "force-off-server" || boot.purpose != "Probe" || !server.claimRefSet || claim.released`,
		Doc:  "a reset that a user asks for never boots the probe on a machine on which a claim is written",
	}
	// What a claim boots is gone once a boot of ours has taken its place; until then PowerOn waits.
	ownBoot = engine.Requirement{
		Rule: "PowerIsTheHolders", Must: `boot.purpose != "Claim"`, Awaits: `boot.purpose == "Claim"`,
		Doc: "a boot that a claim asked for is never switched on but as the claim asks",
	}
	neverOfferDirty = engine.Requirement{
		Rule: "NeverOfferDirty", Must: `!marked("Dirty")`,
		Doc: "a server that may hold somebody's data is never offered",
	}
	clearOnProof = engine.Requirement{
		Rule: RuleClearOnlyOnProof, Must: `(wipe.entry == lifecycle.entry && wipe.verified) || policy.sanitization == "none"`,
		Doc: "only a verified wipe of this entry, or the recorded waiver, makes a server clean",
	}
	clearOnRecord = engine.Requirement{
		Rule: "ClearOnlyReleased", Must: `claim.released && !claim.bound`,
		Doc: "only a released server may be called clean",
	}
	neverOnAClaim = engine.Requirement{
		Rule: "NeverOnAClaim", Must: `!server.claimRefSet`,
		Doc: "what is ours to boot never takes the place of a claim's boot",
	}
	onlyForTheHolder = engine.Requirement{
		Rule: "OnlyForTheHolder", Must: `claim.bound && !claim.released`,
		Doc: "only the claim that both references and the UID agree on owns power and boot",
	}
	// PowerAsClaimed is for the machine of a claim; PowerOn is for boots of ours.
	powerIsTheHolders = engine.Requirement{
		Rule: "PowerIsTheHolders", Must: `!server.claimRefSet || claim.released`,
		Doc: "a machine on which a claim is written is switched on only as the claim asks, until it is released",
	}
	neverCutAnErase = engine.Requirement{
		Rule: "NeverCutAnErase", Must: `!wipe.running`,
		Doc: "power is never cut in the middle of an erase",
	}
	// A claim is booted for in Reserved, and Dirty is stored before that. What runs in a state before Reserved on a machine
	// that is not Dirty is therefore no tenant's, though the claim may be bound already: it is an agent of ours that has
	// done its work, and it must be off before the tenant's first boot.
	//
	// A claim that is not found, and a reference that is not there any more, say nothing of whose system runs: while Dirty is
	// stored it may be the last holder's.
	notInUse = engine.Requirement{
		Rule: "NotInUse",
		Must: `claim.released || claim.ended || operation.name == "park" || (!claim.bound && !claim.missing && !marked("Dirty")) || ` +
			`(!marked("Dirty") && (lifecycle.state == "Available" || lifecycle.state == "Initial"))`,
		Doc: "a machine that a claim holds, or whose last holder was not released, is powered off only as the claim, its release " +
			"or an operation asks",
	}
	notAStranger = engine.Requirement{
		Rule: "NotAStranger", Must: `bmc.power == "Off" || marked("Managed") || operation.consented`,
		Doc: "a machine found running is not ours to stop",
	}
	// The mark Managed is what lets a machine be stopped, so it has to be earned. A machine that is off runs nothing
	// that could be a tenant's. The mark is stored with the request for the power-on, so that no other write comes
	// between the two.
	earnedByBoot = engine.Requirement{
		Rule:   "EarnedByBoot",
		Must:   `bmc.power == "Off" || (claim.bound && !claim.released) || operation.consented`,
		Awaits: `bmc.power != "On"`,
		Doc:    "a machine becomes ours by a boot of ours from off, by the claim that holds it or by consent, never by being found running",
	}
	// What was begun is brought to its end: an erase that runs, and a machine on its way into one, which may show neither On nor
	// Off yet. A wipe that was only prepared is not begun: a person has his hands in the machine, and it stays off.
	handsOff = engine.Requirement{
		Rule: "HandsOff",
		Must: `!server.ignored && lifecycle.state != "Parked" && lifecycle.state != "Observing" && lifecycle.state != "Maintenance" && ` +
			`lifecycle.state != "Decommissioned" && ` +
			`(!maintenance.granted || wipe.running || (boot.purpose == "Wipe" && bmc.power != "Off"))`,
		Halts: `server.ignored`,
		Doc: "a server that is parked, decommissioned, observed or ignored is left alone, and one in maintenance does only what that " +
			"asks for",
	}
	// A wipe that was booted holds a maintenance back while it may be under way. A machine that goes down is on its way to
	// Off, where the maintenance gets it; until the reading shows that, the machine may be off already, and a request to
	// switch it on would start the erase anew. This is the second lock: powerKnown in controllers/server/plan, the first,
	// asks a BMC for power only on a fresh reading of On or Off. That is code of an effect, which another effect need not share;
	// the rule binds every decision.
	offForMaintenance = engine.Requirement{
		Rule: "OffForMaintenance", Must: `!maintenance.granted || boot.purpose != "Wipe" || bmc.power != "PoweringOff"`,
		Awaits: `bmc.power == "PoweringOff"`,
		Doc:    "a machine that goes down while a maintenance waits for it is not switched on into a wipe again",
	}
	// That a machine was seen running is remembered by the engine, so that neither the name of a state nor the machine's own
	// power cycle makes it ours.
	leftToItself = engine.Requirement{
		Rule: "LeftToItself", Must: `!marked("Stranger")`,
		Doc: "a machine that was found running is left to itself, on or off, until a claim turns out to hold it or a user consents",
	}
	// Entering Observing forgets nothing, but leaving it would: no state after it knows that what runs, or ran last, is not
	// ours. A machine that goes off by itself has not been given to us. A user who forces the server elsewhere by hand
	// takes that upon himself; the rules of the state that he forces it to hold all the same.
	observedUntilConsent = engine.Requirement{
		Rule: "ObservedUntilConsent", Must: `claim.bound || marked("Managed") || operation.consented`,
		Doc: "a machine found running is observed until a claim turns out to hold it or a user consents",
	}
	// The holder of a maintenance works on the machine until he says that he has done. A state of another name would be
	// no such state to a program that looks for it.
	parkedUntilAsked = engine.Requirement{
		Rule: "ParkedUntilAsked", Must: `operation.name == "unpark"`,
		Doc: "a parked server is handed back by the operation unpark only",
	}
	// The holder of a maintenance pulls its plugs and its disks. A server whose status was lost goes back to where it
	// was parked, also if its new holder does otherwise. Who forces a server to Parked by hand has it left alone as it
	// is.
	parkedOnlyOff = engine.Requirement{
		Rule: "ParkedOnlyOff", Must: `bmc.power == "Off" || server.parked`,
		Doc: "a machine is handed to an outsider only once it is seen to be off",
	}
	// Who decommissions a machine takes it out of its rack. It goes with no tenant's data, unless a person answers for
	// its disks.
	decommissionedOnlyAsked = engine.Requirement{
		Rule: "DecommissionedOnlyAsked", Must: `server.decommission`,
		Doc: "a server goes out of service only where operation decommission was asked for",
	}
	decommissionedOnlyOff = engine.Requirement{
		Rule: "DecommissionedOnlyOff", Must: `bmc.power == "Off"`,
		Doc: "a server goes out of service only once its machine is seen to be off",
	}
	decommissionedUnclaimed = engine.Requirement{
		Rule: "DecommissionedUnclaimed", Must: `!server.claimRefSet`,
		Doc: "a server on which a claim is written does not go out of service",
	}
	decommissionedClean = engine.Requirement{
		Rule: "DecommissionedClean", Must: `!marked("Dirty") || wipe.attested`,
		Doc: "a server that may hold somebody's data goes out of service only where a person answers for each of its disks",
	}
	decommissionedUntilAsked = engine.Requirement{
		Rule: "DecommissionedUntilAsked", Must: `operation.name == "recommission"`,
		Doc: "a server that is out of service comes back by the operation recommission only",
	}
	// A boot of ours begins from Off. The boot facts are those of the present entry, so that a boot which stands was prepared
	// while the machine was off and may well run by now; that it is asked for again changes nothing. Power that is not known,
	// or changes just now, is waited out.
	//
	// What runs on a machine that is ours to stop and not Dirty is no tenant's and no stranger's: it is an agent of ours, which
	// may go on in the next state (a burn-in after the probe) or whose boot was deleted meanwhile. Preparing the probe for it
	// changes no tenant's boot, and needs no power cycle.
	probeBeginsFromOff = engine.Requirement{
		Rule: "ProbeBeginsFromOff",
		Must: `bmc.power == "Off" || boot.purpose == "Probe" || ` +
			`(bmc.power == "On" && (marked("Managed") || operation.consented) && !marked("Dirty"))`,
		Awaits: `bmc.power != "On"`,
		Doc:    "a probe is prepared for a machine that is off, and of those that run only for one of ours without data",
	}
	// A machine that is to be erased is Dirty, and what runs on it may be what its last holder booted. So a wipe's boot that
	// was deleted while the machine runs is prepared anew only once the machine is off.
	wipeBeginsFromOff = engine.Requirement{
		Rule: "WipeBeginsFromOff", Must: `bmc.power == "Off" || boot.purpose == "Wipe"`, Awaits: `bmc.power != "On"`,
		Doc: "a wipe is prepared for a machine that is off, never for one that runs",
	}
	orderOnlyWhileOff = engine.Requirement{
		Rule: "OrderOnlyWhileOff", Must: `bmc.power == "Off"`,
		Doc: "what a running machine boots next is never changed",
	}
	// What a maintenance asks for is done where the manager granted it, and nowhere else: a reference that another program or a person wrote
	// asks for nothing that this manager could do. The effect holds there, so that no bundle that names it is halted by that.
	//
	// Nothing of these halts a server on which people work: what does not hold is waited for, and shown.
	maintainsTheSameMachine = engine.Requirement{
		Rule: "IdentityFirst", Must: `!maintenance.ours || bmc.identity == "Same"`, Awaits: `maintenance.ours && bmc.identity != "Same"`,
		Doc: "nothing is written to a machine whose identity is not the Server's",
	}
	maintainsWithConsent = engine.Requirement{
		Rule: RuleNoRebootWithoutConsent, Must: `!maintenance.ours || maintenance.consented`,
		Awaits: `maintenance.ours && !maintenance.consented`,
		Doc:    "a maintenance does nothing to a machine that a claim holds which was neither asked nor told",
	}
	maintainsNoErase = engine.Requirement{
		Rule: "NeverCutAnErase", Must: `!maintenance.ours || (!wipe.running && boot.purpose != "Wipe")`,
		Awaits: `maintenance.ours && (wipe.running || boot.purpose == "Wipe")`,
		Doc:    "power is never cut in the middle of an erase",
	}
	maintainsNoStranger = engine.Requirement{
		Rule: "NotAStranger", Must: `!maintenance.ours || bmc.power == "Off" || marked("Managed") || operation.consented`,
		Awaits: `maintenance.ours && bmc.power != "Off" && !marked("Managed") && !operation.consented`,
		Doc:    "a machine found running is not ours to stop",
	}
	maintainsNothingLeftToItself = engine.Requirement{
		Rule: "LeftToItself", Must: `!maintenance.ours || !marked("Stranger")`, Awaits: `maintenance.ours && marked("Stranger")`,
		Doc: "a machine that was found running is left to itself, on or off, until a claim turns out to hold it or a user consents",
	}
	// In another state other effects have power and boot.
	maintainsInMaintenance = engine.Requirement{
		Rule: "ServedInMaintenance", Must: `!maintenance.ours || lifecycle.state == "Maintenance"`,
		Doc: "what a maintenance asks for is done in state Maintenance only, where nothing else is done",
	}
	forgetOnlyWhenClean = engine.Requirement{
		Rule: "ForgetOnlyWhenClean", Must: `!marked("Dirty")`,
		Doc: "the last holder is remembered until the server is wiped",
	}
)

// enterRules lists what must hold to enter a state. Available is the state that offers a server to claims.
var enterRules = map[engine.State][]engine.Requirement{
	"Available": {neverOfferDirty, leftToItself},
}

// arriveRules lists what must hold to enter a state by a rule.
var arriveRules = map[engine.State][]engine.Requirement{
	"Parked":         {parkedOnlyOff},
	"Decommissioned": {decommissionedOnlyAsked, decommissionedOnlyOff, decommissionedUnclaimed, decommissionedClean},
}

// leaveRules lists what must hold to leave a state by a rule.
var leaveRules = map[engine.State][]engine.Requirement{
	"Observing":      {observedUntilConsent},
	"Parked":         {parkedUntilAsked},
	"Decommissioned": {decommissionedUntilAsked},
}

// destinations are the states that operations lead to. What hands a server to a person outside has to leave it where
// nothing is touched, with any other rules of a bundle: rules, polls, claims and the marker that outlives the status
// know that by name.
var destinations = map[string]engine.State{OperationPark: "Parked", OperationRecommission: "Initial"}

// resumes are the states that are known without the status.
var resumes = map[string]engine.State{"server.parked": "Parked"}

// setRules lists what must hold to set a mark. Dirty needs no reason: it only ever holds something back.
var setRules = map[string][]engine.Requirement{
	MarkManaged: {earnedByBoot, leftToItself},
}

// clearRules lists what must hold to take a mark away.
var clearRules = map[string][]engine.Requirement{
	MarkDirty: {clearOnRecord, clearOnProof},
}

// kept are the marks that no bundle sets or takes away.
var kept = []string{MarkStranger}

// forfeits says what is lost with a mark that rules may clear.
var forfeits = map[string]engine.Forfeit{
	MarkManaged: {
		Loses: "its machine is a stranger's again. While it runs it is not powered off and not offered, and is left to itself " +
			"until a user consents or a claim turns out to hold it",
		Instead: "leave Managed out of clears:; to give a machine away delete its Server",
	},
}
