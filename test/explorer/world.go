// SPDX-License-Identifier: Apache-2.0

package explorer

// World is one server with its machine, its claim and everybody's wishes, at one instant. It is small and comparable, so
// that worlds that were seen before are known again. One holder is told from the next only by whether what is on the
// disks was released: two holders never have data on one machine in a world without violations.
type World struct {
	// The Server's status.
	State   uint8
	Age     uint8 // index of the last deadline that passed in this entry
	Retries uint8
	Marks   uint8
	Lost    bool  // the status is gone, and the lifecycle begins anew
	From    uint8 // where it was parked: 1 in Error, 2 in Released, 0 elsewhere
	Op      Operation
	OpOld   bool // asked for in a former entry

	// The Server's spec and annotations.
	Ref, Retain, Record, Holder, Consent, Serviced, ParkNote bool
	Grace                                                    bool // of the release that is recorded: it has not taken effect
	Leaving                                                  bool // to go out of service
	Attested                                                 bool // a person answers for each disk

	// The maintenance that the Server names, as Serviced says: whether we granted it, whether the claim that holds the machine was asked, and
	// whether it asks for power Off rather than On.
	Granted, Agreed, ServiceOff bool

	// The claim, whether or not the Server names it.
	Claim    Claim
	WantsOff bool

	// The boot configuration of this entry.
	Boot      Image
	BootReady bool
	// Refused says that the BMC refused the power change of this entry again and again.
	Refused bool

	// The machine.
	On       bool
	Runs     Image
	OldAgent bool // the agent that runs was booted in a former entry
	Data     Data
	Critical bool
	BMC      BMC

	// What agents reported.
	Report  Report
	Wipe    Wipe
	OldWipe bool

	// What only the judge remembers.
	Ours  bool // booted by us from off, taken over by consent, or booted for its claim
	Kept  bool // an inventory tells that it was booted by us
	Noted bool // what outlives the status tells of a holder's data
	Given bool // handed to somebody outside by the operation park, and not handed back by unpark since
	Gone  bool // taken out of service, and not back by the operation recommission since
	Seen  bool // seen running and not ours, and since then neither consented to, nor held by a claim, nor forced upon us
}

// Image is what a machine boots or runs.
type Image uint8

// What a machine boots or runs. Idle is something harmless on a machine of ours: a firmware shell, an agent that has
// nothing to do any more.
const (
	Nothing Image = iota
	Probe
	Wiper
	Tenant
	Stranger
	Idle
)

// Claim is what became of the claim.
type Claim uint8

// The lives of a claim. Vanished is gone without a release.
const (
	NoClaim Claim = iota
	Binding
	Bound
	Vanished
)

// Data is whose data is on the disks.
type Data uint8

// Whose data is on the disks: nobody's, a holder's who was never released, or a former holder's.
const (
	NoData Data = iota
	HeldData
	FormerData
)

// BMC is who answers in the BMC's place.
type BMC uint8

// Who answers.
const (
	Answers BMC = iota
	Silent
	OtherMachine
)

// Report is the last report of the probe.
type Report uint8

// The last report.
const (
	NoReport Report = iota
	OldReport
	CurrentReport
)

// Wipe is the last word about a wipe.
type Wipe uint8

// The last word about a wipe. Erasing is heard of; an agent that falls silent is taken for dead.
const (
	NoWipe Wipe = iota
	Erasing
	Verified
	FailedWipe
)

// Operation is what somebody asked for by annotation.
type Operation uint8

// What somebody asked for.
const (
	NoOperation Operation = iota
	Park
	Unpark
	Retry
	Recommission
	PowerCycle
	ForceOff
	ForceOn
	HardRestart
	GracefulRestart
)

var operationNames = [...]string{"None", "park", "unpark", "retry", "recommission", "power-cycle-server", "force-off-server", "force-on-server",
	"hard-restart-server", "graceful-restart-server"}

// resets says that an operation asks for a reset or a power change.
func (o Operation) resets() bool { return o >= PowerCycle }

// Bits of World.Marks. A bundle may have others.
const (
	managed uint8 = 1 << iota
	dirty
	foreign // Stranger: seen running, and not ours
	firstOwnMark
)

// bound says that both references agree, and that no release is recorded.
func (w *World) bound() bool { return w.Claim == Bound && w.Ref && !w.Record }

// released says that a release is recorded, and has taken effect.
func (w *World) released() bool { return w.Record && !w.Grace }

// consented says that nobody holds the machine but who agreed to its maintenance.
func (w *World) consented() bool { return !w.Ref || w.Record || w.Agreed }

// retained says that the data is to be kept.
func (w *World) retained() bool { return w.Ref && w.Retain }

// answered says that a person answers for each disk, and that no holder is known who was not released.
func (w *World) answered() bool {
	return w.Attested && (w.released() || !w.Holder && !w.Record && !w.Ref)
}

// erasing says that an agent is erasing disks at this moment.
func (w *World) erasing() bool { return w.On && w.Runs == Wiper && w.Wipe == Erasing }

// reached says that the BMC answers for the Server's own machine, so that the shell writes to it.
func (w *World) reached() bool { return w.BMC == Answers }

func (w *World) shutDown() {
	w.On, w.Runs, w.OldAgent = false, Nothing, false
}

// run starts an image. What a claim boots writes to the disks.
func (w *World) run(i Image) {
	w.On, w.Runs, w.OldAgent = true, i, false
	if i == Tenant && w.Data != HeldData && w.Claim == Bound {
		w.Data = HeldData
	}
}
