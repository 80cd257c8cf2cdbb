// SPDX-License-Identifier: Apache-2.0

package explorer

import (
	"time"

	"github.com/google/cel-go/cel"
)

// fact names one fact by its place in the vocabulary.
type fact uint8

// The facts that change. The others always have their one value.
const (
	claimRefSet fact = iota
	reclaimPolicy
	unclaimable
	parked
	wasIn
	ignored
	deleting
	decommission
	state
	entry
	age
	retries
	marks
	reachable
	power
	health
	identity
	overrideSet
	bootPurpose
	bootState
	bootReady
	bootUnheard
	requestRefused
	claimBound
	claimReleased
	claimEnded
	claimBinding
	claimMissing
	claimPower
	probeEntry
	probeComplete
	dataFound
	wipeEntry
	wipeRunning
	wipeVerified
	wipeFailed
	wipeExcusedOnly
	attested
	wipeBudget
	maintenance
	maintenanceOurs
	maintenanceConsented
	operationName
	operationEntry
	operationReset
	consented
	manufacturer
	model
	memory
	cores
	disks
	inventoryChanged
	inventoryLost
	sanitization
	factCount
)

// factType is a fact's name and type, and the values that it can have here. A reading stores the place of a value only.
type factType struct {
	name   string
	kind   *cel.Type
	values []any
}

// Entries: what is asked of the present one is told from what is left of a former one, and from nothing.
const (
	formerEntry  = int64(4)
	presentEntry = int64(5)
)

var (
	truths  = []any{false, true}
	entries = []any{int64(-1), formerEntry, presentEntry}
)

// defaultWipeBudget is what a wipe may take where the disks are not known.
const defaultWipeBudget = 4 * time.Hour

// vocabulary lists the facts. The values of state, age and marks depend on the bundle, see Machine.value.
var vocabulary = [factCount]factType{
	claimRefSet:   {"server.claimRefSet", cel.BoolType, truths},
	reclaimPolicy: {"server.reclaimPolicy", cel.StringType, []any{"Recycle", "Retain"}},
	unclaimable:   {"server.unclaimable", cel.BoolType, truths},
	parked:        {"server.parked", cel.BoolType, truths},
	wasIn:         {"server.parkedFrom", cel.StringType, []any{"None", "Error", "Released"}},
	ignored:       {"server.ignored", cel.BoolType, truths},
	deleting:      {"server.deleting", cel.BoolType, truths},
	decommission:  {"server.decommission", cel.BoolType, truths},
	state:         {"lifecycle.state", cel.StringType, nil},
	entry:         {"lifecycle.entry", cel.IntType, []any{presentEntry}},
	age:           {"lifecycle.age", cel.DurationType, nil},
	retries:       {"lifecycle.retries", cel.IntType, nil},
	marks:         {"lifecycle.marks", cel.ListType(cel.StringType), nil},
	reachable:     {"bmc.reachable", cel.BoolType, truths},
	power:         {"bmc.power", cel.StringType, []any{"Unknown", "Off", "On"}},
	health:        {"bmc.health", cel.StringType, []any{"Unknown", "OK", "Critical"}},
	identity:      {"bmc.identity", cel.StringType, []any{"Same", "Unknown", "Other"}},
	overrideSet:   {"bmc.overrideSet", cel.BoolType, truths},
	bootPurpose:   {"boot.purpose", cel.StringType, []any{"None", "Probe", "Wipe", "Claim"}},
	bootState:     {"boot.state", cel.StringType, []any{"None", "Pending", "Ready"}},
	bootReady:     {"boot.ready", cel.BoolType, truths},
	// Every agent of this world is heard, or its machine is taken for dead; nor does any disk hold data before the first claim.
	bootUnheard:          {"boot.unheard", cel.BoolType, []any{false}},
	requestRefused:       {"request.refused", cel.IntType, []any{int64(0), int64(4)}},
	claimBound:           {"claim.bound", cel.BoolType, truths},
	claimReleased:        {"claim.released", cel.BoolType, truths},
	claimEnded:           {"claim.ended", cel.BoolType, truths},
	claimBinding:         {"claim.binding", cel.BoolType, truths},
	claimMissing:         {"claim.missing", cel.BoolType, truths},
	claimPower:           {"claim.power", cel.StringType, []any{"None", "On", "Off"}},
	probeEntry:           {"probe.entry", cel.IntType, entries},
	probeComplete:        {"probe.complete", cel.BoolType, truths},
	dataFound:            {"probe.dataFound", cel.BoolType, []any{false}},
	wipeEntry:            {"wipe.entry", cel.IntType, entries},
	wipeRunning:          {"wipe.running", cel.BoolType, truths},
	wipeVerified:         {"wipe.verified", cel.BoolType, truths},
	wipeFailed:           {"wipe.failed", cel.BoolType, truths},
	wipeExcusedOnly:      {"wipe.excusedOnly", cel.BoolType, []any{false}}, // no disk of this world is excused
	attested:             {"wipe.attested", cel.BoolType, truths},
	wipeBudget:           {"wipe.budget", cel.DurationType, []any{defaultWipeBudget}},
	maintenance:          {"maintenance.granted", cel.BoolType, truths},
	maintenanceOurs:      {"maintenance.ours", cel.BoolType, truths},
	maintenanceConsented: {"maintenance.consented", cel.BoolType, truths},
	operationName:        {"operation.name", cel.StringType, words(operationNames[:])},
	operationEntry:       {"operation.entry", cel.IntType, entries},
	operationReset:       {"operation.reset", cel.BoolType, truths},
	consented:            {"operation.consented", cel.BoolType, truths},
	manufacturer:         {"hardware.manufacturer", cel.StringType, []any{""}},
	model:                {"hardware.model", cel.StringType, []any{""}},
	memory:               {"hardware.memoryGiB", cel.IntType, []any{int64(0)}},
	cores:                {"hardware.cores", cel.IntType, []any{int64(0)}},
	disks:                {"hardware.disks", cel.IntType, []any{int64(0)}},
	inventoryChanged:     {"inventory.changed", cel.BoolType, []any{false}},
	inventoryLost:        {"inventory.lost", cel.BoolType, []any{false}},
	sanitization:         {"policy.sanitization", cel.StringType, []any{"required", "none"}},
}

func words(all []string) []any {
	values := make([]any, 0, len(all))
	for _, w := range all {
		values = append(values, w)
	}
	return values
}

// reading is what a lifecycle is shown of a world: for each fact the place of its value.
type reading [factCount]uint8

func bit(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}

// read makes the facts of a world, as an honest observer would.
func (m *Machine) read(w *World) reading {
	var r reading
	r[state], r[age], r[retries], r[marks] = w.State, w.Age, w.Retries, w.Marks
	if r[parked] = bit(w.ParkNote && w.Lost); m.in(w, "Parked") {
		r[wasIn] = w.From
	}
	r[decommission], r[attested] = bit(w.Leaving), bit(w.answered())
	r[sanitization] = bit(m.waived)
	r[consented] = bit(w.Consent || m.takesOver)
	r[maintenance], r[maintenanceOurs], r[maintenanceConsented] = bit(w.Serviced), bit(w.Granted), bit(w.consented())
	r[bootPurpose], r[bootReady] = uint8(w.Boot), bit(w.BootReady)
	if w.Boot != Nothing {
		r[bootState] = 1 + r[bootReady]
	}
	r[requestRefused] = bit(w.Refused)
	r.readBMC(w)
	r.readClaim(w)
	r[claimEnded] = bit(w.Record && w.Grace && m.powerGoes)
	r.readReports(w)
	if w.Op != NoOperation {
		r[operationName], r[operationEntry] = uint8(w.Op), entryOf(w.OpOld)
		r[operationReset] = bit(w.Op.resets())
	}
	return r
}

// entryOf is the place in entries.
func entryOf(old bool) uint8 { return 2 - bit(old) }

// readBMC: power and health are told only of the Server's own machine.
func (r *reading) readBMC(w *World) {
	r[reachable] = bit(w.BMC != Silent)
	switch w.BMC {
	case Silent:
		r[identity] = 1
	case OtherMachine:
		r[identity] = 2
	case Answers:
		r[power], r[health] = 1+bit(w.On), 1+bit(w.Critical)
	}
}

func (r *reading) readClaim(w *World) {
	r[claimRefSet], r[reclaimPolicy] = bit(w.Ref), bit(w.Retain)
	binding := w.Claim == Binding && w.Ref && !w.Record
	r[claimBound], r[claimReleased], r[claimBinding] = bit(w.bound()), bit(w.released()), bit(binding)
	r[claimMissing] = bit(w.Ref && !w.Record && !w.bound() && !binding)
	if w.bound() {
		r[claimPower] = 1 + bit(w.WantsOff)
	}
}

func (r *reading) readReports(w *World) {
	r[probeEntry], r[probeComplete] = uint8(w.Report), bit(w.Report != NoReport)
	if w.Wipe == NoWipe {
		return
	}
	r[wipeEntry] = entryOf(w.OldWipe)
	r[wipeRunning], r[wipeVerified], r[wipeFailed] = bit(w.Wipe == Erasing), bit(w.Wipe == Verified), bit(w.Wipe == FailedWipe)
}
