// SPDX-License-Identifier: Apache-2.0

package rollout

import "testing"

func TestPlacesUnderACanary(t *testing.T) {
	for name, c := range map[string]struct {
		budget, cost Troubles
		unshown      int32
		want         int32
	}{
		"one at a time where it may cost nothing":              {Troubles{0, 0}, Troubles{}, 0, 1},
		"none while that one has not shown how it fares":       {Troubles{0, 0}, Troubles{}, 1, 0},
		"the smaller of both budgets and one":                  {Troubles{5, 2}, Troubles{}, 0, 3},
		"fewer by what it has cost":                            {Troubles{5, 2}, Troubles{0, 1}, 1, 1},
		"each budget by its own cost":                          {Troubles{3, 2}, Troubles{3, 0}, 0, 1},
		"none once a budget is overrun, as it is to be paused": {Troubles{0, 2}, Troubles{1, 0}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Places(c.budget, c.cost, c.unshown); got != c.want {
				t.Errorf("%d", got)
			}
		})
	}
}
