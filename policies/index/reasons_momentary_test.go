// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/claims/solve"
	"github.com/metalaw/metalaw/engine/selection"
	"github.com/metalaw/metalaw/policies/index"
)

// What explain says and what admission says are two readings of one thing: the claim may get the server though no user
// acts.
func TestWhatMayPassByItselfIsSoForExplainAndAdmission(t *testing.T) {
	const (
		operator, perhapsPolicy = "when an operator of the fleet acts", "perhaps by itself, else when an operator of the fleet acts"
		never, perhapsClaim     = "not, as the claim is", "perhaps by itself, else not, as the claim is"
		gpus                    = v1alpha1.InventoryLabelPrefix + "gpus"
		crowded                 = "reject contains {\"code\": \"crowded\", \"message\": \"m\"} if input.fleet.total < 5\n"
		small                   = "reject contains {\"code\": \"small\", \"message\": \"m\"} if input.candidate.cores < 8\n"
		fails                   = "reject contains {\"code\": \"dense\", \"message\": \"m\"} if 1 / input.candidate.cores > 0\n"
		ill                     = "reject contains {\"code\": \"ill\", \"message\": \"m\"} if input.candidate.health != \"OK\"\n"
	)
	reported := &policyv1alpha1.ServerInventory{Spec: policyv1alpha1.ServerInventorySpec{SystemUUID: "uuid"}, Report: &policyv1alpha1.ProbeReport{
		Data: policyv1alpha1.ProbeData{Memory: []policyv1alpha1.MemoryDevice{{SizeBytes: 8 << 30}}}}}
	for name, c := range map[string]struct {
		state            v1alpha1.ServerState
		report           *policyv1alpha1.ServerInventory
		selector         map[string]string
		placement, rules string
		code, want       string
		admission        bool
	}{
		"a rule that counts":                                  {state: "Available", rules: "allow := true\n" + crowded, code: "crowded", want: perhapsPolicy, admission: true},
		"a rule that asks for the health":                     {state: "Available", rules: "allow := true\n" + ill, code: "ill", want: perhapsPolicy, admission: true},
		"a rule that asks what the machine is":                {state: "Available", rules: "allow := true\n" + small, code: "small", want: operator},
		"a rule that counts beside one that lasts":            {state: "Available", rules: "allow := true\n" + crowded + small, code: "crowded", want: operator},
		"allow that counts":                                   {state: "Available", rules: "allow if input.fleet.total > 5\n", code: "not-allowed", want: perhapsPolicy, admission: true},
		"allow that asks who claims":                          {state: "Available", rules: "allow if input.claim.namespace == \"other\"\n", code: "not-allowed", want: operator},
		"a rule over what nobody knows yet":                   {state: "Discovery", rules: "allow := true\n" + small, code: "small", want: perhapsPolicy, admission: true},
		"a rule over what was reported":                       {state: "Discovery", report: reported, rules: "allow := true\n" + small, code: "small", want: operator},
		"a rule that fails":                                   {state: "Available", rules: "allow := true\n" + fails + ill, code: "policy-error", want: operator},
		"a rule that fails for what nobody knows yet":         {state: "Discovery", rules: "allow := true\n" + fails, code: "policy-error", want: perhapsPolicy, admission: true},
		"a placement over what nobody knows yet":              {state: "Discovery", placement: "where: server.gpus > 0", code: "placement", want: perhapsClaim, admission: true},
		"a placement over what was reported":                  {state: "Discovery", report: reported, placement: "where: server.gpus > 0", code: "placement", want: never},
		"a spread over what the server has no value for":      {state: "Available", placement: "spread: {key: nosuch, claims: {}}", code: "spread", want: never},
		"such a spread beside what may pass":                  {state: "Available", placement: "where: server.health != 'OK'\nspread: {key: nosuch, claims: {}}", code: "spread", want: perhapsClaim, admission: true},
		"such a spread, of a server that is not known yet":    {state: "Discovery", placement: "spread: {key: " + gpus + ", claims: {}}", code: "spread", want: perhapsClaim, admission: true},
		"a label of the inventory of a server not known yet":  {state: "Discovery", selector: map[string]string{gpus: "8"}, code: "selector", want: perhapsClaim, admission: true},
		"a label of the inventory of a server that is known":  {state: "Available", selector: map[string]string{gpus: "8"}, code: "selector", want: never},
		"such a label beside one that the server cannot bear": {state: "Discovery", selector: map[string]string{gpus: "8", "size": "l"}, code: "selector", want: never},
		"a label that has nothing to do with the inventory":   {state: "Discovery", selector: map[string]string{"size": "l"}, code: "selector", want: never},
	} {
		t.Run(name, func(t *testing.T) {
			s := free("a", func(s *v1alpha1.Server) { s.Status.State, s.Spec.SystemUUID = c.state, "uuid" })
			claim := &v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "mine"}}
			if c.selector != nil {
				claim.Spec.ServerSelector = &metav1.LabelSelector{MatchLabels: c.selector}
			}
			if c.placement != "" {
				metav1.SetMetaDataAnnotation(&claim.ObjectMeta, v1alpha1.PlacementAnnotation, c.placement)
			}
			var policy *selection.Policy
			if c.rules != "" {
				policy = compiled(t, "package metalaw.selection\n\n"+c.rules)
			}
			var inventories []policyv1alpha1.ServerInventory
			x := index.New()
			s.ResourceVersion = "1"
			x.Saw(&s)
			if c.report != nil {
				inventories = append(inventories, *c.report)
				x.SawInventory(c.report)
			}

			a, err := Judge(t.Context(), policy, claim, 0, FleetOf([]v1alpha1.Server{s}, inventories, nil, time.Unix(0, 0)))
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, r := range a.Verdicts[0].Reasons {
				if r.Code == c.code {
					got = a.Verdicts[0].Passing(r).Words()
				}
			}
			if got != c.want {
				t.Errorf("%s passes %s, want %s", c.code, got, c.want)
			}

			var judges solve.Policy
			if policy != nil {
				judges = policy
			}
			if said, err := fitOf(t.Context(), x, judges, claim); err != nil || said.Feasible() || said.Passing != c.admission {
				t.Errorf("admission: %s, passing %t, %v", said, said.Passing, err)
			}
		})
	}
}
