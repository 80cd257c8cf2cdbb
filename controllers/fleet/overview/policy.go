// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
)

// Policy is which revisions govern whom, and what those that do not govern would do otherwise.
type Policy struct {
	// InForce is the revision that servers come under; empty if there is none.
	InForce string `json:"inForce,omitempty"`
	// Revisions are those that govern, that are tried, or that wait.
	Revisions []Revision `json:"revisions,omitempty"`
}

// Revision is how far one revision governs.
type Revision struct {
	Name  string     `json:"name"`
	Stage string     `json:"stage,omitempty"`
	Since *time.Time `json:"since,omitempty"`
	// Servers is how many servers it governs.
	Servers int `json:"servers"`
	// Canary is its scope and cost, if it is one.
	Canary *policyv1alpha1.CanaryStatus `json:"canary,omitempty"`
	// Shadow is what it would have decided otherwise.
	Shadow *policyv1alpha1.ShadowStatus `json:"shadow,omitempty"`
	// Reason and Message are those of condition Active while it is not True.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Needs is what a person has to see to; empty if nothing.
	Needs string `json:"needs,omitempty"`
}

// stages orders revisions: what governs first, then what is tried.
var stages = []policyv1alpha1.PolicyStage{policyv1alpha1.StageActive, policyv1alpha1.StageEmbedded,
	policyv1alpha1.StageCanary,
	policyv1alpha1.StageShadow, policyv1alpha1.StageDraft, policyv1alpha1.StageSuperseded}

// policyOf says which revisions govern, are tried, or wait.
func policyOf(revisions []policyv1alpha1.PolicyRevision, servers []v1alpha1.Server) Policy {
	governed := tally{}
	for i := range servers {
		if l := servers[i].Status.Lifecycle; l != nil {
			governed[l.Revision]++
		}
	}
	var p Policy
	for i := range revisions {
		r := &revisions[i]
		one := revisionOf(r, governed[r.Name])
		active := meta.IsStatusConditionTrue(r.Status.Conditions, policyv1alpha1.ConditionActive)
		if active {
			p.InForce = r.Name
		}
		tried := r.Status.Stage == policyv1alpha1.StageCanary || r.Status.Stage == policyv1alpha1.StageShadow
		if active || tried || one.Servers > 0 || one.Needs != "" || r.AwaitsReplicas() {
			p.Revisions = append(p.Revisions, one)
		}
	}
	slices.SortFunc(p.Revisions, func(a, b Revision) int {
		if (a.Name == p.InForce) != (b.Name == p.InForce) {
			if a.Name == p.InForce {
				return -1
			}
			return 1
		}
		place := func(r Revision) int { return slices.Index(stages, policyv1alpha1.PolicyStage(r.Stage)) }
		return cmp.Or(place(a)-place(b), cmp.Compare(a.Name, b.Name))
	})
	return p
}

func revisionOf(r *policyv1alpha1.PolicyRevision, servers int) Revision {
	one := Revision{Name: r.Name, Stage: string(r.Status.Stage), Servers: servers}
	if since := r.Status.StageSince; since != nil {
		at := since.UTC()
		one.Since = &at
	}
	switch r.Status.Stage {
	case policyv1alpha1.StageCanary:
		one.Canary, one.Shadow = r.Status.Canary, r.Status.Shadow
	case policyv1alpha1.StageShadow:
		one.Shadow = r.Status.Shadow
	default:
	}
	if active := meta.FindStatusCondition(r.Status.Conditions, policyv1alpha1.ConditionActive); active != nil &&
		active.Status != metav1.ConditionTrue {
		one.Reason, one.Message = active.Reason, active.Message
	}
	switch {
	case one.Canary != nil && one.Canary.Paused:
		one.Needs = "is a canary that paused itself"
	case one.Reason == policyv1alpha1.ReasonRevisionHeld && servers > 0:
		one.Needs = "is refused by this manager and governs servers"
	case one.Reason == policyv1alpha1.ReasonPromotionMissing:
		one.Needs = "was promoted in another cluster, and nothing governs until a revision is promoted here"
	case r.AwaitsReplicas() && r.IsRefused():
		one.Needs = "waits, because a manager refuses it"
	}
	return one
}
