// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/access"
	"github.com/metalaw/metalaw/controllers/hardware"
	boots "github.com/metalaw/metalaw/controllers/server/boot"
	"github.com/metalaw/metalaw/controllers/server/gates"
	"github.com/metalaw/metalaw/controllers/server/identity"
	"github.com/metalaw/metalaw/controllers/server/operations"
	"github.com/metalaw/metalaw/controllers/server/plan"
	"github.com/metalaw/metalaw/controllers/server/power"
	"github.com/metalaw/metalaw/controllers/server/seen"
	"github.com/metalaw/metalaw/controllers/server/shown"
	"github.com/metalaw/metalaw/controllers/server/status"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/internal/bmcsystems"
	"github.com/metalaw/metalaw/internal/fieldindex"
	"github.com/metalaw/metalaw/internal/stored"
	"github.com/metalaw/metalaw/policies"
)

// readObjects reads the objects beside the server that its facts are made of.
func (v *scope) readObjects(ctx context.Context) (err error) {
	s := v.server
	if ref := s.Spec.ServerClaimRef; ref != nil {
		if v.seen.Claim, err = stored.One[v1alpha1.ServerClaim](ctx, v.reader(operations.ByHand(s)), ref.Namespace, ref.Name); err != nil {
			return err
		}
	}
	if v.seen.Inventory, err = v.readInventory(ctx); err != nil {
		return err
	}
	if err := v.readProof(ctx); err != nil {
		return err
	}
	if v.seen.Holder, err = v.readHolder(ctx); err != nil {
		return err
	}
	if ref := s.Spec.ServerMaintenanceRef; ref != nil && s.Annotations[v1alpha1.MaintenanceUIDAnnotation] != "" {
		if v.seen.Maintenance, err = stored.One[v1alpha1.ServerMaintenance](ctx, v.Client, ref.Namespace, ref.Name); err != nil {
			return err
		}
	}
	if v.seen.Rivals, err = identity.Rivals(ctx, v.Client, v.Rivals, s, v.seen.Inventory); err != nil {
		return err
	}
	v.sight()
	return v.readBoot(ctx)
}

// sight notes what records this process sees for the first time.
func (v *scope) sight() {
	records, now := &v.seen.Memory.Seen, v.seen.Instant()
	defer func() { v.remembered.Seen = *records }()
	v.seen.WipeHeard = records.WipeHeard(v.seen.Inventory, now)
	l := v.server.Status.Lifecycle
	if l == nil {
		return
	}
	records.First(seen.Entry, plan.EntryText(l.Entry), now)
	if l.Request != nil {
		records.First(seen.Power, power.RequestID(l.Request), now)
	}
	if op := v.server.Status.Operation; operations.EndedReset(op) {
		records.First(seen.Operation, op.ID, now)
	}
}

// readInventory finds what is known of the machine, in either spelling of its UUID: firmware may change the byte order.
func (v *scope) readInventory(ctx context.Context) (*policyv1alpha1.ServerInventory, error) {
	// The cache may not show a holder yet, nor a disk that was attested a moment ago, nor what was kept of a Server that was
	// deleted a moment ago.
	from := v.reader(operations.DeclaresClean(v.server) || operations.Asked(v.server) == v1alpha1.OperationAttestDisk ||
		v.server.Status.Lifecycle == nil)
	return stored.Inventory(ctx, from, v.server.Spec.SystemUUID)
}

// reader reads from the cache, or past it.
func (o *Options) reader(uncached bool) client.Reader {
	if uncached {
		return o.Reader
	}
	return o.Client
}

// readProof judges a server whose status.lifecycle was pruned. It reads past the cache: the cache drops managed fields, and
// may show an inventory from before the last claim. While the cache is behind nothing is decided: a fear of data is stored
// for good.
func (v *scope) readProof(ctx context.Context) error {
	if !policies.Pruned(v.server, v.seen.Inventory) {
		return nil
	}
	name := v.seen.Inventory.Name
	inventory, err := stored.One[policyv1alpha1.ServerInventory](ctx, v.Reader, "", name)
	if err != nil || inventory == nil {
		return behind("serverinventories", name, err)
	}
	server, err := stored.One[v1alpha1.Server](ctx, v.Reader, "", v.server.Name)
	if err != nil || server == nil || server.ResourceVersion != v.server.ResourceVersion {
		return behind("servers", v.server.Name, err)
	}
	v.seen.Inventory, v.seen.Proof = inventory, policies.ProofOf(server, inventory)
	return nil
}

// behind is an error, or else a conflict, which the loop meets with another look: the cache shows what is stored otherwise
// or not at all.
func behind(resource, name string, err error) error {
	if err != nil {
		return err
	}
	return apierrors.NewConflict(schema.GroupResource{Resource: resource}, name, errors.New("the cache is behind"))
}

// readHolder asks past the cache, if a release by hand or a declaration is asked for: a claim that the cache does not show
// may exist. The holder is the claim whose UID is recorded, on the server or in the inventory. If none is recorded, it is
// any claim that names the server or that the server names.
func (v *scope) readHolder(ctx context.Context) (holder string, err error) {
	s := v.server
	switch asked := operations.Asked(s); {
	case asked == v1alpha1.OperationRelease, asked == v1alpha1.OperationSanitize, operations.DeclaresClean(s):
	default:
		return "", nil
	}
	recorded := s.Annotations[v1alpha1.ClaimUIDAnnotation]
	if i := v.seen.Inventory; recorded == "" && i != nil && i.Custody != nil && i.Custody.LastHolder != nil {
		recorded = string(i.Custody.LastHolder.UID)
	}
	var claims v1alpha1.ServerClaimList
	if err := v.Reader.List(ctx, &claims, client.MatchingFields{fieldindex.ClaimByServer: s.Name}); err != nil {
		return "", err
	}
	if ref := s.Spec.ServerClaimRef; ref != nil {
		claim, err := stored.One[v1alpha1.ServerClaim](ctx, v.Reader, ref.Namespace, ref.Name)
		if err != nil {
			return "", err
		}
		if claim != nil {
			claims.Items = append(claims.Items, *claim)
		}
	}
	for i := range claims.Items {
		if c := &claims.Items[i]; recorded == "" || string(c.UID) == recorded {
			holder = c.Namespace + "/" + c.Name
		}
	}
	return holder, nil
}

// readBoot finds the boot configuration that is in force: the one that the server names, if our effect wrote it for the
// present entry.
func (v *scope) readBoot(ctx context.Context) error {
	ref, served := v.server.Spec.BootConfigurationRef, v.seen.Served()
	if served { // what boots elsewhere is nothing to a maintenance
		ref = v.server.Spec.MaintenanceBootConfigurationRef
	}
	if ref == nil {
		return nil
	}
	boot, err := stored.One[v1alpha1.ServerBootConfiguration](ctx, v.Client, ref.Namespace, ref.Name)
	if err != nil || boot == nil || !boot.DeletionTimestamp.IsZero() {
		return err
	}
	purpose := boot.Annotations[v1alpha1.BootPurposeAnnotation]
	m := v.seen.Maintenance
	switch {
	case served && m.Spec.ServerBootConfigurationTemplate != nil && boots.OfMaintenance(v.server, m).Owns(boot):
		purpose = v1alpha1.BootPurposeMaintenance
	case served || !v.seen.Ours(boot):
		return nil
	case v.seen.Claim != nil && boots.OwnedByClaim(boot, v.seen.Claim): // also one that another operator of this API wrote
		purpose = v1alpha1.BootPurposeClaim
	}
	metav1.SetMetaDataAnnotation(&boot.ObjectMeta, v1alpha1.BootPurposeAnnotation, purpose)
	v.seen.Boot = boot
	return nil
}

// readHardware takes the last word of the BMC, and asks for a newer one if it is too old for what the server is doing.
func (v *scope) readHardware(ctx context.Context) error {
	var err error
	v.x.target, err = v.resolve(ctx)
	var missing *access.Error
	if errors.As(err, &missing) {
		v.seen.BMC.Lacks, v.seen.BMC.Tried, v.seen.BMC.Err = err, true, missing
		v.x.wakeIn(missingRetry) // nothing tells when a Secret appears
		return nil
	}
	if err != nil {
		return err
	}
	known := v.Cache.Reading(v.server.Name)
	age, next := v.readingAge(known.Begun)
	reading, _ := v.Cache.Refresh(v.server.Name, v.x.target, age)
	v.seen.BMC.Tried, v.seen.BMC.Err, v.seen.BMC.System = reading.Tried, reading.Err, reading.Value
	v.seen.BMC.Begun, v.seen.BMC.At = reading.Begun, reading.At
	v.readJobs() // after the reading, which says nothing of a call that ended meanwhile
	v.x.wakeIn(next)
	if !reading.Reachable() {
		v.x.wakeIn(max(v.Cache.NextTry(v.server.Name), plan.FastestPoll))
	}
	if v.Identities != nil {
		v.seen.Identity = &identity.Input{UUID: v.server.Spec.SystemUUID, Now: v.seen.Now}
		v.seen.Identity.Reading, v.seen.Identity.Fresh = v.Identities.Peek(v.server.Name, v.x.target, identity.MaxAge)
		if i := v.seen.Inventory; i != nil && i.Identity != nil {
			v.seen.Identity.Stored = i.Identity.BMC
		}
	}
	return nil
}

// readJobs takes what this process knows of its calls to the BMC. What relies on a reading is asked after it.
func (v *scope) readJobs() {
	b, known := &v.seen.BMC, v.Cache.Jobs(v.server.Name)
	b.LastJob, b.Jobs = v.Cache.LastJob(v.server.Name), make(map[string]power.Job, len(known))
	for _, j := range known {
		job := power.Job{Known: true, Running: j.State == hardware.JobRunning, Err: j.Err, EndedAt: j.EndedAt}
		if j.Err != nil {
			job.Words = plan.Words(j.Err)
		}
		b.Jobs[j.ID] = job
	}
}

// resolve finds the BMC behind a server.
func (v *scope) resolve(ctx context.Context) (hardware.Target, error) {
	s := v.server
	bmc := &v1alpha1.BMC{}
	switch {
	case s.Spec.BMCRef != nil:
		var err error
		if bmc, err = stored.One[v1alpha1.BMC](ctx, v.Client, "", s.Spec.BMCRef.Name); err != nil {
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
	v.seen.BMC.Stated = statedOn(bmc, s.Spec.SystemURI)
	target.Detail = status.AllStated(s.Status.NetworkInterfaces) || v.seen.BMC.Stated.Assigned.MAC != ""
	return target, err
}

// statedOn reads the annotations of a BMC for the system at a URI.
func statedOn(bmc *v1alpha1.BMC, uri string) plan.Stated {
	s := plan.Stated{Ways: bmc.Annotations[v1alpha1.BootWaysAnnotation]}
	macs, err := bmcsystems.ParseMACs(bmc.Annotations[v1alpha1.HostMACsAnnotation])
	if err != nil {
		s.Unread = err.Error()
	}
	s.MACs = macs[bmcsystems.Key(uri)]
	if assigned, err := bmcsystems.ParseAssignments(bmc.Annotations[v1alpha1.SystemUUIDsAnnotation]); err == nil {
		s.Assigned = assigned[bmcsystems.Key(uri)]
	}
	return s
}

// settings are those under which the server is looked at.
func (v *scope) settings() bundle.Settings {
	if v.seen.Bundle != nil {
		return v.seen.Bundle.Settings
	}
	return gates.Settings(&v.governs, v.Bundles.Active())
}
