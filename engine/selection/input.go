// SPDX-License-Identifier: Apache-2.0

package selection

import "github.com/metalaw/metalaw/engine/internal/regosandbox"

// Input is what the rules of a selection policy see as `input`. The tags "doc" are the reference that authors read; the
// schema against which policies are compiled is made from these structs.
type Input struct {
	Claim     Claim     `json:"claim" doc:"The claim that asks for a server."`
	Candidate Candidate `json:"candidate" doc:"The server that is looked at: available, off, not claimed, and matching the claim's selector."`
	Fleet     Fleet     `json:"fleet" doc:"Counts over all servers, for spreading."`
}

// Claim is what a policy may know of a ServerClaim.
type Claim struct {
	Namespace   string            `json:"namespace" doc:"Namespace of the claim."`
	Name        string            `json:"name" doc:"Name of the claim."`
	Labels      map[string]string `json:"labels" doc:"Labels of the claim."`
	Annotations map[string]string `json:"annotations" doc:"Annotations of the claim."`
	Priority    int64             `json:"priority" doc:"Higher is served first."`
	Image       string            `json:"image" doc:"Image that the claim boots."`
	Power       string            `json:"power" doc:"Power state that the claim asks for." enum:"On,Off"`
	ServerRef   string            `json:"serverRef" doc:"Name of the server that the claim names; empty when it names none."`
	Selector    map[string]string `json:"selector" doc:"The matchLabels of the claim's selector."`
	Tolerations []Toleration      `json:"tolerations" doc:"Taints that the claim puts up with."`
}

// Toleration of a claim. Eligible says how it matches.
type Toleration struct {
	Key      string `json:"key" doc:"Key of the taint; empty with operator Exists means every taint."`
	Operator string `json:"operator" doc:"Equal compares the value, Exists does not; empty means Equal." enum:"Equal,Exists"`
	Value    string `json:"value" doc:"Value of the taint, for Equal."`
	Effect   string `json:"effect" doc:"Effect of the taint; empty means every effect." enum:"NoBind,Evict"`
}

// Taint of a server.
type Taint struct {
	Key    string `json:"key" doc:"Key of the taint."`
	Value  string `json:"value" doc:"Value of the taint."`
	Effect string `json:"effect" doc:"NoBind keeps claims away that do not tolerate it." enum:"NoBind,Evict"`
}

// Candidate is what a policy may know of a server. Nothing in it changes with time alone, so that it can be prepared once
// per version of the server. AvailableDay need not be set: it follows from AvailableSince.
type Candidate struct {
	Name           string            `json:"name" doc:"Name of the server."`
	Labels         map[string]string `json:"labels" doc:"Labels of the server."`
	Taints         []Taint           `json:"taints" doc:"Taints of the server."`
	Manufacturer   string            `json:"manufacturer" doc:"Manufacturer, as the BMC reports it."`
	Model          string            `json:"model" doc:"Model, as the BMC reports it."`
	SKU            string            `json:"sku" doc:"Stock keeping unit, as the BMC reports it."`
	BIOSVersion    string            `json:"biosVersion" doc:"Version of the BIOS, as the BMC reports it; empty when not known."`
	CPUModel       string            `json:"cpuModel" doc:"Model of the first processor; empty when not known."`
	CPUCount       int64             `json:"cpuCount" doc:"Number of processor packages; 0 when not known."`
	Cores          int64             `json:"cores" doc:"Number of processor cores over all packages; 0 when not known."`
	MemoryGiB      int64             `json:"memoryGiB" doc:"Memory in GiB, rounded down; 0 when not known."`
	DiskCount      int64             `json:"diskCount" doc:"Number of disks, removable ones left out; 0 when not known."`
	Disks          DiskCounts        `json:"disks" doc:"Number of disks, by type."`
	DiskMinBytes   int64             `json:"diskMinBytes" doc:"Capacity of the smallest disk in bytes; 0 when not known."`
	DiskMaxBytes   int64             `json:"diskMaxBytes" doc:"Capacity of the largest disk in bytes; 0 when not known."`
	DiskBytes      DiskBytes         `json:"diskBytes" doc:"Capacity of all disks in bytes, by type."`
	NICCount       int64             `json:"nicCount" doc:"Number of network ports; 0 when not known."`
	NICMaxSpeed    int64             `json:"nicMaxSpeed" doc:"Speed of the fastest network port in Mbit/s; 0 when not known."`
	NICTotalSpeed  int64             `json:"nicTotalSpeed" doc:"Speed of all network ports together in Mbit/s; 0 when not known."`
	GPUs           int64             `json:"gpus" doc:"Number of GPUs."`
	Health         string            `json:"health" doc:"Health, as the BMC reports it; Unknown when it does not." enum:"OK,Warning,Critical,Unknown"`
	Zone           string            `json:"zone" doc:"Label topology.kubernetes.io/zone; empty when not set."`
	Region         string            `json:"region" doc:"Label topology.kubernetes.io/region; empty when not set."`
	Rack           string            `json:"rack" doc:"Rack; empty when not known."`
	InstanceType   string            `json:"instanceType" doc:"Label metal.ironcore.dev/instance-type; empty when not set."`
	AvailableSince int64             `json:"availableSince" doc:"When the server became Available, in seconds since 1970; compare it with fleet.now."`
	AvailableDay   int64             `json:"availableDay" doc:"Day (UTC) when the server became Available, since 1970; compare it with fleet.today."`
	TimesClaimed   int64             `json:"timesClaimed" doc:"How many claims the server has had."`
}

// DiskCounts is numbers of disks by type.
type DiskCounts struct {
	NVMe int64 `json:"nvme" doc:"Number of NVMe disks."`
	SSD  int64 `json:"ssd" doc:"Number of other solid-state disks."`
	HDD  int64 `json:"hdd" doc:"Number of rotating disks."`
}

// DiskBytes is capacity in bytes by type of disk.
type DiskBytes struct {
	NVMe  int64 `json:"nvme" doc:"Bytes on NVMe disks."`
	SSD   int64 `json:"ssd" doc:"Bytes on other solid-state disks."`
	HDD   int64 `json:"hdd" doc:"Bytes on rotating disks."`
	Total int64 `json:"total" doc:"Bytes on all disks."`
}

// Fleet is what a policy may know of all servers together, at the instant of the decision. Maps have no entry for a place
// with no server (or none claimed): read them with object.get. Today need not be set: it follows from Now.
type Fleet struct {
	Now           int64            `json:"now" doc:"The instant of the decision, in seconds since 1970."`
	Today         int64            `json:"today" doc:"Day (UTC) of the decision, in days since 1970."`
	Total         int64            `json:"total" doc:"Number of servers in any state."`
	Claimed       int64            `json:"claimed" doc:"Number of claimed servers."`
	TotalByZone   map[string]int64 `json:"totalByZone" doc:"Number of servers by zone."`
	TotalByRack   map[string]int64 `json:"totalByRack" doc:"Number of servers by rack."`
	ClaimedByZone map[string]int64 `json:"claimedByZone" doc:"Number of claimed servers by zone."`
	ClaimedByRack map[string]int64 `json:"claimedByRack" doc:"Number of claimed servers by rack."`
	FreeByZone    map[string]int64 `json:"freeByZone" doc:"Number of free servers by zone: Available, unclaimed, not cordoned, not in maintenance."`
	FreeByRack    map[string]int64 `json:"freeByRack" doc:"Number of free servers by rack."`

	NamespaceByZone map[string]int64 `json:"namespaceByZone" doc:"Number of servers that claims of the claim's own namespace have, by zone."`
	NamespaceByRack map[string]int64 `json:"namespaceByRack" doc:"Number of servers that claims of the claim's own namespace have, by rack."`
}

// Schema is the JSON schema of Input, with the descriptions that the reference page prints.
func Schema() map[string]any { return regosandbox.Schema(Input{}) }

// dayOf is the day of a moment in seconds, both since 1970.
func dayOf(seconds int64) int64 {
	const day = 24 * 60 * 60
	days := seconds / day
	if seconds%day < 0 {
		days--
	}
	return days
}
