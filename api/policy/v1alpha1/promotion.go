// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MaxPromotion is the highest number that a promotion may have. MaxRestoredPromotion is the highest that a user may bring
// back from a backup, with room for all that follow. A revision that comes back below the number in force may have any.
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

// PromotedHere says that this very object was promoted, and did not bring its number from a backup. A revision that a
// manager had in force counts: an earlier version put restored ones in force. Only managers write a status.
func (r *PolicyRevision) PromotedHere() bool {
	mark, marked := r.Annotations[PromotedObjectAnnotation]
	switch {
	case r.Promotion() == 0:
		return false
	case r.Status.Stage == StageActive, r.Status.Stage == StageEmbedded:
		return true
	case marked:
		return mark != "" && mark == string(r.UID)
	}
	return r.Status.Stage != ""
}

// builtInFirst says that the number is the first one, which a manager gives to its built-in revision by itself.
func (r *PolicyRevision) builtInFirst() bool { return r.Spec.Source == nil && r.Promotion() == 1 }

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

// InForce is the revision with the highest promotion of those that were promoted here; nil where none was, and where
// PromotionMissing finds one. Of two with the same number it is that whose name comes first.
func InForce(revisions []PolicyRevision) *PolicyRevision {
	if PromotionMissing(revisions) != nil {
		return nil
	}
	return highest(revisions, (*PolicyRevision).PromotedHere)
}

// PromotionMissing is the restored revision for which nothing governs: another cluster promoted it, and none was promoted
// here. The built-in policy would erase disks that the site's own excuses, so a user has to say which of them governs.
func PromotionMissing(revisions []PolicyRevision) *PolicyRevision {
	chosen := func(r *PolicyRevision) bool { return r.PromotedHere() && !r.builtInFirst() }
	if highest(revisions, chosen) != nil {
		return nil
	}
	return highest(revisions, func(r *PolicyRevision) bool { return !r.PromotedHere() && !r.builtInFirst() })
}

// highest is the revision with the highest promotion of those that count; nil where none does.
func highest(revisions []PolicyRevision, counts func(*PolicyRevision) bool) (found *PolicyRevision) {
	for i := range revisions {
		r := &revisions[i]
		n := r.Promotion()
		if n > 0 && counts(r) && (found == nil || n > found.Promotion() || n == found.Promotion() && r.Name < found.Name) {
			found = r
		}
	}
	return found
}
