// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

// checkPromotion finds out whether a policy governs: none does while the revisions of a backup wait for a promotion.
func checkPromotion(v view) finding {
	const check = "policy in force"
	if v.revisionsErr != nil {
		return unread(check, v.revisionsErr)
	}
	if r := policyv1alpha1.PromotionMissing(v.revisions); r != nil {
		return finding{check, Failed, "no policy governs, and no server moves: revision " + r.Name +
			" was promoted in another cluster, and none was here", "metalaw policy rollback --to " + r.Name}
	}
	if r := policyv1alpha1.InForce(v.revisions); r != nil {
		return finding{check, Passed, "revision " + r.Name + " governs", ""}
	}
	return finding{check, Passed, "the built-in revision governs", ""}
}
