// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/claims"
	"github.com/metalaw/metalaw/engine/claims/solve"
	"github.com/metalaw/metalaw/engine/selection"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/policies/index"
)

// fleetOf are servers in use, eight to a rack and 48 to a zone; every tenth is of type large, and the last one of it tainted.
func fleetOf(n int) *index.Index {
	x := index.New()
	for i := range n {
		s := &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("s-%05d", i), UID: types.UID(fmt.Sprint("u", i)), ResourceVersion: "1",
			Labels: map[string]string{v1alpha1.InstanceTypeLabel: "small", v1alpha1.ZoneLabel: fmt.Sprint("z", i/48), policies.RackMetadata: fmt.Sprint("r", i/8)}},
			Spec: v1alpha1.ServerSpec{SystemUUID: fmt.Sprint("u", i), ServerClaimRef: &v1alpha1.ObjectReference{Namespace: "other", Name: "c"},
				Unclaimable: true}}
		if i%10 == 9 {
			s.Labels[v1alpha1.InstanceTypeLabel] = "large"
		}
		if i == n-1 {
			s.Spec.Taints = []v1alpha1.Taint{{Key: "broken", Effect: v1alpha1.TaintEffectNoBind}}
		}
		s.Status.State, s.Status.PowerState = v1alpha1.StateReserved, v1alpha1.PowerStateOn
		x.Saw(s)
	}
	return x
}

func claim(change ...func(*v1alpha1.ServerClaim)) *v1alpha1.ServerClaim {
	c := &v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "c"}}
	for _, f := range change {
		f(c)
	}
	return c
}

func selecting(key, value string) func(*v1alpha1.ServerClaim) {
	return func(c *v1alpha1.ServerClaim) {
		c.Spec.ServerSelector = &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
	}
}

func placed(text string) func(*v1alpha1.ServerClaim) {
	return func(c *v1alpha1.ServerClaim) {
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, v1alpha1.PlacementAnnotation, text)
	}
}

func policyOf(t testing.TB, body string) *selection.Policy {
	t.Helper()
	p, found := selection.Compile(map[string][]byte{"selection.rego": []byte("package metalaw.selection\n" + body)})
	if p == nil {
		t.Fatal(found.Err())
	}
	return p
}

func TestJudge(t *testing.T) {
	large := selecting(v1alpha1.InstanceTypeLabel, "large")
	for name, c := range map[string]struct {
		claim   *v1alpha1.ServerClaim
		policy  string
		want    string // empty where it is feasible
		passing bool
	}{
		"any server, though all are held, cordoned and on": {claim: claim()},
		"servers of a type":            {claim: claim(large)},
		"a label that no server bears": {claim: claim(selecting("k", "v")), want: "0 of 40 servers: selector 40"},
		"the one that is tainted": {claim: claim(selecting(v1alpha1.InstanceTypeLabel, "large"), placed("where: server.name == \"s-00039\"")),
			want: "0 of 40 servers: selector 36, placement 3, taint 1"},
		"a named one that is tainted": {claim: claim(func(c *v1alpha1.ServerClaim) {
			c.Spec.ServerRef = &corev1.LocalObjectReference{Name: "s-00039"}
		}), want: "0 of 40 servers: other-server 39, taint 1"},
		"one that is tolerated": {claim: claim(func(c *v1alpha1.ServerClaim) {
			c.Spec.ServerRef = &corev1.LocalObjectReference{Name: "s-00039"}
			c.Spec.Tolerations = []v1alpha1.Toleration{{Operator: "Exists"}}
		})},
		"hardware that no server has":                      {claim: claim(placed("where: server.gpus > 0")), want: "0 of 40 servers: placement 39, taint 1"},
		"the last of several alternatives":                 {claim: claim(placed("alternatives: [{where: server.gpus > 0}, {where: server.zone == 'z0'}]"))},
		"no alternative":                                   {claim: claim(placed("alternatives: [{where: server.gpus > 0}, {where: server.zone == 'z9'}]")), want: "0 of 40 servers: placement 39, taint 1"},
		"a condition that fails for every server":          {claim: claim(placed("where: server.labels['k'] == 'v'")), want: "0 of 40 servers: placement-error 39, taint 1"},
		"a spread over a label that nobody bears":          {claim: claim(placed("spread: {key: row, claims: {matchLabels: {a: b}}}")), want: "0 of 40 servers: spread 39, taint 1"},
		"a spread over racks, however full":                {claim: claim(placed("spread: {key: rack, claims: {matchLabels: {a: b}}}"))},
		"a gang for which there are servers":               {claim: claim(large, placed("gang: {name: g, size: 3}"))},
		"a gang of which others may ask for others":        {claim: claim(large, placed("gang: {name: g, size: 4}"))},
		"how a server is at the moment may pass":           {claim: claim(placed("where: server.health == 'OK'")), want: "0 of 40 servers: placement 39, taint 1", passing: true},
		"a policy that rejects what a server is":           {claim: claim(), policy: rejecting("input.candidate.cores < 8"), want: "0 of 40 servers: small 39, taint 1"},
		"a policy that follows counts may allow":           {claim: claim(), policy: rejecting("input.fleet.claimed > 5"), want: "0 of 40 servers: small 39, taint 1", passing: true},
		"one rule that follows counts, and one that lasts": {claim: claim(), policy: rejecting("input.fleet.claimed > 5") + "\n" + theirs, want: "0 of 40 servers: small 39, theirs 39, taint 1"},
		"a rule that lasts, where another one could pass":  {claim: claim(), policy: rejecting("input.candidate.health == \"Warning\"") + "\n" + theirs, want: "0 of 40 servers: theirs 39, taint 1"},
		"a rule that lasts for all but one server": {claim: claim(), policy: rejecting("input.fleet.claimed > 5") + "\n" + strings.Replace(theirs, "\n}", "\n\tinput.candidate.name != \"s-00003\"\n}", 1),
			want: "0 of 40 servers: small 39, theirs 38, taint 1", passing: true},
		"how a server is at the moment may pass, but not whose it is": {claim: claim(placed("where: server.health == 'OK'")), policy: "allow := true\n" + theirs,
			want: "0 of 40 servers: placement 39, taint 1"},
		"a condition that names the health and holds": {claim: claim(placed("where: server.health != 'OK'")), policy: "allow := true\n" + theirs,
			want: "0 of 40 servers: theirs 39, taint 1"},
		"a policy that has nothing to judge":        {claim: claim(selecting("k", "v")), policy: rejecting("input.fleet.claimed > 5"), want: "0 of 40 servers: selector 40"},
		"a policy that gives no reason":             {claim: claim(), policy: "allow if input.claim.namespace == \"other\"", want: "0 of 40 servers: not-allowed 39, taint 1"},
		"a policy whose score alone follows counts": {claim: claim(), policy: "allow if input.claim.namespace == \"other\"\nscore := input.fleet.claimed", want: "0 of 40 servers: not-allowed 39, taint 1"},
	} {
		t.Run(name, func(t *testing.T) {
			var policy solve.Policy
			if c.policy != "" {
				policy = policyOf(t, c.policy)
			}
			a := judged(t, fleetOf(40), policy, c.claim)
			got := ""
			if !a.Feasible() {
				got = a.String()
			}
			if got != c.want || a.Passing != c.passing {
				t.Errorf("got %q (passing %t), want %q (%t)", got, a.Passing, c.want, c.passing)
			}
		})
	}
}

// theirs is a rule that reads only what lasts.
const theirs = "reject contains {\"code\": \"theirs\", \"message\": \"m\"} if {\n\tinput.claim.namespace != \"owner\"\n}"

// rejecting is a policy with one reason.
func rejecting(condition string) string {
	return "allow := true\nreject contains {\"code\": \"small\", \"message\": \"m\"} if " + condition
}

func TestWordsNameNoServer(t *testing.T) {
	for want, a := range map[string]solve.Fit{
		"no server of the fleet, in whatever state, can satisfy the claim: 0 of 4 servers: selector 4": {Total: 4, ByCode: map[string]int{"selector": 4}},
		"the claim's gang takes 5 servers, and the whole fleet has 4":                                  {Total: 4, Gang: 5, Fit: 1},
	} {
		if got := a.Words(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestAClaimThatHasNoMeaningIsNotJudged(t *testing.T) {
	for name, c := range map[string]*v1alpha1.ServerClaim{
		"a placement that cannot be read": claim(placed("where: server.gpu > 0")),
		"a selector that cannot be read": claim(func(c *v1alpha1.ServerClaim) {
			c.Spec.ServerSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "k", Operator: "Like"}}}
		}),
	} {
		if _, err := fitOf(t.Context(), index.New(), nil, c); err == nil {
			t.Errorf("%s has a meaning", name)
		}
	}
}

// What admission does for one claim, over the whole fleet. The claims that nothing satisfies cost the most: every server is
// looked at.
func BenchmarkJudge(b *testing.B) {
	shipped, err := policies.Default()
	if err != nil {
		b.Fatal(err)
	}
	const condition = "where: server.memoryGiB >= 512 && server.rack != 'r1' && label('example.com/noisy') != 'true'\n"
	strict := policyOf(b, rejecting("input.candidate.cores < 8")+"\nscore := input.fleet.claimed")
	for _, servers := range []int{100, 1000, 10000} {
		fleet := fleetOf(servers)
		for _, c := range []struct {
			name   string
			policy solve.Policy
			claim  *v1alpha1.ServerClaim
		}{
			{"feasible", shipped.Selection, claim(selecting(v1alpha1.InstanceTypeLabel, "large"))},
			{"selector", shipped.Selection, claim(selecting("k", "v"))},
			{"placement", shipped.Selection, claim(placed(condition))},
			{"policy", strict, claim()},
		} {
			asked := []*claims.Claim{policies.ClaimOf(c.claim, bundle.Priority{}, time.Time{})}
			b.Run(fmt.Sprintf("servers=%d/%s", servers, c.name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					r := solve.Solve(b.Context(), &solve.Snapshot{Fleet: fleet.Index, Policy: c.policy}, asked, solve.Want{Mode: solve.FirstFit})[0]
					if r.Err != nil || r.Fit.Feasible() != (c.name == "feasible") {
						b.Fatal(r.Fit, r.Err)
					}
				}
			})
		}
	}
}
