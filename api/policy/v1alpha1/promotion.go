// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
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
