// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"testing"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/policies"
)

// TestAClaimThatKeepsApartIsWokenByWhatCanMatterToIt has a claim wait that is spread over racks, from the claims of app web, on
// servers of size large, while a server changes that it cannot have.
func TestAClaimThatKeepsApartIsWokenByWhatCanMatterToIt(t *testing.T) {
	rack := func(rack string) func(*v1alpha1.Server) { return labelled(policies.RackMetadata, rack) }
	large, cleanup := labelled("size", "large"), inState("Cleanup")
	app := func(value string) func(*v1alpha1.ServerClaim) {
		return func(c *v1alpha1.ServerClaim) { c.Labels = map[string]string{"app": value} }
	}
	tainted := func(s *v1alpha1.Server) {
		s.Spec.Taints = []v1alpha1.Taint{{Key: "broken", Effect: v1alpha1.TaintEffectNoBind}}
	}
	for name, tc := range map[string]struct {
		before, after []func(*v1alpha1.Server)
		want          bool
	}{
		"another label of a server not asked for": {[]func(*v1alpha1.Server){rack("r1"), cleanup}, []func(*v1alpha1.Server){rack("r1"), cleanup, labelled("k", "v")}, false},
		"another state":                           {[]func(*v1alpha1.Server){rack("r1"), large, cleanup}, []func(*v1alpha1.Server){rack("r1"), large, inState("Error")}, false},
		"a taint that is not tolerated":           {[]func(*v1alpha1.Server){rack("r1"), large, cleanup}, []func(*v1alpha1.Server){rack("r1"), large, cleanup, tainted}, true},
		"another rack":                            {[]func(*v1alpha1.Server){rack("r1"), large, cleanup}, []func(*v1alpha1.Server){rack("r2"), large, cleanup}, true},
		"another rack, of a server not asked for": {[]func(*v1alpha1.Server){rack("r1"), cleanup}, []func(*v1alpha1.Server){rack("r2"), cleanup}, false},
		"a size that is asked for":                {[]func(*v1alpha1.Server){rack("r1"), cleanup}, []func(*v1alpha1.Server){rack("r1"), cleanup, large}, true},
		"a new server in a rack":                  {nil, []func(*v1alpha1.Server){rack("r1"), cleanup, large}, true},
		"a new server that is not asked for":      {nil, []func(*v1alpha1.Server){rack("r1"), cleanup}, false},
		"a claim that counts gets it":             {[]func(*v1alpha1.Server){rack("r1"), cleanup}, []func(*v1alpha1.Server){rack("r1"), cleanup, writtenFor("web", "uid-web")}, true},
		"a claim that counts loses it":            {[]func(*v1alpha1.Server){rack("r1"), cleanup, writtenFor("web", "uid-web")}, []func(*v1alpha1.Server){rack("r1"), cleanup}, true},
		"the server of one that counts moves": {[]func(*v1alpha1.Server){rack("r1"), cleanup, writtenFor("web", "uid-web")},
			[]func(*v1alpha1.Server){rack("r2"), cleanup, writtenFor("web", "uid-web")}, true},
		"a claim that does not count gets it": {[]func(*v1alpha1.Server){rack("r1"), cleanup}, []func(*v1alpha1.Server){rack("r1"), cleanup, writtenFor("db", "uid-db")}, false},
		"a claim that nobody knows gets it":   {[]func(*v1alpha1.Server){rack("r1"), cleanup}, []func(*v1alpha1.Server){rack("r1"), cleanup, writtenFor("x", "uid-x")}, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.s.claimChanged(aClaim("waits", selecting("size", "large"), placed("spread: {key: rack, claims: {matchLabels: {app: web}}}")))
			w.s.claimChanged(aClaim("web", app("web"), naming("a"), confirmedClaim))
			w.s.claimChanged(aClaim("db", app("db"), naming("b"), confirmedClaim))
			if tc.before != nil {
				w.s.serverChanged(w.s.fleet.Saw(aServer("s", tc.before...)))
			}
			w.s.pending.take(w.s.claims().Priority, w.now)
			w.s.serverChanged(w.s.fleet.Saw(aServer("s", append(tc.after, at("2"))...)))
			woken := false
			for _, a := range w.s.pending.take(w.s.claims().Priority, w.now) {
				woken = woken || a.claim.Name == "waits"
			}
			if woken != tc.want {
				t.Errorf("it is looked at: %t, want %t", woken, tc.want)
			}
		})
	}
}
