// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/placement"
	"github.com/metalaw/metalaw/policies"
)

var placementPath = annotationsPath.Key(v1alpha1.PlacementAnnotation)

// checkPlacement refuses a placement that cannot be read, and a change of one by which the claim's server was chosen. One that
// is stored already is not held against a change of something else.
func checkPlacement(c change[v1alpha1.ServerClaim], f claimFacts, found *findings) {
	checkKeepsPlacement(c, found)
	if _, set := written(c.old, c.new, v1alpha1.PlacementAnnotation); !set || !found.pass() {
		return
	}
	p, list := policies.PlacementOf(c.new)
	if p == nil {
		found.denyAt(placementPath.String(), "the placement cannot be read", list, inPlacement)
		return
	}
	found.warnDiagnostics(list)
	if refOf(c.new) != "" && (p.Alternatives() > 1 || p.Prefers()) {
		found.warn("%s: spec.serverRef names the server already, so that alternatives and preferred have nothing to choose; "+
			"what the placement asks must still be true of that server", placementPath)
	}
	if spread := p.Spread(); spread != nil && !spread.CountsOwn(c.new.Labels) {
		found.warn("%s: spread.claims does not match the labels of this claim: it keeps away from the claims that match, "+
			"and those do not keep away from it", placementPath)
	}
	if gang := p.Gang(); gang != nil {
		if muster, message := placement.MusterOf(append([]int64{gang.Size}, f.gang...)); muster == placement.Contradictory {
			found.warn("%s: gang %q: %s; none of them gets a server until they agree", placementPath, gang.Name, message)
		}
	}
}

// checkKeepsPlacement: once a claim has its server, its placement tells by what the server was chosen, and what other claims
// count. Comments and layout may change, and what could never be read may be mended.
func checkKeepsPlacement(c change[v1alpha1.ServerClaim], found *findings) {
	if c.created() || refOf(c.old) == "" {
		return
	}
	was, list := policies.PlacementOf(c.old)
	if list.HasErrors() {
		return
	}
	is, list := policies.PlacementOf(c.new)
	if !list.HasErrors() && was.Asks() != is.Asks() {
		found.deny(field.Forbidden(placementPath, "it cannot change once spec.serverRef is set, because other claims keep their distance by it; "+
			"delete the claim and create another"))
	}
}

// gangOf looks up the sizes that other claims of the same gang give, where a claim says anew that it is part of one.
func (l *lookup) gangOf(ctx context.Context, c change[v1alpha1.ServerClaim]) ([]int64, error) {
	if c.deleted() {
		return nil, nil
	}
	_, set := written(c.old, c.new, v1alpha1.PlacementAnnotation)
	gang := policies.GangOf(c.new)
	if !set || gang == nil {
		return nil, nil
	}
	var all v1alpha1.ServerClaimList
	if err := l.cache.List(ctx, &all, client.InNamespace(c.new.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("the claims of namespace %s cannot be read: %w", c.new.Namespace, err)
	}
	var sizes []int64
	for i := range all.Items {
		if !all.Items[i].DeletionTimestamp.IsZero() {
			continue // it counts no more
		}
		other := policies.GangOf(&all.Items[i])
		if all.Items[i].Name != c.new.Name && other != nil && other.Name == gang.Name {
			sizes = append(sizes, other.Size)
		}
	}
	return sizes, nil
}
