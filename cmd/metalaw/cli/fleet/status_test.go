// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
)

// threeServers are s0 and s1 in rack r0, and s2 in rack r1; s0 was switched on a minute ago, and s2 is withheld from.
func threeServers() []v1alpha1.Server {
	servers := make([]v1alpha1.Server, 3)
	for i := range servers {
		s := &servers[i]
		s.Name, s.Labels = fmt.Sprintf("s%d", i), map[string]string{"rack": fmt.Sprintf("r%d", i/2)}
		s.Status.State = v1alpha1.StateReserved
	}
	servers[0].Status.Lifecycle = &v1alpha1.LifecycleStatus{Request: &v1alpha1.PowerRequest{
		Action: v1alpha1.PowerActionOn, AskedAt: metav1.NewMicroTime(noon.Add(-time.Minute))}}
	servers[2].Status.Conditions = []metav1.Condition{{Type: "Withheld", Status: "True", Reason: "Frozen", Message: `freeze "a"`,
		LastTransitionTime: metav1.NewTime(noon.Add(-time.Hour))}}
	return servers
}

func heldBack() *policyv1alpha1.FleetControl {
	c := control(
		policyv1alpha1.Freeze{Name: "a", Level: "All", Reason: "switch", By: "bob", Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"rack": "r1"}}, Until: until(noon.Add(time.Hour))},
		policyv1alpha1.Freeze{Name: "b", Level: "Destructive", Until: until(noon.Add(-time.Hour))})
	c.Spec.Budgets = []policyv1alpha1.Budget{
		{Name: "inrush", Action: policyv1alpha1.ActionPowerOn, Max: new(int32(4)), Per: "rack"},
		{Name: "single", Action: policyv1alpha1.ActionPowerOn, Max: new(int32(1))},
		{Name: "wipes", Action: policyv1alpha1.ActionWipe, Max: new(int32(2))},
		{Name: "never", Action: policyv1alpha1.ActionPowerOn, Max: new(int32(0))},
	}
	c.Spec.Breaker = &policyv1alpha1.Breaker{MaxPercent: 10}
	c.Status.Trip = &policyv1alpha1.BreakerTrip{At: metav1.NewMicroTime(noon.Add(-time.Hour)), Servers: 6, Of: 40}
	return c
}

func breaking(minServers *int32, states ...string) *policyv1alpha1.FleetControl {
	c := control()
	c.Spec.Breaker = &policyv1alpha1.Breaker{MaxPercent: 10, MinServers: minServers, States: states}
	return c
}

func TestTheStatusOfAFleet(t *testing.T) {
	for name, c := range map[string]struct {
		control *policyv1alpha1.FleetControl
		servers []v1alpha1.Server
		want    string
	}{
		"that nothing holds back": {control(), nil, `Freezes:   none

Budgets:   none

Breaker:   none

Withheld:  from no server
`},
		"with a breaker that is closed": {breaking(nil), nil, `Freezes:   none

Budgets:   none

Breaker:   closed; it trips when more than 10% of the servers, and 5 of them at least, enter Error or Cleanup

Withheld:  from no server
`},
		"with a breaker that few trip": {breaking(new(int32(3)), "Error"), nil, `Freezes:   none

Budgets:   none

Breaker:   closed; it trips when more than 10% of the servers, and 3 of them at least, enter Error

Withheld:  from no server
`},
		"that much holds back": {heldBack(), threeServers(), `Freezes:
  NAME   LEVEL         SERVERS   SELECTOR       ENDS        BY    REASON
  a      All           1 of 3    rack=r1        in 1h0m0s   bob   switch
  b      Destructive   3 of 3    every server   ended       -     -

Budgets:
  NAME     ACTION    FOR         USED                 COUNTED        ROOM
  inrush   PowerOn   rack=r0     1 of 4               within 10m0s   now
  inrush   PowerOn   rack=r1     0 of 4               within 10m0s   now
  single   PowerOn   the fleet   1 of 1               within 10m0s   in 9m0s
  wipes    Wipe      the fleet   0 of 2               at a time      now
  never    PowerOn   the fleet   1; none is allowed   within 10m0s   never

Breaker:   tripped at 2026-01-31T10:00:00Z: 6 of 40 servers had entered the states that it watches (Error, Cleanup); metalaw unfreeze --breaker closes it

Withheld:  from 1 of 3 servers
  NAME   STATE      REASON   SINCE    MESSAGE
  s2     Reserved   Frozen   1h0m0s   freeze "a"
`},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			s := statusOf(c.control, c.servers, nil, noon)
			(&page{&terminal.Terminal{Out: &out, Now: noon}}).show(&s)
			if diff := cmp.Diff(c.want, out.String()); diff != "" {
				t.Errorf("- want, + got:\n%s", diff)
			}
		})
	}
}

func TestTheStatusInJSONHasListsEvenWhereTheyAreEmpty(t *testing.T) {
	var out bytes.Buffer
	if err := terminal.OutputAs(terminal.AsJSON).Write(&out, statusOf(control(), nil, nil, noon)); err != nil {
		t.Fatal(err)
	}
	want := `{
  "servers": 0,
  "freezes": [],
  "budgets": [],
  "withheld": []
}
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("- want, + got:\n%s", diff)
	}
}
