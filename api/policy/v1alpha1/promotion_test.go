// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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
				all = append(all, PolicyRevision{ObjectMeta: metav1.ObjectMeta{Name: n[0], Annotations: map[string]string{PromotionAnnotation: n[1]}}})
			}
			got := ""
			if r := InForce(all); r != nil {
				got = r.Name
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
