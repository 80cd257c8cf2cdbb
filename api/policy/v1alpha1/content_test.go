// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "testing"

func TestARevisionHoldsWhatWasFilledUpToItsContent(t *testing.T) {
	r := &PolicyRevision{Spec: PolicyRevisionSpec{Bundle: "fleet", Digest: "whole", Source: &PolicySource{Digest: "slim"}},
		Status: PolicyRevisionStatus{Heads: []LabelledHead{{Name: "a", Digest: "slim"}, {Name: "b", Digest: "slimmer"}, {Name: "c"}}}}
	for name, c := range map[string]struct {
		bundle, digest string
		want           bool
	}{
		"the whole content":                      {"fleet", "whole", true},
		"the files of the ConfigMap it was made": {"fleet", "slim", true},
		"those of another that holds it":         {"fleet", "slimmer", true},
		"not other files":                        {"fleet", "other", false},
		"not files that could not be read":       {"fleet", "", false},
		"not those of another bundle":            {"rack", "whole", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := r.Holds(c.bundle, c.digest); got != c.want {
				t.Error(got)
			}
		})
	}
}
