// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/scheduler/feasible"
	"github.com/metalaw/metalaw/engine/bundle"
)

// causeUnsatisfiable is the type of the cause that no server could ever satisfy a claim.
const causeUnsatisfiable metav1.CauseType = "Unsatisfiable"

// longestLook bounds how long the fleet is looked at for one claim: a policy that is interpreted may take long.
const longestLook = time.Second

// feasibility is what the fleet has for a claim. Neither is set where that was not asked.
type feasibility struct {
	answer *feasible.Answer
	// unknown says that the policy could not be asked.
	unknown bool
}

// asksAnew is what an unbound claim asks for, where a change makes it ask for something that it did not before; nil where it
// does not, and where what it asks for has no meaning. A claim that has its server asks for none.
func (l *lookup) asksAnew(c change[v1alpha1.ServerClaim], b *bundle.Bundle) *feasible.Asked {
	if c.deleted() || !c.created() && refOf(c.old) != "" || !c.new.DeletionTimestamp.IsZero() {
		return nil
	}
	priority := b.Settings.Claims.Priority
	is, err := feasible.Of(c.new, priority)
	if err != nil {
		return nil
	}
	if c.created() {
		return &is
	}
	was, err := feasible.Of(c.old, priority)
	if err == nil && was.Key(b.Selection) == is.Key(b.Selection) {
		return nil
	}
	return &is
}

// feasible asks the index of the fleet. What is not known of the fleet is no reason to turn a claim away: nothing is said
// before the index is whole, and of a server that it does not know yet.
func (l *lookup) feasible(ctx context.Context, c change[v1alpha1.ServerClaim]) feasibility {
	b := l.bundles.Active()
	if b.Settings.Claims.OnUnsatisfiable == bundle.UnsatisfiableAllow || !l.servers.HasSynced() {
		return feasibility{}
	}
	asked := l.asksAnew(c, b)
	fleet := l.servers.Index()
	if asked == nil || asked.Spec.ServerRef != "" && fleet.Get(asked.Spec.ServerRef) == nil {
		return feasibility{}
	}
	looking, cancel := context.WithTimeout(ctx, longestLook)
	defer cancel()
	answer, err := feasible.Judge(looking, fleet, b.Selection, *asked, l.unique.now().Unix())
	if err != nil {
		logf.FromContext(ctx).Error(err, "whether any server could satisfy a claim could not be found out")
		return feasibility{unknown: true}
	}
	return feasibility{answer: &answer}
}

// checkFeasible turns a claim away, or warns, as the bundle says. What may pass by itself is only warned about.
func checkFeasible(f claimFacts, found *findings) {
	const until = "it stays Unbound until the fleet changes"
	a := f.fleet.answer
	switch {
	case !found.pass():
	case f.fleet.unknown:
		found.warn("whether any server could satisfy the claim is not known: the selection policy cannot be evaluated, or not in time; " +
			"the claim's condition Bound will say more")
	case a == nil || a.Feasible() && !a.TooFew():
	case a.Feasible():
		found.warn("%s; %s", a.Words(), until)
	case a.Passing:
		found.warn("%s; what turns them away may pass by itself", a.Words())
	case f.onUnsatisfiable == bundle.UnsatisfiableDeny:
		found.denials = append(found.denials, metav1.StatusCause{Type: causeUnsatisfiable, Field: field.NewPath("spec").String(),
			Message: a.Words() + "; change what it asks for (the codes are explained in docs/reference/conditions.md)"})
	default:
		found.warn("%s; %s", a.Words(), until)
	}
}
