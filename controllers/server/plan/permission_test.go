// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/redfish"
)

// poweredServer is a server in entry 7, whose BMC has just shown a power state.
func poweredServer(power redfish.PowerState, change ...func(*v1alpha1.Server)) Seen {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	server := &v1alpha1.Server{}
	server.Status.State = v1alpha1.StateAvailable
	server.Status.Lifecycle = &v1alpha1.LifecycleStatus{Entry: 7, EnteredAt: metav1.NewMicroTime(now.Add(-time.Hour)),
		Marks: []string{policies.MarkManaged}}
	for _, c := range change {
		c(server)
	}
	s := Seen{Observation: policies.Observation{Server: server, Now: now}, Config: Config{PowerGrace: time.Minute}}
	s.BMC.Tried, s.BMC.Begun, s.BMC.At, s.BMC.System.Power = true, now, now, power
	s.System = policies.SystemReading{Reachable: true, Identity: policies.IdentitySame, Power: string(power)}
	s.Facts = s.Observation.Facts()
	return s
}

func TestNothingIsRecordedBeforePermission(t *testing.T) {
	byItself := func(d *draft) Steps {
		then := switchOnByItself(d, engine.Effect{Earns: []string{policies.MarkManaged}})
		return Steps{Acts: d.acts, Then: then}
	}
	asked := func(s *v1alpha1.Server) {
		s.Status.Operation = &v1alpha1.OperationStatus{ID: "op", Name: v1alpha1.OperationPowerCycleServer, Entry: 7,
			State: v1alpha1.OperationPending}
	}
	for name, c := range map[string]struct {
		seen  Seen
		steps func(Seen) Steps
	}{
		"of a power-off": {poweredServer(redfish.PowerOn), func(s Seen) Steps { return Effect(s, engine.Effect{Name: policies.EffectPowerOff}) }},
		"of a power-on":  {poweredServer(redfish.PowerOff), func(s Seen) Steps { return byItself(&draft{Seen: s}) }},
		"of a reset":     {poweredServer(redfish.PowerOn, asked), func(s Seen) Steps { return Effect(s, engine.Effect{Name: policies.EffectResetAsAsked}) }},
	} {
		t.Run(name, func(t *testing.T) {
			steps := c.steps(c.seen)
			before, permitted, asked := c.seen.Server, false, false
			after := before.DeepCopy()
			for _, a := range steps.Acts {
				switch a := a.(type) {
				case Permit:
					permitted = true
				case Set:
					a.To(after)
				case Ask:
					if asked = true; !a.Stored || !permitted {
						t.Errorf("the BMC is asked for %+v, permitted: %t", a, permitted)
					}
				case Remember:
					if !permitted {
						t.Error("something is remembered of a request before it is permitted")
					}
				}
				if diff := cmp.Diff(before.Status, after.Status); diff != "" && !permitted {
					t.Errorf("recorded before it is permitted: %s", diff)
				}
			}
			if !asked || cmp.Equal(before.Status, after.Status) {
				t.Errorf("nothing is asked for or recorded: %+v", steps)
			}
		})
	}
}
