// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/access"
	"github.com/metalaw/metalaw/controllers/fleet"
	"github.com/metalaw/metalaw/controllers/hardware"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/controllers/rollout"
	boots "github.com/metalaw/metalaw/controllers/server/boot"
	"github.com/metalaw/metalaw/controllers/server/gates"
	"github.com/metalaw/metalaw/controllers/server/operations"
	"github.com/metalaw/metalaw/controllers/server/said"
	"github.com/metalaw/metalaw/controllers/server/shown"
	"github.com/metalaw/metalaw/controllers/server/status"
	"github.com/metalaw/metalaw/controllers/trigger"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/internal/counted"
	"github.com/metalaw/metalaw/internal/restored"
	"github.com/metalaw/metalaw/internal/uuids"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/redfish"
)

// subject implements loop.Subject for servers.
type subject struct {
	Options
	memory *memory
	pace   *pace
}

func newSubject(o Options) *subject {
	return &subject{Options: o, memory: newMemory(), pace: newPace(o.AdoptionRate)}
}

// scope is one server in one reconcile.
type scope struct {
	*subject
	objects
	view
	judged
	work
	server *v1alpha1.Server
	now    time.Time
	// counted is now in counted time; zero where that is not known.
	counted counted.Time
	out     outputs
}

// objects are the objects beside the server that its facts are made of.
type objects struct {
	claim *v1alpha1.ServerClaim
	boot  *v1alpha1.ServerBootConfiguration
	// maintenance is the one that the server names; it is looked up only where the manager granted it.
	maintenance *v1alpha1.ServerMaintenance
	inventory   *policyv1alpha1.ServerInventory
	// proof is what was found out past the cache about a server whose status.lifecycle was pruned.
	proof policies.Proof
	// holder is, where a release by hand is asked for, the claim that holds the server; empty where it does not exist.
	holder string
}

// view is what is known of the machine through its BMC.
type view struct {
	target    hardware.Target
	targetErr error
	stated    stated
	reading   hardware.Reading[redfish.SystemSnapshot]
	// heldBack says that a freeze or a budget holds the server back.
	heldBack bool
}

// judged is what is decided about the server, and on what.
type judged struct {
	// governs is what governs the server, bundle what decides; nil where nothing may be decided.
	governs rollout.Governance
	bundle  *bundle.Bundle
	// observed is what the facts are made of.
	observed policies.Observation
	facts    *policies.Facts
	clock    *v1alpha1.DeadlineClock
	grants   rollout.Grants
	// gated is the decision that stands, and what holds the server back.
	gated gates.Output
}

// work is what the effects of this reconcile did, and what is left to do.
type work struct {
	// confirmed says that the server was read uncached in this reconcile and is as we know it.
	confirmed bool
	// stored is the inventory as it was read when the server was confirmed; nil where there was none.
	stored *policyv1alpha1.ServerInventory
	// unconfirmed says that what is asked for by hand may not be done in this reconcile.
	unconfirmed bool
	// verdict is why something was held back in this reconcile, and letThrough says that something was let through.
	verdict    *fleet.Verdict
	letThrough bool
	// recorded is what status says, and what follows from it.
	recorded status.Output
	// force is the move that an operation forces; nil where none does.
	force *operations.Move
	// attested is what was written into the inventory for operation attest-disk; nil where nothing was.
	attested *operations.Answer
	// proved is what was written into the inventory for operation prove; nil where nothing was.
	proved *policyv1alpha1.MachineIdentity
}

// outputs are what a reconcile leads to besides what it records.
type outputs struct {
	// notes are what the events of this reconcile say besides moves.
	notes []operations.Note
	// wake is when to look again; 0 leaves it to whatever wakes the server.
	wake time.Duration
	// awaitsBMC says that something waits for the BMC to show it.
	awaitsBMC bool
	// unbooted says that the reference to a boot is taken away.
	unbooted bool
}

// readShell reads what a decision is made on.
type readShell struct{ *scope }

// Observe implements loop.Subject.
func (s *subject) Observe(ctx context.Context, server *v1alpha1.Server) (loop.Scope[*gates.Output], error) {
	s.Outage() // the first call takes the lease, from which counted time goes on
	v := &scope{subject: s, server: server, now: s.Now(), counted: s.Counted.Now()}
	policies.SeeRelease(server, v.counted) // the write of this reconcile stores it
	if err := (readShell{v}).readObjects(ctx); err != nil {
		return nil, err
	}
	said.Return(server, v.inventory)                       // the first write of a new Server stores it
	v.governs = rollout.Governs(governShell{v}.question()) // nothing is granted yet
	v.bundle = v.governs.Bundle
	if err := (readShell{v}).readHardware(ctx); err != nil {
		return nil, err
	}
	hold, err := s.Gate.HoldOn(ctx, server.Labels)
	if err != nil {
		return nil, err
	}
	v.heldBack = restored.Waits(server, v.inventory) || hold.Destructive() ||
		meta.IsStatusConditionTrue(server.Status.Conditions, v1alpha1.ConditionWithheld)
	v.governBy(rollout.Governs(governShell{v}.question())) // the BMC may have answered
	err = v.confirmByHand(ctx)
	return v, err
}

func (v readShell) readObjects(ctx context.Context) error {
	s := v.server
	if ref := s.Spec.ServerClaimRef; ref != nil {
		var err error
		if v.claim, err = find[v1alpha1.ServerClaim](ctx, v.reader(operations.ByHand(s)), ref.Namespace, ref.Name); err != nil {
			return err
		}
	}
	if err := v.readInventory(ctx); err != nil {
		return err
	}
	if err := v.readProof(ctx); err != nil {
		return err
	}
	if err := (operationShell(v)).readHolder(ctx); err != nil {
		return err
	}
	if ref := s.Spec.ServerMaintenanceRef; ref != nil && s.Annotations[v1alpha1.MaintenanceUIDAnnotation] != "" {
		var err error
		if v.maintenance, err = find[v1alpha1.ServerMaintenance](ctx, v.Client, ref.Namespace, ref.Name); err != nil {
			return err
		}
	}
	return v.readBoot(ctx)
}

// readInventory finds what is known of the machine, in either spelling of its UUID: firmware may change the byte order.
func (v readShell) readInventory(ctx context.Context) error {
	for _, name := range uuids.Spellings(v.server.Spec.SystemUUID) {
		// The cache may not show a holder yet, nor a disk that was attested a moment ago.
		// Nor what was kept of a Server that was deleted a moment ago.
		from := v.reader(operations.DeclaresClean(v.server) || operations.Asked(v.server) == v1alpha1.OperationAttestDisk ||
			v.server.Status.Lifecycle == nil)
		inventory, err := find[policyv1alpha1.ServerInventory](ctx, from, "", name)
		if err != nil || inventory != nil {
			v.inventory = inventory
			return err
		}
	}
	return nil
}

// find reads an object; nil where there is none.
func find[T any, P interface {
	*T
	client.Object
}](ctx context.Context, from client.Reader, namespace, name string) (P, error) {
	object := P(new(T))
	if err := from.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, object); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return object, nil
}

// reader reads from the cache, or past it.
func (s *subject) reader(uncached bool) client.Reader {
	if uncached {
		return s.Reader
	}
	return s.Client
}

// inventoryName is the name of the inventory that there is, or of the one to be made.
func (v *scope) inventoryName() string {
	if v.inventory != nil {
		return v.inventory.Name
	}
	return v.server.Spec.SystemUUID
}

// readBoot finds the boot configuration that is in force: the one that the server names, as far as our effect wrote it
// for the present entry.
func (v readShell) readBoot(ctx context.Context) error {
	ref := v.server.Spec.BootConfigurationRef
	served := maintenanceShell(v).served()
	if served { // whatever boots elsewhere is nothing to a maintenance
		ref = v.server.Spec.MaintenanceBootConfigurationRef
	}
	if ref == nil {
		return nil
	}
	boot, err := find[v1alpha1.ServerBootConfiguration](ctx, v.Client, ref.Namespace, ref.Name)
	if err != nil || boot == nil {
		return err
	}
	if served {
		maintenanceShell(v).takeBoot(boot)
		return nil
	}
	if boot.DeletionTimestamp.IsZero() && v.isOurs(boot) {
		if v.claim != nil && boots.OwnedByClaim(boot, v.claim) { // also one that another operator of this API wrote
			metav1.SetMetaDataAnnotation(&boot.ObjectMeta, v1alpha1.BootPurposeAnnotation, v1alpha1.BootPurposeClaim)
		}
		v.boot = boot
	}
	return nil
}

// isOurs says whether our effect wrote the boot configuration for what the server is doing now.
func (v readShell) isOurs(boot *v1alpha1.ServerBootConfiguration) bool {
	if v.claim != nil && boots.OwnedByClaim(boot, v.claim) {
		return true // whoever wrote it: a claim's boot configuration is known by its owner
	}
	switch boot.Annotations[v1alpha1.BootPurposeAnnotation] {
	case v1alpha1.BootPurposeProbe, v1alpha1.BootPurposeWipe:
		return v.server.Status.Lifecycle != nil && boot.Namespace == v.Namespace && metav1.IsControlledBy(boot, v.server) &&
			boot.Annotations[v1alpha1.BootEntryAnnotation] == entryText(v.server.Status.Lifecycle.Entry)
	}
	return false
}

// readHardware takes the last word of the BMC and asks for a newer one where it is too old for what the server is doing.
func (v readShell) readHardware(ctx context.Context) error {
	v.target, v.targetErr = v.resolve(ctx)
	var missing *access.Error
	if errors.As(v.targetErr, &missing) {
		v.reading = hardware.Reading[redfish.SystemSnapshot]{Tried: true, Err: missing, FailingSince: v.now}
		v.wakeIn(missingRetry) // nothing tells when a Secret appears
		return nil
	}
	if v.targetErr != nil {
		return v.targetErr
	}
	age := pollShell(v).readingAge()
	next := age
	if known := v.Cache.Reading(v.server.Name); known.Begun.Before(v.Cache.LastJob(v.server.Name)) {
		age, next = pollShell(v).ageAfterJob(known.At, age)
	}
	v.reading, _ = v.Cache.Refresh(v.server.Name, v.target, age)
	v.wakeIn(next)
	if !v.reading.Reachable() {
		v.wakeIn(max(v.Cache.NextTry(v.server.Name), fastestPoll))
	}
	return nil
}

// resolve finds the BMC behind a server.
func (v readShell) resolve(ctx context.Context) (hardware.Target, error) {
	s := v.server
	bmc := &v1alpha1.BMC{}
	switch {
	case s.Spec.BMCRef != nil:
		var err error
		if bmc, err = find[v1alpha1.BMC](ctx, v.Client, "", s.Spec.BMCRef.Name); err != nil {
			return hardware.Target{}, err
		}
		if bmc == nil {
			return hardware.Target{}, &access.Error{Reason: v1alpha1.ReasonBMCMissing, Message: "the BMC " + s.Spec.BMCRef.Name + " does not exist"}
		}
	case s.Spec.BMC != nil:
		bmc.Name, bmc.UID = s.Name, s.UID
		bmc.Spec.Access = &v1alpha1.InlineEndpoint{IP: s.Spec.BMC.Address}
		bmc.Spec.BMCSecretRef = s.Spec.BMC.BMCSecretRef
		bmc.Spec.Protocol = s.Spec.BMC.Protocol
	default:
		return hardware.Target{}, &access.Error{Reason: v1alpha1.ReasonBMCMissing, Message: "the server names no BMC (spec.bmcRef or spec.bmc); " +
			"a BMC object whose BMC shows its UUID is written there by itself"}
	}
	if s.Spec.SystemURI == "" {
		return hardware.Target{}, &access.Error{Reason: v1alpha1.ReasonSystemURIMissing, Message: shown.WithoutURI(s)}
	}
	target, err := v.Access(ctx, bmc, v.settings())
	target.URI = s.Spec.SystemURI
	v.stated = statedOn(bmc, s.Spec.SystemURI)
	target.Detail = status.AllStated(s.Status.NetworkInterfaces) || v.stated.assigned.MAC != ""
	return target, err
}

func (v *scope) settings() bundle.Settings {
	if v.bundle != nil {
		return v.bundle.Settings
	}
	return gates.Settings(&v.governs, v.Bundles.Active())
}

// makeFacts makes the facts under what governs the server.
func (v *scope) makeFacts() {
	v.observed, v.facts, v.clock = gates.Facts(v.observation(), &v.governs, v.settings(), v.deadlines(), v.reading.Tried)
	if _, remaining := policies.Released(v.server, v.observed.Settings.ReleaseGrace, v.counted); remaining > 0 {
		v.wakeIn(remaining)
	}
	v.wakeIn(policies.WipeQuietIn(v.inventory, v.wipeHeard(), v.now))
	v.wakeIn(policies.FirstWordIn(v.observed, v.facts))
	v.wakeIn(policies.ListAwaitedIn(v.observed))
}

// deadlines is what tells whether time counts.
func (v *scope) deadlines() gates.Clock {
	return gates.Clock{Outage: v.Outage(), HeldBack: v.heldBack, NoGrace: v.NoReleaseGrace}
}

// observation is what the facts are made of, without the time that counts.
func (v *scope) observation() policies.Observation {
	return policies.Observation{Server: v.server, Now: v.now, CountedNow: v.counted, WipeHeard: v.wipeHeard(),
		Settings: v.settings(), System: v.systemReading(), Claim: v.claim, Boot: v.boot, Maintenance: v.maintenance,
		Inventory: v.inventory, Proof: v.proof}
}

func (v *scope) systemReading() policies.SystemReading {
	if !v.reading.Reachable() {
		return policies.SystemReading{}
	}
	return shown.System(v.want(), v.reading.Value)
}

// wakeIn notes a moment at which to look again; the earliest counts.
func (v *scope) wakeIn(d time.Duration) {
	v.out.wake = trigger.Earlier(v.out.wake, d)
}

// want is the identity that must answer before anything is written to the BMC.
func (v *scope) want() redfish.Identity {
	if a := v.stated.assigned; a.UUID != "" && uuids.Same(a.UUID, v.server.Spec.SystemUUID) {
		a = provenBy(a, policies.OnRecord(v.server, v.inventory), policies.MayHoldData(v.server, v.inventory))
		return redfish.Identity{UUID: v.server.Spec.SystemUUID, SerialNumber: a.SerialNumber, MAC: a.MAC, Assigned: true}
	}
	return redfish.Identity{UUID: v.server.Spec.SystemUUID, SerialNumber: v.server.Status.SerialNumber}
}
