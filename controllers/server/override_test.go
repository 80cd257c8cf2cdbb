// SPDX-License-Identifier: Apache-2.0

package server

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	boots "github.com/metalaw/metalaw/controllers/server/boot"
	"github.com/metalaw/metalaw/redfish"
)

func TestABootOverrideStaysUntilTheMachineIsKnownToHaveBooted(t *testing.T) {
	const early = 30 * time.Second
	for name, c := range map[string]struct {
		// happens a while after the power-on.
		happens func(*world)
		// cleared says whether the override is taken away soon after that.
		cleared bool
	}{
		"nothing was heard of it":             {func(*world) {}, false},
		"its boot was reported":               {func(w *world) { w.bootState(metav1.ConditionTrue, time.Now()) }, true},
		"its boot failed":                     {func(w *world) { w.bootState(metav1.ConditionFalse, time.Now()) }, false},
		"a boot before this one was reported": {func(w *world) { w.bootState(metav1.ConditionTrue, time.Now().Add(-time.Hour)) }, false},
		"it reported from what it booted":     {func(w *world) { w.report(7) }, true},
		"it had reported in a former entry":   {func(w *world) { w.report(6) }, false},
	} {
		for process, restarts := range map[string]bool{"": false, " and another manager came": true} {
			t.Run(name+process, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					m := newMachine(redfish.PowerOff)
					m.obeys = slowly(5 * time.Second)
					w := inWorld(t, m, reserved(v1alpha1.PowerOn)...)
					began := time.Now()
					w.manager.run(early)
					m.wants(t, "before it was heard of", "On")
					if restarts {
						w.start()
					}
					c.happens(w)
					w.manager.run(testBootGrace - time.Since(began) - time.Second)
					if got := slices.Contains(m.asked(), "ClearBoot"); got != c.cleared {
						t.Errorf("the override was cleared before the boot grace was over: %t, want %t", got, c.cleared)
					}
					w.manager.run(2 * time.Minute)
					m.wants(t, "in the end", "On", "ClearBoot")
				})
			})
		}
	}
}

func TestAnOverrideIsClearedWhenTheBMCShowsThisBootToHaveStartedItsSystem(t *testing.T) {
	os := func(at string) redfish.BootProgress {
		return redfish.BootProgress{LastState: "OSRunning", LastStateTime: at}
	}
	state := func(s string) redfish.BootProgress { return redfish.BootProgress{LastState: s} }
	for name, c := range map[string]struct {
		before redfish.BootProgress   // what shows while the machine is off
		then   []redfish.BootProgress // what shows at each look after the power-on
		want   bool
	}{
		"the system, after nothing":                        {state("None"), []redfish.BootProgress{state("OSRunning")}, true},
		"the system has begun to start":                    {state("None"), []redfish.BootProgress{state("OSBootStarted")}, true},
		"the system of the boot before":                    {os("10:00"), []redfish.BootProgress{os("10:00")}, false},
		"that of the boot before, and then this one's":     {os("10:00"), []redfish.BootProgress{os("10:00"), os("11:00")}, true},
		"that of a clock that was set back":                {os("10:00"), []redfish.BootProgress{os("09:00")}, true},
		"that of the boot before, the self test, this one": {state("OSRunning"), []redfish.BootProgress{state("MemoryInitializationStarted"), state("OSRunning")}, true},
		"that of the boot before, for ever, without times": {state("OSRunning"), []redfish.BootProgress{state("OSRunning"), state("OSRunning")}, false},
		"the self test":                              {state("None"), []redfish.BootProgress{state("PCIResourceConfigStarted")}, false},
		"the end of the self test":                   {state("None"), []redfish.BootProgress{state("SystemHardwareInitializationComplete")}, false},
		"nothing at all":                             {redfish.BootProgress{}, []redfish.BootProgress{{}}, false},
		"the system, where nothing was shown before": {redfish.BootProgress{}, []redfish.BootProgress{state("OSRunning")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			watch, _, _ := boots.Watch{}.Look("On/1", c.before)
			got := false
			for _, shown := range c.then {
				watch, got, _ = watch.Look("On/1", shown)
			}
			if got != c.want {
				t.Errorf("started %t", got)
			}
			if _, started, _ := watch.Look("On/2", c.then[len(c.then)-1]); started {
				t.Error("it stands for the next boot too")
			}
		})
	}
}

// The BMCs that go on showing a state of the self test are those of boards whose firmware tells no progress after it.
func TestASelfTestHoldsAClearBackForAWhileOnly(t *testing.T) {
	const word = testBootGrace
	state := func(s, at string) redfish.BootProgress {
		return redfish.BootProgress{LastState: s, LastStateTime: at}
	}
	memory := "MemoryInitializationStarted"
	for name, c := range map[string]struct {
		off, on redfish.BootProgress
		happens func(*world) // soon after the power-on; nil for nothing
		before  time.Duration
		after   time.Duration
	}{
		"nothing is shown":                               {state("", ""), state("", ""), nil, word, word + time.Minute},
		"something of the maker is shown":                {state("", ""), state("OEM", ""), nil, word, word + time.Minute},
		"the self test began since":                      {state("None", ""), state(memory, ""), nil, 2 * word, 2*word + time.Minute},
		"it began anew since":                            {state(memory, "10:00"), state(memory, "11:00"), nil, 2 * word, 2*word + time.Minute},
		"that of the boot before is shown for ever":      {state(memory, ""), state(memory, ""), nil, word, word + time.Minute},
		"that with its time too":                         {state("SetupEntered", "10:00"), state("SetupEntered", "10:00"), nil, word, word + time.Minute},
		"it is shown, and the boot was reported":         {state("None", ""), state(memory, ""), func(w *world) { w.bootState(metav1.ConditionTrue, time.Now()) }, 0, word},
		"the setup is shown, and the agent has reported": {state("None", ""), state("SetupEntered", ""), func(w *world) { w.report(7) }, 0, word},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(redfish.PowerOff)
				m.obeys = slowly(5 * time.Second)
				m.shows.BootProgress = c.off
				w := inWorld(t, m, reserved(v1alpha1.PowerOn)...)
				began := time.Now()
				w.manager.run(3 * time.Second)
				m.mu.Lock()
				m.shows.BootProgress = c.on
				m.mu.Unlock()
				w.manager.run(27 * time.Second)
				if c.happens != nil {
					c.happens(w)
				}
				if c.before > 0 {
					w.manager.run(c.before - time.Since(began) - time.Second)
					if slices.Contains(m.asked(), "ClearBoot") {
						t.Errorf("cleared within %s: %v", c.before, m.asked())
					}
				}
				w.manager.run(c.after - time.Since(began))
				if !slices.Contains(m.asked(), "ClearBoot") {
					t.Errorf("not cleared within %s: %v", c.after, m.asked())
				}
			})
		})
	}
}

// bootState is what the machine, or whoever boots it, says of its boot.
func (w *world) bootState(status metav1.ConditionStatus, at time.Time) {
	w.t.Helper()
	boot := &v1alpha1.ServerBootConfiguration{}
	if err := w.api.Get(w.t.Context(), types.NamespacedName{Namespace: "shop", Name: "web"}, boot); err != nil {
		w.t.Fatal(err)
	}
	meta.SetStatusCondition(&boot.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionBootStateReceived, Status: status,
		Reason: "Reported", LastTransitionTime: metav1.NewTime(at)})
	if err := w.api.Status().Update(w.t.Context(), boot); err != nil {
		w.t.Fatal(err)
	}
	w.manager.wake("a")
}

// report is what an agent on the machine reports in an entry.
func (w *world) report(entry int64) {
	w.t.Helper()
	inventory := &policyv1alpha1.ServerInventory{Report: &policyv1alpha1.ProbeReport{Entry: entry}}
	inventory.Name, inventory.Spec.SystemUUID = machineUUID, machineUUID
	if err := w.api.Create(w.t.Context(), inventory); err != nil {
		w.t.Fatal(err)
	}
	w.manager.wake("a")
}

func TestABootOverrideThatStaysIsClearedAgainAfterAWhile(t *testing.T) {
	for name, answer := range map[string]error{
		"because the BMC refused":                    &redfish.ResponseError{Method: "PATCH", Status: 400},
		"although the BMC accepted":                  nil,
		"because the BMC asks to be left alone long": &redfish.ResponseError{Method: "PATCH", Status: 503, RetryAfter: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(redfish.PowerOn)
				m.shows.Boot = redfish.BootOverride{Enabled: "Continuous", Target: "Pxe"}
				m.keeps = true
				m.refuses = func(string) error { return answer }
				w := inWorld(t, m, reserved(v1alpha1.PowerOn)...)
				w.manager.run(10 * time.Minute)
				gaps := m.gaps("ClearBoot")
				if len(gaps) < 8 {
					t.Fatalf("cleared %d times in ten minutes", len(gaps)+1)
				}
				for _, gap := range gaps {
					if gap < clearedAgainAfter || gap > clearedAgainAfter+clearedAgainAfter/8 {
						t.Errorf("cleared again after %s, want %s and no more than the queue's jitter", gap, clearedAgainAfter)
					}
				}
				if noted := slices.Contains(w.events, "BootOverrideStays"); noted != (answer != nil) {
					t.Errorf("events %v", w.events)
				}
				if p := w.manager.outcome; !p.Settled() {
					t.Errorf("it holds back %s: %+v", p.Effect, p.Progress)
				}
			})
		})
	}
}

func TestABootOverrideIsLeftAloneWhilePowerIsNotKnown(t *testing.T) {
	for name, power := range map[string]redfish.PowerState{"Unknown": redfish.PowerUnknown, "going down": redfish.PowerPoweringOff} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(power)
				m.shows.Boot = redfish.BootOverride{Enabled: "Once", Target: "Pxe"}
				w := inWorld(t, m, reserved(v1alpha1.PowerOff)...)
				w.manager.run(20 * time.Minute)
				m.wants(t, "in twenty minutes")
			})
		})
	}
}

func TestABootOverrideOfAPowerOnThatFailedIsClearedOnceNobodyCanNeedIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(redfish.PowerOff)
		m.refuses = func(asked string) error {
			if asked == "On" {
				return &redfish.ResponseError{Method: "POST", Status: 400}
			}
			return nil
		}
		w := inWorld(t, m, reserved(v1alpha1.PowerOn)...)
		w.manager.run(5 * time.Second)
		w.claims(v1alpha1.PowerOff)
		w.start().run(testBootGrace - 10*time.Second)
		m.wants(t, "while the machine may yet boot by it", "On")
		w.manager.run(time.Hour)
		m.wants(t, "in the end", "On", "ClearBoot")
	})
}

func TestAMachineThatComesOnWhenItsPowerOnHadLapsedIsGivenTheTimeToBoot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(redfish.PowerOff)
		m.obeys = deaf
		w := inWorld(t, m, reserved(v1alpha1.PowerOn)...)
		w.manager.run(5 * time.Minute)
		asked := len(m.asked())
		m.will(0, redfish.PowerOn)
		w.manager.run(8 * time.Minute)
		if got := m.asked(); len(got) > asked+1 || slices.Contains(got, "ClearBoot") {
			t.Errorf("the BMC was asked for %v", got[asked:])
		}
		w.manager.run(10 * time.Minute)
		if !slices.Contains(m.asked(), "ClearBoot") {
			t.Error("the override was never cleared")
		}
	})
}

// clearedAgainAfter is the time between two attempts to clear a boot override that stays.
const clearedAgainAfter = time.Minute
