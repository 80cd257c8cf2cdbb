// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"slices"
	"testing"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/webhooks/review"
)

func TestTheDeletionOfAServerTellsWhatOutlivesIt(t *testing.T) {
	const before, after = "the ServerInventory of machine u keeps ", "; a new Server of the machine gets it back. To end that: "
	for name, c := range map[string]struct {
		change func(*v1alpha1.Server)
		want   []string
	}{
		"nothing was said": {func(*v1alpha1.Server) {}, nil},
		"it is cordoned": {func(s *v1alpha1.Server) { s.Spec.Unclaimable = true },
			[]string{before + "that it is cordoned" + after + "metalaw server uncordon, or kubectl delete serverinventory u"}},
		"it is decommissioned": {func(s *v1alpha1.Server) {
			s.Spec.Unclaimable = true
			s.Annotations = map[string]string{v1alpha1.DecommissionAnnotation: "old"}
		}, []string{before + "that it is decommissioned, and that it is cordoned" + after +
			"metalaw server recommission, or metalaw server uncordon, or kubectl delete serverinventory u"}},
		"it is tainted": {func(s *v1alpha1.Server) { s.Spec.Taints = []v1alpha1.Taint{{Key: "a"}} },
			[]string{before + "the taints that no ServerReadinessRule sets" + after + "kubectl delete serverinventory u"}},
	} {
		s, found := &v1alpha1.Server{Spec: v1alpha1.ServerSpec{SystemUUID: "u"}}, &review.Findings{}
		c.change(s)
		Server(s, found)
		if !slices.Equal(found.Warnings, c.want) || !found.Pass() {
			t.Errorf("%s: got %q, want %q", name, found.Warnings, c.want)
		}
	}
}
