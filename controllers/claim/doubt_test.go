// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"testing"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/internal/restored"
)

func TestTheEndOfAClaimWaitsWhileItsServerIsInDoubt(t *testing.T) {
	c := &v1alpha1.ServerClaim{}
	c.Namespace, c.Name, c.UID = "shop", "web", "u"
	for name, test := range map[string]struct {
		uid, doubt string
		want       bool
	}{
		"its server is in doubt":           {"u", restored.Doubted, true},
		"its server is confirmed just now": {"u", restored.Confirmed, true},
		"its server is not in doubt":       {"u", "", false},
		"another's server is in doubt":     {"other", restored.Doubted, false},
		"another's server is not in doubt": {"other", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			s := &v1alpha1.Server{}
			s.Name = "a"
			s.Annotations = map[string]string{v1alpha1.ClaimUIDAnnotation: test.uid}
			s.Spec.ServerClaimRef = &v1alpha1.ObjectReference{Namespace: "shop", Name: "web"}
			if test.doubt != "" {
				s.Annotations[v1alpha1.RestoredDoubtAnnotation] = test.doubt
			}
			if got := inDoubt([]*v1alpha1.Server{s}, c) != nil; got != test.want {
				t.Errorf("waits: %t", got)
			}
		})
	}
}
