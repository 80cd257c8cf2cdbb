// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/placement"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/webhooks/review"
)

var placementPath = review.AnnotationsPath.Key(v1alpha1.PlacementAnnotation)

// checkPlacement refuses a placement that cannot be read, and a change of one by which the claim's server was chosen. One that
// is stored already is not held against a change of something else.
func checkPlacement(c review.Change[v1alpha1.ServerClaim], found *review.Findings) {
	checkKeepsPlacement(c, found)
	if _, set := review.Written(c.Old, c.New, v1alpha1.PlacementAnnotation); !set || !found.Pass() {
		return
	}
	p, list := policies.PlacementOf(c.New)
	if p == nil {
		found.DenyAt(placementPath.String(), "the placement cannot be read", list, review.InPlacement)
		return
	}
	found.WarnDiagnostics(list)
	if refOf(c.New) != "" && (p.Alternatives() > 1 || p.Prefers()) {
		found.Warn("%s: spec.serverRef names the server already, so that alternatives and preferred have nothing to choose; "+
			"what the placement asks must still be true of that server", placementPath)
	}
	if spread := p.Spread(); spread != nil && !spread.CountsOwn(c.New.Labels) {
		found.Warn("%s: spread.claims does not match the labels of this claim: it keeps away from the claims that match, "+
			"and those do not keep away from it", placementPath)
	}
}

// checkKeepsPlacement: once a claim has its server, its placement tells by what the server was chosen, and what other claims
// count. Comments and layout may change, and what could never be read may be mended.
func checkKeepsPlacement(c review.Change[v1alpha1.ServerClaim], found *review.Findings) {
	if c.Created() || refOf(c.Old) == "" {
		return
	}
	was, list := policies.PlacementOf(c.Old)
	if list.HasErrors() {
		return
	}
	is, list := policies.PlacementOf(c.New)
	if list.HasErrors() || was.Asks() == is.Asks() {
		return
	}
	because := "it belongs to the choice of that server"
	if countsForOthers(was) || countsForOthers(is) {
		because = "other claims keep their distance by it"
	}
	found.Deny(field.Forbidden(placementPath,
		fmt.Sprintf("it cannot change once spec.serverRef is set, because %s; delete the claim and create another", because)))
}

// countsForOthers says that a placement has something to say of other claims too.
func countsForOthers(p *placement.Placement) bool { return p.Spread() != nil || p.Gang() != nil }

// warnOfGang tells where a gang of which a claim says anew that it is a member is larger than the quota of its namespace, and where its
// claims contradict each other. To read what the others say may take long where there are many, so that nothing is told of them once
// the context has ended.
func (l *claimRules) warnOfGang(ctx context.Context, c review.Change[v1alpha1.ServerClaim], quota bundle.Quota, found *review.Findings) {
	if c.Deleted() {
		return
	}
	_, set := review.Written(c.Old, c.New, v1alpha1.PlacementAnnotation)
	gang := policies.GangOf(c.New)
	if !set || gang == nil {
		return
	}
	if words := quota.TooSmall(c.New.Namespace, gang.Size); words != "" && refOf(c.New) == "" {
		found.Warn("%s: gang %q: %s; ask who keeps the policy (settings.claims.quota of the bundle in force)", placementPath, gang.Name, words)
	}
	sizes, err := l.sizesOf(ctx, c.New, gang.Name)
	if err != nil {
		logf.FromContext(ctx).Error(err, "what the other members of a gang say could not be found out")
		return
	}
	if muster, message := placement.MusterOf(append([]int64{gang.Size}, sizes...)); muster == placement.Contradictory {
		found.Warn("%s: gang %q: %s; none of them gets a server until they agree", placementPath, gang.Name, message)
	}
}

// sizesOf are the sizes that the other claims of a gang give.
func (l *claimRules) sizesOf(ctx context.Context, c *v1alpha1.ServerClaim, gang string) ([]int64, error) {
	done, err := l.looks.take(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	var all v1alpha1.ServerClaimList
	if err := l.cache.List(ctx, &all, client.InNamespace(c.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("the claims of namespace %s cannot be read: %w", c.Namespace, err)
	}
	var sizes []int64
	for i := range all.Items {
		other := &all.Items[i]
		switch {
		case other.Name == c.Name, !other.DeletionTimestamp.IsZero(): // which counts no more
		case !strings.Contains(other.Annotations[v1alpha1.PlacementAnnotation], gang):
		case ctx.Err() != nil:
			return nil, ctx.Err()
		default:
			if is := policies.GangOf(other); is != nil && is.Name == gang {
				sizes = append(sizes, is.Size)
			}
		}
	}
	return sizes, nil
}
