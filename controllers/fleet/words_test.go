// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"testing"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

func TestAnExhaustedBudgetSaysForHowLongAnActionCounts(t *testing.T) {
	one, two, minute := int32(1), int32(2), int32(60)
	for name, c := range map[string]struct {
		budget policyv1alpha1.Budget
		want   string
	}{
		"the window that is the default": {policyv1alpha1.Budget{Name: "b", Action: policyv1alpha1.ActionForcedOff, Max: &one},
			`budget "b" allows 1 machine powered off by force within 10m0s, and as many are counted; metalaw fleet status says when there is room again`},
		"a window of its own": {policyv1alpha1.Budget{Name: "b", Action: policyv1alpha1.ActionPowerOn, Max: &two, WindowSeconds: &minute},
			`budget "b" allows 2 machines switched on within 1m0s, and as many are counted; metalaw fleet status says when there is room again`},
		"a wipe counts as long as it lasts": {policyv1alpha1.Budget{Name: "b", Action: policyv1alpha1.ActionWipe, Max: &one},
			`budget "b" allows 1 machine being wiped at a time, and as many are counted; metalaw fleet status says when there is room again`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := exhausted(newAccount(&c.budget, nil), nil, 0).Message; got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}
