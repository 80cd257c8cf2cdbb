// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/claims/solve"
	"github.com/metalaw/metalaw/policies/index"
)

func TestWhatIsNotKnownOfAServerYetMayPass(t *testing.T) {
	const memory = v1alpha1.InventoryLabelPrefix + "memory-gib"
	selectors := func(e ...metav1.LabelSelectorRequirement) func(*v1alpha1.ServerClaim) {
		return func(c *v1alpha1.ServerClaim) {
			c.Spec.ServerSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"rack": "new"}, MatchExpressions: e}
		}
	}
	asksMemory := metav1.LabelSelectorRequirement{Key: memory, Operator: metav1.LabelSelectorOpExists}
	const large = "where: server.memoryGiB >= 256"
	small := func(x *index.Index) {
		inv := &policyv1alpha1.ServerInventory{Spec: policyv1alpha1.ServerInventorySpec{SystemUUID: "uuid"}}
		inv.Report = &policyv1alpha1.ProbeReport{}
		inv.Report.Data.Memory = []policyv1alpha1.MemoryDevice{{SizeBytes: 8 << 30}}
		x.SawInventory(inv)
	}
	for name, c := range map[string]struct {
		state   v1alpha1.ServerState
		taint   bool
		report  func(*index.Index)
		asks    func(*v1alpha1.ServerClaim)
		policy  string
		passing bool
		// unjudged: it is not known what the policy would say.
		unjudged bool
	}{
		"a condition, while the server is discovered":         {state: "Discovery", asks: placed(large), passing: true},
		"a condition, before anything is known":               {state: "", asks: placed(large), passing: true},
		"a condition, though the report came":                 {state: "Discovery", asks: placed(large), report: small},
		"a condition, of a server that is not discovered":     {state: "Available", asks: placed(large)},
		"a server that the claim cannot have for its taint":   {state: "Discovery", asks: placed(large), taint: true},
		"a policy that asks for cores":                        {state: "Discovery", asks: func(*v1alpha1.ServerClaim) {}, policy: rejecting("input.candidate.cores < 8"), passing: true},
		"a policy that fails for the server":                  {state: "Available", asks: func(*v1alpha1.ServerClaim) {}, policy: rejecting("1 / input.candidate.cores > 0"), unjudged: true},
		"a label of the inventory":                            {state: "Discovery", asks: selecting(memory, "256"), passing: true},
		"a label of the inventory, of a server that has none": {state: "Available", asks: selecting(memory, "256")},
		"an expression over the inventory":                    {state: "Discovery", asks: selectors(asksMemory), passing: true},
		"a label that has nothing to do with the inventory":   {state: "Discovery", asks: selecting("k", "v")},
		"another label beside the inventory's that is missing": {state: "Discovery", asks: func(c *v1alpha1.ServerClaim) {
			selectors(asksMemory)(c)
			c.Spec.ServerSelector.MatchLabels["k"] = "v"
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: "s", ResourceVersion: "1", Labels: map[string]string{"rack": "new"}},
				Spec: v1alpha1.ServerSpec{SystemUUID: "uuid"}, Status: v1alpha1.ServerStatus{State: c.state}}
			if c.taint {
				s.Spec.Taints = []v1alpha1.Taint{{Key: "broken", Effect: v1alpha1.TaintEffectNoBind}}
			}
			x := index.New()
			x.Saw(s)
			if c.report != nil {
				c.report(x)
			}
			var policy solve.Policy
			if c.policy != "" {
				policy = policyOf(t, c.policy)
			}
			if a := judged(t, x, policy, claim(c.asks)); a.Feasible() || a.Passing != c.passing || a.Unjudged != c.unjudged {
				t.Errorf("%s: feasible %t, passing %t, unjudged %t", a, a.Feasible(), a.Passing, a.Unjudged)
			}
		})
	}
}
