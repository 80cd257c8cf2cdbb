// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/engine/diag"
	"github.com/metalaw/metalaw/internal/canary"
)

// stage says how far a revision governs from now on.
func (d *decision) stage(s *subject) {
	// Two promotions in one look: the one that lost stays in conflict until its label changes.
	if !s.newcomer && s.st.LabelledStage == policyv1alpha1.LabelledActive && s != d.inForce && !s.pending {
		s.conflict = s.conflict || reasonOf(&s.Status) == policyv1alpha1.ReasonConflict
	}
	stage := d.stageOf(s)
	if stage != s.Status.Stage {
		s.st.StageSince = &metav1.Time{Time: d.Now}
		if stage == policyv1alpha1.StageShadow {
			s.st.Shadow = nil
		}
	}
	s.st.Stage = stage
	d.canary(s)
	s.shadow()
}

func (d *decision) stageOf(s *subject) policyv1alpha1.PolicyStage {
	was := s.Status.Stage
	if s == d.inForce {
		if d.builtIn(s) {
			return policyv1alpha1.StageEmbedded
		}
		return policyv1alpha1.StageActive
	}
	if s.st.LabelledStage == policyv1alpha1.LabelledShadow && len(s.crowdedBy) == 0 {
		return policyv1alpha1.StageShadow
	}
	wantsCanary := s.st.LabelledStage == policyv1alpha1.LabelledCanary
	if wantsCanary && was != policyv1alpha1.StageCanary {
		if s.awaits = d.awaited(s); s.awaits == "" {
			return policyv1alpha1.StageCanary
		}
	}
	if (s.pending || wantsCanary) && (was == policyv1alpha1.StageCanary || was == policyv1alpha1.StageShadow) {
		return was // what it did until now it goes on with until it may do more
	}
	if d.governed(s) {
		return policyv1alpha1.StageSuperseded
	}
	return policyv1alpha1.StageDraft
}

// governed says that a revision was in force once, or was to be and another one was promoted after it.
func (d *decision) governed(s *subject) bool {
	was := s.Status.Stage
	governed := was == policyv1alpha1.StageEmbedded || was == policyv1alpha1.StageActive || was == policyv1alpha1.StageSuperseded
	overtaken := s.st.LabelledStage == policyv1alpha1.LabelledActive && !s.pending && !s.conflict
	return governed || overtaken || max(s.Promotion, s.Elsewhere) > 0 || s.promoted
}

// builtIn says that a revision in force was built into a manager, this one or a former one, and that no ConfigMap ever held it.
func (d *decision) builtIn(s *subject) bool {
	return s.st.Head == "" && (s.Name == d.Embedded || s.Status.Stage == policyv1alpha1.StageEmbedded)
}

// canary keeps whom a canary governs, and pauses it once it has cost more than its budget. Another scope begins anew, and so does another
// canary with the same one.
func (d *decision) canary(s *subject) {
	if s.st.Stage != policyv1alpha1.StageCanary {
		s.st.Canary = nil
		return
	}
	c := s.st.Canary
	if s.head != nil && s.head.Stage == policyv1alpha1.LabelledCanary {
		if scope := s.head.Canary; c == nil || c.Selector != scope.Selector || c.Percent != scope.Percent || s.triedAnew() {
			c = &policyv1alpha1.CanaryStatus{Selector: scope.Selector, Percent: scope.Percent, Since: metav1.Time{Time: d.Now}}
			s.st.Canary = c
			return // what was counted so far belongs to the former canary
		}
	}
	if c == nil {
		return
	}
	c.Halts, c.Errors = max(c.Halts, s.Troubles.Halts), max(c.Errors, s.Troubles.Errors)
	if s.Test != nil && !c.Paused && (c.Halts > s.Test.MaxHalts || c.Errors > s.Test.MaxErrors) {
		c.Paused, c.MaxHalts, c.MaxErrors = true, &s.Test.MaxHalts, &s.Test.MaxErrors
		c.Reason = c.Cost() + "; change its stage or its scope to go on"
	}
}

// triedAnew says that a ConfigMap that was labelled canary at the last look was labelled so again since: admission records that, also where
// no look has seen the label that it had in between.
func (s *subject) triedAnew() bool {
	prior := recorded(&s.Status)[s.head.Name]
	now := diag.ShortenedCharacters(s.head.ActivatedBy, maxRecord)
	return prior.Stage == policyv1alpha1.LabelledCanary && now != "" && now != prior.ActivatedBy
}

// maxDifferences is how many ways to differ a status keeps.
const maxDifferences = 50

// shadow adds what the evaluation has shown since the last look, also to a revision that is a shadow no more: whoever
// promoted it did so by what it had shown.
func (s *subject) shadow() {
	delta := s.Shadow
	shadowed := s.st.Stage == policyv1alpha1.StageShadow || s.Status.Stage == policyv1alpha1.StageShadow
	if delta.Evaluated == 0 && len(delta.Differences) == 0 || !shadowed {
		return
	}
	if s.st.Shadow == nil {
		s.st.Shadow = &policyv1alpha1.ShadowStatus{}
	}
	sh := s.st.Shadow
	sh.Evaluated += delta.Evaluated
	for i := range delta.Differences {
		add := delta.Differences[i]
		sh.DifferencesTotal += add.Count
		at := slices.IndexFunc(sh.Differences, func(o policyv1alpha1.ShadowDifference) bool {
			return o.State == add.State && o.Rule == add.Rule && o.ShadowRule == add.ShadowRule
		})
		if at < 0 {
			sh.Differences = append(sh.Differences, add)
			continue
		}
		add.Count += sh.Differences[at].Count
		sh.Differences[at] = add
	}
	slices.SortFunc(sh.Differences, func(a, b policyv1alpha1.ShadowDifference) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.State, b.State), strings.Compare(a.Rule, b.Rule),
			strings.Compare(a.ShadowRule, b.ShadowRule))
	})
	sh.Differences = sh.Differences[:min(len(sh.Differences), maxDifferences)]
}

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

// Places is how many more servers may come under a canary. Whoever is under it and has not shown yet how it fares may be in trouble at
// the next look: so these and the servers in trouble are never more than the budget and one, at which the canary is paused.
func Places(budget, cost Troubles, unshown int32) int32 {
	return min(budget.Halts-cost.Halts, budget.Errors-cost.Errors) + 1 - unshown
}

// ParseScope reads the annotations of a head, and says in words what is wrong with them.
func ParseScope(annotations map[string]string) (canary.Scope, error) {
	scope, faults := canary.Parse(annotations)
	var wrong []error
	for _, f := range faults {
		wrong = append(wrong, fmt.Errorf("annotation %s: %q: %s", f.Annotation(), f.Value, f))
	}
	return scope, errors.Join(wrong...)
}
