// SPDX-License-Identifier: Apache-2.0

// Package policies holds the vocabulary in which bundles are written (typed facts, effects, and the safety rules that no
// bundle can switch off), turns API objects into facts, and carries the shipped bundles.
package policies

import "time"

// Facts is everything that a lifecycle rule may ask about one server at one instant. Each field is one fact; its tag
// gives the name, for an enum its words, and the quiet value where that is not the kind's zero. A nil pointer to a group
// never occurs: every group has a value, and what was not observed has a word for it (Unknown, None) or is false.
type Facts struct {
	Server      ServerFacts      `fact:"server"`
	Lifecycle   LifecycleFacts   `fact:"lifecycle"`
	BMC         BMCFacts         `fact:"bmc"`
	Boot        BootFacts        `fact:"boot"`
	Request     RequestFacts     `fact:"request"`
	Claim       ClaimFacts       `fact:"claim"`
	Probe       ProbeFacts       `fact:"probe"`
	Wipe        WipeFacts        `fact:"wipe"`
	Maintenance MaintenanceFacts `fact:"maintenance"`
	Operation   OperationFacts   `fact:"operation"`
	Hardware    HardwareFacts    `fact:"hardware"`
	Inventory   InventoryFacts   `fact:"inventory"`
	Policy      PolicyFacts      `fact:"policy"`
}

// ServerFacts is what the Server object itself says.
type ServerFacts struct {
	ClaimRefSet   bool   `fact:"claimRefSet" doc:"Somebody's claim is written on the server (spec.serverClaimRef)."`
	ReclaimPolicy string `fact:"reclaimPolicy" enum:"Recycle,Retain" quiet:"Recycle" doc:"What happens to the data when the claim ends."`
	Unclaimable   bool   `fact:"unclaimable" doc:"The server is cordoned: no new claim may bind to it."`
	Parked        bool   `fact:"parked" doc:"The durable marker says that the server was parked, and its status was lost."`
	ParkedFrom    string `fact:"parkedFrom" enum:"None,Error,Released" quiet:"None" doc:"Where a parked server was parked, if unpark leads back."`
	Ignored       bool   `fact:"ignored" doc:"Somebody asked by annotation to leave the server alone."`
	Deleting      bool   `fact:"deleting" doc:"The Server object is being deleted."`
	Decommission  bool   `fact:"decommission" doc:"Operation decommission was taken in, and the server is to go out of service."`
}

// LifecycleFacts is where the server stands in its lifecycle.
type LifecycleFacts struct {
	State   string        `fact:"state" enum:"*" doc:"The present state."`
	Entry   int64         `fact:"entry" quiet:"1" doc:"How many moves there were so far; reports and proofs belong to one entry."`
	Age     time.Duration `fact:"age,age" doc:"Time counted in this entry; outages of the manager and of the BMC do not count."`
	Retries int64         `fact:"retries" doc:"How many retries there were since the last stable state."`
	Marks   []string      `fact:"marks" doc:"History that cannot be observed; ask with marked(\"Dirty\")."`
}

// BMCFacts is the last coherent read of the server's BMC.
type BMCFacts struct {
	Reachable   bool   `fact:"reachable" quiet:"true" doc:"The last read of the system succeeded."`
	Power       string `fact:"power" enum:"On,Off,Paused,PoweringOn,PoweringOff,Unknown" quiet:"Off" doc:"The machine's power; Unknown is not Off."`
	Health      string `fact:"health" enum:"OK,Warning,Critical,Unknown" quiet:"OK" doc:"Health of its machine; Critical by what stops inspection."`
	Identity    string `fact:"identity" enum:"Same,Other,Unknown" quiet:"Same" doc:"Whether the system answering is the one that the Server names."`
	OverrideSet bool   `fact:"overrideSet" doc:"A boot override is set on the system that the Server names."`
}

// BootFacts is the boot configuration that our own effect wrote for this entry, known by its UID.
type BootFacts struct {
	Purpose string `fact:"purpose" enum:"None,Probe,Wipe,Claim,Maintenance" doc:"What the present boot configuration is for."`
	State   string `fact:"state" enum:"None,Pending,Ready,Error" doc:"What the boot operator says of it."`
	Ready   bool   `fact:"ready" doc:"The boot operator has prepared exactly what our effect asked for."`
	Unheard bool   `fact:"unheard" doc:"The machine was on for boot.firstWord, and the agent that this entry booted was not heard."`
}

// RequestFacts is what became of the power change that was last asked of the BMC in this entry.
type RequestFacts struct {
	Refused int64 `fact:"refused" doc:"How often in a row the BMC surely refused this entry's power change, with the same answer."`
}

// ClaimFacts is the claim that holds, or last held, the server.
type ClaimFacts struct {
	Bound    bool   `fact:"bound" doc:"Both references and the claim's UID agree, and the claim is not released."`
	Released bool   `fact:"released" doc:"A durable release record names the last holder's UID; kept until the wipe. Never inferred from absence."`
	Ended    bool   `fact:"ended" doc:"A release is recorded, its grace is not over, and releasePower is Immediate: power goes, data stays."`
	Binding  bool   `fact:"binding" doc:"The claim has the UID recorded, and its own reference is still to be written."`
	Missing  bool   `fact:"missing" doc:"The reference is set, no such claim is found, and there is no release record. This is unknown, not ended."`
	Power    string `fact:"power" enum:"On,Off,None" quiet:"None" doc:"The power that the bound claim asks for; None without a bound claim."`
}

// ProbeFacts is the in-band report.
type ProbeFacts struct {
	Entry     int64 `fact:"entry" quiet:"-1" doc:"The entry that the last report belongs to; -1 without a report."`
	Complete  bool  `fact:"complete" doc:"The last report was accepted and is complete."`
	DataFound bool  `fact:"dataFound" doc:"The report of this entry shows a disk that offer.accepts refuses, or hidden storage that fails a wipe."`
}

// WipeFacts is the progress and the proof of an erase.
type WipeFacts struct {
	Entry       int64         `fact:"entry" quiet:"-1" doc:"The entry that the last word about a wipe belongs to; -1 without one."`
	Running     bool          `fact:"running" doc:"A wipe agent, of whatever entry, is erasing and was heard of lately: power must not be cut."`
	Verified    bool          `fact:"verified" doc:"Every disk was erased and checked."`
	Failed      bool          `fact:"failed" doc:"At least one disk could not be erased or checked."`
	ExcusedOnly bool          `fact:"excusedOnly" doc:"The wipe saw disks, and the policy excuses each of them: nothing was erased."`
	Attested    bool          `fact:"attested" doc:"A person answers for every known disk, and no holder is known who was not released."`
	Budget      time.Duration `fact:"budget" quiet:"4h" doc:"How long a wipe of this server's disks may take; 4h where its disks are not known."`
}

// MaintenanceFacts is what maintenance asks of the server.
type MaintenanceFacts struct {
	Granted   bool `fact:"granted" doc:"The server names a maintenance (spec.serverMaintenanceRef), found or not; over once that is cleared."`
	Ours      bool `fact:"ours" doc:"This manager granted it: the maintenance that the server names exists, and has the UID on record."`
	Consented bool `fact:"consented" quiet:"true" doc:"No claim is written on the server, it is released, or the one on record was asked."`
}

// OperationFacts is what a user asked for by annotation.
type OperationFacts struct {
	Name      string `fact:"name" enum:"@operations" doc:"The operation in progress."`
	Entry     int64  `fact:"entry" quiet:"-1" doc:"The entry in which it was asked for; -1 without one."`
	Reset     bool   `fact:"reset" doc:"The operation in progress asks for one reset or power change."`
	Consented bool   `fact:"consented" doc:"Somebody agreed that a machine found running may be managed, by annotation or bundle setting."`
}

// HardwareFacts is the inventory, summarised; zero and empty where not known.
type HardwareFacts struct {
	Manufacturer string `fact:"manufacturer" doc:"The maker of the system."`
	Model        string `fact:"model" doc:"The model of the system."`
	MemoryGiB    int64  `fact:"memoryGiB" doc:"Main memory in GiB, rounded down."`
	Cores        int64  `fact:"cores" doc:"Processor cores."`
	Disks        int64  `fact:"disks" doc:"Number of disks that the probe saw."`
}

// InventoryFacts is what the last report shows otherwise than the one before.
type InventoryFacts struct {
	Changed bool `fact:"changed" doc:"The last two reports differ: a part came, went or has another value. The ServerInventory lists which."`
	Lost    bool `fact:"lost" doc:"A part of the report before is not in the last one, such as a DIMM or a disk."`
}

// PolicyFacts is what the bundle's settings say.
type PolicyFacts struct {
	Sanitization string `fact:"sanitization" enum:"required,none" doc:"none waives the wipe between two holders; the revision shows it plainly."`
}
