// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/fleet"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/controllers/server/operations"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/internal/fieldindex"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/redfish"
)

// operationShell carries out what is decided about operations.
type operationShell struct{ *scope }

// input is what decisions about operations depend on. What an older reading says of the power counts for nothing: a
// forced move waits for a fresh one, on which it is judged again.
func (v operationShell) input(d engine.Decision) operations.Input {
	in := operations.Input{Observation: v.observation(), Facts: v.facts, Bundle: v.bundle,
		Holder: v.holder, Unconfirmed: v.unconfirmed, Decision: d, Move: v.force, Attested: v.attested, Proved: v.proved}
	if !operations.Stands(v.server) {
		return in // nothing is asked for
	}
	in.NewID = string(uuid.NewUUID())
	in.NotOff = v.fresh() && !v.shows(redfish.PowerOff) || v.reading.Tried && v.facts.BMC.Identity != policies.IdentitySame
	return in
}

// record takes in what is asked for, and ends what is done.
func (v operationShell) record(d engine.Decision) {
	out := operations.Decide(v.input(d))
	*v.server = *out.Server
	v.out.notes = append(v.out.notes, out.Notes...)
	v.wakeIn(out.Again)
}

// attest writes the disk for which a person answers into the inventory, before the operation ends. The disk is written once, however
// often this is tried.
func (v operationShell) attest(ctx context.Context) error {
	s := v.server
	if operations.Asked(s) != v1alpha1.OperationAttestDisk || s.Status.Operation.Active() || v.unconfirmed || s.Status.Lifecycle == nil ||
		v.bundle == nil {
		return nil
	}
	answer, why := operations.Attestation(v.input(engine.Decision{}))
	if why != "" {
		return nil
	}
	err := custodyShell(v).writeCustody(ctx, answer.Write)
	if err == nil {
		v.attested = &answer
	}
	return err
}

// readHolder asks past the cache, where a release by hand or a declaration is asked for: a claim that the cache does not show may exist.
// The holder is the claim whose UID is recorded, on the server or in the inventory; where none is recorded, any claim that
// names the server or that the server names.
func (v operationShell) readHolder(ctx context.Context) error {
	switch asked := operations.Asked(v.server); {
	case asked == v1alpha1.OperationRelease, asked == v1alpha1.OperationSanitize, operations.DeclaresClean(v.server):
	default:
		return nil
	}
	s := v.server
	recorded := s.Annotations[v1alpha1.ClaimUIDAnnotation]
	if recorded == "" && v.inventory != nil && v.inventory.Custody != nil && v.inventory.Custody.LastHolder != nil {
		recorded = string(v.inventory.Custody.LastHolder.UID)
	}
	var claims v1alpha1.ServerClaimList
	if err := v.Reader.List(ctx, &claims, client.MatchingFields{fieldindex.ClaimByServer: s.Name}); err != nil {
		return err
	}
	if ref := s.Spec.ServerClaimRef; ref != nil {
		claim, err := find[v1alpha1.ServerClaim](ctx, v.Reader, ref.Namespace, ref.Name)
		if err != nil {
			return err
		}
		if claim != nil {
			claims.Items = append(claims.Items, *claim)
		}
	}
	for i := range claims.Items {
		if c := &claims.Items[i]; recorded == "" || string(c.UID) == recorded {
			v.holder = c.Namespace + "/" + c.Name
		}
	}
	return nil
}

// resetAsAsked carries out the one reset or power change that an operation asks for.
func (v operationShell) resetAsAsked(ctx context.Context) loop.Progress {
	out := operations.Reset(operations.ResetInput{Server: v.server, Job: v.job(v.server.Status.Operation.ID),
		Busy: v.Cache.Busy(v.server.Name), Now: v.now})
	*v.server = *out.Server
	if out.Ask == "" {
		return out.Progress
	}
	if p, ok := v.permitted(ctx, out.Action); !ok { // order 5: budgets count from when permission is given
		return p
	}
	op, at := v.server.Status.Operation, metav1.NewMicroTime(v.now)
	op.State, op.BegunAt = v1alpha1.OperationInProgress, &at
	fleet.Begin(v.server.Status.Lifecycle, out.Action, at, v.counted.Stored())
	id, guarded := op.ID, v.guarded(reset(out.Ask), out.Action)
	return out.Progress.Then(func() { // order 1: the operation is stored as begun before the BMC is asked
		v.Cache.Repeat(v.server.Name, id) // one that was postponed is known, and forgotten only now that it is recorded anew
		v.Cache.Do(v.server.Name, v.target, id, guarded)
	})
}
