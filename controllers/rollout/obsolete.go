// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"slices"
	"strings"
	"time"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

const (
	// keptOfBundle is how many revisions of each bundle are kept, the youngest, whatever they are of use for.
	keptOfBundle = 20
	// keptPromotions is how many of the last promotions stay to go back to.
	keptPromotions = 10
	// keptUnused is how long a revision is kept after its stage has changed. What is counted, such as the servers under it,
	// may be older than the stage.
	keptUnused = time.Hour
)

// obsolete lists the revisions that nothing uses and that nobody is likely to go back to, the oldest of each bundle.
func (d *decision) obsolete() []string {
	byPromotion := slices.Clone(d.all)
	number := func(s *subject) int64 { return max(s.st.Promotion, s.Elsewhere) }
	slices.SortFunc(byPromotion, func(a, b *subject) int { return cmp.Compare(number(b), number(a)) })
	last := byPromotion[:min(len(byPromotion), keptPromotions)]
	byAge := slices.Clone(d.all)
	slices.SortFunc(byAge, func(a, b *subject) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), strings.Compare(a.Name, b.Name))
	})
	var names []string
	younger := map[string]int{}
	for _, s := range byAge {
		younger[s.Bundle]++
		if younger[s.Bundle] <= keptOfBundle {
			continue
		}
		if promoted := number(s) > 0 && slices.Contains(last, s); !promoted && !d.used(s) {
			names = append(names, s.Name)
		}
	}
	slices.Sort(names)
	return names
}

// used says that a revision is of use, or was lately, or that it cannot be told. One that the manager refuses is kept for
// those who look into it.
func (d *decision) used(s *subject) bool {
	held := slices.ContainsFunc(d.Heads, func(h Head) bool {
		known := func(l policyv1alpha1.LabelledHead) bool { return l.Name == h.Name } // also while it is broken, and holds nothing
		return h.Revision == s.Name || h.Name == s.st.Head || slices.ContainsFunc(s.st.Heads, known)
	})
	refused := s.Test != nil && s.Test.Refused != ""
	unknown := s.Status.Stage == "" || s.st.StageSince == nil
	return held || refused || unknown || d.governing(s) || d.Now.Sub(s.st.StageSince.Time) < keptUnused
}

// governing says that somebody is governed by a revision, is about to be or was at the last look, or that it is evaluated.
func (d *decision) governing(s *subject) bool {
	return s == d.inForce || s.Name == d.Embedded || s.Name == d.Missing || s.pending ||
		s.Servers > 0 || s.Status.Servers > 0 ||
		governs(s.st.Stage) || governs(s.Status.Stage) || asks(s.st.LabelledStage)
}
