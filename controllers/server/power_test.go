// SPDX-License-Identifier: Apache-2.0

package server

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/controllers/server/plan"
	"github.com/metalaw/metalaw/redfish"
)

func TestAMachineThatSomebodyElseSwitchedOnWasNotBootedForItsClaim(t *testing.T) {
	claimedWhenFree := func(s *v1alpha1.Server) {
		l := s.Status.Lifecycle
		l.History = []v1alpha1.LifecycleMove{{From: v1alpha1.StateAvailable, To: v1alpha1.StateReserved, Rule: "Claimed", Entry: l.Entry}}
	}
	for name, c := range map[string]struct {
		power redfish.PowerState
		asked []string
		ready string
	}{
		"switched on by somebody else":     {redfish.PowerOn, nil, v1alpha1.ReasonSwitchedOnByHand},
		"switched on to boot what it asks": {redfish.PowerOff, []string{"On"}, v1alpha1.ReasonStable},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(c.power)
				w := inWorld(t, m, reserved(v1alpha1.PowerOn, claimedWhenFree)...)
				w.manager.run(time.Minute)
				m.wants(t, "for its claim", c.asked...)
				ready := meta.FindStatusCondition(w.server().Status.Conditions, v1alpha1.ConditionReady)
				if ready == nil || ready.Reason != c.ready {
					t.Fatalf("%+v", ready)
				}
				if booted := w.server().Status.Lifecycle.BootedAt != nil; booted != (c.ready == v1alpha1.ReasonStable) {
					t.Errorf("booted: %t", booted)
				}
			})
		})
	}
}

func TestAShutdownKeepsItsGraceAcrossManagersAndEachAsksOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(redfish.PowerOn)
		m.obeys = func(m *machine, action redfish.PowerAction) { // the operating system does not listen
			if action == redfish.ActionForceOff {
				m.will(0, redfish.PowerOff)
			}
		}
		w := inWorld(t, m, reserved(v1alpha1.PowerOff)...)
		began := time.Now()
		w.manager.run(2 * time.Minute)
		m.wants(t, "before the manager died", "GracefulShutdown")

		w.start().run(plan.ShutdownGrace - time.Since(began) - time.Second)
		m.wants(t, "within the grace", "GracefulShutdown", "GracefulShutdown")
		w.manager.run(5 * time.Second)
		m.wants(t, "once the grace since the first request is over", "GracefulShutdown", "GracefulShutdown", "ForceOff")
		w.manager.run(time.Hour)
		m.wants(t, "in the end", "GracefulShutdown", "GracefulShutdown", "ForceOff")
	})
}

func TestAManagerThatComesLongAfterAShutdownAsksOnceMoreAndThenCutsThePower(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(redfish.PowerOn)
		m.obeys = func(m *machine, action redfish.PowerAction) {
			if action == redfish.ActionForceOff {
				m.will(0, redfish.PowerOff)
			}
		}
		w := inWorld(t, m, reserved(v1alpha1.PowerOff)...)
		w.manager.run(10 * time.Second)
		time.Sleep(time.Hour)
		w.start().run(10 * time.Second)
		m.wants(t, "at first", "GracefulShutdown", "GracefulShutdown")
		w.manager.run(2 * time.Minute)
		m.wants(t, "in the end", "GracefulShutdown", "GracefulShutdown", "ForceOff")
	})
}

func TestAClaimThatIsLeftAloneSwitchesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(redfish.PowerOn)
		objects := reserved(v1alpha1.PowerOff)
		objects[1].SetAnnotations(map[string]string{v1alpha1.OperationAnnotation: v1alpha1.OperationIgnore})
		w := inWorld(t, m, objects...)
		w.manager.run(time.Hour)
		m.wants(t, "while its claim is to be left alone")
	})
}

func TestABMCThatCannotAskForAShutdownIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(redfish.PowerOn)
		m.refuses = func(asked string) error {
			if asked == "GracefulShutdown" {
				return &redfish.UnsupportedError{Wanted: asked}
			}
			return nil
		}
		w := inWorld(t, m, reserved(v1alpha1.PowerOff)...)
		w.manager.run(10 * time.Second)
		m.wants(t, "within ten seconds", "GracefulShutdown", "ForceOff")
	})
}

func TestPowerThatIsShownWronglyIsCutOnceInEachGrace(t *testing.T) {
	for name, c := range map[string]struct {
		obeys  func(*machine, redfish.PowerAction)
		action string
	}{
		"a cut that shows for ten seconds": {obeys: offForTenSeconds, action: "ForceOff"},
		"a cut that never shows":           {obeys: deaf, action: "ForceOff"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(redfish.PowerOn)
				m.obeys = c.obeys
				w := inWorld(t, m, serverIn(v1alpha1.StateAvailable))
				w.manager.SteadyPoll = time.Second
				w.manager.run(10 * time.Minute)
				if n := len(m.asked()); n != 10 {
					t.Errorf("asked %d times in ten minutes, want 10: once in each minute of grace", n)
				}
				for _, gap := range m.gaps(c.action) {
					if gap < testPowerGrace {
						t.Errorf("asked again after %s", gap)
					}
				}
			})
		})
	}
}

// offForTenSeconds is a machine that comes back by itself after its power was cut.
func offForTenSeconds(m *machine, _ redfish.PowerAction) {
	m.will(0, redfish.PowerOff)
	m.will(10*time.Second, redfish.PowerOn)
}

func TestAMachineThatComesBackAfterItsPowerWasCutIsLeftAloneForTheGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(redfish.PowerOn)
		m.obeys = func(m *machine, action redfish.PowerAction) {
			if action == redfish.ActionForceOff {
				offForTenSeconds(m, action)
			}
		}
		w := inWorld(t, m, reserved(v1alpha1.PowerOff)...)
		w.manager.SteadyPoll = time.Second
		w.manager.run(plan.ShutdownGrace + 5*time.Second)
		m.wants(t, "after the grace of the shutdown", "GracefulShutdown", "ForceOff")
		w.manager.run(testPowerGrace - 10*time.Second)
		m.wants(t, "within the grace of the cut", "GracefulShutdown", "ForceOff")
		w.manager.run(20 * time.Second)
		m.wants(t, "after it", "GracefulShutdown", "ForceOff", "GracefulShutdown")
	})
}

func TestAMachineThatComesBackAfterAShutdownIsAskedOnceInEachGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(redfish.PowerOn)
		m.obeys = offForTenSeconds
		w := inWorld(t, m, reserved(v1alpha1.PowerOff)...)
		w.manager.SteadyPoll = time.Second
		w.manager.run(10 * time.Minute)
		if n := len(m.asked()); n != 10 {
			t.Errorf("asked for %v, want 10 requests: one in each minute of grace", m.asked())
		}
	})
}

func TestAClaimThatChangesItsMindIsFollowedOnceEachTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(redfish.PowerOff)
		m.obeys = slowly(30 * time.Second)
		w := inWorld(t, m, reserved(v1alpha1.PowerOn)...)
		w.manager.run(5 * time.Second)
		m.wants(t, "at first", "On")

		w.claims(v1alpha1.PowerOff)
		w.manager.run(5 * time.Second)
		m.wants(t, "while it shows Off and the power-on may still come true", "On")
		w.waits(t, "the power-on that was asked for to show or to lapse")
		// How soon it is seen is a matter of the pauses between readings, which are drawn.
		for range 60 {
			if w.manager.run(time.Second); len(m.asked()) > 1 {
				break
			}
		}
		m.wants(t, "once the power-on shows", "On", "GracefulShutdown")

		w.claims(v1alpha1.PowerOn)
		w.manager.run(5 * time.Second)
		m.wants(t, "while it shows On and the shutdown may still come true", "On", "GracefulShutdown")
		w.waits(t, "the shutdown of the operating system that was asked for to show or to lapse")
		w.manager.run(9 * time.Minute)
		m.wants(t, "in the end", "On", "GracefulShutdown", "On")
	})
}

// waits fails unless an effect is pending with these words.
func (w *world) waits(t *testing.T, message string) {
	t.Helper()
	if p := w.manager.outcome.Progress; p.Phase != loop.Pending || p.Message != message {
		t.Errorf("effect %q is in phase %d with %q, want pending with %q", w.manager.outcome.Effect, p.Phase, p.Message, message)
	}
}

func TestAMindThatChangesBackAsksForNothingMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(redfish.PowerOff)
		m.obeys = slowly(30 * time.Second)
		w := inWorld(t, m, reserved(v1alpha1.PowerOn)...)
		w.manager.run(3 * time.Second)
		w.claims(v1alpha1.PowerOff)
		w.manager.run(3 * time.Second)
		w.claims(v1alpha1.PowerOn)
		w.manager.run(9 * time.Minute)
		m.wants(t, "in the end", "On")
	})
}

func TestAShutdownThatWasGivenUpIsNoReasonToCutThePowerLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(redfish.PowerOn)
		m.obeys = deaf
		w := inWorld(t, m, reserved(v1alpha1.PowerOff)...)
		w.manager.run(10 * time.Second)
		w.claims(v1alpha1.PowerOn)
		w.manager.run(time.Hour)
		m.wants(t, "after the first change of mind", "GracefulShutdown")
		w.claims(v1alpha1.PowerOff)
		w.manager.run(plan.ShutdownGrace - 10*time.Second)
		m.wants(t, "within the grace of the second shutdown", "GracefulShutdown", "GracefulShutdown")
	})
}

func TestAShutdownOfAFormerEntryIsNoReasonToCutThePower(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(redfish.PowerOn)
		m.obeys = deaf
		w := inWorld(t, m, reserved(v1alpha1.PowerOff, func(s *v1alpha1.Server) {
			at := s.Status.Lifecycle.EnteredAt.DeepCopy()
			at.Time = at.Add(-time.Hour)
			s.Status.Lifecycle.Request = &v1alpha1.PowerRequest{Action: v1alpha1.PowerActionGracefulShutdown, AskedAt: *at}
		})...)
		w.manager.run(plan.ShutdownGrace - 10*time.Second)
		m.wants(t, "within the grace", "GracefulShutdown")
	})
}

func TestAMoveThatReliesOnOffWaitsForAPowerOnThatMayStillComeTrue(t *testing.T) {
	refused := &redfish.ResponseError{Method: "POST", Status: 400}
	for name, c := range map[string]struct {
		obeys func(*machine, redfish.PowerAction)
		// answer is what the power-on is answered with.
		answer        error
		within, after v1alpha1.ServerState
		asked         []string
	}{
		"it goes on when the power-on lapsed":         {deaf, nil, v1alpha1.StateReserved, v1alpha1.StateCleanup, []string{"On"}},
		"it goes on at once when it surely failed":    {deaf, refused, v1alpha1.StateCleanup, v1alpha1.StateCleanup, []string{"On"}},
		"it waits when the answer leaves it open":     {deaf, &redfish.ResponseError{Method: "POST", Status: 500}, v1alpha1.StateReserved, v1alpha1.StateCleanup, []string{"On"}},
		"a machine that came on is powered off":       {slowly(20 * time.Second), nil, v1alpha1.StateReserved, v1alpha1.StateCleanup, []string{"On", "GracefulShutdown"}},
		"a machine that was on and off moves at once": {nil, nil, v1alpha1.StateCleanup, v1alpha1.StateCleanup, []string{"On", "GracefulShutdown"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(redfish.PowerOff)
				m.obeys = c.obeys
				m.refuses = func(asked string) error {
					if asked == "On" {
						return c.answer
					}
					return nil
				}
				w := inWorld(t, m, reserved(v1alpha1.PowerOn)...)
				w.manager.run(2 * time.Second)
				edit(w, "a", &v1alpha1.Server{}, released)
				w.manager.run(10 * time.Second)
				if got := w.server().Status.State; got != c.within {
					t.Errorf("ten seconds after the release it is %s (%s), want %s", got, w.manager.decision.Message, c.within)
				}
				if got := w.manager.decision.Message; c.obeys != nil && c.within == v1alpha1.StateReserved && !strings.Contains(got, "to show or to lapse") {
					t.Errorf("it says %q", got)
				}
				w.manager.run(testPowerGrace)
				if got := w.server().Status.State; got != c.after {
					t.Errorf("after the grace it is %s, want %s", got, c.after)
				}
				m.wants(t, "until then", c.asked...)
			})
		})
	}
}

func TestAServerThatWaitsForLongIsNotWrittenAgainAndAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(redfish.PowerUnknown)
		w := inWorld(t, m, reserved(v1alpha1.PowerOff)...)
		w.manager.run(time.Minute)
		version := w.server().ResourceVersion
		w.manager.run(10 * time.Minute)
		if got := w.server().ResourceVersion; got != version {
			t.Errorf("the server was written from version %s to %s", version, got)
		}
	})
}

func TestAPowerChangeReliesOnAReadingOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(redfish.PowerOff)
		m.obeys = deaf
		w := inWorld(t, m, reserved(v1alpha1.PowerOn)...)
		w.manager.run(3 * time.Hour)
		if n := len(w.manager.relied); n < 8 {
			t.Errorf("asked %d times in three hours", n)
		}
		for _, age := range w.manager.relied {
			if age > plan.Freshness {
				t.Errorf("the BMC is asked on what it said %s before", age)
			}
		}
	})
}
