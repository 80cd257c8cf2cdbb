// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/claims"
)

func TestWhatIsHeldCountsForAQuota(t *testing.T) {
	missing := func(status metav1.ConditionStatus, reason string) *v1alpha1.Server {
		return &v1alpha1.Server{Status: v1alpha1.ServerStatus{Conditions: []metav1.Condition{
			{Type: v1alpha1.ConditionClaimMissing, Status: status, Reason: reason}}}}
	}
	released := missing(metav1.ConditionTrue, v1alpha1.ReasonClaimNotFound)
	released.Annotations = map[string]string{v1alpha1.ClaimUIDAnnotation: "u", v1alpha1.ReleasedClaimAnnotation: "u"}
	for name, c := range map[string]struct {
		server *v1alpha1.Server
		want   claims.Held
	}{
		"a claim that is there":                     {&v1alpha1.Server{}, claims.Held{Servers: 1}},
		"a claim that is gone":                      {missing(metav1.ConditionTrue, v1alpha1.ReasonClaimNotFound), claims.Held{Servers: 1, Orphaned: 1}},
		"a claim that was made anew under its name": {missing(metav1.ConditionTrue, v1alpha1.ReasonClaimUIDMismatch), claims.Held{Servers: 1, Orphaned: 1}},
		"a claim that names another server":         {missing(metav1.ConditionTrue, v1alpha1.ReasonClaimNamesAnother), claims.Held{Servers: 1}},
		"a claim that came back":                    {missing(metav1.ConditionFalse, v1alpha1.ReasonClaimNotFound), claims.Held{Servers: 1}},
		"a claim that was released":                 {released, claims.Held{}},
	} {
		t.Run(name, func(t *testing.T) {
			if h := HeldOf(c.server); h != c.want {
				t.Errorf("%+v, want %+v", h, c.want)
			}
		})
	}
}

func TestAQuotaThatOrphanedServersFillSaysSo(t *testing.T) {
	const full = "the claims of the namespace have 4 of the 4 servers that its quota allows; " +
		"this one gets a server once another has ended, or the quota is raised"
	for name, c := range map[string]struct {
		limit int
		held  claims.Held
		want  string
	}{
		"there is room":    {5, claims.Held{Servers: 4, Orphaned: 4}, ""},
		"no claim is gone": {4, claims.Held{Servers: 4, Orphaned: 0}, full},
		"some claims are gone": {4, claims.Held{Servers: 4, Orphaned: 3}, full + "; counted are servers held for claims that are gone (3). " +
			"Ask an operator of the fleet to release them, or create such a claim again under its name, with the spec.serverRef that it had"},
		"no server is allowed":    {0, claims.Held{Servers: 4, Orphaned: 3}, "the quota of the namespace allows its claims no server; this one gets one once the quota is raised"},
		"the namespace has fewer": {4, claims.Held{Servers: 3, Orphaned: 1}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := claims.QuotaExceeded(bundle.Quota{Default: &c.limit}, "ns", c.held, 1); got != c.want {
				t.Error(got)
			}
		})
	}
}
