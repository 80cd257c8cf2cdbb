// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

// unused are revisions that were superseded long ago, the oldest first: old-0, old-1 and so on, made by promotions 1, 2 and
// so on. The last one is in force.
func unused(n int) Look {
	l := Look{Now: epoch, Embedded: "default"}
	for i := range n {
		at := epoch.Add(-time.Duration(n-i) * 24 * time.Hour)
		stage := policyv1alpha1.StageSuperseded
		if i == n-1 {
			stage = policyv1alpha1.StageActive
		}
		l.Revisions = append(l.Revisions, Revision{Name: fmt.Sprintf("old-%d", i), Bundle: "fleet", Version: fmt.Sprintf("1.%d.0", i), CreatedAt: at,
			Promotion: int64(i + 1), Test: &Test{Compiled: true}, Status: policyv1alpha1.PolicyRevisionStatus{Stage: stage,
				LabelledStage: policyv1alpha1.LabelledNone, Promotion: int64(i + 1), StageSince: &metav1.Time{Time: at}}})
	}
	return l
}

func TestWhatNothingUsesIsTakenAway(t *testing.T) {
	for name, c := range map[string]struct {
		n      int
		change func(l *Look, oldest *Revision)
		want   string
	}{
		"twenty stay":                          {20, nil, ""},
		"of more the oldest go":                {23, nil, "old-0 old-1 old-2"},
		"another bundle has its own":           {21, func(_ *Look, r *Revision) { r.Bundle = "other" }, ""},
		"not one that is in force":             {21, func(_ *Look, r *Revision) { r.Promotion, r.Status.Promotion = 99, 99 }, ""},
		"not one of the last ten promotions":   {21, func(_ *Look, r *Revision) { r.Promotion, r.Status.Promotion = 15, 15 }, ""},
		"one of an earlier promotion goes":     {21, func(_ *Look, r *Revision) { r.Promotion, r.Status.Promotion = 2, 2 }, "old-0"},
		"one that was never promoted goes":     {21, func(_ *Look, r *Revision) { r.Promotion, r.Status.Promotion = 0, 0 }, "old-0"},
		"not one that servers are pinned to":   {21, func(_ *Look, r *Revision) { r.Servers = 1 }, ""},
		"not one that had servers lately":      {21, func(_ *Look, r *Revision) { r.Status.Servers = 1 }, ""},
		"not the built-in one":                 {21, func(l *Look, r *Revision) { l.Embedded = r.Name }, ""},
		"not one that the manager refuses":     {21, func(_ *Look, r *Revision) { r.Test.Refused = "it does not compile" }, ""},
		"not one whose stage changed just now": {21, func(_ *Look, r *Revision) { r.Status.StageSince.Time = epoch.Add(-59 * time.Minute) }, ""},
		"not one that was a canary until now":  {21, func(_ *Look, r *Revision) { r.Status.Stage = policyv1alpha1.StageCanary }, ""},
		"not one without a status, which a restore brought": {21, func(_ *Look, r *Revision) {
			r.Status = policyv1alpha1.PolicyRevisionStatus{}
		}, ""},
		"not one that a ConfigMap holds": {21, func(l *Look, r *Revision) {
			l.Heads = []Head{{Name: "cm", Revision: r.Name, Stage: policyv1alpha1.LabelledDraft}}
		}, ""},
		"not one whose ConfigMap is broken": {21, func(l *Look, r *Revision) {
			r.Status.Head = "cm"
			l.Heads = []Head{{Name: "cm", Stage: policyv1alpha1.LabelledDraft, Problem: "it is half-written"}}
		}, ""},
		"not one that waits to be promoted": {21, func(l *Look, r *Revision) {
			r.Status.Head, r.Digest = "cm", "d"
			l.Heads = []Head{{Name: "cm", Revision: r.Name, Stage: policyv1alpha1.LabelledActive}}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			l := unused(c.n)
			if c.change != nil {
				c.change(&l, &l.Revisions[0])
			}
			if diff := cmp.Diff(c.want, strings.Join(Decide(l).Obsolete, " ")); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
