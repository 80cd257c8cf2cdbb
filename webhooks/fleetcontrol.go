// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/webhooks/deletion"
	"github.com/metalaw/metalaw/webhooks/review"
)

const (
	// clockSkew is how far the clock of whoever acknowledges a trip of the breaker may be ahead.
	clockSkew = 5 * time.Minute
	// usualMinServers is what minServers of a breaker is where it is left out.
	usualMinServers = 5
)

// fleetFacts is what was looked up for a FleetControl. What could not be looked up is left out: it leads to warnings
// only, and nothing may keep anyone from freezing the fleet.
type fleetFacts struct {
	now time.Time
	// servers is how many servers there are, counted as far as the breaker's minServers.
	servers int32
	// idle are the freezes that cover no server.
	idle []string
	// undefined are the states of the breaker that the policy in force does not define.
	undefined []string
	// policy names the revision in force.
	policy string
}

// checkFleetControl refuses what cannot mean anything. Only what is new or changed is refused: a slip that is stored
// already, or a freeze that has run out, must not keep anyone from adding another.
func checkFleetControl(c review.Change[policyv1alpha1.FleetControl], f fleetFacts, found *review.Findings) {
	if c.Deleted() {
		deletion.FleetControl(c.Old, f.now, found)
		return
	}
	spec, former := c.New.Spec, policyv1alpha1.FleetControlSpec{}
	if !c.Created() {
		former = c.Old.Spec
	}
	at := field.NewPath("spec")
	for i := range spec.Freezes {
		checkFreeze(&spec.Freezes[i], formerly(former.Freezes, spec.Freezes[i].Name, freezeName), at.Child("freezes").Index(i), f.now, found)
	}
	for i := range spec.Budgets {
		checkBudget(&spec.Budgets[i], formerly(former.Budgets, spec.Budgets[i].Name, budgetName), at.Child("budgets").Index(i), found)
	}
	if spec.Breaker != nil {
		checkBreaker(spec.Breaker, former.Breaker, f, at.Child("breaker"), found)
	}
	for _, name := range f.idle {
		found.Warn("freeze %q covers no server of the fleet at present; are its labels spelled as those of the servers?", name)
	}
}

func freezeName(f *policyv1alpha1.Freeze) string { return f.Name }
func budgetName(b *policyv1alpha1.Budget) string { return b.Name }

// formerly finds what a list held under a name; nil where it held none.
func formerly[T any](all []T, name string, nameOf func(*T) string) *T {
	for i := range all {
		if nameOf(&all[i]) == name {
			return &all[i]
		}
	}
	return nil
}

func checkFreeze(f, former *policyv1alpha1.Freeze, path *field.Path, now time.Time, found *review.Findings) {
	checkFleetName(f.Name, former == nil, path.Child("name"), found)
	same := former != nil && equality.Semantic.DeepEqual(f.Selector, former.Selector)
	checkFleetSelector(f.Selector, same, path.Child("selector"), found)
	if f.Until == nil || now.Before(f.Until.Time) || (former != nil && former.Until.Equal(f.Until)) {
		return
	}
	found.Deny(field.Invalid(path.Child("until"), f.Until.UTC().Format(time.RFC3339),
		"it is over, and the freeze would hold nothing back; give a later time, or leave it out"))
}

func checkBudget(b, former *policyv1alpha1.Budget, path *field.Path, found *review.Findings) {
	checkFleetName(b.Name, former == nil, path.Child("name"), found)
	same := former != nil && equality.Semantic.DeepEqual(b.Selector, former.Selector)
	checkFleetSelector(b.Selector, same, path.Child("selector"), found)
	if b.Per == "" {
		return
	}
	if wrong := validation.IsQualifiedName(b.Per); len(wrong) > 0 {
		refuseOrWarn(field.Invalid(path.Child("per"), b.Per, "it is no key of a label: "+strings.Join(wrong, "; ")),
			former != nil && former.Per == b.Per, "the whole fleet shares the budget", found)
	}
}

// checkFleetName: a name is written on command lines and stands in messages and labels of metrics.
func checkFleetName(name string, added bool, path *field.Path, found *review.Findings) {
	if added && name != "" && len(validation.IsDNS1123Subdomain(name)) > 0 {
		found.Deny(field.Invalid(path, name, "a name consists of lower-case letters, digits, '-' and '.', and begins and "+
			"ends with a letter or digit, like rack-7; say the rest in the reason"))
	}
}

func checkFleetSelector(s *metav1.LabelSelector, same bool, path *field.Path, found *review.Findings) {
	if s == nil {
		return
	}
	for _, err := range metavalidation.ValidateLabelSelector(s, metavalidation.LabelSelectorValidationOptions{}, path) {
		refuseOrWarn(err, same, "it covers every server", found)
	}
}

// refuseOrWarn refuses what is written anew, and tells what becomes of what is stored already.
func refuseOrWarn(err *field.Error, stored bool, meanwhile string, found *review.Findings) {
	if stored {
		found.Warn("%s: %s; until that is put right, %s", err.Field, err.ErrorBody(), meanwhile)
		return
	}
	found.Deny(err)
}

func checkBreaker(b, former *policyv1alpha1.Breaker, f fleetFacts, path *field.Path, found *review.Findings) {
	known := former != nil && former.AcknowledgedAt.Equal(b.AcknowledgedAt)
	if b.AcknowledgedAt != nil && !known && b.AcknowledgedAt.After(f.now.Add(clockSkew)) {
		found.Deny(field.Invalid(path.Child("acknowledgedAt"), b.AcknowledgedAt.UTC().Format(time.RFC3339),
			"it is still to come, and the breaker could not trip until then; write the present time, as metalaw unfreeze --breaker does"))
	}
	if least := minServers(b); f.servers > 0 && f.servers < least {
		found.Warn("%s is %d, and there are %d servers: the breaker never trips", path.Child("minServers"), least, f.servers)
	}
	for _, state := range f.undefined {
		found.Warn("%s: policy %s, which is in force, defines no state %q", path.Child("states"), f.policy, state)
	}
}

func minServers(b *policyv1alpha1.Breaker) int32 { return ptr.Deref(b.MinServers, usualMinServers) }

// judgeFleetControl looks up what checkFleetControl warns about.
func (l *lookup) judgeFleetControl(
	ctx context.Context, c review.Change[policyv1alpha1.FleetControl], found *review.Findings, _ map[string]any,
) error {
	f := fleetFacts{now: l.unique.now()}
	if !c.Deleted() {
		l.fleet(ctx, &c.New.Spec, &f)
	}
	checkFleetControl(c, f, found)
	return nil
}

// fleet looks at the cached fleet. A failure leaves a warning out, and no more.
func (l *lookup) fleet(ctx context.Context, spec *policyv1alpha1.FleetControlSpec, f *fleetFacts) {
	for i := range spec.Freezes {
		if selector := spec.Freezes[i].Selector; selector != nil && l.matchesNone(ctx, selector) {
			f.idle = append(f.idle, spec.Freezes[i].Name)
		}
	}
	if spec.Breaker == nil {
		return
	}
	var some v1alpha1.ServerList
	if l.cache.List(ctx, &some, client.Limit(int64(minServers(spec.Breaker))), client.UnsafeDisableDeepCopy) == nil {
		f.servers = int32(len(some.Items))
	}
	active := l.bundles.Active()
	f.policy = active.Revision.Name
	f.undefined = slices.DeleteFunc(slices.Clone(spec.Breaker.States), func(state string) bool {
		return active.Lifecycle.Defines(engine.State(state))
	})
}

// matchesNone says that no label of the cached fleet matches; no server is copied. Of a selector that has no meaning, or a fleet that
// cannot be read, it says nothing.
func (l *lookup) matchesNone(ctx context.Context, selector *metav1.LabelSelector) bool {
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return false // checkFleetSelector says what is wrong with it
	}
	var first v1alpha1.ServerList
	err = l.cache.List(ctx, &first, client.MatchingLabelsSelector{Selector: parsed}, client.Limit(1), client.UnsafeDisableDeepCopy)
	return err == nil && len(first.Items) == 0
}
