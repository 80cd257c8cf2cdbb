// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/webhooks/review"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func TestAFleetControlThatHoldsTheFleetIsNotDeleted(t *testing.T) {
	frozen := func(name string, until time.Duration) func(*policyv1alpha1.FleetControl) {
		return func(c *policyv1alpha1.FleetControl) {
			f := policyv1alpha1.Freeze{Name: name, Level: policyv1alpha1.FreezeAll}
			if until != 0 {
				f.Until = &metav1.Time{Time: noon.Add(until)}
			}
			c.Spec.Freezes = append(c.Spec.Freezes, f)
		}
	}
	tripped := func(c *policyv1alpha1.FleetControl) {
		c.Spec.Breaker = &policyv1alpha1.Breaker{MaxPercent: 5}
		c.Status.Trip = &policyv1alpha1.BreakerTrip{At: metav1.MicroTime{Time: noon}}
	}
	acknowledged := func(c *policyv1alpha1.FleetControl) {
		c.Spec.Breaker.AcknowledgedAt = &metav1.MicroTime{Time: noon.Add(time.Minute)}
	}
	type changes []func(*policyv1alpha1.FleetControl)
	for name, c := range map[string]struct {
		changes
		want string // the fields that stand against it
	}{
		"nothing is held":                       {nil, ""},
		"a freeze stands":                       {changes{frozen("all", 0)}, "spec.freezes[0]"},
		"a freeze stands for another hour":      {changes{frozen("all", time.Hour)}, "spec.freezes[0]"},
		"a freeze has run out":                  {changes{frozen("all", -time.Hour)}, ""},
		"each freeze that stands is named":      {changes{frozen("a", 0), frozen("b", -time.Hour), frozen("c", 0)}, "spec.freezes[0] spec.freezes[2]"},
		"the breaker is tripped":                {changes{tripped}, "status.trip"},
		"a user acknowledged the trip since":    {changes{tripped, acknowledged}, ""},
		"the breaker is tripped under a freeze": {changes{frozen("all", 0), tripped}, "spec.freezes[0] status.trip"},
	} {
		t.Run(name, func(t *testing.T) {
			control, found := &policyv1alpha1.FleetControl{}, &review.Findings{}
			for _, change := range c.changes {
				change(control)
			}
			FleetControl(control, noon, found)
			var fields []string
			for _, d := range found.Denials {
				fields = append(fields, d.Field)
				if !strings.Contains(d.Message, "metalaw unfreeze --") {
					t.Errorf("it does not say what to do: %s", d.Message)
				}
			}
			if got := strings.Join(fields, " "); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
