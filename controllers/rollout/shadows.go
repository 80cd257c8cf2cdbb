// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"slices"
	"time"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

// placeShadows finds out which of the revisions that are labelled shadow have no place among those that are evaluated: who has one
// keeps it.
func (d *decision) placeShadows() {
	var ask []*subject
	for _, s := range d.all {
		if s != d.inForce && s.st.LabelledStage == policyv1alpha1.LabelledShadow {
			ask = append(ask, s)
		}
	}
	if len(ask) <= policyv1alpha1.MaxShadows {
		return
	}
	slices.SortStableFunc(ask, func(a, b *subject) int { // they are sorted by name
		return cmp.Or(boolFirst(a.evaluated(), b.evaluated()), a.since().Compare(b.since()), a.CreatedAt.Compare(b.CreatedAt))
	})
	var placed []string
	for _, s := range ask[:policyv1alpha1.MaxShadows] {
		placed = append(placed, s.Name)
	}
	slices.Sort(placed)
	for _, s := range ask[policyv1alpha1.MaxShadows:] {
		s.crowdedBy = placed
	}
}

// evaluated says that a revision is evaluated in shadow already.
func (s *subject) evaluated() bool { return s.Status.Stage == policyv1alpha1.StageShadow }

// since is since when a revision is evaluated in shadow; the same for all that are not.
func (s *subject) since() time.Time {
	if !s.evaluated() || s.Status.StageSince == nil {
		return time.Time{}
	}
	return s.Status.StageSince.Time
}

// boolFirst sorts what is true first.
func boolFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}
