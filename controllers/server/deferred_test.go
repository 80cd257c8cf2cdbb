// SPDX-License-Identifier: Apache-2.0

package server

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/server/status"
	"github.com/metalaw/metalaw/metalprobe"
	"github.com/metalaw/metalaw/redfish"
)

func TestWhatWaitsForTheNextWrite(t *testing.T) {
	observed := func(s *v1alpha1.Server) {
		s.Status.ObservedGeneration, s.Status.Conditions[0].ObservedGeneration = 2, 2
	}
	holds := func(p v1alpha1.ProbePurpose) func(*v1alpha1.Server) {
		return func(s *v1alpha1.Server) {
			observed(s)
			s.Status.Lifecycle.Credential = &v1alpha1.ProbeCredential{Purpose: p, Entry: 7, TokenHash: "ab"}
		}
	}
	found := func(p v1alpha1.ProbePurpose) func(*v1alpha1.Server) {
		return func(s *v1alpha1.Server) {
			s.Status.Lifecycle.Credential = &v1alpha1.ProbeCredential{Purpose: p, Entry: 7, TokenHash: "ab"}
			s.Status.Processors, s.Status.Storages = []v1alpha1.Processor{{ID: "0"}}, []v1alpha1.Storage{{Name: "a"}}
		}
	}
	settled, binding := func(v *scope) { v.recorded.Stays = true }, func(v *scope) { v.recorded.Stays, v.seen.Facts.Claim.Binding = true, true }
	onItsWay := func(*scope) {}
	undecided := func(v *scope) { v.server.Status.Lifecycle = nil }
	hardware := func(s *v1alpha1.Server) { s.Status.PowerState, s.Status.Model = v1alpha1.PowerStateOn, "Emulated" }
	for name, c := range map[string]struct {
		scope  func(*scope)
		change func(*v1alpha1.Server)
		waited time.Duration
		want   bool
	}{
		"what an inspection finds":                         {onItsWay, found(v1alpha1.ProbePurposeProbe), 0, true},
		"but not for long, while it awaits more":           {onItsWay, found(v1alpha1.ProbePurposeProbe), status.WorthTelling, false},
		"but not what a wipe finds, which is judged by it": {onItsWay, found(v1alpha1.ProbePurposeWipe), 0, false},
		"but not the first interfaces, which a boot service needs": {onItsWay, func(s *v1alpha1.Server) {
			found(v1alpha1.ProbePurposeProbe)(s)
			s.Status.NetworkInterfaces = []v1alpha1.NetworkInterface{{MACAddress: "02:00:00:00:00:01"}}
		}, 0, false},
		"the generation that was observed, on the way": {onItsWay, observed, 0, true},
		"but not for long":                                {onItsWay, observed, status.WorthTelling, false},
		"but not where the server rests":                  {settled, observed, 0, false},
		"of a server that rests until its claim names it": {binding, observed, 0, true},
		"the credential of a probe that cannot boot yet":  {onItsWay, holds(v1alpha1.ProbePurposeProbe), 0, true},
		"but not one where the server rests":              {settled, holds(v1alpha1.ProbePurposeProbe), 0, false},
		"but not that of a wipe, which budgets count":     {onItsWay, holds(v1alpha1.ProbePurposeWipe), 0, false},
		"but not the power":                               {onItsWay, func(s *v1alpha1.Server) { s.Status.PowerState = v1alpha1.PowerStateOn }, 0, false},
		"but not what a condition says":                   {onItsWay, func(s *v1alpha1.Server) { s.Status.Conditions[0].Message = "otherwise" }, 0, false},
		"but not a condition that comes": {onItsWay, func(s *v1alpha1.Server) {
			s.Status.Conditions = append(s.Status.Conditions, metav1.Condition{Type: "B"})
		}, 0, false},
		"but not a mark": {onItsWay, func(s *v1alpha1.Server) { s.Status.Lifecycle.Marks = nil }, 0, false},
		"the hardware of a server about which nothing is decided yet": {undecided, hardware, 0, true},
		"but not for long either":                                     {undecided, hardware, status.WorthTelling, false},
		"but not what a condition says of it": {undecided, func(s *v1alpha1.Server) {
			hardware(s)
			s.Status.Conditions[0].Message = "otherwise"
		}, 0, false},
		"but not the first decision":                        {undecided, func(s *v1alpha1.Server) { s.Status.Lifecycle = &v1alpha1.LifecycleStatus{} }, 0, false},
		"but not a request that the BMC is to be asked for": {onItsWay, func(s *v1alpha1.Server) { s.Status.Lifecycle.Request = &v1alpha1.PowerRequest{} }, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			v := newScope(t, "Discovery", c.scope)
			s := newSubject(*v.Options)
			v.server.Status.ObservedGeneration = 1
			v.server.Status.Conditions = []metav1.Condition{{Type: "A", ObservedGeneration: 1}}
			after := v.server.DeepCopy()
			c.change(after)
			s.Now = func() time.Time { return v.seen.Now }
			s.defers(v.server, after)
			v.seen.Now = v.seen.Now.Add(c.waited)
			if got := (!v.recorded.Stays || v.seen.Facts.Claim.Binding) && s.defers(v.server, after) > 0; got != c.want {
				t.Errorf("waits: %t", got)
			}
		})
	}
}

// newcomer is the server a that nobody has seen before.
func newcomer() *v1alpha1.Server {
	return serverIn("", func(s *v1alpha1.Server) {
		s.Status, s.Finalizers = v1alpha1.ServerStatus{NetworkInterfaces: s.Status.NetworkInterfaces}, nil
	})
}

// bootIsPrepared is the boot service's word on the server's own boot configuration.
func bootIsPrepared(w *world) {
	boot := &v1alpha1.ServerBootConfiguration{}
	if err := w.api.Get(w.t.Context(), types.NamespacedName{Namespace: "metalaw-system", Name: "a"}, boot); err != nil {
		w.t.Fatal(err)
	}
	boot.Status.State = v1alpha1.ServerBootConfigurationStateReady
	if err := w.api.Status().Update(w.t.Context(), boot); err != nil {
		w.t.Fatal(err)
	}
	w.manager.wake("a")
}

func TestTheCredentialOfAProbeIsStoredBeforeItsMachineIsSwitchedOn(t *testing.T) {
	for name, c := range map[string]struct {
		between func(*world)
		// alone says that it is stored by a write of its own.
		alone bool
	}{
		"with the power-on": {func(*world) {}, false},
		"with the power-on, by a manager that comes after and finds it in the ignition": {func(w *world) { w.start() }, false},
		"by itself, where the boot takes long to be prepared":                           {func(w *world) { w.manager.run(time.Minute) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(redfish.PowerOff)
				w := inWorld(t, m, newcomer())
				w.manager.run(5 * time.Second)
				if s := w.server(); s.Status.State != v1alpha1.StateDiscovery || s.Spec.BootConfigurationRef == nil || s.Status.Lifecycle.Credential != nil {
					t.Fatalf("the boot is not being prepared: %+v", s)
				}
				c.between(w)
				if stored := w.server().Status.Lifecycle.Credential != nil; stored != c.alone {
					t.Errorf("stored before the power-on: %t", stored)
				}
				var stored []string
				m.hears = func(string) { stored = append(stored, w.server().Status.Lifecycle.Credential.TokenHash) }
				bootIsPrepared(w)
				w.manager.run(5 * time.Second)
				m.wants(t, "in the end", "On")
				secret := &corev1.Secret{}
				if err := w.api.Get(t.Context(), types.NamespacedName{Namespace: "metalaw-system", Name: "a"}, secret); err != nil {
					t.Fatal(err)
				}
				config, err := metalprobe.ParseIgnition(secret.Data["ignition"])
				if want := metalprobe.HashToken(config.Token); err != nil || len(stored) == 0 || stored[0] != want {
					t.Errorf("as the BMC was asked %v was stored, want %s (%v)", stored, want, err)
				}
			})
		})
	}
}

func TestAPowerOnThatShowsIsNeverTakenForSomebodyElses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(redfish.PowerOff)
		w := inWorld(t, m, reserved(v1alpha1.PowerOn, func(s *v1alpha1.Server) {
			s.Status.Lifecycle.History = []v1alpha1.LifecycleMove{{From: v1alpha1.StateAvailable, To: v1alpha1.StateReserved, Entry: 7}}
		})...)
		var reasons []string
		w.refuses = func(s *v1alpha1.Server) error {
			if ready := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionReady); ready != nil {
				reasons = append(reasons, ready.Reason)
			}
			return nil
		}
		w.manager.run(10 * time.Second)
		m.wants(t, "in the end", "On")
		if slices.Contains(reasons, v1alpha1.ReasonSwitchedOnByHand) || !slices.Contains(reasons, v1alpha1.ReasonStable) {
			t.Errorf("Ready says one after the other %v", reasons)
		}
	})
}
