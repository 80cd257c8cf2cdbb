// SPDX-License-Identifier: Apache-2.0

package bundles

import (
	"testing"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/webhooks/review"
)

// stored is a revision whose content is what its digest says.
func stored(t *testing.T, change ...func(*policyv1alpha1.PolicyRevision)) *policyv1alpha1.PolicyRevision {
	t.Helper()
	files := bundle.Files{"bundle.yaml": []byte("name: fleet\nversion: 1.0.0\n")}
	packed, err := files.Pack()
	if err != nil {
		t.Fatal(err)
	}
	r := aRevision("fleet-a", policyv1alpha1.StageSuperseded)
	r.Spec.Version, r.Spec.Content, r.Spec.Digest = "1.0.0", packed, files.Digest()
	r.Name = bundle.RevisionName(r.Spec.Bundle, r.Spec.Version, r.Spec.Digest)
	for _, f := range change {
		f(&r)
	}
	return &r
}

func TestWhatUsersMayDoToARevision(t *testing.T) {
	label := func(r *policyv1alpha1.PolicyRevision) { r.Labels = map[string]string{"policy.metalaw.dev/x": "y"} }
	note := func(r *policyv1alpha1.PolicyRevision) { r.Annotations = map[string]string{"example.com/x": "y"} }
	damage := func(r *policyv1alpha1.PolicyRevision) { r.Spec.Content = []byte("x") }
	asksFor := func(r *policyv1alpha1.PolicyRevision) { r.Status.LabelledStage = policyv1alpha1.LabelledCanary }
	may := revisionFacts{mayActivate: true}
	for name, c := range map[string]struct {
		change review.Change[policyv1alpha1.PolicyRevision]
		facts  revisionFacts
		want   []string
	}{
		"a note of another program":          {change: review.Change[policyv1alpha1.PolicyRevision]{Old: stored(t), New: stored(t, note)}},
		"a label of ours":                    {change: review.Change[policyv1alpha1.PolicyRevision]{Old: stored(t), New: stored(t, label)}, want: []string{"denied: metadata.labels: Forbidden"}},
		"an annotation of ours":              {change: review.Change[policyv1alpha1.PolicyRevision]{Old: stored(t), New: stored(t, promoted(3))}, want: []string{"denied: metadata.annotations: Forbidden"}},
		"the content":                        {change: review.Change[policyv1alpha1.PolicyRevision]{Old: stored(t), New: stored(t, damage)}, want: []string{"denied: spec: Forbidden"}},
		"the status":                         {change: review.Change[policyv1alpha1.PolicyRevision]{Old: stored(t), New: stored(t), Status: true}, want: []string{"denied: status: Forbidden"}},
		"the end of one that serves nothing": {change: review.Change[policyv1alpha1.PolicyRevision]{Old: stored(t)}, facts: may},
		"the end of it without the right":    {change: review.Change[policyv1alpha1.PolicyRevision]{Old: stored(t)}, want: []string{"denied: : Forbidden: user "}},
		"the end of one in force":            {change: review.Change[policyv1alpha1.PolicyRevision]{Old: stored(t)}, facts: revisionFacts{mayActivate: true, use: useInForce}, want: []string{"denied: : Forbidden: the revision is in force"}},
		"the end of one that its ConfigMap asks for": {change: review.Change[policyv1alpha1.PolicyRevision]{Old: stored(t, asksFor)}, facts: may,
			want: []string{"denied: : Forbidden: ConfigMap fleet-1, which holds the bundle, bears stage canary still"}},
		"the end of one that governs a server": {change: review.Change[policyv1alpha1.PolicyRevision]{Old: stored(t)}, facts: revisionFacts{mayActivate: true, pinned: 1, server: "a"},
			want: []string{"denied: : Forbidden: server a is governed by it and adopts another revision"}},
		"the end of one that governs servers": {change: review.Change[policyv1alpha1.PolicyRevision]{Old: stored(t)}, facts: revisionFacts{mayActivate: true, pinned: 2, server: "a"},
			want: []string{"denied: : Forbidden: 2 servers (a is one) are governed by it and adopt another revision"}},
		"the end of a damaged one, whatever it is used for": {change: review.Change[policyv1alpha1.PolicyRevision]{Old: stored(t, damage)}, facts: revisionFacts{mayActivate: true, use: useInForce, pinned: 2},
			want: []string{"warned: the content of the revision is damaged"}},
		"the end of a damaged one without the right": {change: review.Change[policyv1alpha1.PolicyRevision]{Old: stored(t, damage)},
			want: []string{"denied: : Forbidden: user ", "warned: the content of the revision is damaged"}},
	} {
		t.Run(name, func(t *testing.T) {
			c.change.User = jane
			var found review.Findings
			checkRevision(c.change, c.facts, &found)
			check(t, &found, c.want...)
		})
	}
}
