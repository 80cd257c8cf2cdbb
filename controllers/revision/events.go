// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/controllers/loop"
)

// event tells something of a bundle on its ConfigMap.
func (c *reconciler) event(on, related runtime.Object, kind, reason, action, note string) {
	c.recorder.Eventf(on, related, kind, reason, action, "%s", loop.Shortened(note, loop.MaxNote))
}

// recordBundles tells once what is wrong with a bundle ConfigMap, and counts those that ask for more than to be a draft.
func (c *reconciler) recordBundles(bundles []bundleConfigMap) {
	refused, recorded := map[string]int{}, map[string]string{}
	for i := range bundles {
		h := &bundles[i]
		if h.Problem == "" {
			continue
		}
		if h.Stage != policyv1alpha1.LabelledDraft {
			refused[h.reason]++
		}
		recorded[h.Name] = h.reason + h.Problem
		if c.recorded[h.Name] != recorded[h.Name] {
			c.event(h.configMap, nil, corev1.EventTypeWarning, h.reason, "Accept", h.Problem)
		}
	}
	c.recorded = recorded
	c.refused.Store(&refused)
}

// warns says that an operator has to look at Active. That managers take a moment to compile a bundle is no news.
func warns(r *policyv1alpha1.PolicyRevision, active *metav1.Condition) bool {
	switch active.Reason {
	case policyv1alpha1.ReasonConflict, policyv1alpha1.ReasonRevisionHeld, policyv1alpha1.ReasonPromotionMissing:
		return true
	case policyv1alpha1.ReasonAwaitingReplicas:
		return r.IsRefused()
	default:
		return false
	}
}

// recordRevision tells what a write has changed, on the ConfigMap that holds the revision, or on the revision where none does.
func (c *reconciler) recordRevision(before, after *policyv1alpha1.PolicyRevision, bundles []bundleConfigMap) {
	var on runtime.Object = after
	if i := slices.IndexFunc(bundles, func(h bundleConfigMap) bool { return h.Name == after.Status.Head }); i >= 0 {
		on = bundles[i].configMap
	}
	was, is := meta.FindStatusCondition(before.Status.Conditions, policyv1alpha1.ConditionActive),
		meta.FindStatusCondition(after.Status.Conditions, policyv1alpha1.ConditionActive)
	if is != nil && (was == nil || was.Reason != is.Reason || warns(after, is) && !warns(before, was)) &&
		is.Reason != policyv1alpha1.ReasonNotPromoted {
		kind := corev1.EventTypeNormal
		if warns(after, is) {
			kind = corev1.EventTypeWarning
		}
		c.event(on, after, kind, is.Reason, "Rollout", after.Name+": "+is.Message)
	}
	if now := after.Status.Canary; now != nil && now.Paused && (before.Status.Canary == nil || !before.Status.Canary.Paused) {
		c.event(on, after, corev1.EventTypeWarning, policyv1alpha1.ReasonCanaryPaused, "Rollout", after.Name+": "+now.Reason)
	}
}
