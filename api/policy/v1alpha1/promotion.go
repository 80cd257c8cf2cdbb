// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MaxPromotion is the highest number that a promotion may have, and MaxRestoredPromotion the highest that somebody may bring
// into force from a backup: more than anybody counts, and with room for all that follow. What comes back below the number in force
// may have any.
const (
	MaxPromotion         = 1 << 53
	MaxRestoredPromotion = 1 << 40
)

// Promotion is the number of the promotion by which a revision came into force; 0 where none did, or where the annotation is
// no such number.
func (r *PolicyRevision) Promotion() int64 {
	n, err := strconv.ParseInt(r.Annotations[PromotionAnnotation], 10, 64)
	if err != nil || n < 0 || n > MaxPromotion {
		return 0
	}
	return n
}

// SetPromotion writes a promotion that takes effect here.
func (r *PolicyRevision) SetPromotion(n int64) {
	metav1.SetMetaDataAnnotation(&r.ObjectMeta, PromotionAnnotation, strconv.FormatInt(n, 10))
	if r.UID != "" {
		metav1.SetMetaDataAnnotation(&r.ObjectMeta, PromotedObjectAnnotation, string(r.UID))
	}
}

// PromotedHere says that this very object was promoted, and did not bring its number from a backup.
func (r *PolicyRevision) PromotedHere() bool {
	return r.Promotion() > 0 && r.UID != "" && r.Annotations[PromotedObjectAnnotation] == string(r.UID)
}

// AwaitsReplicas says that the promotion of a revision is asked for and waits until every manager has compiled it.
func (r *PolicyRevision) AwaitsReplicas() bool {
	active := meta.FindStatusCondition(r.Status.Conditions, ConditionActive)
	return r.Status.LabelledStage == LabelledActive && active != nil && active.Reason == ReasonAwaitingReplicas
}

// IsRefused says that some running manager refuses a revision, so that its promotion waits until that manager is gone.
func (r *PolicyRevision) IsRefused() bool {
	return slices.ContainsFunc(r.Status.Loaded, func(l LoadedRevision) bool { return l.Outcome == LoadedRefused })
}

// ProblemOf is why a ConfigMap that held a revision changes nothing; empty where it can be used, and where that is not known.
func (r *PolicyRevision) ProblemOf(configMap string) string {
	i := slices.IndexFunc(r.Status.Heads, func(h LabelledHead) bool { return h.Name == configMap })
	if i < 0 {
		return ""
	}
	return r.Status.Heads[i].Problem
}

// Cost is what a canary has cost, beside its budget where that is known.
func (c *CanaryStatus) Cost() string {
	budget := func(n *int32) string {
		if n == nil {
			return ""
		}
		return fmt.Sprintf(" (its budget is %d)", *n)
	}
	return fmt.Sprintf("%d servers were halted under it%s and %d entered Error%s", c.Halts, budget(c.MaxHalts), c.Errors, budget(c.MaxErrors))
}

// InForce is the revision with the highest promotion, which tells what is in force also where every status was lost; nil
// where none was promoted. Of two with the same number, which only a restore makes, it is that whose name comes first.
func InForce(revisions []PolicyRevision) *PolicyRevision {
	var found *PolicyRevision
	for i := range revisions {
		r := &revisions[i]
		n := r.Promotion()
		if n > 0 && (found == nil || n > found.Promotion() || n == found.Promotion() && r.Name < found.Name) {
			found = r
		}
	}
	return found
}
