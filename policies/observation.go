// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/internal/counted"
)

// Words of facts.
const (
	unknown = "Unknown"
	none    = "None"
)

// Observation is everything from which the facts about one server are made.
type Observation struct {
	Server *v1alpha1.Server
	// Counted is the time that counts in the present entry.
	Counted time.Duration
	Now     time.Time
	// CountedNow is Now in counted time; zero where that is not known.
	CountedNow counted.Time
	// WipeHeard is when this process first saw the last word of a wipe; zero where that is to be told by its time.
	WipeHeard time.Time
	Settings  bundle.Settings
	System    SystemReading
	// Claim is the claim that spec.serverClaimRef names; nil where it was not found.
	Claim *v1alpha1.ServerClaim
	// Boot is the boot configuration of the present entry; nil where there is none.
	Boot *v1alpha1.ServerBootConfiguration
	// Maintenance is what spec.serverMaintenanceRef names; nil where it was not found.
	Maintenance *v1alpha1.ServerMaintenance
	// Inventory is what is known of the machine beyond its Server; nil where there is nothing.
	Inventory *policyv1alpha1.ServerInventory
	// Proof is what was found out about a server whose status.lifecycle was pruned.
	Proof Proof
}

// Facts makes the facts. It is pure.
func (o Observation) Facts() *Facts {
	f := &Facts{
		Server:      o.serverFacts(),
		Lifecycle:   o.lifecycleFacts(),
		BMC:         o.bmcFacts(),
		Boot:        BootFactsOf(o.Boot),
		Request:     requestFacts(o.Server.Status.Lifecycle),
		Claim:       o.claimFacts(),
		Probe:       o.probeFacts(),
		Wipe:        o.wipeFacts(),
		Operation:   o.operationFacts(),
		Hardware:    o.hardwareFacts(),
		Inventory:   o.inventoryFacts(),
		Policy:      PolicyFacts{Sanitization: o.Settings.Sanitization},
		Maintenance: o.maintenanceFacts(),
	}
	f.Boot.Unheard = o.unheard(f)
	o.inDoubt(f)
	f.Lifecycle.Marks = withStranger(f, KeptStranger(o.Inventory))
	return f
}

// withStranger is the marks with what the facts tell of MarkStranger: it comes with the first look at a machine that runs and
// is not ours, stays while that machine does what it likes, and goes once the machine is ours. What outlives the Server tells of
// it as well: it is written first, so that the status may not have it, or be an older one.
func withStranger(f *Facts, told bool) []string {
	kept := slices.DeleteFunc(slices.Clone(f.Lifecycle.Marks), func(m string) bool { return m == MarkStranger })
	ours := slices.Contains(kept, MarkManaged) || f.Operation.Consented || f.Claim.Bound
	seen := told || len(kept) < len(f.Lifecycle.Marks) || (f.BMC.Power == "On" && !f.Wipe.Running)
	if ours || !seen {
		return kept
	}
	kept = append(kept, MarkStranger)
	slices.Sort(kept)
	return kept
}

func (o Observation) serverFacts() ServerFacts {
	s := o.Server
	reclaim := string(s.Spec.ReclaimPolicy)
	if reclaim == "" {
		reclaim = string(v1alpha1.ReclaimPolicyRecycle)
	}
	_, parked := s.Annotations[v1alpha1.ParkedAnnotation]
	_, decommission := s.Annotations[v1alpha1.DecommissionAnnotation]
	return ServerFacts{
		ClaimRefSet:   s.Spec.ServerClaimRef != nil,
		ReclaimPolicy: reclaim,
		Unclaimable:   s.Spec.Unclaimable,
		Parked:        parked && s.Status.Lifecycle == nil,
		ParkedFrom:    parkedFrom(s),
		Ignored:       v1alpha1.Ignored(s),
		Deleting:      !s.DeletionTimestamp.IsZero(),
		Decommission:  decommission,
	}
}

// parkedFrom is the state in which a server was parked. Only Error and Released are told: from any other it goes on by
// the facts.
func parkedFrom(s *v1alpha1.Server) string {
	switch from := v1alpha1.ServerState(s.Annotations[v1alpha1.PreParkStateAnnotation]); {
	case s.Status.State != v1alpha1.StateParked:
	case from == v1alpha1.StateError || from == v1alpha1.StateReleased:
		return string(from)
	}
	return none
}

func (o Observation) lifecycleFacts() LifecycleFacts {
	l := o.Server.Status.Lifecycle
	if l == nil {
		return LifecycleFacts{State: string(o.Server.Status.State), Marks: MarksOf(o.inherited())}
	}
	return LifecycleFacts{State: string(o.Server.Status.State), Entry: l.Entry, Age: o.Counted, Retries: int64(l.Retries), Marks: l.Marks}
}

// requestFacts counts the refusals of the present entry; what was asked in a former one was asked for another reason.
func requestFacts(l *v1alpha1.LifecycleStatus) RequestFacts {
	if l == nil || l.Request == nil || l.Request.Entry != l.Entry || l.Request.ShownAt != nil {
		return RequestFacts{}
	}
	return RequestFacts{Refused: int64(l.Request.Refusals)}
}

func (o Observation) inherited() []Inherited { return Inheritance(o.Server, o.Inventory, o.Proof) }

// BootFactsOf reads a boot configuration that our own effect wrote. It counts as ready only if the boot operator has
// spoken since our last change of its spec.
func BootFactsOf(boot *v1alpha1.ServerBootConfiguration) BootFacts {
	if boot == nil {
		return BootFacts{Purpose: none, State: none}
	}
	state := string(boot.Status.State)
	if state == "" {
		state = string(v1alpha1.ServerBootConfigurationStatePending)
	}
	return BootFacts{
		Purpose: boot.Annotations[v1alpha1.BootPurposeAnnotation],
		State:   state,
		Ready:   boot.Status.State == v1alpha1.ServerBootConfigurationStateReady && Armed(boot),
	}
}

// Armed says that the state of a boot configuration speaks of its present spec: it was never changed since it was
// created, or we reset the state after our last change.
func Armed(boot *v1alpha1.ServerBootConfiguration) bool {
	if boot.Generation <= 1 {
		return true
	}
	c := meta.FindStatusCondition(boot.Status.Conditions, v1alpha1.ConditionSpecHandedOver)
	return c != nil && c.ObservedGeneration == boot.Generation
}

// BootedForClaim says that a server which a claim found free was since switched on to boot what the claim asks for. Of one
// that came into the claim's hands otherwise, such as by a backup or from another operator, nothing better is known.
func BootedForClaim(s *v1alpha1.Server) bool {
	l := s.Status.Lifecycle
	if l == nil || l.BootedAt != nil || len(l.History) == 0 {
		return true
	}
	last := l.History[len(l.History)-1]
	return last.To != s.Status.State || last.From != v1alpha1.StateAvailable || last.Entry != l.Entry
}

// Bound says that both references and the claim's UID agree.
func Bound(s *v1alpha1.Server, c *v1alpha1.ServerClaim) bool {
	return c != nil && s.Spec.ServerClaimRef != nil && c.Spec.ServerRef != nil &&
		s.Spec.ServerClaimRef.Namespace == c.Namespace && s.Spec.ServerClaimRef.Name == c.Name &&
		c.Spec.ServerRef.Name == s.Name && string(c.UID) == s.Annotations[v1alpha1.ClaimUIDAnnotation]
}

func (o Observation) claimFacts() ClaimFacts {
	hasRecord := v1alpha1.ReleaseRecorded(o.Server)
	released, _ := Released(o.Server, o.Settings.ReleaseGrace, o.CountedNow)
	f := ClaimFacts{Released: released, Power: none}
	f.Ended = hasRecord && !released && o.Settings.ReleasePower == bundle.PowerImmediate
	f.Bound = !hasRecord && Bound(o.Server, o.Claim)
	f.Binding = !hasRecord && o.Server.Spec.ServerClaimRef != nil && o.Claim != nil && o.Claim.Spec.ServerRef == nil &&
		string(o.Claim.UID) == o.Server.Annotations[v1alpha1.ClaimUIDAnnotation]
	f.Missing = o.Server.Spec.ServerClaimRef != nil && !hasRecord && !f.Bound && !f.Binding
	if f.Bound {
		f.Power = string(o.Claim.Spec.Power)
	}
	return f
}

// maintenanceFacts: the program that grants a maintenance writes it on the server, and it is over when that is cleared.
// That the object named is not found, or is being deleted, ends nothing: a person's hands may be on the machine still.
func (o Observation) maintenanceFacts() MaintenanceFacts {
	s := o.Server
	return MaintenanceFacts{Granted: s.Spec.ServerMaintenanceRef != nil, Ours: MaintenanceIsOurs(s, o.Maintenance),
		Consented: MaintenanceConsented(s)}
}

func (o Observation) probeFacts() ProbeFacts {
	if o.Inventory == nil || o.Inventory.Report == nil {
		return ProbeFacts{Entry: -1}
	}
	r := o.Inventory.Report
	if ReportVoided(o.Inventory) {
		return ProbeFacts{Entry: -1}
	}
	return ProbeFacts{Entry: r.Entry, Complete: o.believes(r) && ListAwaitedIn(o) == 0, DataFound: o.dataFound()}
}

func (o Observation) wipeFacts() WipeFacts {
	f := WipeFacts{Entry: -1, Budget: WipeBudget(o.Inventory), Attested: o.attested()}
	if o.Inventory == nil || o.Inventory.Wipe == nil {
		return o.unbootable(f)
	}
	w := o.Inventory.Wipe
	f.Entry = w.Entry
	f.Running = WipeQuietIn(o.Inventory, o.WipeHeard, o.Now) > 0
	f.Verified = w.State == policyv1alpha1.WipeVerified && !EntryVoided(o.Inventory, w.Entry)
	f.Failed = w.State == policyv1alpha1.WipeFailed
	f.ExcusedOnly = f.Verified && w.ExcusedOnly
	return o.unbootable(f)
}

// unbootable has a wipe fail whose image cannot be booted for sure, because the BMC shows no boot override: the machine would
// boot by its boot order, which may lead to the disks that are to be erased.
func (o Observation) unbootable(f WipeFacts) WipeFacts {
	l, s := o.Server.Status.Lifecycle, o.System
	known := s.Reachable && s.Identity == IdentitySame && s.NoOverride && s.Power == "Off"
	if known && l != nil && !f.Running && !(f.Verified && f.Entry == l.Entry) && BootFactsOf(o.Boot).Purpose == v1alpha1.BootPurposeWipe {
		f.Entry, f.Verified, f.Failed = l.Entry, false, true
	}
	return f
}

// WipeQuietIn is how long a running wipe still counts as running without another word; 0 where none runs. heard is when this
// process first saw its last word, because the word bears the clock of another process; zero takes that.
func WipeQuietIn(inv *policyv1alpha1.ServerInventory, heard, now time.Time) time.Duration {
	if inv == nil || inv.Wipe == nil || inv.Wipe.State != policyv1alpha1.WipeRunning {
		return 0
	}
	if heard.IsZero() {
		heard = inv.Wipe.UpdatedAt.Time
	}
	return max(0, policyv1alpha1.WipeSilence-now.Sub(heard))
}

const (
	wipeBudgetUnknown = 4 * time.Hour
	wipeBudgetBase    = 30 * time.Minute
	// wipeBudgetMost is a year in seconds: no disks take longer, also if more is reported.
	wipeBudgetMost = 365 * 24 * 60 * 60
	// wipeRate is a slow disk's sequential write rate in bytes a second.
	wipeRate = 50_000_000
	// wipeTimes is how much longer than that an erase may take, with its check.
	wipeTimes = 2
)

// WipeBudget is how long a wipe of the disks that the probe saw may take. The agent erases disks in parallel, but those of one
// adapter one after another; disks of which the adapter is not known may share one. It is the last resort: the agent has a
// deadline for each disk.
func WipeBudget(inv *policyv1alpha1.ServerInventory) time.Duration {
	if inv == nil || inv.Report == nil || len(inv.Report.Data.Storage) == 0 {
		return wipeBudgetUnknown
	}
	adapters := map[string]int64{}
	var seconds int64 // of each disk by itself, because what an agent reports may add up to more than a number holds
	for i := range inv.Report.Data.Storage {
		if d := &inv.Report.Data.Storage[i]; !d.ReadOnly && !d.Removable && !d.Remote() {
			adapters[d.PCIAddress] += max(0, d.SizeBytes) / wipeRate * wipeTimes
			seconds = max(seconds, adapters[d.PCIAddress])
		}
	}
	return wipeBudgetBase + time.Duration(min(seconds, wipeBudgetMost))*time.Second
}

func (o Observation) operationFacts() OperationFacts {
	f := OperationFacts{Name: none, Entry: -1}
	f.Consented = o.Server.Annotations[v1alpha1.ConsentAnnotation] == v1alpha1.ConsentTakeOver || o.Settings.FirstSeen == bundle.FirstSeenManage
	op := o.Server.Status.Operation
	if !op.Active() {
		return f
	}
	if op.State == v1alpha1.OperationPending && o.Server.Annotations[v1alpha1.OperationAnnotation] != "" {
		return f // the request is recorded, and still to be taken off the object, so that it happens once
	}
	if !slices.Contains(operations, op.Name) {
		return f // not a matter of rules: force goes past them
	}
	f.Name, f.Entry = op.Name, op.Entry
	f.Reset = IsReset(op.Name)
	return f
}

// IsReset says whether an operation asks for one reset or power change.
func IsReset(operation string) bool { return slices.Contains(resets, operation) }

func (o Observation) hardwareFacts() HardwareFacts {
	s := o.Server.Status
	f := HardwareFacts{Manufacturer: s.Manufacturer, Model: s.Model}
	if s.TotalSystemMemory != nil {
		f.MemoryGiB = s.TotalSystemMemory.Value() >> 30
	}
	for _, p := range s.Processors {
		f.Cores += int64(p.TotalCores)
	}
	if o.Inventory != nil && o.Inventory.Report != nil && !ReportVoided(o.Inventory) {
		f.Disks = int64(len(o.Inventory.Report.Data.Storage))
	}
	return f
}
