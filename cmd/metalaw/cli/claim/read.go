// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/access"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/claims"
	"github.com/metalaw/metalaw/engine/claims/solve"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/policies/index"
)

// world is what the reader may know of everything that decides about a claim.
type world struct {
	now     time.Time
	servers []v1alpha1.Server
	claims  []v1alpha1.ServerClaim
	// everywhere says that the claims are those of all namespaces, and not of those alone that were asked for.
	everywhere bool
	fleet      *solve.Snapshot
	// objects are the claims that the solver was asked about.
	objects map[*claims.Claim]*v1alpha1.ServerClaim
	// revision names the one in force; bundle is nil where it is not known or refused by the manager.
	revision string
	bundle   *bundle.Bundle
	// unlisted is what the reader may not list, and the policy in force is not known without; empty where no right is missing for that.
	unlisted string
	// broken is why the revision in force could not be compiled.
	broken error
	// control is what the people who run the fleet hold back; nil where they hold nothing back, or it is not known.
	control *policyv1alpha1.FleetControl
	// unseen is why the servers are not known, which leaves nothing to judge.
	unseen error
	// notes say what could not be read, and what follows.
	notes []string
}

// look reads with the reader's rights: the claims of all namespaces, or of the given ones where those rights reach no further. What
// they may not read is noted, or said in unseen; any other failure is an error.
func look(ctx context.Context, c client.Client, namespaces ...string) (*world, error) {
	w := &world{now: time.Now()}
	var servers v1alpha1.ServerList
	w.unseen = access.Explain(c.List(ctx, &servers), "list", access.Servers)
	if w.unseen != nil && !apierrors.IsForbidden(w.unseen) {
		return nil, w.unseen
	}
	w.servers = servers.Items
	if err := w.lookAtClaims(ctx, c, namespaces); err != nil {
		return nil, err
	}
	if w.blind() {
		w.unlisted = access.Servers
		return w, nil
	}
	var inventories policyv1alpha1.ServerInventoryList
	if err := c.List(ctx, &inventories); err != nil {
		err = access.Missing(&w.notes, err, "list", access.Inventories, "what the machines reported is not known to you, so rules about hardware may be judged wrongly")
		if err != nil {
			return nil, err
		}
	}
	if err := w.lookAtPolicy(ctx, c); err != nil {
		return nil, err
	}
	if err := w.lookAtFreezes(ctx, c); err != nil {
		return nil, err
	}
	w.snapshot(inventories.Items)
	return w, nil
}

// snapshot puts what was read together for the solver.
func (w *world) snapshot(inventories []policyv1alpha1.ServerInventory) {
	known := make([]*claims.Claim, len(w.claims))
	for i := range w.claims {
		known[i] = w.claimOf(&w.claims[i])
	}
	w.fleet = index.SnapshotOf(w.servers, inventories, known, w.now)
	if w.fleet.Quota = w.quota(); w.bundle != nil && w.bundle.Selection != nil {
		w.fleet.Policy = w.bundle.Selection
	}
}

// blind says that the servers are not known.
func (w *world) blind() bool { return w.unseen != nil }

// lookAtClaims reads the claims of all namespaces, or else of some.
func (w *world) lookAtClaims(ctx context.Context, c client.Client, namespaces []string) error {
	var list v1alpha1.ServerClaimList
	err := c.List(ctx, &list)
	if err == nil {
		w.claims, w.everywhere = list.Items, true
		return nil
	}
	if !apierrors.IsForbidden(err) {
		return access.Explain(err, "list", access.ServerClaims)
	}
	for _, namespace := range namespaces {
		var list v1alpha1.ServerClaimList
		if err = c.List(ctx, &list, client.InNamespace(namespace)); err != nil {
			err = access.Missing(&w.notes, err, "list", access.ServerClaims,
				"other claims in namespace "+namespace+" are not known to you, so order, spread and quota are judged without them")
		}
		if err != nil {
			return err
		}
		w.claims = append(w.claims, list.Items...)
	}
	return nil
}

// lookAtPolicy reads the revision in force and compiles what it holds, as the manager does.
func (w *world) lookAtPolicy(ctx context.Context, c client.Client) error {
	var revisions policyv1alpha1.PolicyRevisionList
	if err := c.List(ctx, &revisions); err != nil {
		w.unlisted = access.Revisions
		return access.Missing(&w.notes, err, "list", access.Revisions, "the policy in force is not known to you: servers that fit otherwise are shown as unknown")
	}
	for i := range revisions.Items {
		r := &revisions.Items[i]
		active := meta.FindStatusCondition(r.Status.Conditions, policyv1alpha1.ConditionActive)
		if active == nil || active.Status != metav1.ConditionTrue {
			continue
		}
		w.revision = r.Name
		if active.Reason == policyv1alpha1.ReasonRevisionHeld {
			w.notes = append(w.notes, "the manager refuses the revision in force, "+r.Name+", and binds no claim: "+active.Message)
			return nil
		}
		if w.bundle, w.broken = Compile(r); w.broken != nil {
			w.notes = append(w.notes, w.broken.Error()+"; servers that fit otherwise are shown as unknown")
		}
		return nil
	}
	w.notes = append(w.notes, "no policy is in force, and no claim is bound; metalaw policy history shows the revisions")
	return nil
}

// Compile holds the content of a revision against its digest, and compiles it.
func Compile(r *policyv1alpha1.PolicyRevision) (*bundle.Bundle, error) {
	files, err := bundle.Unpack(r.Spec.Content)
	if err != nil {
		return nil, fmt.Errorf("revision %s cannot be read: %w", r.Name, err)
	}
	if digest := files.Digest(); digest != r.Spec.Digest {
		return nil, fmt.Errorf("revision %s is damaged: its content has digest %s, and it says %s", r.Name, digest, r.Spec.Digest)
	}
	b, found, err := bundle.Compile(files, policies.Vocabulary())
	if err != nil {
		return nil, err
	}
	if b == nil {
		return nil, fmt.Errorf("revision %s does not compile in this version of the program, which may be another than the manager's: %w",
			r.Name, found.Err())
	}
	return b, nil
}
