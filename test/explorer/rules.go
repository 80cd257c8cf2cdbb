// SPDX-License-Identifier: Apache-2.0

package explorer

// Rule is what a lifecycle must not break, whatever happens.
type Rule string

// The rules. Those that the engine knows too carry its name for them; what they mean here is what their comment says, of
// the machine and its data and not of facts.
const (
	// AbsenceIsNotEvidence: nothing is erased, and no claim's reference cleared, that nobody released.
	AbsenceIsNotEvidence Rule = "AbsenceIsNotEvidence"
	// NeverWipeClaimed: nothing is erased while a claim holds the machine.
	NeverWipeClaimed Rule = "NeverWipeClaimed"
	// NeverWipeRetained: nothing is erased, and no reference cleared, while the data is retained.
	NeverWipeRetained Rule = "NeverWipeRetained"
	// NeverOfferDirty: no machine is offered with a holder's data on its disks.
	NeverOfferDirty Rule = "NeverOfferDirty"
	// ClearOnlyOnProof: Dirty is not cleared while a holder's data is on the disks.
	ClearOnlyOnProof Rule = "ClearOnlyOnProof"
	// ClearOnlyReleased: Dirty is not cleared while the data is that of a holder whom nobody released.
	ClearOnlyReleased Rule = "ClearOnlyReleased"
	// ForgetOnlyWhenClean: the holder of the data on the disks is not forgotten.
	ForgetOnlyWhenClean Rule = "ForgetOnlyWhenClean"
	// NeverOnAClaim: no probe is prepared or booted, and no boot or holder taken away, on a machine that a claim is written on.
	NeverOnAClaim Rule = "NeverOnAClaim"
	// OnlyForTheHolder: power and boot follow a claim only while it holds the machine.
	OnlyForTheHolder Rule = "OnlyForTheHolder"
	// NeverCutAnErase: power is not taken in the middle of an erase.
	NeverCutAnErase Rule = "NeverCutAnErase"
	// NotInUse: what a tenant runs is stopped by the word of the claim, its release, an operation or consent only.
	NotInUse Rule = "NotInUse"
	// NotAStranger: what a stranger runs is not stopped.
	NotAStranger Rule = "NotAStranger"
	// EarnedByBoot: a machine on which a stranger runs is not called ours.
	EarnedByBoot Rule = "EarnedByBoot"
	// HandsOff: nothing is done to a machine that is parked or out of service, that a maintenance has, or that was seen running and is
	// not ours.
	HandsOff Rule = "HandsOff"
	// ParkedOnlyOff: no machine that runs is handed to somebody outside.
	ParkedOnlyOff Rule = "ParkedOnlyOff"
	// DecommissionedOnlyAsked: no machine goes out of service that nobody asked for.
	DecommissionedOnlyAsked Rule = "DecommissionedOnlyAsked"
	// DecommissionedOnlyOff: no machine that runs goes out of service.
	DecommissionedOnlyOff Rule = "DecommissionedOnlyOff"
	// DecommissionedUnclaimed: no machine goes out of service that a claim is written on.
	DecommissionedUnclaimed Rule = "DecommissionedUnclaimed"
	// DecommissionedClean: no machine goes out of service with a holder's data for which nobody answers.
	DecommissionedClean Rule = "DecommissionedClean"
	// RunningBootKept: no agent's boot is prepared for a machine on which a tenant or a stranger runs.
	RunningBootKept Rule = "RunningBootKept"
	// OrderOnlyWhileOff: the boot order of a machine on which a tenant or a stranger runs is not changed.
	OrderOnlyWhileOff Rule = "OrderOnlyWhileOff"
	// NoDeadline: with time alone, every state that is not stable is left.
	NoDeadline Rule = "NoDeadline"
	// NeverRests: with time alone, every server comes to rest in a stable state.
	NeverRests Rule = "NeverRests"
	// Spin: moves come to an end while nothing happens.
	Spin Rule = "Spin"
	// Quarrel: the effects of a state do not undo each other for ever.
	Quarrel Rule = "Quarrel"
)

// Rules lists every rule.
var Rules = []Rule{AbsenceIsNotEvidence, NeverWipeClaimed, NeverWipeRetained, NeverOfferDirty, ClearOnlyOnProof, ClearOnlyReleased,
	ForgetOnlyWhenClean, NeverOnAClaim, OnlyForTheHolder, NeverCutAnErase, NotInUse, NotAStranger, EarnedByBoot, HandsOff, ParkedOnlyOff,
	DecommissionedOnlyAsked, DecommissionedOnlyOff, DecommissionedUnclaimed, DecommissionedClean,
	RunningBootKept, OrderOnlyWhileOff, NoDeadline, NeverRests, Spin, Quarrel}

// Safety says whether a rule guards machines and data, rather than progress.
func (r Rule) Safety() bool {
	switch r {
	case NoDeadline, NeverRests, Spin, Quarrel:
		return false
	default:
		return true
	}
}

// breach is a rule that was broken, and how.
type breach struct {
	rule Rule
	text string
}
