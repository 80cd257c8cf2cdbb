// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/policies"
)

// countQuotas refuses claims that admission lets pass one by one, and for which their namespaces have no room once those before them
// are there: a dry run stores nothing.
func (w *world) countQuotas(claims []*tried) {
	before := map[string][]*v1alpha1.ServerClaim{}
	for _, t := range claims {
		if t.Admission.Answer != allowed {
			continue
		}
		namespace := t.claim.Namespace
		if words := w.overQuota(t.claim, before[namespace]); words != "" {
			t.Admission.Answer, t.Admission.Message = denied, words
			continue
		}
		before[namespace] = append(before[namespace], t.claim)
	}
	if w.bundle != nil {
		return
	}
	because := "the policy in force is not known here"
	if w.unlisted != "" {
		because = "you may not list " + w.unlisted
	}
	for _, namespace := range slices.Sorted(maps.Keys(before)) {
		if n := len(before[namespace]); n > 1 {
			w.notes = append(w.notes, fmt.Sprintf("admission was asked about each claim by itself: whether a quota of namespace %s has room for "+
				"all %d is not known, because %s", namespace, n, because))
		}
	}
}

// overQuota says that the namespace of a claim has no room for it once some others are there; empty where it has.
func (w *world) overQuota(c *v1alpha1.ServerClaim, before []*v1alpha1.ServerClaim) string {
	limit, ok := w.quota().Limit(c.Namespace)
	if !ok || slices.ContainsFunc(w.servers, func(s v1alpha1.Server) bool { return policies.ComesBack(c, &s) }) {
		return ""
	}
	u := policies.ClaimUsage{Namespace: c.Namespace, Revision: w.bundle.Revision.Name, Used: len(before), Limit: limit}
	for i := range w.claims {
		if other := &w.claims[i]; other.Namespace == c.Namespace && policies.TakesServer(other) {
			u.Used++
		}
	}
	if len(before) > 0 {
		u.Among = fmt.Sprintf("%d of them come before it here", len(before))
	}
	u.Kept = slices.ContainsFunc(w.servers, func(s v1alpha1.Server) bool { return policies.HeldFor(&s, c) })
	if words := u.Refusal(); words != "" {
		return field.Forbidden(field.NewPath("metadata", "namespace"), words).Error()
	}
	return ""
}
