// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/claims"
	"github.com/metalaw/metalaw/engine/claims/solve"
	"github.com/metalaw/metalaw/engine/placement"
	"github.com/metalaw/metalaw/engine/selection"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/policies/index"
	"github.com/metalaw/metalaw/webhooks/review"
)

// causeUnsatisfiable is the type of the cause that no server could ever satisfy a claim.
const causeUnsatisfiable metav1.CauseType = "Unsatisfiable"

// longestLook bounds how long the fleet is looked at for one claim, waiting for others included: a policy that is interpreted may take
// long. The scheduler judges the claim again in any case.
const longestLook = time.Second

// looks are how many reviews look at the fleet at once. Those that wait for their turn use no processor, so that the bundle's rules and
// the scheduler have theirs, whoever asks for how much.
type looks chan struct{}

func newLooks() looks { return make(looks, max(1, runtime.GOMAXPROCS(0)/2)) }

// take waits for a turn, which done ends. It fails where the context ends first.
func (l looks) take(ctx context.Context) (done func(), err error) {
	select {
	case l <- struct{}{}:
		return func() { <-l }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("other claims were being looked at: %w", ctx.Err())
	}
}

// lookForClaim looks whether the fleet has anything for a claim, and at the other members of its gang. The bundle's rules get to know
// satisfiable and selectorMatches, each where the request makes it a question and the answer was found in time.
func (l *claimRules) lookForClaim(ctx context.Context, c review.Change[v1alpha1.ServerClaim], found *review.Findings, facts map[string]any) {
	if c.Deleted() {
		l.noteEnd(ctx, c)
	}
	b := l.bundles.Active()
	if b.Admission != nil && b.Admission.ReadsFacts() {
		l.tellMatching(ctx, c, facts)
	}
	ctx, cancel := context.WithTimeout(ctx, l.longestLook)
	defer cancel()
	fit, err := l.feasible(ctx, c, b)
	if err != nil {
		logf.FromContext(ctx).Error(err, "whether any server could satisfy a claim could not be found out")
	}
	if fit != nil && (fit.Feasible() || !fit.Unjudged) {
		facts["satisfiable"] = fit.Feasible()
	}
	checkFeasible(c.New, fit, err != nil, b.Settings.Claims.OnUnsatisfiable, found)
	l.warnOfGang(ctx, c, b.Settings.Claims.Quota, found)
}

// tellMatching adds whether a selector that a change brings matches any server, in whatever state. Nothing is told where it brings none,
// where it has no meaning, and before the fleet is known. It costs little, so that it waits for no turn behind the claims of others: a rule
// that refuses by it has its fact.
func (l *claimRules) tellMatching(ctx context.Context, c review.Change[v1alpha1.ServerClaim], facts map[string]any) {
	if c.Deleted() || refOf(c.New) != "" || !selectorChanges(c) || !l.servers.HasSynced() {
		return
	}
	spec, err := policies.ClaimSpecOf(c.New)
	if err != nil {
		return // selectorErrors says what is wrong with it
	}
	if matching, err := l.servers.Index().MatchingWithin(ctx, spec); err == nil {
		facts["selectorMatches"] = len(matching) > 0
	}
}

// asksAnew is what an unbound claim asks for, where a change makes it ask for something that it did not before; nil where it
// does not, and where what it asks for has no meaning. A claim that has its server asks for none.
func (l *claimRules) asksAnew(c review.Change[v1alpha1.ServerClaim], b *bundle.Bundle) *claims.Claim {
	if c.Deleted() || !c.Created() && refOf(c.Old) != "" || !c.New.DeletionTimestamp.IsZero() {
		return nil
	}
	asks := func(c *v1alpha1.ServerClaim) *claims.Claim {
		one := policies.ClaimOf(c, b.Settings.Claims.Priority, l.unique.now())
		if one.Invalid != "" || one.Unplaced != "" {
			return nil
		}
		return one
	}
	is := asks(c.New)
	if is == nil || c.Created() {
		return is
	}
	policy := policyOf(b)
	if was := asks(c.Old); was != nil && solve.AskKey(policy, was) == solve.AskKey(policy, is) {
		return nil
	}
	return is
}

// policyOf is the policy that chooses servers; nil where a bundle has none.
func policyOf(b *bundle.Bundle) solve.Policy {
	if b.Selection == nil {
		return nil
	}
	return b.Selection
}

// feasible asks the index of the fleet; nil where that is no question. What is not known of the fleet is no reason to turn a claim
// away: nothing is said before the index is whole, and of a server that it does not know yet.
func (l *claimRules) feasible(ctx context.Context, c review.Change[v1alpha1.ServerClaim], b *bundle.Bundle) (*solve.Fit, error) {
	if b.Settings.Claims.OnUnsatisfiable == bundle.UnsatisfiableAllow || !l.servers.HasSynced() {
		return nil, nil
	}
	asked := l.asksAnew(c, b)
	fleet := l.servers.Index()
	if asked == nil {
		return nil, nil
	}
	if ref := asked.Spec.ServerRef; ref != "" {
		named := fleet.Get(ref)
		if named == nil || policies.ComesBack(c.New, index.Server(named)) { // which has its server, and asks for none
			return nil, nil
		}
	}
	done, err := l.looks.take(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	snapshot := &solve.Snapshot{Fleet: fleet.Index, Policy: policyOf(b), Quota: b.Settings.Claims.Quota, Now: l.unique.now().Unix()}
	one := solve.Solve(ctx, snapshot, []*claims.Claim{asked}, solve.Want{Mode: solve.FirstFit})[0]
	return one.Fit, one.Err
}

// checkFeasible turns a claim away, or warns, as the bundle says. What may pass by itself, or is not known, is only warned about:
// unknown says that the policy could not be asked, or not in time.
func checkFeasible(c *v1alpha1.ServerClaim, a *solve.Fit, unknown bool, onUnsatisfiable string, found *review.Findings) {
	switch {
	case unknown:
		found.Warn("whether any server could satisfy the claim is not known: the selection policy cannot be evaluated, or not in time; " +
			"the claim's condition Bound will say more")
	case a == nil || a.Feasible() && !a.TooFew():
	case a.Feasible():
		found.Warn("%s; %s", a.Words(), stays(c, a))
	case a.Unjudged:
		found.Warn("whether any server could satisfy the claim is not known: the selection policy cannot be evaluated for some of them (%s)", a)
	case a.Passing:
		found.Warn("%s; what turns them away may pass by itself, else %s", a.Words(), stays(c, a))
	case onUnsatisfiable == bundle.UnsatisfiableDeny:
		found.Denials = append(found.Denials, metav1.StatusCause{Type: causeUnsatisfiable, Field: field.NewPath("spec").String(),
			Message: a.Words() + "; change what it asks for (the codes are explained in docs/reference/claim-codes.md)"})
	default:
		found.Warn("%s; %s", a.Words(), stays(c, a))
	}
}

// stays says how long a claim stays Unbound which no server can satisfy. What turns servers away may be a part of the claim that can be
// changed: its tolerations, and its placement while it names no server. Its selector can not.
func stays(c *v1alpha1.ServerClaim, a *solve.Fit) string {
	var parts []string
	misplaced := a.ByCode[placement.CodePlacement] + a.ByCode[placement.CodeError] + a.ByCode[placement.CodeSpread]
	if refOf(c) == "" && (a.TooFew() || misplaced > 0) {
		parts = append(parts, "placement")
	}
	if !a.Feasible() && a.ByCode[selection.CodeTaint] > 0 {
		parts = append(parts, "tolerations")
	}
	words := "it stays Unbound until the fleet changes"
	if len(parts) > 0 {
		words += ", or the claim's " + strings.Join(parts, " or ")
	}
	if a.Matching == 0 && a.ByCode[selection.CodeSelector] > 0 {
		words += "; serverSelector cannot be changed: to ask for other labels, delete the claim and create another"
	}
	return words
}
