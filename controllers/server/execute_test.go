// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/fleet"
	"github.com/metalaw/metalaw/controllers/hardware"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/controllers/server/call"
	"github.com/metalaw/metalaw/controllers/server/plan"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/redfish"
)

// strange is an act that the executor has no row for.
type strange struct{ plan.Act }

func TestTheFirstActThatIsNotDoneEndsTheSteps(t *testing.T) {
	later := plan.Set{To: func(s *v1alpha1.Server) { s.Labels = map[string]string{"later": "yes"} }}
	for name, c := range map[string]struct {
		act  plan.Act
		want string
	}{
		"one that is done":                            {plan.Permit{Actions: []fleet.Action{fleet.Setting}}, "after"},
		"one that is frozen":                          {plan.Permit{Actions: []fleet.Action{fleet.PowerCycle}}, "Frozen"},
		"one that is frozen past the cache":           {plan.Recheck{Actions: []fleet.Action{fleet.PowerCycle}}, "Frozen"},
		"one that this version does not know":         {strange{}, "UnknownEffect"},
		"one that is tried":                           {plan.Try{Steps: plan.Steps{Acts: []plan.Act{strange{}}}}, "after"},
		"one whose server was changed since the read": {plan.Confirm{Action: fleet.Record}, "StaleRead"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				control := &policyv1alpha1.FleetControl{ObjectMeta: metav1.ObjectMeta{Name: policyv1alpha1.FleetControlName}}
				control.Spec.Freezes = []policyv1alpha1.Freeze{{Name: "night", Level: policyv1alpha1.FreezeDestructive}}
				w := inWorld(t, newMachine(redfish.PowerOff), serverIn(v1alpha1.StateAvailable), control)
				v := w.manager.observe(t)
				edit(w, "a", &v1alpha1.Server{}, func(s *v1alpha1.Server) { s.Spec.SystemURI = "/other" })
				p := v.x.carryOut(t.Context(), plan.Steps{Acts: []plan.Act{c.act, later}, Then: loop.Waiting("after", "", 0)})
				if p.Reason != c.want {
					t.Errorf("the progress is %+v", p)
				}
				if done := v.server.Labels["later"] != ""; done != (c.want == "after") {
					t.Errorf("the act after it was done: %t", done)
				}
			})
		})
	}
}

func TestABMCIsAskedAfterTheRecordIsStored(t *testing.T) {
	for name, stored := range map[string]bool{"what the reconcile records": true, "what is recorded already": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(redfish.PowerOn)
				w := inWorld(t, m, serverIn(v1alpha1.StateAvailable))
				v := w.manager.observe(t)
				v.x.carryOut(t.Context(), plan.Steps{Acts: []plan.Act{plan.Ask{ID: "x", Stored: stored,
					Call: call.Reset{Action: redfish.ActionForceOff}, Actions: []fleet.Action{fleet.ForcedOff}}}})
				time.Sleep(time.Second)
				if asked := len(m.asked()); asked == 0 != stored || len(v.x.requests) == 1 != stored {
					t.Errorf("asked %d times, and %d requests are left", asked, len(v.x.requests))
				}
				for _, request := range v.x.requests {
					request()
				}
				time.Sleep(time.Second)
				m.wants(t, "in the end", "ForceOff")
			})
		})
	}
}

func TestABMCIsAskedBehindTheGuard(t *testing.T) {
	for name, c := range map[string]struct {
		changes func(*world)
		stored  bool
		sent    bool
	}{
		"as decided":                                {func(*world) {}, false, true},
		"another entry has begun":                   {anotherEntry, false, false},
		"another entry has begun after the storing": {anotherEntry, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			m, bmc := emulated(t)
			w := inWorld(t, newMachine(redfish.PowerOff), append(reserved(v1alpha1.PowerOn, func(s *v1alpha1.Server) {
				s.Spec.SystemURI = m.SystemURI()
			}), inventoryOfA())...)
			v, ended := w.manager.observe(t), make(chan struct{}, 10)
			v.x.Cache = newCache(clientsOf{bmc}, func(string) { ended <- struct{}{} })
			t.Cleanup(v.x.Cache.Close)
			if !c.stored {
				c.changes(w)
			}
			v.x.do(t.Context(), plan.Ask{ID: "x", Stored: c.stored, Call: call.Reset{Action: redfish.ActionOn}, Actions: []fleet.Action{fleet.PowerOn}})
			if c.stored {
				c.changes(w)
			}
			for _, request := range v.x.requests {
				request()
			}
			<-ended
			if got := len(m.Resets()) > 0; got != c.sent {
				t.Errorf("the BMC was asked: %t, want %t", got, c.sent)
			}
		})
	}
}

// anotherEntry has the server moved by another process.
func anotherEntry(w *world) {
	statusBecomes(func(s *v1alpha1.Server) { s.Status.Lifecycle.Entry++ })(w)
}

func TestCallsAreLookedUpAfterTheReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := inWorld(t, newMachine(redfish.PowerOn), serverIn(v1alpha1.StateAvailable))
		w.manager.run(time.Second)
		light := func(context.Context, redfish.BMC) error { time.Sleep(time.Second); return nil }
		w.manager.cache.Do("a", w.manager.observe(t).x.target, "light", light)
		w.manager.Access = func(ctx context.Context, b *v1alpha1.BMC, s bundle.Settings) (hardware.Target, error) {
			time.Sleep(2 * time.Second) // the call ends meanwhile
			return w.manager.access(ctx, b, s)
		}
		if v := w.manager.observe(t); v.seen.BMC.Busy() || !v.seen.BMC.Jobs["light"].Succeeded() {
			t.Errorf("a call that has ended counts as under way: %+v", v.seen.BMC.Jobs)
		}
	})
}

func TestASafetyRuleWaitsForAReadingAfterTheLastEffect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(redfish.PowerOn)
		m.shows.LED = redfish.LEDOff
		w := inWorld(t, m, serverIn(v1alpha1.StateAvailable, func(s *v1alpha1.Server) { s.Spec.IndicatorLED = v1alpha1.IndicatorLEDLit }))
		w.manager.observe(t)
		time.Sleep(time.Second)
		v := w.manager.observe(t)
		outcome := v.applyEffects(t.Context(), engine.Decision{Effects: []engine.Effect{{Name: policies.EffectLocate}},
			Awaits: &engine.Awaited{Effect: "PowerOff", Rule: "Rule"}})
		if outcome.Effect != "PowerOff" || outcome.Progress.Reason != "WaitsForReading" {
			t.Errorf("it relies on the reading from before the light: %+v", outcome)
		}
	})
}

func TestAServerThatCannotGoSaysWhatIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := metav1.Now()
		s := serverIn(v1alpha1.StateAvailable, func(s *v1alpha1.Server) {
			s.DeletionTimestamp, s.Status.Lifecycle.Marks = &now, []string{"Dirty", "Managed"}
			s.Annotations[v1alpha1.DeleteDataAnnotation] = "true"
		})
		refuses := true
		w := inWorld(t, newMachine(redfish.PowerOff), s)
		w.manager.Client = refusingCreation(w.api, &refuses)
		w.manager.run(time.Second)
		ready := meta.FindStatusCondition(w.server().Status.Conditions, v1alpha1.ConditionReady)
		if ready == nil || ready.Reason != v1alpha1.ReasonWriteRefused {
			t.Errorf("Ready says %+v", ready)
		}
	})
}
