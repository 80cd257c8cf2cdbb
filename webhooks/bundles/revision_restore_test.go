// SPDX-License-Identifier: Apache-2.0

package bundles

import (
	"testing"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/webhooks/review"
)

func TestARestoredRevisionIsWhatItsNameAndDigestSay(t *testing.T) {
	named := func(r *policyv1alpha1.PolicyRevision) { r.Name = "fleet-1.0.0-0000000000" }
	other := func(r *policyv1alpha1.PolicyRevision) { r.Spec.Digest = "sha256:00" }
	broken := func(r *policyv1alpha1.PolicyRevision) { r.Spec.Content = []byte("x") }
	const restored = "warned: a revision is restored, as from a backup"
	may := revisionFacts{mayActivate: true}
	for name, c := range map[string]struct {
		r     *policyv1alpha1.PolicyRevision
		facts revisionFacts
		want  []string
	}{
		"as it was":                       {stored(t), may, []string{restored}},
		"without the right":               {stored(t), revisionFacts{}, []string{"denied: : Forbidden: only the manager writes it", "denied: : Forbidden: user "}},
		"under another name":              {stored(t, named), may, []string{"denied: metadata.name: Invalid value"}},
		"with another digest":             {stored(t, other), may, []string{"denied: spec.digest: Invalid value", "denied: metadata.name: Invalid value"}},
		"with content that is no archive": {stored(t, broken), may, []string{"denied: spec.content: Invalid value"}},
		"with a number that is none":      {stored(t, promoted(0)), may, []string{"denied: metadata.annotations[policy.metalaw.dev/promotion]: Invalid value"}},
	} {
		t.Run(name, func(t *testing.T) {
			var found review.Findings
			checkRestore(review.Change[policyv1alpha1.PolicyRevision]{New: c.r, User: jane}, c.facts, &found)
			check(t, &found, c.want...)
		})
	}
}
