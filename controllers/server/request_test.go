// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metalaw/metalaw/api/v1alpha1"
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
