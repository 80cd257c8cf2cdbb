// SPDX-License-Identifier: Apache-2.0

package bundles

import (
	"cmp"
	"fmt"
	"slices"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

// displaced are the revisions of bundles with other names from which a head takes servers: all of them as active, those in its scope as a
// canary. That is what is in force, and a promotion that waits for a manager or is missing. What is built in and was
// promoted by no user gives way to the first bundle that comes.
func displaced(is *head, all []policyv1alpha1.PolicyRevision) []*policyv1alpha1.PolicyRevision {
	promoted, missing := lastPromoted(all), policyv1alpha1.PromotionMissing(all)
	var found []*policyv1alpha1.PolicyRevision
	isOwn := slices.ContainsFunc(all, func(r policyv1alpha1.PolicyRevision) bool {
		return use(&r, promoted) == useInForce && r.Spec.Bundle == is.name
	})
	for i := range all {
		r := &all[i]
		// A user who may activate what is in force needs no other right to stay so, or to go back.
		governs := use(r, promoted) == useInForce || r.AwaitsReplicas() && !isOwn || missing != nil && r.Name == missing.Name
		if governs && !builtIn(r) && r.Spec.Bundle != is.name {
			found = append(found, r)
		}
	}
	slices.SortFunc(found, func(a, b *policyv1alpha1.PolicyRevision) int { return cmp.Compare(b.Promotion(), a.Promotion()) })
	return found
}

// builtIn says that a revision was built into a manager, and that no ConfigMap ever held it.
func builtIn(r *policyv1alpha1.PolicyRevision) bool {
	return r.Spec.Source == nil && r.Status.Head == ""
}

// inPlaceOf is what a refusal says to a user who may activate a bundle, and not the one that it would take servers
// from.
func inPlaceOf(is *head, r *policyv1alpha1.PolicyRevision) string {
	if is.stage == policyv1alpha1.LabelCanary {
		return fmt.Sprintf("; its revision %s is in force, or about to be, and a canary of bundle %q takes servers from it", r.Name, is.name)
	}
	return fmt.Sprintf("; its revision %s is in force, or about to be, and bundle %q would govern in its place", r.Name, is.name)
}
