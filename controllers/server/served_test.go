// SPDX-License-Identifier: Apache-2.0

package server

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/redfish"
)

// granted is a server that the manager granted to ops/disks.
func granted(s *v1alpha1.Server) {
	inService(s)
	s.Annotations[v1alpha1.MaintenanceUIDAnnotation] = "uid-disks"
}

// asksPower has a maintenance ask for power, and kept has it outlive its deletion, as the finalizer of its controller does.
func asksPower(p v1alpha1.Power) func(*v1alpha1.ServerMaintenance) {
	return func(m *v1alpha1.ServerMaintenance) { m.Spec.ServerPower = p }
}

func kept(m *v1alpha1.ServerMaintenance) {
	m.Finalizers = []string{v1alpha1.FinalizerServerMaintenance}
}

// bootsRescue has a maintenance boot an image.
func bootsRescue(m *v1alpha1.ServerMaintenance) {
	m.Spec.ServerBootConfigurationTemplate = &v1alpha1.ServerBootConfigurationTemplate{Name: "rescue",
		Spec: v1alpha1.ServerBootConfigurationSpec{Image: "rescue"}}
	m.Spec.ServerBootConfigurationTemplate.Spec.ServerRef.Name = "a"
}

func annotatedWith(key, value string) func(*v1alpha1.ServerMaintenance) {
	return func(m *v1alpha1.ServerMaintenance) { metav1.SetMetaDataAnnotation(&m.ObjectMeta, key, value) }
}

// maintenanceBecomes changes the stored maintenance.
func maintenanceBecomes(change func(*v1alpha1.ServerMaintenance)) func(*world) {
	return func(w *world) {
		w.t.Helper()
		m := &v1alpha1.ServerMaintenance{}
		if err := w.api.Get(w.t.Context(), client.ObjectKeyFromObject(maintenance()), m); err != nil {
			w.t.Fatal(err)
		}
		change(m)
		if err := w.api.Update(w.t.Context(), m); err != nil {
			w.t.Fatal(err)
		}
		w.manager.wake("a")
	}
}

func maintenanceIsDeleted(w *world) {
	w.t.Helper()
	if err := w.api.Delete(w.t.Context(), maintenance()); err != nil {
		w.t.Fatal(err)
	}
	w.manager.wake("a")
}

// maintenanceBoot is the boot configuration of the maintenance; nil where there is none.
func (w *world) maintenanceBoot() *v1alpha1.ServerBootConfiguration {
	w.t.Helper()
	b := &v1alpha1.ServerBootConfiguration{}
	err := w.api.Get(w.t.Context(), types.NamespacedName{Namespace: "ops", Name: "disks"}, b)
	if client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	}
	if err != nil {
		return nil
	}
	return b
}

// bootIsReady is what the boot operator says.
func bootIsReady(w *world) {
	w.t.Helper()
	b := w.maintenanceBoot()
	if b == nil {
		w.t.Fatal("there is no boot configuration")
	}
	b.Generation = 1
	b.Status.State = v1alpha1.ServerBootConfigurationStateReady
	if err := w.api.Status().Update(w.t.Context(), b); err != nil {
		w.t.Fatal(err)
	}
	w.manager.wake("a")
}

// served is a world in which a server is in maintenance.
func served(t *testing.T, m *machine, objects ...client.Object) *world {
	t.Helper()
	w := inWorld(t, m, append(objects, serverIn(v1alpha1.StateMaintenance, granted))...)
	w.manager.run(time.Minute)
	return w
}

func TestTheMachineFollowsThePowerThatItsMaintenanceAsksFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(redfish.PowerOff)
		w := served(t, m, maintenance(asksPower(v1alpha1.PowerOn)))
		m.wants(t, "for On", "On")
		for _, p := range []v1alpha1.Power{v1alpha1.PowerOff, v1alpha1.PowerOn} {
			maintenanceBecomes(asksPower(p))(w)
			w.manager.run(time.Minute)
		}
		m.wants(t, "for On, Off, On", "On", "GracefulShutdown", "On")
		maintenanceBecomes(asksPower(""))(w)
		w.manager.run(time.Hour)
		m.wants(t, "for nothing any more", "On", "GracefulShutdown", "On")
	})
}

func TestAMaintenanceHasThePowerCutOfAMachineThatDoesNotShutDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(redfish.PowerOn)
		m.obeys = func(m *machine, a redfish.PowerAction) {
			if a == redfish.ActionForceOff {
				m.will(0, redfish.PowerOff)
			}
		}
		w := served(t, m, maintenance(asksPower(v1alpha1.PowerOff)))
		m.wants(t, "at first", "GracefulShutdown")
		w.manager.run(10 * time.Minute)
		m.wants(t, "in the end", "GracefulShutdown", "ForceOff")
	})
}

func TestTheBootOfAMaintenanceIsPreparedBeforeItsMachineIsSwitchedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(redfish.PowerOff)
		w := served(t, m, maintenance(asksPower(v1alpha1.PowerOn), bootsRescue, kept))
		b := w.maintenanceBoot()
		if b == nil || !metav1.IsControlledBy(b, maintenance()) || b.Spec.Image != "rescue" || b.Spec.ServerRef.Name != "a" ||
			b.Annotations[v1alpha1.BootPurposeAnnotation] != v1alpha1.BootPurposeMaintenance || b.Annotations[v1alpha1.BootEntryAnnotation] != "7" {
			t.Fatalf("the boot configuration is %+v", b)
		}
		if ref := w.server().Spec.MaintenanceBootConfigurationRef; ref == nil || ref.Namespace != "ops" || ref.Name != "disks" {
			t.Errorf("the server names %v", ref)
		}
		m.wants(t, "before the boot operator is ready")
		bootIsReady(w)
		w.manager.run(time.Minute)
		m.wants(t, "once it is ready", "On")
		if m.heard[0].what != "SetBootOnce" {
			t.Error("it is not booted from the network")
		}
		maintenanceIsDeleted(w)
		w.manager.run(time.Minute)
		m.wants(t, "once it ends", "On", "GracefulShutdown", "ClearBoot")
		if w.maintenanceBoot() == nil {
			t.Error("the boot configuration is taken away, which is for the maintenance controller to do")
		}
	})
}

func TestTheEndOfAMaintenanceCutsNoPowerWithoutAReason(t *testing.T) {
	for name, c := range map[string]struct {
		happens []func(*world)
		want    []string
	}{
		"where it is deleted": {[]func(*world){maintenanceIsDeleted}, []string{"GracefulShutdown"}},
		"where it is aborted": {[]func(*world){maintenanceBecomes(annotatedWith(v1alpha1.AbortAnnotation, "broken part"))}, []string{"GracefulShutdown"}},
		"and cuts it with one": {[]func(*world){maintenanceIsDeleted, maintenanceBecomes(annotatedWith(v1alpha1.ForceOffReasonAnnotation, "it hangs"))},
			[]string{"GracefulShutdown", "ForceOff"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(redfish.PowerOn)
				m.obeys = func(m *machine, a redfish.PowerAction) {
					if a == redfish.ActionForceOff {
						m.will(0, redfish.PowerOff)
					}
				}
				w := served(t, m, maintenance(bootsRescue, kept))
				m.wants(t, "while it runs")
				for _, happens := range c.happens {
					happens(w)
					w.manager.run(15 * time.Minute)
				}
				m.wants(t, "in the end", c.want...)
			})
		})
	}
}

func TestAMaintenanceWithoutABootLeavesItsMachineAsItIsWhenItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(redfish.PowerOff)
		w := served(t, m, maintenance(asksPower(v1alpha1.PowerOn), kept))
		if m.heard[0].what != "On" {
			t.Errorf("its boot was changed: %v", m.heard)
		}
		maintenanceIsDeleted(w)
		w.manager.run(time.Hour)
		m.wants(t, "in the end", "On")
	})
}

func TestAMachineThatTheManagerDidNotGrantIsNotTouched(t *testing.T) {
	asks := maintenance(asksPower(v1alpha1.PowerOff), bootsRescue, func(m *v1alpha1.ServerMaintenance) { m.Spec.LocatorLED = v1alpha1.IndicatorLEDLit })
	claimed := func(asked string) []client.Object {
		all := reserved(v1alpha1.PowerOn, granted, func(s *v1alpha1.Server) {
			s.Status.State = v1alpha1.StateMaintenance
			if asked != "" {
				s.Annotations[v1alpha1.MaintenanceClaimAnnotation] = asked
			}
		})
		return append(all, asks)
	}
	with := func(change ...func(*v1alpha1.Server)) []client.Object {
		return []client.Object{asks, serverIn(v1alpha1.StateMaintenance, append([]func(*v1alpha1.Server){granted}, change...)...)}
	}
	for name, objects := range map[string][]client.Object{
		"for it has no UID on record":          with(func(s *v1alpha1.Server) { delete(s.Annotations, v1alpha1.MaintenanceUIDAnnotation) }),
		"for its UID is another's":             with(func(s *v1alpha1.Server) { s.Annotations[v1alpha1.MaintenanceUIDAnnotation] = "uid-former" }),
		"for nobody finds it":                  {serverIn(v1alpha1.StateMaintenance, granted)},
		"for the claim's holder was not asked": claimed(""),
		"for the holder of another claim was":  claimed("uid-former"),
		"for it was found running":             with(func(s *v1alpha1.Server) { s.Status.Lifecycle.Marks = nil }),
		"for an erase runs":                    append(with(), wiping(policyv1alpha1.WipeRunning, 7)),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(redfish.PowerOn)
				m.shows.LED = redfish.LEDOff
				var copies []client.Object
				for _, o := range objects {
					copies = append(copies, o.DeepCopyObject().(client.Object)) //nolint:forcetypeassert // a copy is of the same type
				}
				w := inWorld(t, m, copies...)
				if len(objects) == 3 && objects[2].GetNamespace() == "" { // the erase is heard of for as long as it counts as running
					w.manager.run(time.Minute)
				} else {
					w.manager.run(time.Hour)
				}
				m.wants(t, "in an hour")
				if s := w.server(); s.Status.State != v1alpha1.StateMaintenance || isHalted(s) {
					t.Errorf("it is in state %s, halted %t", s.Status.State, isHalted(s))
				}
				if w.maintenanceBoot() != nil {
					t.Error("a boot is prepared")
				}
			})
		})
	}
}

func TestAMaintenanceToWhichTheHolderConsentedIsServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(redfish.PowerOn)
		w := inWorld(t, m, append(reserved(v1alpha1.PowerOn, granted, func(s *v1alpha1.Server) {
			s.Status.State = v1alpha1.StateMaintenance
			s.Annotations[v1alpha1.MaintenanceClaimAnnotation] = "uid-web"
		}), maintenance(asksPower(v1alpha1.PowerOff)))...)
		w.manager.run(time.Minute)
		m.wants(t, "after a minute", "GracefulShutdown")
		serverBecomes(func(s *v1alpha1.Server) {
			s.Spec.ServerMaintenanceRef = nil
			delete(s.Annotations, v1alpha1.MaintenanceUIDAnnotation)
			delete(s.Annotations, v1alpha1.MaintenanceClaimAnnotation)
		})(w)
		w.manager.run(time.Minute)
		m.wants(t, "once it is back with its claim", "GracefulShutdown", "On")
		if got := w.server().Status.State; got != v1alpha1.StateReserved {
			t.Errorf("it is in state %s", got)
		}
	})
}

func TestABootConfigurationOfAnotherOwnerIsNeverTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		foreign := &v1alpha1.ServerBootConfiguration{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "disks", UID: "uid-foreign"}}
		foreign.Spec.ServerRef.Name, foreign.Spec.Image = "a", "theirs"
		m := newMachine(redfish.PowerOff)
		w := served(t, m, maintenance(asksPower(v1alpha1.PowerOn), bootsRescue), foreign)
		m.wants(t, "in a minute")
		if b := w.maintenanceBoot(); b.Spec.Image != "theirs" || len(b.OwnerReferences) > 0 || w.server().Spec.MaintenanceBootConfigurationRef != nil {
			t.Errorf("it was changed or named: %+v", b)
		}
		if got := w.manager.outcome.Progress.Reason; got != v1alpha1.ReasonBootConfigurationTaken {
			t.Errorf("it says %s", got)
		}
	})
}

func TestARequestOfAMaintenanceIsHeldAgainstWhatIsStored(t *testing.T) {
	for name, happens := range map[string]func(*world){
		"it is deleted":           maintenanceIsDeleted,
		"it asks for another":     maintenanceBecomes(asksPower(v1alpha1.PowerOn)),
		"it is aborted":           maintenanceBecomes(annotatedWith(v1alpha1.AbortAnnotation, "no")),
		"the grant is taken away": serverBecomes(func(s *v1alpha1.Server) { delete(s.Annotations, v1alpha1.MaintenanceUIDAnnotation) }),
		"another claim was asked": serverBecomes(func(s *v1alpha1.Server) { s.Annotations[v1alpha1.MaintenanceClaimAnnotation] = "uid-other" }),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(redfish.PowerOn)
				w := inWorld(t, m, serverIn(v1alpha1.StateMaintenance, granted), maintenance(asksPower(v1alpha1.PowerOff), kept))
				stale := guardOf(t, w)
				if err := stale(); err != "" {
					t.Fatalf("%s changed, and nothing did", err)
				}
				happens(w)
				if stale() == "" {
					t.Error("nobody notices")
				}
			})
		})
	}
}

// guardOf is what a request that is decided now is held against.
func guardOf(t *testing.T, w *world) func() string {
	t.Helper()
	looked, err := w.manager.subject.Observe(t.Context(), w.server())
	if err != nil {
		t.Fatal(err)
	}
	d := looked.(*scope).x.decided() //nolint:forcetypeassert // there is no other
	return func() string {
		stale, err := d.stale(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return stale
	}
}

func TestAFreezeOfMaintenancesHoldsTheNextStepBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		control := &policyv1alpha1.FleetControl{ObjectMeta: metav1.ObjectMeta{Name: policyv1alpha1.FleetControlName}}
		control.Spec.Freezes = []policyv1alpha1.Freeze{{Name: "maintenance-paused", Level: policyv1alpha1.FreezeMaintenance}}
		m := newMachine(redfish.PowerOff)
		w := served(t, m, maintenance(asksPower(v1alpha1.PowerOn)), control)
		m.wants(t, "while it is in force")
		if err := w.api.Delete(t.Context(), control); err != nil {
			t.Fatal(err)
		}
		w.manager.wake("a")
		w.manager.run(time.Minute)
		m.wants(t, "once it is lifted", "On")
	})
}

func TestTheLightOfAMaintenanceGoesOutWithIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(redfish.PowerOff)
		m.shines, m.shows.LED = true, redfish.LEDOff
		w := served(t, m, maintenance(kept, func(m *v1alpha1.ServerMaintenance) { m.Spec.LocatorLED = v1alpha1.IndicatorLEDBlinking }))
		m.wants(t, "while it runs", "SetLED Blinking")
		maintenanceIsDeleted(w)
		w.manager.run(10 * time.Minute)
		m.wants(t, "once it ends", "SetLED Blinking", "SetLED Off")
	})
}

func TestTheBootOfAnAgentIsTakenAwayBeforeAMaintenance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(redfish.PowerOff)
		wipe := &v1alpha1.ServerBootConfiguration{ObjectMeta: metav1.ObjectMeta{Namespace: "metalaw-system", Name: "a-wipe", UID: "uid-wipe",
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(serverIn(v1alpha1.StateMaintenance), v1alpha1.GroupVersion.WithKind("Server"))}}}
		w := inWorld(t, m, wipe, maintenance(asksPower(v1alpha1.PowerOn)), serverIn(v1alpha1.StateMaintenance, granted, func(s *v1alpha1.Server) {
			s.Spec.BootConfigurationRef = &v1alpha1.ObjectReference{Namespace: "metalaw-system", Name: "a-wipe"}
		}))
		w.manager.run(time.Minute)
		m.wants(t, "in a minute", "On")
		if w.server().Spec.BootConfigurationRef != nil {
			t.Error("the server still names it")
		}
		if err := w.api.Get(t.Context(), client.ObjectKeyFromObject(wipe), wipe); client.IgnoreNotFound(err) != nil || err == nil {
			t.Errorf("it is still there: %v", err)
		}
	})
}

// handsBack takes the server from its maintenance, as the maintenance controller does in one write.
func handsBack(s *v1alpha1.Server) {
	s.Spec.ServerMaintenanceRef, s.Spec.MaintenanceBootConfigurationRef = nil, nil
	delete(s.Annotations, v1alpha1.MaintenanceUIDAnnotation)
	delete(s.Annotations, v1alpha1.MaintenanceClaimAnnotation)
}

func TestAFreeServerIsInspectedAfterItsMaintenance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(redfish.PowerOff)
		w := served(t, m, maintenance(asksPower(v1alpha1.PowerOn), bootsRescue, kept))
		bootIsReady(w)
		w.manager.run(time.Minute)
		maintenanceIsDeleted(w)
		w.manager.run(time.Minute)
		serverBecomes(handsBack)(w)
		w.manager.run(time.Minute)
		if got := w.server().Status.State; got != v1alpha1.StateDiscovery {
			t.Errorf("it is in state %s", got)
		}
		m.wants(t, "before the probe is prepared", "On", "GracefulShutdown", "ClearBoot")
	})
}

func TestTheMachineOfAClaimThatRanBeforeItsMaintenanceRunsOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(redfish.PowerOn)
		w := inWorld(t, m, append(reserved(v1alpha1.PowerOn, granted, func(s *v1alpha1.Server) {
			s.Status.State = v1alpha1.StateMaintenance
			s.Annotations[v1alpha1.MaintenanceClaimAnnotation] = "uid-web"
		}), maintenance(asksPower(v1alpha1.PowerOn)))...)
		w.manager.run(time.Minute)
		serverBecomes(handsBack)(w)
		w.manager.run(time.Hour)
		m.wants(t, "in the end")
		if got := w.server().Status.State; got != v1alpha1.StateReserved {
			t.Errorf("it is in state %s", got)
		}
	})
}

func TestTheNextMaintenanceFollowsWithoutABootInBetween(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(redfish.PowerOff)
		m.shines, m.shows.LED = true, redfish.LEDOff
		lit := func(m *v1alpha1.ServerMaintenance) { m.Spec.LocatorLED = v1alpha1.IndicatorLEDLit }
		fans := maintenance(asksPower(v1alpha1.PowerOn), lit, func(m *v1alpha1.ServerMaintenance) { m.Name, m.UID = "fans", "uid-fans" })
		w := served(t, m, maintenance(asksPower(v1alpha1.PowerOn), bootsRescue, kept, lit), fans)
		bootIsReady(w)
		w.manager.run(time.Minute)
		maintenanceIsDeleted(w)
		w.manager.run(time.Minute)
		m.wants(t, "once the first ends", "SetLED Lit", "On", "SetLED Off", "GracefulShutdown", "ClearBoot")
		serverBecomes(func(s *v1alpha1.Server) {
			s.Spec.ServerMaintenanceRef.Name = "fans"
			s.Annotations[v1alpha1.MaintenanceUIDAnnotation] = "uid-fans"
		})(w)
		w.manager.run(time.Minute)
		m.wants(t, "once the next has it", "SetLED Lit", "On", "SetLED Off", "GracefulShutdown", "ClearBoot", "SetLED Lit", "On")
		s := w.server()
		if s.Status.Lifecycle.Entry != 7 || s.Spec.MaintenanceBootConfigurationRef != nil {
			t.Errorf("it is in entry %d and boots %v", s.Status.Lifecycle.Entry, s.Spec.MaintenanceBootConfigurationRef)
		}
	})
}

func TestAChangeOfTheTemplateIsFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := served(t, newMachine(redfish.PowerOff), maintenance(bootsRescue))
		maintenanceBecomes(func(m *v1alpha1.ServerMaintenance) { m.Spec.ServerBootConfigurationTemplate.Spec.Image = "newer" })(w)
		w.manager.run(time.Minute)
		if b := w.maintenanceBoot(); b.Spec.Image != "newer" {
			t.Errorf("it boots %s", b.Spec.Image)
		}
	})
}

func TestAMachineIsStoppedForItsMaintenanceOnlyInAWindow(t *testing.T) {
	for name, c := range map[string]struct {
		power  redfish.PowerState
		asks   v1alpha1.Power
		before []string
	}{
		"one that runs waits":        {redfish.PowerOn, v1alpha1.PowerOff, nil},
		"one that is off comes up":   {redfish.PowerOff, v1alpha1.PowerOn, []string{"On"}},
		"one that is off is let be":  {redfish.PowerOff, v1alpha1.PowerOff, nil},
		"one that ends is shut down": {redfish.PowerOn, "", []string{"GracefulShutdown"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(c.power)
				mm := maintenance(asksPower(c.asks), kept)
				if c.asks == "" {
					bootsRescue(mm)
				}
				w := inWorld(t, m, mm, serverIn(v1alpha1.StateMaintenance, granted))
				w.manager.Bundles = governed{inNights(t, "")}
				if c.asks == "" {
					maintenanceIsDeleted(w)
				}
				w.manager.run(time.Hour) // from midnight on
				m.wants(t, "before the window opens", c.before...)
				w.manager.run(2 * time.Hour)
				if c.power == redfish.PowerOn && c.asks != "" {
					m.wants(t, "once it is open", "GracefulShutdown")
				}
			})
		})
	}
}

// What covered a maintenance at its grant covers it when its machine is to be stopped, also where it names no policy.
func TestAWindowCoversWhatItCoveredAtTheGrant(t *testing.T) {
	for _, when := range []string{`maintenance.policy == "OwnerApproval"`, `server.power == "On"`, `server.health == "Unknown"`} {
		synctest.Test(t, func(t *testing.T) {
			m := newMachine(redfish.PowerOn)
			m.shows.Health = redfish.HealthUnknown
			w := inWorld(t, m, maintenance(asksPower(v1alpha1.PowerOff), kept), serverIn(v1alpha1.StateMaintenance, granted))
			w.manager.Bundles = governed{inNights(t, when)}
			w.manager.run(time.Hour) // from midnight on
			m.wants(t, "before the window opens where "+when)
		})
	}
}

// inNights is the default bundle with a window from two o'clock on, for what an expression says.
func inNights(t *testing.T, when string) *bundle.Bundle {
	t.Helper()
	files, err := policies.Shipped(policies.DefaultBundle)
	if err != nil {
		t.Fatal(err)
	}
	with := "windows: [{name: nights, opens: 0 2 * * *, lasts: 3h, zone: UTC"
	if when != "" {
		with += ", when: '" + when + "'"
	}
	with += "}]"
	files["bundle.yaml"] = []byte(strings.Replace(string(files["bundle.yaml"]), "windows: []", with, 1))
	b, found, err := bundle.Compile(files, policies.Vocabulary())
	if err != nil || found.Err() != nil {
		t.Fatal(err, found)
	}
	return b
}
