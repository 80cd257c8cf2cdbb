// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	metalv1alpha1 "github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/internal/mergepatch"
	"github.com/metalaw/metalaw/internal/uuids"
	"github.com/metalaw/metalaw/metalprobe"
	"github.com/metalaw/metalaw/metalprobe/registry/hardware"
)

const (
	// refreshAfter is how old a stored report of the hardware may grow before the same report is stored again.
	refreshAfter = 10 * time.Minute
	// wipeRefreshAfter is that of a running wipe. It is less than the time between two reports, so that each sign of
	// life is stored, also one that comes a little early; it only holds off an agent that talks without need.
	wipeRefreshAfter = policyv1alpha1.WipeReportInterval / 2
	// writeAttempts is how often a write is tried while others write the same object.
	writeAttempts = 8
)

// inventory reads the inventory of a machine, nil where there is none. It may be named by the other byte order of the
// UUID, because a machine may show one order today that it did not show when the inventory was made.
func inventory(ctx context.Context, reader client.Reader, systemUUID string) (*policyv1alpha1.ServerInventory, error) {
	return firstOf(ctx, reader, uuids.Spellings(systemUUID))
}

// firstOf reads the first inventory that has one of the names, nil where none has.
func firstOf(ctx context.Context, reader client.Reader, names []string) (*policyv1alpha1.ServerInventory, error) {
	for _, name := range names {
		var found policyv1alpha1.ServerInventory
		err := reader.Get(ctx, client.ObjectKey{Name: name}, &found)
		if err == nil {
			return &found, nil
		}
		if !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("reading inventory %s: %w", name, err)
		}
	}
	return nil, nil
}

// update changes a server's inventory, which it makes where there is none. change works on a copy and may be called again after a
// conflict; what it leaves as it was is not written. The cache only tells that there is nothing to write: it holds less of a report
// than what is stored, and it may lag, while an agent takes a refusal for the last word.
func (r *Registry) update(
	ctx context.Context, g grant, change func(*policyv1alpha1.ServerInventory) *refusal,
) (changed bool, _ *refusal) {
	stored, err := inventory(ctx, r.options.Reader, g.server.Spec.SystemUUID)
	if err != nil {
		return false, failed(err)
	}
	if stored == nil {
		return r.store(ctx, g, change, basis{unseen: true})
	}
	before := stored.DeepCopy()
	if refused := enrolAnd(g, stored, r.options.Now(), change); refused == nil && equality.Semantic.DeepEqual(before, stored) {
		return false, nil
	}
	return r.store(ctx, g, change, basis{})
}

// basis is what the first attempt of a write begins with: what this request read past the cache, or that the cache shows none. The
// optimistic lock refuses what another wrote meanwhile, and the next attempt reads.
type basis struct {
	read   *policyv1alpha1.ServerInventory
	unseen bool
}

// enrolAnd calls change for an agent whose key the entry is bound to, or will be.
func enrolAnd(
	g grant, stored *policyv1alpha1.ServerInventory, now time.Time, change func(*policyv1alpha1.ServerInventory) *refusal,
) *refusal {
	if refused := enrol(stored, g, now); refused != nil {
		return refused
	}
	return change(stored)
}

// store does what update does, from what the API server holds: the patch names the changed fields only, under an optimistic lock. An
// agent with another key than the entry's is refused, and voids the entry. An unseen inventory, which the cache does not show, is
// created before it is looked for: the API server says where there is one.
func (r *Registry) store(
	ctx context.Context, g grant, change func(*policyv1alpha1.ServerInventory) *refusal, from basis,
) (changed bool, _ *refusal) {
	uuid := g.server.Spec.SystemUUID
	var last error
	for range writeAttempts {
		changed, refused, lost := r.tryToStore(ctx, g, change, from)
		from = basis{}
		switch {
		case lost == nil:
			return changed, archive{r.options}.recorded(ctx, g, refused)
		case apierrors.IsInvalid(lost):
			return false, invalid(fmt.Errorf("the API refused the report: %.512s", lost.Error()))
		case !apierrors.IsConflict(lost) && !apierrors.IsAlreadyExists(lost) && !apierrors.IsNotFound(lost):
			return false, failed(fmt.Errorf("writing inventory %s: %w", uuid, lost))
		}
		last = lost
	}
	return false, failed(fmt.Errorf("writing inventory %s: others wrote it %d times meanwhile: %w", uuid, writeAttempts, last))
}

// tryToStore is one attempt of store; lost is why nothing was written. What is only guessed to be stored refuses nobody: that is lost as
// if another had made the inventory meanwhile.
func (r *Registry) tryToStore(
	ctx context.Context, g grant, change func(*policyv1alpha1.ServerInventory) *refusal, from basis,
) (changed bool, refused *refusal, lost error) {
	stored, fresh, err := r.inventoryOf(ctx, g.server.Spec.SystemUUID, from)
	if err != nil {
		return false, failed(err), nil
	}
	before := stored.DeepCopy()
	refused = enrolAnd(g, stored, r.options.Now(), change)
	if refused != nil && from.unseen {
		return false, nil, apierrors.NewAlreadyExists(schema.GroupResource{Resource: "serverinventories"}, stored.Name)
	}
	if isConflict(refused) {
		// The manager may have booted the machine again since the cache saw the server.
		if g, err = r.current(ctx, g); err != nil {
			return false, failed(err), nil
		}
		stored = before.DeepCopy()
		refused = enrolAnd(g, stored, r.options.Now(), change)
	}
	if refused != nil && !(isConflict(refused) && void(stored, g)) {
		return false, refused, nil
	}
	if !fresh && equality.Semantic.DeepEqual(before, stored) {
		return false, nil, nil
	}
	if err := r.write(ctx, before, stored, fresh); err != nil {
		return false, nil, err
	}
	return refused == nil, refused, nil
}

// write creates an inventory, or patches the fields that changed, under an optimistic lock.
func (r *Registry) write(ctx context.Context, before, stored *policyv1alpha1.ServerInventory, fresh bool) error {
	if fresh {
		return r.options.Writer.Create(ctx, stored)
	}
	return r.options.Writer.Patch(ctx, stored, mergepatch.Locked(before))
}

// current is a grant with its server as the API server has it now.
func (r *Registry) current(ctx context.Context, g grant) (grant, error) {
	servers := []metalv1alpha1.Server{*g.server}
	if err := r.refresh(ctx, servers); err != nil {
		return g, err
	}
	g.server = &servers[0]
	return g, nil
}

// inventoryOf reads the inventory of a machine past the cache, or makes a fresh one in memory. Where it is guessed that there is
// none, only the other byte order of the UUID is looked for: there must be no second inventory, and no create would fail by it.
func (r *Registry) inventoryOf(ctx context.Context, uuid string, from basis) (_ *policyv1alpha1.ServerInventory, fresh bool, err error) {
	if from.read != nil {
		return from.read.DeepCopy(), false, nil
	}
	names := uuids.Spellings(uuid)
	if from.unseen && len(names) > 0 {
		names = names[1:]
	}
	stored, err := firstOf(ctx, r.options.Live, names)
	if err != nil || stored != nil {
		return stored, false, err
	}
	stored = &policyv1alpha1.ServerInventory{}
	stored.Name = strings.ToLower(uuid)
	stored.Spec.SystemUUID = stored.Name
	return stored, true, nil
}

// apiData gives the stored form of a report. Both have the same names on the wire.
func apiData(data metalprobe.Data) (policyv1alpha1.ProbeData, error) {
	var stored policyv1alpha1.ProbeData
	text, err := json.Marshal(data)
	if err != nil {
		return stored, err
	}
	err = json.Unmarshal(text, &stored)
	return stored, err
}

// storeReport puts a report into an inventory, or leaves it alone where it says nothing new.
func storeReport(
	g grant, report *metalprobe.Report, data policyv1alpha1.ProbeData, asks Demands, now time.Time,
) func(*policyv1alpha1.ServerInventory) *refusal {
	digest := report.Data.Digest()
	hardware.Trim(&data)
	purpose := policyv1alpha1.AgentPurpose(g.purpose)
	return func(stored *policyv1alpha1.ServerInventory) *refusal {
		former := stored.Report
		again := former != nil && former.Entry == g.entry
		if again && g.unauthenticated && !former.Unauthenticated {
			return notExpected("this server has reported with a credential already", "stop the agent that sends none").about(g.server)
		}
		remember(stored, g, data.Storage, asks.EraseRemovable)
		if asks.FailHidden && !again && g.purpose == metalv1alpha1.ProbePurposeProbe && hasBMC(g.server) {
			stored.BMCStorageWanted = &metav1.MicroTime{Time: now} // the blank check waits for it
		}
		next := &policyv1alpha1.ProbeReport{
			ReceivedAt:      metav1.NewMicroTime(now),
			Entry:           g.entry,
			Purpose:         purpose,
			Unauthenticated: g.unauthenticated,
			AgentVersion:    report.AgentVersion,
			Digest:          digest,
			Data:            *data.DeepCopy(),
		}
		if again && saysAgain(former, next) {
			return nil
		}
		note(stored, next)
		stored.Report = next
		return nil
	}
}

// saysAgain says that a report of the same entry tells nothing new, and comes soon after the one that is stored.
func saysAgain(former, next *policyv1alpha1.ProbeReport) bool {
	age := next.ReceivedAt.Sub(former.ReceivedAt.Time)
	return former.Digest == next.Digest && former.Purpose == next.Purpose && former.Unauthenticated == next.Unauthenticated &&
		former.AgentVersion == next.AgentVersion && age >= 0 && age < refreshAfter
}

// note compares a report with the one before it, and keeps that where the hardware differs. A later report of the same boot, in
// which another disk may have shown up, is compared with what the first one was compared with. A report that showed no token tells
// nothing reliable, and another version of the agent reads the same hardware in another way.
func note(stored *policyv1alpha1.ServerInventory, next *policyv1alpha1.ProbeReport) {
	former := stored.Report
	if former == nil || former.Unauthenticated || former.Voided || next.Unauthenticated {
		return
	}
	base := former
	if former.Entry == next.Entry && stored.Previous != nil && len(stored.Differences) > 0 {
		base = stored.Previous
	}
	if base.AgentVersion != next.AgentVersion {
		stored.Differences = nil
		return
	}
	stored.Differences = hardware.Differences(&base.Data, &next.Data)
	if len(stored.Differences) > 0 {
		stored.Previous = base.DeepCopy()
	}
}
