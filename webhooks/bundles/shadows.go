// SPDX-License-Identifier: Apache-2.0

package bundles

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/webhooks/review"
)

// judgeShadows refuses a shadow for which there is no place: a user who may store bundles could otherwise have any
// number of them evaluated at every decision. The manager holds the bound too, so that many at once do not pass it.
func (l *Rules) judgeShadows(ctx context.Context, was, is *head, c *Examined, found *review.Findings) error {
	asks := is.stage == policyv1alpha1.LabelShadow && (was == nil || was.name != is.name || was.stage != is.stage)
	if !asks || !c.accepted() {
		return nil
	}
	all, err := l.revisions(ctx)
	if err != nil {
		return err
	}
	promoted := lastPromoted(all)
	var shadows []string
	for i := range all {
		r := &all[i]
		if r.Spec.Bundle == c.Name && r.Spec.Digest == c.digest && slices.Contains([]string{useInForce, useShadow}, use(r, promoted)) {
			return nil // it takes no further place
		}
		if r.Status.Stage == policyv1alpha1.StageShadow {
			shadows = append(shadows, r.Name)
		}
	}
	if len(shadows) < policyv1alpha1.MaxShadows {
		return nil
	}
	slices.Sort(shadows)
	found.Deny(field.Forbidden(labelsPath.Key(policyv1alpha1.StageLabel), fmt.Sprintf(
		"%d bundles are evaluated in shadow, and no more are at once, because each is compiled by every manager and evaluated at every "+
			"decision. Label the ConfigMap of one of them %s=%s first, or store this one as a draft: %s",
		len(shadows), policyv1alpha1.StageLabel, policyv1alpha1.LabelDraft, strings.Join(shadows, ", "))))
	return nil
}
