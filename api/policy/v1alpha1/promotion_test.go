// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// numbered is a revision of a ConfigMap with a number, which its own UID says was given here.
func numbered(name, number string, change ...func(*PolicyRevision)) PolicyRevision {
	r := PolicyRevision{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Annotations: map[string]string{
			PromotionAnnotation: number, PromotedObjectAnnotation: name}},
		Spec: PolicyRevisionSpec{Source: &PolicySource{}},
	}
	for _, c := range change {
		c(&r)
	}
	return r
}

func TestWhatIsInForceIsTheHighestPromotion(t *testing.T) {
	for name, c := range map[string]struct {
		numbers [][2]string
		want    string
	}{
		"of none":                            {nil, ""},
		"not of one that was never promoted": {[][2]string{{"a", ""}, {"b", "0"}}, ""},
		"as a number, not as a text":         {[][2]string{{"a", "9"}, {"b", "10"}}, "b"},
		"of two with one number the first":   {[][2]string{{"b", "7"}, {"a", "7"}, {"c", "7"}}, "a"},
		"not one that is no number":          {[][2]string{{"a", "1"}, {"b", "x"}, {"c", "-5"}}, "a"},
		"nor one beyond what anybody counts": {[][2]string{{"a", "1"}, {"b", "9223372036854775807"}, {"c", "99999999999999999999"}}, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			var all []PolicyRevision
			for _, n := range c.numbers {
				all = append(all, numbered(n[0], n[1]))
			}
			if got := nameOf(InForce(all)); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func nameOf(r *PolicyRevision) string {
	if r == nil {
		return ""
	}
	return r.Name
}

func TestWhatWasPromotedInAnotherClusterDoesNotGovern(t *testing.T) {
	elsewhere := func(r *PolicyRevision) { r.Annotations[PromotedObjectAnnotation] = "of another object" }
	unmarked := func(r *PolicyRevision) { delete(r.Annotations, PromotedObjectAnnotation) }
	builtIn := func(r *PolicyRevision) { r.Spec.Source = nil }
	at := func(stage PolicyStage) func(*PolicyRevision) {
		return func(r *PolicyRevision) { r.Status.Stage = stage }
	}
	first := numbered("default", "1", builtIn, at(StageEmbedded))
	for name, c := range map[string]struct {
		revisions        []PolicyRevision
		inForce, missing string
	}{
		"a new cluster":                          {[]PolicyRevision{numbered("default", "", builtIn)}, "", ""},
		"the built-in one":                       {[]PolicyRevision{first}, "default", ""},
		"a first draft":                          {[]PolicyRevision{first, numbered("fleet", "", at(StageDraft))}, "default", ""},
		"a first shadow":                         {[]PolicyRevision{first, numbered("fleet", "", at(StageShadow))}, "default", ""},
		"a first canary":                         {[]PolicyRevision{first, numbered("fleet", "", at(StageCanary))}, "default", ""},
		"a draft from a backup":                  {[]PolicyRevision{first, numbered("fleet", "", elsewhere)}, "default", ""},
		"a backup that comes after the manager":  {[]PolicyRevision{first, numbered("fleet", "7", elsewhere)}, "", "fleet"},
		"a backup that comes before the manager": {[]PolicyRevision{numbered("fleet", "7", elsewhere)}, "", "fleet"},
		"a backup of a version without marks":    {[]PolicyRevision{first, numbered("fleet", "7", unmarked)}, "", "fleet"},
		"the built-in one of the other cluster":  {[]PolicyRevision{first, numbered("default-0", "1", builtIn, elsewhere)}, "default", ""},
		"that was promoted there by a user":      {[]PolicyRevision{first, numbered("default-0", "3", builtIn, elsewhere)}, "", "default-0"},
		"two of a backup":                        {[]PolicyRevision{first, numbered("fleet", "7", elsewhere), numbered("fleet-0", "6", elsewhere)}, "", "fleet"},
		"a promotion here after it":              {[]PolicyRevision{first, numbered("fleet", "7", elsewhere), numbered("fleet-0", "8")}, "fleet-0", ""},
		"a promotion here before it":             {[]PolicyRevision{first, numbered("fleet", "7", elsewhere), numbered("fleet-0", "6")}, "fleet-0", ""},
		"the built-in one promoted by a user":    {[]PolicyRevision{numbered("default", "8", builtIn), numbered("fleet", "7", elsewhere)}, "default", ""},
		"an upgrade over a restored head": {[]PolicyRevision{numbered("default", "1", builtIn, at(StageSuperseded)),
			numbered("fleet", "7", elsewhere, at(StageActive))}, "fleet", ""},
		"an upgrade of a version without marks": {[]PolicyRevision{numbered("default", "1", builtIn, unmarked, at(StageSuperseded)),
			numbered("fleet", "7", unmarked, at(StageActive)), numbered("fleet-0", "6", unmarked, at(StageSuperseded))}, "fleet", ""},
		"a status that a manager wrote while nothing governed": {[]PolicyRevision{numbered("default", "1", builtIn, at(StageSuperseded)),
			numbered("fleet", "7", elsewhere, at(StageSuperseded))}, "", "fleet"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := nameOf(InForce(c.revisions)); got != c.inForce {
				t.Errorf("%q is in force, want %q", got, c.inForce)
			}
			if got := nameOf(PromotionMissing(c.revisions)); got != c.missing {
				t.Errorf("the promotion of %q is missing, want %q", got, c.missing)
			}
		})
	}
}
