// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/internal/lists"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/access"
	claimloop "github.com/metalaw/metalaw/controllers/claim"
	"github.com/metalaw/metalaw/controllers/fleet"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/claims"
	"github.com/metalaw/metalaw/engine/claims/solve"
	"github.com/metalaw/metalaw/internal/freeze"
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
		err = access.Missing(&w.notes, err, "list", access.Inventories,
			"what the machines reported is not known to you, so rules about hardware may be judged wrongly")
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
		return access.Missing(&w.notes, err, "list", access.Revisions,
			"the policy in force is not known to you: servers that fit otherwise are shown as unknown")
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

// order is where a claim stands among those that wait.
type order struct {
	// Place counts from 1; Of is how many wait.
	Place int `json:"place"`
	Of    int `json:"of"`
	// Priority is what the bundle grants of Asked; with what the claim has waited it is Aged.
	Priority int64 `json:"priority"`
	Asked    int64 `json:"asked"`
	Aged     int64 `json:"aged"`
	// Everywhere says that the claims of all namespaces are counted, and not of this one alone.
	Everywhere bool `json:"everywhere"`
}

// waits says that a claim is to get a server.
func waits(c *v1alpha1.ServerClaim) bool {
	return c.DeletionTimestamp.IsZero() && !v1alpha1.Ignored(c) && !meta.IsStatusConditionTrue(c.Status.Conditions, v1alpha1.ConditionBound)
}

func (w *world) granted() bundle.Priority {
	if w.bundle == nil {
		return bundle.Priority{Max: bundle.MaxPriority}
	}
	return w.bundle.Settings.Claims.Priority
}

// quota bounds the servers of namespaces; nothing is bounded where the bundle is not known.
func (w *world) quota() bundle.Quota {
	if w.bundle == nil {
		return bundle.Quota{}
	}
	return w.bundle.Settings.Claims.Quota
}

func (w *world) claimOf(c *v1alpha1.ServerClaim) *claims.Claim {
	one := policies.ClaimOf(c, w.granted(), w.now)
	if w.objects == nil {
		w.objects = map[*claims.Claim]*v1alpha1.ServerClaim{}
	}
	w.objects[one] = c
	return one
}

func (w *world) queue() []*claims.Claim {
	var all []*claims.Claim
	for i := range w.claims {
		if waits(&w.claims[i]) {
			all = append(all, w.claimOf(&w.claims[i]))
		}
	}
	slices.SortFunc(all, claims.Before)
	return all
}

// orderOf is nil where the claim is not among those that the reader may list.
func (w *world) orderOf(c *v1alpha1.ServerClaim) *order {
	queue := w.queue()
	at := slices.IndexFunc(queue, func(o *claims.Claim) bool { return o.UID == string(c.UID) })
	if at < 0 {
		return nil
	}
	is := queue[at]
	return &order{Place: at + 1, Of: len(queue), Priority: is.Asked.Priority, Asked: is.Wants, Aged: is.Rank, Everywhere: w.everywhere}
}

// misnames says why a claim gets no server because it names one; empty where it may. The members of a gang get theirs together, so that
// only one that had a server names it.
func (w *world) misnames(c *v1alpha1.ServerClaim) string {
	if c.Spec.ServerRef == nil || policies.GangOf(c) == nil || policies.HadServer(c) || w.written(c) != nil {
		return ""
	}
	return "another claim in its place, without spec.serverRef: a claim of a gang cannot name its server, and serverRef cannot be changed"
}

// gang are the members of a claim's gang that wait and can be given a server, in order; the claim alone where it has none, or where it
// asks for a server that it had. A member that names a server asks for no other: what it keeps or lost counts for the others.
func (w *world) gang(c *v1alpha1.ServerClaim) []*claims.Claim {
	own := w.claimOf(c)
	if own.Gang() == nil || own.ServerRef != "" {
		return []*claims.Claim{own}
	}
	var all []*claims.Claim
	for _, other := range w.queue() {
		isMember := other.Namespace == own.Namespace && other.GangName() == own.GangName()
		if isMember && (other.Name == own.Name || other.ServerRef == "" && other.CountsAsMember()) {
			all = append(all, other)
		}
	}
	if !slices.ContainsFunc(all, func(o *claims.Claim) bool { return o.Name == own.Name }) {
		all = append(all, own)
	}
	return all
}

func (w *world) lookAtFreezes(ctx context.Context, c client.Client) error {
	var controls policyv1alpha1.FleetControlList
	if err := c.List(ctx, &controls); err != nil {
		return access.Missing(&w.notes, err, "list", access.FleetControls, "whether a freeze holds servers back is not known to you")
	}
	w.control = lists.Find(controls.Items, func(c *policyv1alpha1.FleetControl) bool { return c.Name == policyv1alpha1.FleetControlName })
	return nil
}

// frozen says of a claim that would be bound that a freeze holds its server back: the server is written for it, which no machine
// notices, and nothing is prepared for its boot, without which no claim says that it is Bound.
func (w *world) frozen(o outcome) outcome {
	s := lists.Find(w.servers, func(s *v1alpha1.Server) bool { return s.Name == o.server.Name })
	if !o.binds || s == nil {
		return o
	}
	if held := w.heldBack(s); held != "" {
		o.binds, o.waitsFor = false, "the server "+o.server.Name+", which it would get: "+held
	}
	return o
}

// heldBack says by what a freeze holds back what claims have done to a server; empty where none does.
func (w *world) heldBack(s *v1alpha1.Server) string {
	hold := freeze.On(w.control, s.Labels, w.now)
	if !fleet.Setting.HeldBy(hold.Level) {
		return ""
	}
	return claimloop.HeldBack(hold.Reason)
}

// obstacle says what keeps a server from being reserved for the claim that it is written for: what its conditions tell, or a freeze that
// they do not tell of yet. It is empty where nothing is known to.
func (w *world) obstacle(s *v1alpha1.Server) string {
	return cmp.Or(claimloop.Obstacle(s), w.heldBack(s))
}
