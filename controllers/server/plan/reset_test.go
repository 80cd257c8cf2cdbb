// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/controllers/server/power"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/policies"
)

// setOn is the server as the acts of steps record it, up to the first that asks for permission.
func setOn(s *v1alpha1.Server, steps Steps) *v1alpha1.Server {
	s = s.DeepCopy()
	for _, a := range steps.Acts {
		switch a := a.(type) {
		case Permit:
			return s
		case Set:
			a.To(s)
		}
	}
	return s
}

func TestTheEndOfAResetIsInACondition(t *testing.T) {
	for name, c := range map[string]struct {
		job  power.Job
		want string
	}{
		"the BMC accepted it":             {power.Job{Known: true}, "Succeeded"},
		"the BMC refused it":              {power.Job{Known: true, Err: errors.New("no"), Words: "no"}, "Failed"},
		"another process was to ask":      {power.Job{}, "Failed"},
		"the BMC has not answered so far": {power.Job{Known: true, Running: true}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			server := &v1alpha1.Server{}
			server.Status.Lifecycle = &v1alpha1.LifecycleStatus{Entry: 7}
			server.Status.Operation = &v1alpha1.OperationStatus{ID: "op", Name: v1alpha1.OperationPowerCycleServer, Entry: 7,
				State: v1alpha1.OperationInProgress}
			s := Seen{Observation: policies.Observation{Server: server}, BMC: BMC{Jobs: map[string]power.Job{"op": c.job}}}
			after := setOn(server, Effect(s, engine.Effect{Name: policies.EffectResetAsAsked}))
			reason := ""
			if done := meta.FindStatusCondition(after.Status.Conditions, v1alpha1.ConditionOperationDone); done != nil {
				reason = done.Reason
			}
			if reason != c.want {
				t.Errorf("OperationDone has reason %q, want %q; the operation is %s", reason, c.want, after.Status.Operation.State)
			}
			if len(server.Status.Conditions) > 0 || server.Status.Operation.FinishedAt != nil {
				t.Error("what was seen was changed")
			}
		})
	}
}

func TestWhatIsTriedHasNoTimeOfItsOwnToLookAgain(t *testing.T) {
	server := &v1alpha1.Server{}
	steps := drafted(Seen{Observation: policies.Observation{Server: server}}, func(d *draft) (p loop.Progress) {
		p.Again = d.poll()
		return p
	})
	for _, a := range steps.Acts {
		if w, ok := a.(Wake); !ok || !w.ForBMC || w.In != 0 {
			t.Errorf("%+v", a)
		}
	}
	if len(steps.Acts) != 1 || steps.Then.Again <= 0 {
		t.Errorf("%+v", steps)
	}
}
