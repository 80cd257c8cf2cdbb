// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/server/operations"
	"github.com/metalaw/metalaw/engine/lifecycle"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/redfish"
)

// otherMachine is the BMC of another machine than the server's.
func otherMachine() *machine {
	m := newMachine(redfish.PowerOff)
	m.shows.Identity.UUID = "1a2b3c4d-0000-0000-0000-000000000002"
	return m
}

func TestAServerWhoseBMCAnswersForAnotherMachineIsForcedToWhereNothingIsBootedOrOffered(t *testing.T) {
	as := func(*v1alpha1.Server) {}
	for name, c := range map[string]struct {
		from, to v1alpha1.ServerState
		override bool
		want     forcedOutcome
		others   []client.Object
		change   func(*v1alpha1.Server)
		// halts is the effect that IdentityFirst halts the server at in the end.
		halts string
	}{
		"to Error":                       {"Available", "Error", false, forcedOutcome{"Error", v1alpha1.OperationSucceeded, nil}, nil, as, "Locate"},
		"to Parked":                      {"Available", "Parked", false, forcedOutcome{"Parked", v1alpha1.OperationSucceeded, nil}, nil, as, ""},
		"to Reserved, for its claim":     {"Error", "Reserved", false, forcedOutcome{"Reserved", v1alpha1.OperationSucceeded, nil}, reserved(v1alpha1.PowerOn)[1:], holdsWeb, "Locate"},
		"not to where it is offered":     {"Error", "Available", false, forcedOutcome{"Error", v1alpha1.OperationRefused, nil}, nil, as, "Locate"},
		"nor with safety rules aside":    {"Error", "Available", true, forcedOutcome{"Error", v1alpha1.OperationRefused, nil}, nil, as, "Locate"},
		"not to where it is inspected":   {"Available", "Discovery", false, forcedOutcome{"Available", v1alpha1.OperationRefused, nil}, nil, as, "PowerOff"},
		"not to where it would be wiped": {"Error", "Cleanup", true, forcedOutcome{"Error", v1alpha1.OperationRefused, nil}, nil, as, "Locate"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := otherMachine()
				w := inWorld(t, m, append([]client.Object{serverIn(c.from, c.change), inventoryOfA()}, c.others...)...)
				w.manager.run(time.Minute)
				serverBecomes(forcedTo(c.to, c.override))(w)
				w.manager.run(20 * time.Second)
				if diff := cmp.Diff(c.want, w.forced()); diff != "" {
					t.Errorf("(-want +got)\n%s\n%v", diff, w.said)
				}
				halted := meta.FindStatusCondition(w.server().Status.Conditions, v1alpha1.ConditionPolicyHalted)
				if at := haltsAt(halted, "IdentityFirst"); at != c.halts {
					t.Errorf("halts at %q, want %q: %+v", at, c.halts, halted)
				}
				m.wants(t, "of another machine")
			})
		})
	}
}

// haltsAt is the effect at which a safety rule halts a server, by its condition PolicyHalted; empty where there is none.
func haltsAt(halted *metav1.Condition, rule string) string {
	if halted == nil || !strings.Contains(halted.Message, " would break "+rule+":") {
		return ""
	}
	effect, _, _ := strings.Cut(halted.Message, ":")
	return effect
}

func TestNobodyIsForcedToWhereOnlyAReleaseLeadsFromThatThereCannotBe(t *testing.T) {
	const source = `
apiVersion: policy.metalaw.dev/v1alpha1
kind: Lifecycle
initial: Shelf
define:
  released: claim.released
  retained: server.reclaimPolicy == "Retain"
  asked:    operation.name == "retry"
interrupts:
- {rule: SetAside, to: Shelf, when: retained, except: [Shelf]}
states:
  Vault:
    means: Kept until it is released.
    stable: true
    operations: [release]
    exits:
    - {rule: Opened, to: Shelf, when: released && !retained}
  Shelf:
    means: Kept until somebody asks.
    stable: true
    operations: [retry]
    exits:
    - {rule: Taken, to: Vault, when: asked || released}
  Grave:
    means: The end.
    stable: true
`
	l, found, err := lifecycle.Compile("lifecycle.yaml", []byte(source), policies.Vocabulary())
	if err != nil {
		t.Fatal(err, found)
	}
	for name, c := range map[string]struct {
		in     v1alpha1.ServerState
		change func(*v1alpha1.Server)
		want   bool
	}{
		"a state that only a release leads from":       {"Vault", func(*v1alpha1.Server) {}, true},
		"of which there is one to record":              {"Vault", holdsWeb, false},
		"a state that an operation leads from as well": {"Shelf", func(*v1alpha1.Server) {}, false},
		"a state that nothing leads from":              {"Grave", func(*v1alpha1.Server) {}, false},
	} {
		t.Run(name, func(t *testing.T) {
			v := newScope(t, c.in, func(v *scope) { c.change(v.server) })
			b := *v.seen.Bundle
			b.Lifecycle, v.seen.Bundle = l, &b
			o := policies.Observation{Server: v.server, Now: v.seen.Now, Settings: v.settings()}
			if why := operations.DeadEnd(v.seen.Bundle, v.server, o.Facts()); (why != "") != c.want {
				t.Errorf("refused because %q", why)
			}
		})
	}
}

func TestTheWayOutOfAMissingClaimIsOneThatTheStateTakes(t *testing.T) {
	const release = "a user releases it (annotation metal.ironcore.dev/operation=release)"
	for state, want := range map[v1alpha1.ServerState]string{
		v1alpha1.StateReserved:  release,
		v1alpha1.StateError:     release,
		v1alpha1.StateReleased:  release,
		v1alpha1.StateAvailable: "a user clears spec.serverClaimRef of the server, for which nothing was booted for a claim here",
		v1alpha1.StateParked:    release + ", which is refused in state Parked; it can in Reserved, Released, Error",
	} {
		t.Run(string(state), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(redfish.PowerOff)
				m.shows.Power = redfish.PowerUnknown
				w := inWorld(t, m, serverIn(state, holdsWeb), inventoryOfA())
				w.manager.run(time.Minute)
				c := meta.FindStatusCondition(w.server().Status.Conditions, v1alpha1.ConditionClaimMissing)
				if c == nil || !strings.HasSuffix(c.Message, " or "+want) {
					t.Fatalf("in %s: %+v", state, c)
				}
				if state != v1alpha1.StateAvailable {
					return
				}
				serverBecomes(func(s *v1alpha1.Server) { s.Spec.ServerClaimRef = nil })(w)
				w.manager.run(time.Minute)
				if s := w.server(); s.Status.State != state || meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionClaimMissing) != nil {
					t.Errorf("the advice did not help: %s, %+v", s.Status.State, s.Status.Conditions)
				}
			})
		})
	}
}

func TestACleanServerIsNotForcedToWhereNoRuleLeadsOut(t *testing.T) {
	for name, c := range map[string]struct {
		change   func(*v1alpha1.Server)
		override bool
		want     forcedOutcome
		says     string
	}{
		"that nobody held":                 {marked("Managed"), false, forcedOutcome{"Error", v1alpha1.OperationRefused, nil}, "no claim is known to have held this server"},
		"that nobody held, with override":  {marked("Managed"), true, forcedOutcome{"Error", v1alpha1.OperationRefused, nil}, "no claim is known to have held this server"},
		"but one with data, to be kept so": {marked("Dirty", "Managed"), false, forcedOutcome{"Released", v1alpha1.OperationSucceeded, nil}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := inWorld(t, newMachine(redfish.PowerOff), serverIn(v1alpha1.StateError, c.change), inventoryOfA())
				w.manager.run(time.Minute)
				serverBecomes(forcedTo(v1alpha1.StateReleased, c.override))(w)
				w.manager.run(20 * time.Second)
				if diff := cmp.Diff(c.want, w.forced()); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
				if said := strings.Join(w.said, "\n"); !strings.Contains(said, c.says) {
					t.Errorf("said %s", said)
				}
			})
		})
	}
}

func TestALaterRequestThatIsRefusedLeavesTheRecordOfTheEarlierOneAsItIs(t *testing.T) {
	ended := metav1.Condition{Type: v1alpha1.ConditionOperationDone, Status: metav1.ConditionTrue, Reason: "Succeeded", Message: "retry: Retried moved the server"}
	for name, before := range map[string][]metav1.Condition{"where none had ended": nil, "where one before it had ended": {ended}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(redfish.PowerOn)
				m.obeys = slowly(10 * time.Minute)
				w := inWorld(t, m, append(reserved(v1alpha1.PowerOn, func(s *v1alpha1.Server) { s.Status.Conditions = before }), inventoryOfA())...)
				w.manager.run(time.Minute)
				serverBecomes(operates(v1alpha1.OperationPark))(w)
				w.manager.run(10 * time.Second)
				earlier := w.server()
				if !earlier.Status.Operation.Active() {
					t.Fatalf("the earlier one is not pending: %+v", earlier.Status.Operation)
				}
				serverBecomes(operates(v1alpha1.OperationRelease))(w)
				w.manager.run(10 * time.Second)
				later := w.server()
				if diff := cmp.Diff(earlier.Status.Operation, later.Status.Operation); diff != "" || v1alpha1.OperationRelease == later.Annotations[v1alpha1.OperationAnnotation] {
					t.Errorf("status.operation (-earlier +later)\n%s", diff)
				}
				done := func(s *v1alpha1.Server) *metav1.Condition {
					return meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionOperationDone)
				}
				if diff := cmp.Diff(done(earlier), done(later)); diff != "" || (done(later) == nil) != (before == nil) {
					t.Errorf("OperationDone (-earlier +later)\n%s", diff)
				}
			})
		})
	}
}

func TestALaterRequestTakesThePlaceOfAnEarlierOneIfItCanBeGranted(t *testing.T) {
	for name, c := range map[string]struct {
		later func(*v1alpha1.Server)
		state v1alpha1.ServerState
		ended string
		says  string
	}{
		"a force that can be granted, before the park": {forcedTo(v1alpha1.StateError, false), v1alpha1.StateParked, "park Succeeded",
			"park waits for force, which was asked for before it could be begun"},
		"a force that is refused": {forcedTo("Attic", false), v1alpha1.StateParked, "park Succeeded", `force to Attic: the policy defines no state "Attic"`},
		"a release that is refused": {operates(v1alpha1.OperationRelease), v1alpha1.StateParked, "park Succeeded",
			"release: the claim shop/web exists and holds this server; delete the claim instead; park, which was asked for before, goes on"},
		"a retry that the state does not take": {operates(v1alpha1.OperationRetry), v1alpha1.StateParked, "park Succeeded",
			"retry cannot be used in state Reserved"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(redfish.PowerOn)
				m.obeys = slowly(2 * time.Minute)
				w := inWorld(t, m, append(reserved(v1alpha1.PowerOn), inventoryOfA())...)
				w.manager.run(time.Minute)
				serverBecomes(operates(v1alpha1.OperationPark))(w)
				w.manager.run(time.Minute)
				serverBecomes(c.later)(w)
				w.manager.run(10 * time.Minute)
				if s := w.server(); s.Status.State != c.state || w.operation() != c.ended {
					t.Errorf("in %s, %s; said %v", s.Status.State, w.operation(), w.said)
				}
				if said := strings.Join(w.said, "\n"); !strings.Contains(said, c.says) {
					t.Errorf("said %s", said)
				}
			})
		})
	}
}

func TestAForceThatIsNotMadeSetsNothingAside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := []func(*v1alpha1.Server){holdsWeb, released, retained, marked("Dirty", "Managed")}
		w := inWorld(t, newMachine(redfish.PowerOff), serverIn(v1alpha1.StateReleased, kept...), inventoryOfA())
		w.manager.run(time.Minute)
		w.machine.will(0, redfish.PowerOn)
		serverBecomes(forcedTo(v1alpha1.StateCleanup, true))(w)
		w.manager.run(20 * time.Second)
		op := w.server().Status.Operation
		if op == nil || op.State != v1alpha1.OperationFailed || !op.Override || len(op.Overrides) > 0 {
			t.Errorf("%+v", op)
		}
	})
}

func TestAMachineThatIsSwitchedOnWhileItIsParkedShowsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(redfish.PowerOff)
		w := inWorld(t, m, serverIn(v1alpha1.StateAvailable), inventoryOfA())
		w.manager.run(2 * time.Second)
		m.will(0, redfish.PowerOn) // somebody presses the button
		serverBecomes(operates(v1alpha1.OperationPark))(w)
		w.manager.run(15 * time.Second)
		s := w.server()
		if s.Status.State != v1alpha1.StateParked || s.Status.PowerState != v1alpha1.PowerStateOn {
			t.Errorf("%s, shown %s", s.Status.State, s.Status.PowerState)
		}
		for _, power := range []redfish.PowerState{redfish.PowerOff, redfish.PowerOn} { // a tool of another program restarts it
			w.manager.run(time.Minute)
			m.will(0, power)
			w.manager.run(15 * time.Second)
			if shown := w.server().Status.PowerState; string(shown) != string(power) {
				t.Errorf("15 s after it was %s it is shown %s", power, shown)
			}
		}
		read := m.readings()
		w.manager.run(3 * time.Minute)
		if m.readings() > read+19 {
			t.Errorf("a parked machine was read %d times in three minutes", m.readings()-read)
		}
	})
}

func TestAServerWaitsForTheEndOfANamespaceThatIsBeingDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		objects := reserved(v1alpha1.PowerOn)
		w := inWorld(t, newMachine(redfish.PowerOn), objects[0], objects[1], inventoryOfA())
		asked := 0
		w.manager.Client = interceptor.NewClient(w.api, interceptor.Funcs{
			Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
				asked++
				err := apierrors.NewForbidden(schema.GroupResource{Resource: "serverbootconfigurations"}, o.GetName(), errors.New("it is being terminated"))
				err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
				return err
			},
		})
		for range 3 {
			if _, err := w.manager.look(); err != nil {
				t.Fatalf("it is told as an error: %v", err)
			}
			time.Sleep(time.Second)
		}
		if want := "the end of namespace shop, which is being deleted"; asked == 0 || w.manager.outcome.Progress.Message != want {
			t.Errorf("asked %d times, waits for %q", asked, w.manager.outcome.Progress.Message)
		}
	})
}
