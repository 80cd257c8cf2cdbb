// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"strings"
	"testing"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

func TestDoctorSaysThatNothingGoverns(t *testing.T) {
	in := func(name, madeFor string) policyv1alpha1.PolicyRevision {
		r := policyv1alpha1.PolicyRevision{Spec: policyv1alpha1.PolicyRevisionSpec{Source: &policyv1alpha1.PolicySource{}}}
		r.Name, r.UID = name, "here"
		r.Annotations = map[string]string{policyv1alpha1.PromotionAnnotation: "7", policyv1alpha1.PromotedObjectAnnotation: madeFor}
		return r
	}
	for name, c := range map[string]struct {
		revisions []policyv1alpha1.PolicyRevision
		err       error
		verdict   Verdict
		says      string
	}{
		"a new cluster":               {nil, nil, Passed, "the built-in revision governs"},
		"one that was promoted here":  {[]policyv1alpha1.PolicyRevision{in("fleet-2", "here"), in("fleet-1", "there")}, nil, Passed, "fleet-2 governs"},
		"only revisions of a backup":  {[]policyv1alpha1.PolicyRevision{in("fleet-1", "there")}, nil, Failed, "metalaw policy rollback --to fleet-1"},
		"what cannot be read is told": {nil, errors.New("forbidden"), Unknown, "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			got := checkPromotion(view{revisions: c.revisions, revisionsErr: c.err})
			if got.Verdict != c.verdict || !strings.Contains(got.Message+" "+got.Remedy, c.says) {
				t.Errorf("%+v", got)
			}
		})
	}
}
