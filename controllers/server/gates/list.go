// SPDX-License-Identifier: Apache-2.0

package gates

// The names of the gates.
const (
	RestoredDoubt   = "RestoredDoubt"
	FirstWord       = "FirstWord"
	Halt            = "Halt"
	MachineChanging = "MachineChanging"
	PowerUnknown    = "PowerUnknown"
	CanaryPlace     = "CanaryPlace"
	AdoptionTurn    = "AdoptionTurn"
	InheritedData   = "InheritedData"
	StrangerNoted   = "StrangerNoted"
	DataNoted       = "DataNoted"
	FreshReading    = "FreshReading"
	PowerOnUnderWay = "PowerOnUnderWay"
	StrangerTaken   = "StrangerTaken"
	EntryVoided     = "EntryVoided"
	StaleRead       = "StaleRead"
	FleetControl    = "FleetControl"
	Guard           = "Guard"
	RivalBMC        = "RivalBMC"
)

// When says to which decisions a gate applies.
type When uint8

// The kinds of decisions.
const (
	// OnDecision: what the lifecycle decides, or an operation forces.
	OnDecision When = iota
	// OnHalt: a decision that is halted, which another revision may end.
	OnHalt
	// OnAction: an action on the machine, or a write that cannot be undone, when an effect is about to do it.
	OnAction
)

// Gate holds a server back for one reason.
type Gate struct {
	Name string
	// Means says in one sentence what the gate waits for.
	Means string
	When  When
	// holds says that the gate holds the decision; nil for a gate on an action, which the reconcile scope asks.
	holds func(*run) bool
}

// list is every gate, in the order in which they are asked. The order is safety: the first that holds a decision ends it.
var list = []Gate{
	{RestoredDoubt, "While a server is in doubt since the cluster's store was restored, it is left as it is, or its disks are read first.",
		OnDecision, (*run).restoredDoubt},
	{RestoredDoubt + "Halted", "No other revision takes over a halted server that is in doubt since the cluster's store was restored.",
		OnHalt, (*run).doubtHalts},
	{FirstWord, "A server stays in the initial state until this manager has heard from its BMC.", OnDecision, (*run).awaitsFirstWord},
	{Halt, "A halted server stays halted until its halt is stored and another revision can end it.", OnHalt, (*run).stays},
	{MachineChanging, "No other revision takes over while a wipe runs, the BMC owes an answer, or a power change may still come true.",
		OnHalt, (*run).machineChanges},
	{PowerUnknown, "A state that boots an image of metalaw is entered anew only once the power of the machine is known.",
		OnHalt, (*run).powerUnknown},
	{CanaryPlace, "A server comes under a canary only when the canary has a place for it.", OnHalt, (*run).noPlace},
	{AdoptionTurn, "Servers come under another revision at the pace of --adoption-rate.", OnHalt, (*run).noTurn},
	{InheritedData, "A lifecycle begins on a machine with a past only once its inventory says that it may hold data.",
		OnDecision, (*run).inheritsUnstored},
	{StrangerNoted, "Whether the machine was found running is stored in its inventory before anything is done.",
		OnDecision, (*run).strangerUnstored},
	{DataNoted, "A server whose disks hold data that the policy does not accept is marked Dirty in its inventory before it moves on.",
		OnDecision, (*run).dataUnstored},
	{EntryVoided, "A server for whose entry two agents reported begins anew, with a new token. After a second time it goes to Error.",
		OnDecision, (*run).entryVoided},
	{FreshReading, "A move that relies on the BMC waits for a reading that is recent and was begun after the last request.",
		OnDecision, (*run).staleReading},
	{PowerOnUnderWay, "A move that finds the machine off waits until a power-on that was asked for shows or lapses.",
		OnDecision, (*run).powerOnUnderWay},
	{StrangerTaken, "A forced move waits until its inventory no longer says that the machine was found running.",
		OnDecision, (*run).strangerForced},
	// Budgets are counted here, when permission is given, and not when the guard asks again.
	{FleetControl, "Observe-only mode, a freeze, the breaker or an exhausted budget holds the action back; condition Withheld says which.",
		OnAction, nil},
	{RivalBMC, "No agent is booted while another BMC shows the UUID of the server, until the machine is proved.", OnAction, nil},
	{StaleRead, "A write that cannot be undone waits until the cache shows what is stored.", OnAction, nil},
	// The guard reads uncached, after queueing: what is absent in a cache is not absent.
	{Guard, "Right before each write to a BMC, the server, its claim, its inventory and the freezes are read again past the cache.",
		OnAction, nil},
}

// List is every gate, in the order in which they are asked.
func List() []Gate { return append([]Gate(nil), list...) }
