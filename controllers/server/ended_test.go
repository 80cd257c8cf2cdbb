// SPDX-License-Identifier: Apache-2.0

package server

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/redfish"
)

// endedNow is what the claim loop writes when a claim is deleted at this moment.
func endedNow(s *v1alpha1.Server) {
	released(s)
	s.Annotations[v1alpha1.ReleasedAtAnnotation] = time.Now().UTC().Format(time.RFC3339)
}

// withGrace has the manager know the grace of the default bundle, under other settings.
func (p *process) withGrace(change func(*bundle.Settings)) {
	b := *p.Bundles.(governed).b
	change(&b.Settings)
	p.Bundles, p.NoReleaseGrace, p.Counted = governed{&b}, false, counts(500)
}

func TestThePowerOfAMachineGoesWithItsClaimAndItsDataStaysForTheGrace(t *testing.T) {
	for name, c := range map[string]struct {
		set   func(*bundle.Settings)
		obeys func(*machine, redfish.PowerAction)
		// soon is what the BMC was asked after three minutes, and late after all of the grace.
		soon, late []string
	}{
		"at once, as its operating system shuts down": {nil, slowly(time.Minute), []string{"GracefulShutdown"}, []string{"GracefulShutdown"}},
		"by force after two minutes": {nil, func(m *machine, action redfish.PowerAction) {
			if action == redfish.ActionForceOff {
				m.will(0, redfish.PowerOff)
			}
		}, []string{"GracefulShutdown", "ForceOff"}, []string{"GracefulShutdown", "ForceOff"}},
		"by force at once, where the policy says so": {func(s *bundle.Settings) { s.ReleaseShutdown = 0 }, nil, []string{"ForceOff"}, []string{"ForceOff"}},
		"only after the grace, where the policy says nothing": {func(s *bundle.Settings) { s.ReleasePower = bundle.PowerAfterGrace }, nil,
			nil, []string{"GracefulShutdown"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(redfish.PowerOn)
				m.obeys = c.obeys
				w := inWorld(t, m, reserved(v1alpha1.PowerOn, endedNow)...)
				w.manager.withGrace(func(s *bundle.Settings) {
					if c.set != nil {
						c.set(s)
					}
				})
				w.manager.run(3 * time.Minute)
				m.wants(t, "after three minutes", c.soon...)
				w.manager.run(90 * time.Second)
				if got := w.server().Status.State; got != v1alpha1.StateReserved {
					t.Errorf("it came to %s within the grace", got)
				}
				w.manager.run(time.Minute)
				m.wants(t, "after the grace", c.late...)
				if got := w.server().Status.State; got != v1alpha1.StateCleanup {
					t.Errorf("it came to %s after the grace: %+v", got, w.server().Status.Conditions)
				}
			})
		})
	}
}

func TestAMachineWhosePowerWentWithItsClaimBootsAgainOnceTheReleaseIsUndone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(redfish.PowerOn)
		w := inWorld(t, m, serverIn(v1alpha1.StateReserved, holdsWeb, endedNow, func(s *v1alpha1.Server) {
			s.Status.Lifecycle.Marks = []string{"Dirty", "Managed"}
		}))
		w.manager.withGrace(func(*bundle.Settings) {})
		w.manager.run(2 * time.Minute)
		m.wants(t, "after the claim's end", "GracefulShutdown")

		edit(w, "a", &v1alpha1.Server{}, operates(v1alpha1.OperationUndoRelease))
		w.manager.run(time.Minute)
		if got := w.operation(); got != "undo-release Succeeded" {
			t.Fatalf("%s: %+v", got, w.server().Status.Operation)
		}
		const says = "its machine was powered off, and boots again as the claim asks once that is back"
		if got := w.server().Status.Operation.Message; !strings.Contains(got, says) {
			t.Errorf("it says %q", got)
		}
		w.manager.run(10 * time.Minute)
		m.wants(t, "while the claim is not back", "GracefulShutdown")
	})
}

// The claim that was applied again has another UID; the scheduler has written that on the server.
func TestAMachineThatIsStillShuttingDownForTheFormerClaimBootsForTheRestoredOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(redfish.PowerOn)
		m.obeys = slowly(90 * time.Second)
		objects := reserved(v1alpha1.PowerOn, endedNow)
		w := inWorld(t, m, objects...)
		w.manager.withGrace(func(*bundle.Settings) {})
		w.manager.run(30 * time.Second)
		m.wants(t, "after the claim's end", "GracefulShutdown")

		edit(w, "a", &v1alpha1.Server{}, operates(v1alpha1.OperationUndoRelease))
		w.manager.run(10 * time.Second)
		w.restores(objects[1:]...)
		w.manager.run(10 * time.Minute)
		if asked := m.asked(); len(asked) == 0 || asked[len(asked)-1] != "On" || m.shows.Power != redfish.PowerOn {
			t.Errorf("the BMC was asked %q, and the machine is %s", asked, m.shows.Power)
		}
	})
}

// restores makes the claim anew under another UID, as it is bound again, and leaves its boot configuration to the manager.
func (w *world) restores(former ...client.Object) {
	w.t.Helper()
	for _, o := range former {
		if err := w.api.Delete(w.t.Context(), o); err != nil {
			w.t.Fatal(err)
		}
	}
	again := &v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "uid-web-2"}}
	again.Spec.Power, again.Spec.Image, again.Spec.ServerRef = v1alpha1.PowerOn, "os", &corev1.LocalObjectReference{Name: "a"}
	if err := w.api.Create(w.t.Context(), again); err != nil {
		w.t.Fatal(err)
	}
	edit(w, "a", &v1alpha1.Server{}, func(s *v1alpha1.Server) { s.Annotations[v1alpha1.ClaimUIDAnnotation] = "uid-web-2" })
	w.manager.run(10 * time.Second)
	edit(w, "web", &v1alpha1.ServerBootConfiguration{}, func(b *v1alpha1.ServerBootConfiguration) {
		b.Status.State = v1alpha1.ServerBootConfigurationStateReady
	})
	boot := &v1alpha1.ServerBootConfiguration{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	if err := w.api.Get(w.t.Context(), client.ObjectKeyFromObject(boot), boot); err != nil {
		w.t.Fatal(err)
	}
	boot.Status.State = v1alpha1.ServerBootConfigurationStateReady
	if err := w.api.Status().Update(w.t.Context(), boot); err != nil {
		w.t.Fatal(err)
	}
	w.manager.wake("a")
}
