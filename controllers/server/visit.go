// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/uuids"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/access"
	"github.com/metalaw/metalaw/controllers/hardware"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/controllers/wake"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/redfish"
)

// subject implements loop.Subject for servers.
type subject struct {
	Options
	memory *memory
	// startedAt is when this process began.
	startedAt time.Time
}

// visit is one server in one reconcile.
type visit struct {
	*subject
	server    *v1alpha1.Server
	now       time.Time
	bundle    *bundle.Bundle
	target    hardware.Target
	targetErr error
	reading   hardware.Reading[redfish.SystemSnapshot]
	claim     *v1alpha1.ServerClaim
	boot      *v1alpha1.ServerBootConfiguration
	inventory *policyv1alpha1.ServerInventory
	facts     *policies.Facts
	clock     *v1alpha1.DeadlineClock
	// holderExists says, where a release by hand is asked for, that the claim which holds the server exists.
	holderExists bool
	// held says that a move was put off until a fresh reading has arrived.
	held bool
	// confirmed says that the server was read uncached in this reconcile and is as we know it.
	confirmed bool
	// notes are what the events of this reconcile say besides moves.
	notes []note
	wake  time.Duration
}

type note struct {
	warning         bool
	reason, message string
}

// Observe implements loop.Subject.
func (s *subject) Observe(ctx context.Context, server *v1alpha1.Server) (loop.Visit, error) {
	v := &visit{subject: s, server: server, now: s.Now()}
	v.bundle = s.govern(server)
	if err := v.readObjects(ctx); err != nil {
		return nil, err
	}
	if err := v.readHardware(ctx); err != nil {
		return nil, err
	}
	v.makeFacts()
	return v, nil
}

// govern finds the bundle that governs a server: the one it is pinned to, unless it rests in a stable state and may
// adopt the active one. A pinned revision that cannot be had keeps the server where it is.
func (s *subject) govern(server *v1alpha1.Server) *bundle.Bundle {
	active := s.Bundles.Active()
	l := server.Status.Lifecycle
	if l == nil || l.Revision == "" || l.Revision == active.Revision.Name {
		return active
	}
	pinned, ok := s.Bundles.Revision(l.Revision)
	if !ok {
		return nil
	}
	if pinned.Lifecycle.Stable(engine.State(server.Status.State)) && adoptable(active, engine.State(server.Status.State)) {
		return active
	}
	return pinned
}

func adoptable(b *bundle.Bundle, state engine.State) bool {
	if b.Lifecycle.Defines(state) {
		return true
	}
	_, ok := b.Lifecycle.Migrates(state)
	return ok
}

func (v *visit) readObjects(ctx context.Context) error {
	s := v.server
	if ref := s.Spec.ServerClaimRef; ref != nil {
		claim := &v1alpha1.ServerClaim{}
		if err := v.Client.Get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, claim); err == nil {
			v.claim = claim
		} else if !apierrors.IsNotFound(err) {
			return err
		}
	}
	if err := v.readInventory(ctx); err != nil {
		return err
	}
	if err := v.readHolder(ctx); err != nil {
		return err
	}
	return v.readBoot(ctx)
}

// readInventory finds what is known of the machine, in either spelling of its UUID: firmware may change the byte order.
func (v *visit) readInventory(ctx context.Context) error {
	for _, name := range uuids.Spellings(v.server.Spec.SystemUUID) {
		inventory := &policyv1alpha1.ServerInventory{}
		err := v.Client.Get(ctx, types.NamespacedName{Name: name}, inventory)
		if err == nil {
			v.inventory = inventory
			return nil
		}
		if !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// inventoryName is the name of the inventory that there is, or of the one to be made.
func (v *visit) inventoryName() string {
	if v.inventory != nil {
		return v.inventory.Name
	}
	return v.server.Spec.SystemUUID
}

// readBoot finds the boot configuration that is in force: the one that the server names, as far as our effect wrote it
// for the present entry.
func (v *visit) readBoot(ctx context.Context) error {
	ref := v.server.Spec.BootConfigurationRef
	if ref == nil {
		return nil
	}
	boot := &v1alpha1.ServerBootConfiguration{}
	if err := v.Client.Get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, boot); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	}
	if boot.DeletionTimestamp.IsZero() && v.isOurs(boot) {
		v.boot = boot
	}
	return nil
}

// isOurs says whether our effect wrote the boot configuration for what the server is doing now.
func (v *visit) isOurs(boot *v1alpha1.ServerBootConfiguration) bool {
	switch boot.Annotations[v1alpha1.BootPurposeAnnotation] {
	case v1alpha1.BootPurposeClaim:
		return v.claim != nil && ownedByClaim(boot, v.claim)
	case v1alpha1.BootPurposeProbe, v1alpha1.BootPurposeWipe:
		return v.server.Status.Lifecycle != nil && boot.Namespace == v.Namespace && metav1.IsControlledBy(boot, v.server) &&
			boot.Annotations[v1alpha1.BootEntryAnnotation] == entryText(v.server.Status.Lifecycle.Entry)
	}
	return false
}

// readHardware takes the last word of the BMC and asks for a newer one where it is too old for what the server is doing.
func (v *visit) readHardware(ctx context.Context) error {
	v.target, v.targetErr = v.resolve(ctx)
	var missing *access.Error
	if errors.As(v.targetErr, &missing) {
		v.reading = hardware.Reading[redfish.SystemSnapshot]{Tried: true, Err: missing, FailingSince: v.now}
		return nil
	}
	if v.targetErr != nil {
		return v.targetErr
	}
	age := v.pollInterval()
	v.reading, _ = v.Desk.Refresh(v.server.Name, v.target, age)
	v.wakeIn(age)
	if !v.reading.Reachable() {
		v.wakeIn(max(v.Desk.NextTry(v.server.Name), fastestPoll))
	}
	return nil
}

// resolve finds the BMC behind a server.
func (v *visit) resolve(ctx context.Context) (hardware.Target, error) {
	s := v.server
	bmc := &v1alpha1.BMC{}
	switch {
	case s.Spec.BMCRef != nil:
		if err := v.Client.Get(ctx, types.NamespacedName{Name: s.Spec.BMCRef.Name}, bmc); err != nil {
			if apierrors.IsNotFound(err) {
				return hardware.Target{}, &access.Error{Reason: v1alpha1.ReasonBMCMissing,
					Message: "the BMC " + s.Spec.BMCRef.Name + " does not exist"}
			}
			return hardware.Target{}, err
		}
	case s.Spec.BMC != nil:
		bmc.Name, bmc.UID = s.Name, s.UID
		bmc.Spec.Access = &v1alpha1.InlineEndpoint{IP: s.Spec.BMC.Address}
		bmc.Spec.BMCSecretRef = s.Spec.BMC.BMCSecretRef
		bmc.Spec.Protocol = s.Spec.BMC.Protocol
	default:
		return hardware.Target{}, &access.Error{Reason: v1alpha1.ReasonBMCMissing, Message: "the server names no BMC"}
	}
	target, err := v.Access(ctx, bmc, v.settings())
	target.URI = s.Spec.SystemURI
	target.Detail = len(s.Status.NetworkInterfaces) == 0
	return target, err
}

// pollInterval is how old a reading may be: long while the server rests as it should, and growing from very short while
// something is under way.
func (v *visit) pollInterval() time.Duration {
	if !v.inTransition() {
		return v.SteadyPoll
	}
	since := v.server.CreationTimestamp.Time
	if l := v.server.Status.Lifecycle; l != nil {
		since = l.EnteredAt.Time
	}
	if at := v.Desk.LastJob(v.server.Name); at.After(since) {
		since = at
	}
	return min(max(v.now.Sub(since)/4, fastestPoll), slowestPoll)
}

// inTransition says that the server is to leave its state, or that some effect of its state did not hold when we looked
// last.
func (v *visit) inTransition() bool {
	s := v.server
	if s.Status.Lifecycle == nil || v.bundle == nil || !v.bundle.Lifecycle.Stable(engine.State(s.Status.State)) {
		return true
	}
	return operationActive(s.Status.Operation) || v.memory.unsettled(s.Name)
}

func (v *visit) settings() bundle.Settings {
	if v.bundle == nil {
		return v.Bundles.Active().Settings
	}
	return v.bundle.Settings
}

func (v *visit) makeFacts() {
	o := policies.Observation{Server: v.server, Now: v.now, Settings: v.settings(), System: v.systemReading(),
		Claim: v.claim, Boot: v.boot, Inventory: v.inventory}
	if l := v.server.Status.Lifecycle; l != nil && v.bundle != nil && !v.bundle.Lifecycle.Stable(engine.State(v.server.Status.State)) {
		held := v.reading.Tried && !v.reading.Reachable()
		o.Counted, v.clock = policies.CountedTime(l, v.now, v.Outage(), held, "BMCUnreachable")
	} else if l != nil {
		o.Counted = v.now.Sub(l.EnteredAt.Time)
	}
	v.facts = o.Facts()
	if _, remaining := policies.Released(v.server, o.Settings.ReleaseGrace, v.now); remaining > 0 {
		v.wakeIn(remaining)
	}
	v.wakeIn(policies.WipeQuietIn(v.inventory, v.now))
}

func (v *visit) systemReading() policies.SystemReading {
	if !v.reading.Reachable() {
		return policies.SystemReading{}
	}
	s := v.reading.Value
	identity := policies.IdentityOther
	if redfish.SameSystem(redfish.Identity{UUID: v.server.Spec.SystemUUID, SerialNumber: v.server.Status.SerialNumber}, s.Identity) {
		identity = policies.IdentitySame
	}
	return policies.SystemReading{Reachable: true, Power: string(s.Power), Health: string(s.Health), Identity: identity,
		OverrideSet: s.Boot.Enabled != "" && s.Boot.Enabled != "Disabled"}
}

// wakeIn notes a moment at which to look again; the earliest counts.
func (v *visit) wakeIn(d time.Duration) {
	v.wake = wake.Sooner(v.wake, d)
}

// WakeAfter implements loop.Waker.
func (v *visit) WakeAfter() time.Duration { return v.wake }

// want is the identity that must answer before anything is written to the BMC.
func (v *visit) want() redfish.Identity {
	return redfish.Identity{UUID: v.server.Spec.SystemUUID, SerialNumber: v.server.Status.SerialNumber}
}

// note keeps something to be told once in this reconcile.
func (v *visit) note(warning bool, reason, message string) {
	v.notes = append(v.notes, note{warning: warning, reason: reason, message: message})
}
