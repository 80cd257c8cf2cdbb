// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"fmt"

	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/bundle"
)

// axioms says which combinations of facts cannot occur, because of how Observation makes them.
var axioms = []engine.Axiom{
	{Holds: `!claim.bound || (server.claimRefSet && !claim.released && !claim.binding && !claim.missing)`,
		Doc: "A claim is bound by a reference that it answers, while no release is recorded."},
	{Holds: `!claim.binding || (server.claimRefSet && !claim.released && !claim.missing)`,
		Doc: "A claim binds by a reference that it has not answered yet, while no release is recorded."},
	{Holds: `!claim.missing || (server.claimRefSet && !claim.released)`,
		Doc: "A claim is missing only where a reference names one and no release is recorded."},
	{Holds: `!claim.ended || (!claim.released && !claim.bound && !claim.binding && !claim.missing)`,
		Doc: "A claim that ended holds nothing, and its release has not taken effect within the grace."},
	{Holds: `claim.bound == (claim.power != "None")`,
		Doc: "A bound claim always says what power it wants, and no other claim is asked."},
	{Holds: `bmc.reachable || bmc.identity == "Unknown"`,
		Doc: "A BMC that does not answer is not known."},
	{Holds: `bmc.identity == "Same" || (bmc.power == "Unknown" && bmc.health == "Unknown" && !bmc.overrideSet)`,
		Doc: "What another machine, or one that is not known, says of itself is true of that one alone."},
	{Holds: `!wipe.running || (!wipe.verified && !wipe.failed)`,
		Doc: "A wipe that runs has not ended."},
	{Holds: `!wipe.verified || !wipe.failed`,
		Doc: "A wipe ends in one way."},
	{Holds: `!wipe.excusedOnly || wipe.verified`,
		Doc: "A wipe that erased nothing, because the policy excuses every disk, ended well."},
	{Holds: `wipe.entry != -1 || (!wipe.running && !wipe.verified && !wipe.failed)`,
		Doc: "Without a word about a wipe there is none."},
	{Holds: `probe.entry != -1 || !probe.complete`,
		Doc: "Without a report none is complete."},
	{Holds: `(boot.purpose == "None") == (boot.state == "None")`,
		Doc: "A boot configuration that exists is for something, and the boot operator says something of it."},
	{Holds: `!boot.ready || boot.state == "Ready"`,
		Doc: "Only a boot configuration of which the boot operator says Ready is ready."},
	{Holds: `!boot.unheard || ((boot.purpose == "Probe" || boot.purpose == "Wipe") && wipe.entry != lifecycle.entry && ` +
		`(probe.entry != lifecycle.entry || !probe.complete))`,
		Doc: "Only an agent that was booted is waited for, and a report or a word about a wipe of this entry ends that."},
	{Holds: `!probe.dataFound || (probe.entry == lifecycle.entry && probe.complete)`,
		Doc: "What disks hold is told by the report of this entry alone."},
	{Holds: `!inventory.lost || inventory.changed`,
		Doc: "A part that is gone is a change."},
	{Holds: `operation.reset == (operation.name in ["graceful-restart-server", "hard-restart-server", "power-cycle-server", ` +
		`"force-off-server", "force-on-server"])`,
		Doc: "An operation asks for a reset or a power change by its name."},
	{Holds: `operation.name != "None" || operation.entry == -1`,
		Doc: "An operation that is not there was asked for in no entry."},
	{Holds: `!maintenance.ours || maintenance.granted`,
		Doc: "A maintenance of ours is one that the server names."},
	{Holds: `maintenance.consented || (server.claimRefSet && !claim.released)`,
		Doc: "Only a claim that is written on the server and not released can lack consent."},
	{Holds: `lifecycle.entry >= 0 && lifecycle.retries >= 0`,
		Doc: "Moves and retries are counted from zero."},
	{Holds: `!marked("Stranger") || !(marked("Managed") || operation.consented || claim.bound)`,
		Doc: "A machine of ours, of a claim or by consent is no stranger."},
	{Holds: `!server.parked || (lifecycle.entry == 0 && lifecycle.retries == 0)`,
		Doc: "The marker counts only where the status was lost, and the counts with it."},
}

// afterMove says what of the facts a move itself changes: the entry has just begun.
var afterMove = []engine.Axiom{
	{Holds: `probe.entry != lifecycle.entry`,
		Doc: "A report belongs to the entry for which its token was made."},
	{Holds: `wipe.entry != lifecycle.entry`,
		Doc: "A wipe's proof belongs to the entry for which its token was made."},
	{Holds: `operation.entry != lifecycle.entry`,
		Doc: "An operation belongs to the entry in which it was asked for."},
	{Holds: `boot.purpose == "Claim" || (boot.purpose == "None" && boot.state == "None" && !boot.ready)`,
		Doc: "A boot configuration for a probe or a wipe belongs to the entry that wrote it."},
	{Holds: `!boot.unheard && !probe.dataFound`,
		Doc: "What an agent says, or does not, belongs to the entry that booted it."},
	{Holds: `!server.parked`,
		Doc: "Once a server has a lifecycle, its state says whether it is parked."},
}

// entries are the states in which another operator of this API may leave a server; it is adopted there.
var entries = map[engine.State]string{
	"Initial":     adoptedThere,
	"Discovery":   adoptedThere,
	"Available":   adoptedThere,
	"Reserved":    adoptedThere,
	"Released":    adoptedThere,
	"Maintenance": adoptedThere,
	"Parked":      adoptedThere,
	"Error":       adoptedThere,
}

const adoptedThere = "adopted from another operator of this API"

// AxiomsOf says what a bundle's settings make of the facts of every server that it governs.
func AxiomsOf(s bundle.Settings) []engine.Axiom {
	all := []engine.Axiom{{Holds: fmt.Sprintf("policy.sanitization == %q", s.Sanitization), Doc: "The bundle's settings say so."}}
	if s.FirstSeen == bundle.FirstSeenManage {
		all = append(all, engine.Axiom{Holds: "operation.consented", Doc: "The bundle's settings consent for every machine that is found running."})
	}
	if s.ReleasePower != bundle.PowerImmediate {
		all = append(all, engine.Axiom{Holds: "!claim.ended", Doc: "The bundle's settings keep the machine on until the grace is over."})
	}
	return all
}
