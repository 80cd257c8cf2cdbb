// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

func TestNoMoreShadowsAreTakenThanAreEvaluated(t *testing.T) {
	shadows := func(n int) (all []client.Object) {
		for i := range n {
			all = append(all, revisionOf(t, bundleHead(), atStage(policyv1alpha1.StageShadow), func(r *policyv1alpha1.PolicyRevision) {
				r.Name, r.Spec.Bundle = fmt.Sprintf("s%d", i), "other"
			}))
		}
		return all
	}
	stored := func(stage policyv1alpha1.PolicyStage) client.Object {
		return revisionOf(t, bundleHead(), atStage(stage))
	}
	const full = "Forbidden\n" + stageField + "Forbidden: 8 bundles are evaluated in shadow, and no more are at once, because each is compiled by every manager " +
		"and evaluated at every decision. Label the ConfigMap of one of them policy.metalaw.dev/stage=draft first, or store this one as a draft: " +
		"s0, s1, s2, s3, s4, s5, s6, s7"
	draft, shadow := bundleHead(), bundleHead(staged("shadow"))
	for name, c := range map[string]struct {
		stored        []client.Object
		before, after *corev1.ConfigMap
		want          string
	}{
		"a place is left":                       {shadows(7), nil, shadow, ""},
		"none is":                               {shadows(8), nil, shadow, full},
		"none is for a draft that becomes one":  {shadows(8), draft, shadow, full},
		"none is for one that was in force":     {append(shadows(8), stored(policyv1alpha1.StageSuperseded)), draft, shadow, full},
		"a draft takes none":                    {shadows(8), nil, draft, ""},
		"nor does what is in the shadow":        {append(shadows(7), stored(policyv1alpha1.StageShadow)), nil, bundleHead(staged("shadow"), called("fleet-2")), ""},
		"nor what is in force":                  {append(shadows(8), stored(policyv1alpha1.StageActive)), draft, shadow, ""},
		"a shadow that waits is changed freely": {shadows(8), shadow, bundleHead(staged("shadow"), noted("example.com/x", "y")), ""},
		"and goes back to a draft":              {shadows(8), shadow, draft, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := bundleWorld(t, c.stored...)
			op, before := admissionv1.Create, client.Object(nil)
			if c.before != nil {
				op, before = admissionv1.Update, c.before
			}
			got, _ := w.ask(PathValidateBundle, user, op, before, c.after)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
