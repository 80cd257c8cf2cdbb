// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
)

func TestServersThatWaitForOneBudgetDoNotAskAgainAtTheSameMoment(t *testing.T) {
	waiting := racks(2000)
	for _, s := range waiting {
		s.UID = types.UID("uid-" + s.Name)
	}
	spec := &policyv1alpha1.FleetControlSpec{Budgets: []policyv1alpha1.Budget{{Name: "none-of-them", Action: "PowerOn", Max: ptr.To[int32](0)}}}
	for name, c := range map[string]struct {
		servers []*v1alpha1.Server
		within  time.Duration
		most    int // in one tenth of a second
	}{
		"2000 of them within 15 seconds":        {waiting, 15 * time.Second, 40},
		"10 of them within a tenth of a second": {waiting[:10], 100 * time.Millisecond, 10},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGate(t, spec, c.servers...)
			at := map[time.Duration]int{}
			for _, s := range c.servers {
				v := permit(t, g, s, PowerOn)
				if again := permit(t, g, s, PowerOn); v.Again != again.Again {
					t.Errorf("%s asks again in %s, and then in %s", s.Name, v.Again, again.Again)
				}
				if v.Again < askAgain || v.Again >= askAgain+c.within {
					t.Errorf("%s asks again in %s", s.Name, v.Again)
				}
				at[v.Again/(100*time.Millisecond)]++
			}
			for when, n := range at {
				if n > c.most {
					t.Errorf("%d servers ask again in tenth %d", n, when)
				}
			}
		})
	}
}
