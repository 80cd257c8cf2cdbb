// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/policies/why"
)

// What is kept free for a gang that has waited for long is written nowhere: the manager alone knows. What may be follows from what
// everybody can read, as far as the claims of other namespaces may be read.

// unseenOthers is what follows where they may not.
const unseenOthers = "claims of other namespaces are not known to you: one of them may come first, or have the server kept free for its gang"

// mayBeKept are the servers that may be kept free for gangs whose turn is before that of some claims, by name.
func (w *world) mayBeKept(ctx context.Context, claims []*v1alpha1.ServerClaim) (map[string]*v1alpha1.ServerClaim, error) {
	type key struct{ namespace, gang string }
	seen, kept := map[key]bool{}, map[string]*v1alpha1.ServerClaim{}
	if own := policies.GangOf(claims[0]); own != nil {
		seen[key{claims[0].Namespace, own.Name}] = true
	}
	first := slices.MinFunc(w.stored(claims), w.before)
	for _, c := range w.queue() {
		if w.before(first, c) <= 0 {
			break
		}
		gang := policies.GangOf(c)
		if gang == nil || c.Spec.ServerRef != nil || !policies.Musters(c) || seen[key{c.Namespace, gang.Name}] {
			continue
		}
		seen[key{c.Namespace, gang.Name}] = true
		some, err := w.mayBeKeptFor(ctx, c.Namespace, gang.Name)
		if err != nil {
			return nil, err
		}
		maps.Copy(kept, some)
	}
	return kept, nil
}

// stored are claims as they would be stored now, where they are not yet.
func (w *world) stored(claims []*v1alpha1.ServerClaim) []*v1alpha1.ServerClaim {
	all := slices.Clone(claims)
	for i, c := range all {
		if c.CreationTimestamp.IsZero() {
			all[i] = c.DeepCopy()
			all[i].CreationTimestamp = metav1.NewTime(w.now)
		}
	}
	return all
}

// mayBeKeptFor are the servers that may be kept free for one gang.
func (w *world) mayBeKeptFor(ctx context.Context, namespace, gang string) (map[string]*v1alpha1.ServerClaim, error) {
	var claims []*v1alpha1.ServerClaim
	var members []why.Member
	for i := range w.claims {
		c := &w.claims[i]
		if own := policies.GangOf(c); own != nil && own.Name == gang && c.Namespace == namespace && policies.Musters(c) {
			claims, members = append(claims, c), append(members, why.Member{Claim: c, Priority: w.priority(c)})
		}
	}
	if w.now.Before(policies.KeepsFrom(claims)) || why.Missing(w.quota(), claims, nil, w.fleet) != "" || w.forbidsAny(ctx, claims) {
		return nil, nil
	}
	return why.MayBeKept(ctx, w.policy(), w.quota(), members, w.fleet)
}

// forbidsAny says that a rule of the bundle forbids one of some claims that have no server.
func (w *world) forbidsAny(ctx context.Context, claims []*v1alpha1.ServerClaim) bool {
	return slices.ContainsFunc(claims, func(c *v1alpha1.ServerClaim) bool {
		return c.Spec.ServerRef == nil && w.forbids(ctx, c) != nil
	})
}

// doubt notes of claims that would be bound where their servers may be kept free for a gang whose turn is before, and whether others
// would do then.
func (w *world) doubt(ctx context.Context, members []why.Member, outcomes []outcome) error {
	claims := make([]*v1alpha1.ServerClaim, len(members))
	for i, m := range members {
		claims[i] = m.Claim
	}
	if !slices.ContainsFunc(outcomes, func(o outcome) bool { return o.binds }) {
		return nil
	}
	if !w.everywhere && !slices.Contains(w.notes, unseenOthers) {
		w.notes = append(w.notes, unseenOthers)
	}
	kept, err := w.mayBeKept(ctx, claims)
	if err != nil {
		return err
	}
	found := false
	for i := range outcomes {
		o := &outcomes[i]
		o.mayBeKept = o.binds && kept[o.server.Name] != nil
		found = found || o.mayBeKept
	}
	if !found {
		return nil
	}
	without, err := why.Serve(ctx, w.policy(), w.quota(), members, w.fleet.Without(kept))
	if err != nil {
		return err
	}
	for i := range outcomes {
		outcomes[i].doubtful = outcomes[i].binds && !without.Complete
	}
	return nil
}

// unless says why a claim that would get a server now may not get it; hasOthers says that others wait before it.
func (o outcome) unless(hasOthers bool) string {
	var all []string
	if hasOthers {
		all = append(all, "one of those before it takes that")
	}
	switch {
	case o.mayBeKept:
		all = append(all, "it "+keptFree)
	case o.doubtful:
		all = append(all, "that of another member "+keptFree)
	}
	if len(all) == 0 {
		return ""
	}
	return ", unless " + strings.Join(all, ", or ")
}

const keptFree = "is kept free for a gang that has waited longer"

// hesitate says of a claim that is tried what may keep it from the server that it would get.
func (t *tried) hesitate(o outcome) (note string) {
	switch {
	case !o.mayBeKept && !o.doubtful:
		return ""
	case !o.doubtful:
		return fmt.Sprintf("%s may be kept free for a gang that has waited longer, which is for the manager alone to know; "+
			"claim %s/%s gets another then", o.server.Name, t.Namespace, t.Name)
	}
	t.Binds, t.Server, t.Score = nil, "", nil
	which := o.server.Name
	if !o.mayBeKept {
		which = "the server of another member of its gang"
	}
	t.WaitsFor = "nothing, unless " + which + " " + keptFree
	return fmt.Sprintf("whether a server is kept free for a gang that has waited longer is for the manager alone to know; "+
		"where it is, claim %s/%s waits until that gang has others or is gone", t.Namespace, t.Name)
}
