// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

// settleNumbers puts right what a restore, or a version that wrote less, has left of the numbers of promotions. A revision that may
// not be written keeps nobody else from being promoted, unless it is the one in force and its number is not the one it has here.
func (c *reconciler) settleNumbers(ctx context.Context, all []policyv1alpha1.PolicyRevision) error {
	governs := c.Store.rule.Load()
	for i := range all {
		r := &all[i]
		before := r.DeepCopy()
		if !settleNumber(r, governs) {
			continue
		}
		if err := c.patch(ctx, before, r); err != nil {
			if transient(err) || r.Status.Stage == "" {
				return err // by what is stored another one would govern, now or once this one has a status
			}
			c.log(ctx).Error(err, "whether the number of its promotion was given here cannot be stored; it is tried again", "revision", r.Name)
			*r = *before
			continue
		}
		if r.PromotedHere() && r.Status.Stage == "" {
			c.log(ctx).Info("the revision in force came back, and has its number again", "revision", r.Name, "promotion", r.Promotion(),
				"restored", before.Promotion())
		}
	}
	return nil
}

// settleNumber says whether it has changed anything. A revision without a status came back from a backup a moment ago.
// The one in force keeps its place. The others are marked now, while it can be told which were promoted here: later a
// restored one has a status as well.
func settleNumber(r *policyv1alpha1.PolicyRevision, governs *rule) bool {
	restored, here := r.Status.Stage == "", r.PromotedHere()
	mark, marked := r.Annotations[policyv1alpha1.PromotedObjectAnnotation]
	inForce := governs.promotion > 0 && r.Name == governs.active.Revision.Name
	switch {
	case restored && inForce && (!here || r.Promotion() < governs.promotion):
		r.SetPromotion(max(r.Promotion(), governs.promotion))
	case here && mark != string(r.UID):
		r.SetPromotion(r.Promotion())
	case marked || r.Promotion() == 0:
		return false
	case restored:
		metav1.SetMetaDataAnnotation(&r.ObjectMeta, policyv1alpha1.PromotedObjectAnnotation, policyv1alpha1.PromotedElsewhere)
	default:
		return false
	}
	return true
}
