// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/hardware"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/redfish"
)

func TestAPowerChangeIsRecordedBeforeTheBMCHearsOfIt(t *testing.T) {
	for name, c := range map[string]struct {
		found redfish.PowerState
		claim v1alpha1.Power
		want  string
	}{
		"a power-on": {redfish.PowerOff, v1alpha1.PowerOn, "On"},
		"a shutdown": {redfish.PowerOn, v1alpha1.PowerOff, "GracefulShutdown"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(c.found)
				w := inWorld(t, m, reserved(c.claim)...)
				var recorded []string
				m.hears = func(string) { recorded = append(recorded, w.request()) }
				w.manager.run(10 * time.Second)
				m.wants(t, "in the end", c.want)
				for _, r := range recorded {
					if r != c.want {
						t.Errorf("when the BMC heard of it the record was %q, want %q", r, c.want)
					}
				}
			})
		})
	}
}

func TestWhatCannotBeRecordedIsNotAsked(t *testing.T) {
	for name, answer := range map[string]error{"the API server is down": errDown, "somebody else wrote first": errConflict} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(redfish.PowerOff)
				w := inWorld(t, m, reserved(v1alpha1.PowerOn)...)
				w.refuses = func(s *v1alpha1.Server) error {
					if s.Status.Lifecycle.Request != nil {
						return answer
					}
					return nil
				}
				w.manager.run(time.Minute)
				m.wants(t, "while nothing could be stored")
				w.refuses = nil
				w.manager.run(10 * time.Second)
				m.wants(t, "once it could be stored", "On")
			})
		})
	}
}

func TestWhatWasRecordedByAWriteWhoseAnswerWasLostIsAskedOnceAfterTheGrace(t *testing.T) {
	for name, c := range map[string]struct {
		found redfish.PowerState
		claim v1alpha1.Power
		want  string
	}{
		"a power-on": {redfish.PowerOff, v1alpha1.PowerOn, "On"},
		"a shutdown": {redfish.PowerOn, v1alpha1.PowerOff, "GracefulShutdown"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(c.found)
				w := inWorld(t, m, reserved(c.claim)...)
				w.losesAnswer(func(s *v1alpha1.Server) bool { return s.Status.Lifecycle.Request != nil })
				w.manager.run(testPowerGrace - 5*time.Second)
				if got := w.request(); got != c.want {
					t.Fatalf("recorded is %q", got)
				}
				m.wants(t, "within the grace")
				w.manager.run(10 * time.Minute)
				m.wants(t, "after the grace", c.want)
			})
		})
	}
}

func TestAResetWhoseBeginningWasStoredByAWriteWhoseAnswerWasLostIsNeverAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(redfish.PowerOn)
		objects := reserved(v1alpha1.PowerOn)
		objects[0].SetAnnotations(map[string]string{v1alpha1.ClaimUIDAnnotation: "uid-web",
			v1alpha1.OperationAnnotation: v1alpha1.OperationHardRestartServer})
		w := inWorld(t, m, objects...)
		w.losesAnswer(func(s *v1alpha1.Server) bool {
			return s.Status.Operation != nil && s.Status.Operation.State == v1alpha1.OperationInProgress
		})
		w.manager.run(10 * time.Minute)
		m.wants(t, "in the end")
		if op := w.server().Status.Operation; op.State != v1alpha1.OperationFailed {
			t.Errorf("the operation is %s: %s", op.State, op.Message)
		}
	})
}

// losesAnswer stores the first status that is so, and answers with an error all the same.
func (w *world) losesAnswer(is func(*v1alpha1.Server) bool) {
	w.refuses = func(s *v1alpha1.Server) error {
		if !is(s) {
			return nil
		}
		w.refuses = nil
		if err := w.api.Status().Update(w.t.Context(), s.DeepCopy()); err != nil {
			return err
		}
		return errDown
	}
}

func TestAManagerThatComesAfterOneWhichDiedBetweenRecordAndRequestAsksOnceAfterTheGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(redfish.PowerOff)
		w := inWorld(t, m, reserved(v1alpha1.PowerOn)...)
		w.manager.dies = true
		w.manager.run(10 * time.Second)
		if got := w.request(); got != "On" {
			t.Fatalf("recorded is %q", got)
		}
		m.wants(t, "before the manager died")
		recorded := time.Now()
		time.Sleep(10 * time.Second)

		w.start().run(testPowerGrace - time.Since(recorded) - time.Second)
		m.wants(t, "within the grace")
		w.manager.run(10 * time.Minute)
		m.wants(t, "after the grace", "On")
	})
}

func TestAManagerThatComesAfterOneWhichDiedAfterTheRequestNeverAsksTwice(t *testing.T) {
	for name, c := range map[string]struct {
		found redfish.PowerState
		claim v1alpha1.Power
		want  string
	}{
		"a power-on": {redfish.PowerOff, v1alpha1.PowerOn, "On"},
		"a shutdown": {redfish.PowerOn, v1alpha1.PowerOff, "GracefulShutdown"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(c.found)
				m.obeys = slowly(testPowerGrace - 5*time.Second)
				w := inWorld(t, m, reserved(c.claim)...)
				w.manager.run(5 * time.Second)
				m.wants(t, "before the manager died", c.want)
				for range 4 { // managers that come and go
					w.start().run(5 * time.Second)
				}
				w.start().run(9 * time.Minute)
				m.wants(t, "in the end", c.want)
				if got := w.request(); got != c.want+" shown" {
					t.Errorf("recorded is %q", got)
				}
			})
		})
	}
}

func TestAMachineThatObeysAtTheLastMomentIsNotAskedTwice(t *testing.T) {
	for name, c := range map[string]struct {
		found redfish.PowerState
		claim v1alpha1.Power
		want  string
	}{
		"a power-on": {redfish.PowerOff, v1alpha1.PowerOn, "On"},
		"a shutdown": {redfish.PowerOn, v1alpha1.PowerOff, "GracefulShutdown"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(c.found)
				m.obeys = slowly(testPowerGrace - time.Second)
				w := inWorld(t, m, reserved(c.claim)...)
				w.manager.run(time.Second)
				m.wants(t, "before the manager died", c.want)
				time.Sleep(time.Until(w.server().Status.Lifecycle.Request.AskedAt.Add(testPowerGrace - 2*time.Second)))

				w.start().run(9 * time.Minute) // its first reading is two seconds old when the grace ends
				m.wants(t, "in the end", c.want)
				if got := w.request(); got != c.want+" shown" {
					t.Errorf("recorded is %q", got)
				}
			})
		})
	}
}

func TestARequestThatFailedIsMadeAgainWhenItMayBe(t *testing.T) {
	refused := func(status int, after time.Duration) error {
		return &redfish.ResponseError{Method: "POST", Status: status, RetryAfter: after}
	}
	for name, c := range map[string]struct {
		answer error
		after  time.Duration // the first time; twice that each further time
		most   time.Duration
	}{
		"what was refused after a while":                      {refused(400, 0), 90 * time.Second, 6 * time.Minute},
		"what is not offered after a while":                   {&redfish.UnsupportedError{Wanted: "On"}, 90 * time.Second, 6 * time.Minute},
		"what never got through after a while":                {&redfish.UnreachableError{Method: "POST", Err: errors.New("no route")}, 15 * time.Second, 5 * time.Minute},
		"what the account may not do, after a while":          {&redfish.AuthError{Status: 403}, 15 * time.Second, 5 * time.Minute},
		"no sooner than after a while, whatever the BMC says": {refused(429, 3*time.Second), 15 * time.Second, 5 * time.Minute},
		"as late as the BMC asks":                             {refused(429, 40*time.Second), 40 * time.Second, 5 * time.Minute},
		"as late as the BMC asks, also after the grace":       {refused(429, 3*time.Minute), 3 * time.Minute, 5 * time.Minute},
		"an override that does not show":                      {&redfish.OverrideError{}, 90 * time.Second, 30 * time.Minute},
		"an override that is being set":                       {&redfish.OverrideError{Later: true}, 15 * time.Second, 5 * time.Minute},
		"what may have been done after the grace":             {refused(500, 0), testPowerGrace, 30 * time.Minute},
		"what may have arrived after the grace":               {&redfish.UnreachableError{Method: "POST", Sent: true, Err: errors.New("timeout")}, testPowerGrace, 30 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(redfish.PowerOff)
				m.refuses = func(asked string) error {
					if asked == "On" {
						return c.answer
					}
					return nil
				}
				w := inWorld(t, m, reserved(v1alpha1.PowerOn)...)
				w.manager.run(8*c.after + 5*time.Second)
				gaps := m.gaps("On")
				if len(gaps) < 2 {
					t.Fatalf("asked %d times", len(gaps)+1)
				}
				for i, gap := range gaps {
					want := max(c.after, min(c.after<<i, c.most))
					if late := gap - want; late < 0 || late > want/8+time.Second {
						t.Errorf("asked again after %s, want %s and no more than the queue's jitter", gap, want)
					}
				}
			})
		})
	}
}

func TestWhatWasAskedForIsSeenOnlyByAReadingTakenSince(t *testing.T) {
	asked := noon.Add(-10 * time.Second)
	off := func(change ...func(*scope)) *scope {
		return newScope(t, "Reserved", append([]func(*scope){func(v *scope) {
			v.server.Status.Lifecycle.Request = &v1alpha1.PowerRequest{Action: v1alpha1.PowerActionForceOff, AskedAt: metav1.NewMicroTime(asked)}
			v.remembered().asked = asked
			v.reading = hardware.Reading[redfish.SystemSnapshot]{Tried: true, Begun: asked.Add(time.Second), At: noon}
			v.reading.Value.Power = redfish.PowerOff
			v.facts.BMC.Identity = policies.IdentitySame
		}}, change...)...)
	}
	for name, c := range map[string]struct {
		scope *scope
		want  bool
	}{
		"a reading begun since shows it":                 {off(), true},
		"a reading begun at the same time shows nothing": {off(func(v *scope) { v.reading.Begun = asked }), false},
		"a reading begun before shows nothing":           {off(func(v *scope) { v.reading.Begun = asked.Add(-time.Millisecond) }), false},
		"a reading of this process shows what another asked, whose clock is ahead": {off(func(v *scope) {
			v.server.Status.Lifecycle.Request.AskedAt = metav1.NewMicroTime(noon.Add(10 * time.Minute))
		}), true},
		"a reading that failed shows nothing":               {off(func(v *scope) { v.reading.Err = errDown }), false},
		"another machine shows nothing":                     {off(func(v *scope) { v.facts.BMC.Identity = policies.IdentityOther }), false},
		"the opposite shows nothing":                        {off(func(v *scope) { v.reading.Value.Power = redfish.PowerOn }), false},
		"a power state that nobody knows shows nothing":     {off(func(v *scope) { v.reading.Value.Power = redfish.PowerUnknown }), false},
		"a power state on the way to Off is not Off":        {off(func(v *scope) { v.reading.Value.Power = redfish.PowerPoweringOff }), false},
		"a shutdown is shown by the same reading as a cut":  {off(asks(v1alpha1.PowerActionGracefulShutdown)), true},
		"a power-on is not shown by a machine which is Off": {off(asks(v1alpha1.PowerActionOn)), false},
	} {
		t.Run(name, func(t *testing.T) {
			(powerShell{scope: c.scope}).recordShown()
			shown := c.scope.server.Status.Lifecycle.Request.ShownAt
			if got := shown != nil; got != c.want {
				t.Errorf("shown %t, want %t", got, c.want)
			}
			if shown != nil && !shown.Time.Equal(noon) {
				t.Errorf("shown at %s, want %s", shown, noon)
			}
		})
	}
}

func asks(action v1alpha1.PowerAction) func(*scope) {
	return func(v *scope) { v.server.Status.Lifecycle.Request.Action = action }
}

func TestWhenSomethingWasFirstShownIsKept(t *testing.T) {
	v := newScope(t, "Reserved", func(v *scope) {
		at, first := metav1.NewMicroTime(noon.Add(-time.Hour)), metav1.NewMicroTime(noon.Add(-30*time.Minute))
		v.server.Status.Lifecycle.Request = &v1alpha1.PowerRequest{Action: v1alpha1.PowerActionOn, AskedAt: at, ShownAt: &first}
		v.reading = hardware.Reading[redfish.SystemSnapshot]{Tried: true, Begun: noon, At: noon}
		v.reading.Value.Power = redfish.PowerOn
		v.facts.BMC.Identity = policies.IdentitySame
	})
	(powerShell{scope: v}).recordShown()
	if got := v.server.Status.Lifecycle.Request.ShownAt.Time; !got.Equal(noon.Add(-30 * time.Minute)) {
		t.Errorf("shown at %s", got)
	}
}

func TestAnAgentMayRunOnAMachineOnceItWasSeenOn(t *testing.T) {
	entered := noon.Add(-time.Hour)
	in := func(change ...func(*scope)) *scope {
		return newScope(t, "Discovery", append([]func(*scope){func(v *scope) {
			v.remembered().enter(v.server, entered)
			v.reading = hardware.Reading[redfish.SystemSnapshot]{Tried: true, Begun: entered.Add(time.Second), At: noon}
			v.reading.Value.Power = redfish.PowerOn
			v.facts.BMC.Identity = policies.IdentitySame
		}}, change...)...)
	}
	for name, c := range map[string]struct {
		scope *scope
		want  bool
	}{
		"On":                         {in(), true},
		"not while on its way there": {in(func(v *scope) { v.reading.Value.Power = redfish.PowerPoweringOn }), false},
		"not while Off":              {in(func(v *scope) { v.reading.Value.Power = redfish.PowerOff }), false},
		"not while nobody knows":     {in(func(v *scope) { v.reading.Value.Power = redfish.PowerUnknown }), false},
		"not when the BMC is silent": {in(func(v *scope) { v.reading.Err = errDown }), false},
		"in an entry that another process began, whose clock is ahead": {in(func(v *scope) {
			v.memory = newMemory()
			v.server.Status.Lifecycle.EnteredAt = metav1.NewMicroTime(noon.Add(10 * time.Minute))
		}), true},
		"not before the entry began": {in(func(v *scope) { v.reading.Begun = entered.Add(-time.Second) }), false},
		"not when it is another":     {in(func(v *scope) { v.facts.BMC.Identity = policies.IdentityOther }), false},
	} {
		t.Run(name, func(t *testing.T) {
			(powerShell{scope: c.scope}).recordRunning()
			if got := c.scope.server.Status.Lifecycle.SeenOnAt != nil; got != c.want {
				t.Errorf("seen on: %t, want %t", got, c.want)
			}
		})
	}
}

func TestAMachineThatNeverComesOnIsAskedLessAndLess(t *testing.T) {
	for name, restarts := range map[string]bool{"by one manager": false, "by managers that come and go": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(redfish.PowerOff)
				m.obeys = deaf
				w := inWorld(t, m, reserved(v1alpha1.PowerOn)...)
				for range 24 {
					w.manager.run(15 * time.Minute)
					if restarts {
						w.start()
					}
				}
				gaps := m.gaps("On")
				for i, gap := range gaps {
					want := min(testPowerGrace<<i, 30*time.Minute)
					if late := gap - want; late < 0 || late > want/8+20*time.Second {
						t.Errorf("asked again after %s, want %s", gap, want)
					}
				}
				if n := len(gaps); n < 12 || n > 16 {
					t.Errorf("asked %d times again in six hours", n)
				}
			})
		})
	}
}

func TestWhatWasAskedForInVainBeginsAnew(t *testing.T) {
	former := func(change ...func(*v1alpha1.PowerRequest)) *scope {
		return newScope(t, "Reserved", func(v *scope) {
			r := &v1alpha1.PowerRequest{Action: v1alpha1.PowerActionOn, AskedAt: metav1.NewMicroTime(noon.Add(-time.Minute)), Attempts: 4}
			for _, c := range change {
				c(r)
			}
			v.server.Status.Lifecycle.Request = r
			v.Cache = newCache(nil, func(string) {})
		})
	}
	at := metav1.NewMicroTime(noon)
	for name, c := range map[string]struct {
		scope *scope
		want  int32
	}{
		"not after one that did not show":       {former(), 5},
		"after one that nobody wanted any more": {former(func(r *v1alpha1.PowerRequest) { r.Attempts = 0 }), 1},
		"after one that came true":              {former(func(r *v1alpha1.PowerRequest) { r.ShownAt = &at }), 1},
		"after another":                         {former(func(r *v1alpha1.PowerRequest) { r.Action = v1alpha1.PowerActionForceOff }), 1},
		"after one of a former entry":           {former(func(r *v1alpha1.PowerRequest) { r.AskedAt = metav1.NewMicroTime(noon.Add(-2 * time.Hour)) }), 1},
	} {
		t.Run(name, func(t *testing.T) {
			defer c.scope.Cache.Close()
			if got := c.scope.requested().Attempt(v1alpha1.PowerActionOn); got != c.want {
				t.Errorf("attempt %d, want %d", got, c.want)
			}
		})
	}
}

func TestWhenEachPowerChangeWasAskedForLastIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := inWorld(t, newMachine(redfish.PowerOff), reserved(v1alpha1.PowerOn)...)
		w.manager.run(time.Minute)
		on := w.server().Status.Lifecycle.Request.AskedAt
		w.machine.obeys = func(m *machine, action redfish.PowerAction) {
			if action == redfish.ActionForceOff {
				m.shows.Power = redfish.PowerOff
			}
		}
		w.claims(v1alpha1.PowerOff)
		w.manager.run(time.Hour)
		l := w.server().Status.Lifecycle
		if len(l.Begun) != 2 || l.Begun[0] != (v1alpha1.BegunAction{Action: "PowerOn", At: l.Begun[0].At}) || !l.Begun[0].At.Equal(&on) ||
			l.Begun[1].Action != "ForcedOff" || !l.Begun[1].At.Equal(&l.Request.AskedAt) {
			t.Errorf("%+v after a power-on at %v and %+v", l.Begun, on, l.Request)
		}
	})
}

func TestAMachineThatCameOnAndGoesOffIsSwitchedOnAgainSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(redfish.PowerOff)
		m.obeys = deaf // its rack has no power
		w := inWorld(t, m, reserved(v1alpha1.PowerOn)...)
		w.manager.run(40 * time.Minute)
		if n := w.server().Status.Lifecycle.Request.Attempts; n != 6 {
			t.Fatalf("asked %d times", n)
		}
		m.will(0, redfish.PowerOn)
		w.manager.run(5 * time.Minute)
		if got := w.request(); got != "On shown" {
			t.Fatalf("recorded is %q", got)
		}
		before := len(m.gaps("On"))
		m.will(0, redfish.PowerOff)
		w.manager.run(5 * time.Minute)
		if again := len(m.gaps("On")) - before; again < 1 {
			t.Errorf("asked %d times in five minutes", again)
		}
	})
}
