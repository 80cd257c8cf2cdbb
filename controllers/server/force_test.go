// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish"
)

// forcedTo is what metalaw server force writes.
func forcedTo(to v1alpha1.ServerState, override bool) func(*v1alpha1.Server) {
	return func(s *v1alpha1.Server) {
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.OperationAnnotation, v1alpha1.OperationForce)
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.ForceToAnnotation, string(to))
		if override {
			metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.ForceOverrideAnnotation, "true")
		}
	}
}

func retained(s *v1alpha1.Server) { s.Spec.ReclaimPolicy = v1alpha1.ReclaimPolicyRetain }

func marked(marks ...string) func(*v1alpha1.Server) {
	return func(s *v1alpha1.Server) { s.Status.Lifecycle.Marks = marks }
}

func inventoryOfA() *policyv1alpha1.ServerInventory {
	i := &policyv1alpha1.ServerInventory{}
	i.Name, i.Spec.SystemUUID = machineUUID, machineUUID
	return i
}

// forcedOutcome is what became of a force: where the server is, how the operation ended, and what the last move set aside.
type forcedOutcome struct {
	State     v1alpha1.ServerState
	Operation v1alpha1.OperationState
	Overrides []string
}

func (w *world) forced() forcedOutcome {
	w.t.Helper()
	s := w.server()
	o := forcedOutcome{State: s.Status.State}
	if op := s.Status.Operation; op != nil {
		o.Operation = op.State
	} else if slices.Contains(w.events, v1alpha1.ReasonOperationRefused) {
		o.Operation = v1alpha1.OperationRefused
	}
	if h := s.Status.Lifecycle.History; len(h) > 0 && h[len(h)-1].Rule == v1alpha1.RuleForced {
		o.Overrides = h[len(h)-1].Overrides
	}
	return o
}

func TestOnlyAMachineThatIsSeenOffIsForcedToWhereAnImageOfOursBoots(t *testing.T) {
	kept := []func(*v1alpha1.Server){holdsWeb, released, retained, marked("Dirty", "Managed")}
	asked := func(w *world) { w.askedOn() }
	for name, c := range map[string]struct {
		to       v1alpha1.ServerState
		override bool
		power    redfish.PowerState
		change   []func(*v1alpha1.Server)
		happens  func(*world)
		want     forcedOutcome
	}{
		"seen off": {"Cleanup", true, redfish.PowerOff, kept, nil,
			forcedOutcome{"Cleanup", v1alpha1.OperationSucceeded, []string{"NeverWipeRetained"}}},
		"seen on": {"Cleanup", true, redfish.PowerOn, []func(*v1alpha1.Server){holdsWeb, released, retained, marked("Dirty")}, nil,
			forcedOutcome{"Released", v1alpha1.OperationRefused, nil}},
		"seen off a while ago, and on by now": {"Cleanup", true, redfish.PowerOff, kept, func(w *world) { w.machine.will(0, redfish.PowerOn) },
			forcedOutcome{"Released", v1alpha1.OperationFailed, nil}},
		"whose BMC does not answer, to be wiped": {"Cleanup", true, redfish.PowerOff, kept, func(w *world) {
			w.machine.silent = errDown
			w.manager.run(30 * time.Minute)
		}, forcedOutcome{"Released", v1alpha1.OperationRefused, nil}},
		"whose BMC does not answer any more, to be wiped": {"Cleanup", true, redfish.PowerOff, kept, func(w *world) { w.machine.silent = errDown },
			forcedOutcome{"Released", v1alpha1.OperationFailed, nil}},
		"whose BMC does not answer, to be inspected": {"Discovery", false, redfish.PowerOff, nil, func(w *world) {
			w.machine.silent = errDown
			w.manager.run(30 * time.Minute)
		}, forcedOutcome{"Released", v1alpha1.OperationRefused, nil}},
		"whose BMC does not answer, to be set aside": {"Error", false, redfish.PowerOff, nil, func(w *world) {
			w.machine.silent = errDown
			w.manager.run(30 * time.Minute)
		}, forcedOutcome{"Error", v1alpha1.OperationSucceeded, nil}},
		"seen off, with a power-on that may come true": {"Cleanup", true, redfish.PowerOff, kept, asked,
			forcedOutcome{"Released", v1alpha1.OperationPending, nil}},
		"handed to a maintenance": {"Cleanup", true, redfish.PowerOff, append(slices.Clone(kept), func(s *v1alpha1.Server) {
			inService(s)
			s.Status.State = v1alpha1.StateMaintenance
		}), nil, forcedOutcome{"Maintenance", v1alpha1.OperationRefused, nil}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(c.power)
				w := inWorld(t, m, serverIn(v1alpha1.StateReleased, c.change...), inventoryOfA())
				m.obeys = deaf
				w.manager.run(time.Hour - time.Minute)
				if c.happens != nil {
					c.happens(w)
				}
				serverBecomes(forcedTo(c.to, c.override))(w)
				w.manager.run(20 * time.Second)
				if diff := cmp.Diff(c.want, w.forced()); diff != "" {
					t.Errorf("(-want +got)\n%s\nevents %v, operation %+v", diff, w.events, w.server().Status.Operation)
				}
			})
		})
	}
}

// askedOn records a power-on as a manager does that has just asked for it.
func (w *world) askedOn() {
	w.t.Helper()
	statusBecomes(func(s *v1alpha1.Server) {
		s.Status.Lifecycle.Request = &v1alpha1.PowerRequest{Action: v1alpha1.PowerActionOn, AskedAt: metav1.NewMicroTime(time.Now())}
	})(w)
}

func TestForceSetsAsideNoMoreThanItSays(t *testing.T) {
	bound := func() []client.Object { return reserved(v1alpha1.PowerOff) }
	failed := func(change ...func(*v1alpha1.Server)) func() []client.Object {
		return func() []client.Object { return []client.Object{serverIn(v1alpha1.StateError, change...)} }
	}
	for name, c := range map[string]struct {
		objects  func() []client.Object // made in the time of the world
		to       v1alpha1.ServerState
		override bool
		want     forcedOutcome
		held     bool
	}{
		"nothing, without override": {bound, "Cleanup", false,
			forcedOutcome{"Reserved", v1alpha1.OperationRefused, nil}, true},
		"a claim that stands": {bound, "Cleanup", true,
			forcedOutcome{"Cleanup", v1alpha1.OperationSucceeded, []string{"AbsenceIsNotEvidence", "NeverWipeClaimed"}}, false},
		"that a claim is not found": {failed(holdsWeb, marked("Dirty", "Managed")), "Cleanup", true,
			forcedOutcome{"Cleanup", v1alpha1.OperationSucceeded, []string{"AbsenceIsNotEvidence"}}, false},
		"that a holder's data is there": {failed(holdsWeb, released, marked("Dirty", "Managed")), "Available", true,
			forcedOutcome{"Available", v1alpha1.OperationSucceeded, []string{"ClearOnlyOnProof"}}, false},
		"nothing, where only the reference of a claim that ended is left": {
			failed(holdsWeb, released), "Available", true,
			forcedOutcome{"Available", v1alpha1.OperationSucceeded, nil}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := inWorld(t, newMachine(redfish.PowerOff), append(c.objects(), inventoryOfA())...)
				w.manager.run(time.Minute)
				serverBecomes(forcedTo(c.to, c.override))(w)
				w.manager.run(20 * time.Second)
				if diff := cmp.Diff(c.want, w.forced()); diff != "" {
					t.Errorf("(-want +got)\n%s\nevents %v, operation %+v", diff, w.events, w.server().Status.Operation)
				}
				if held := w.server().Spec.ServerClaimRef != nil; held != c.held {
					t.Errorf("a claim is written on it: %t", held)
				}
			})
		})
	}
}

func TestForceNeverTakesARunningMachineFromItsClaim(t *testing.T) {
	for _, to := range []v1alpha1.ServerState{v1alpha1.StateAvailable, v1alpha1.StateCleanup, v1alpha1.StateDiscovery} {
		t.Run(string(to), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(redfish.PowerOn)
				w := inWorld(t, m, append(reserved(v1alpha1.PowerOn), inventoryOfA())...)
				w.manager.run(time.Minute)
				serverBecomes(forcedTo(to, true))(w)
				w.manager.run(20 * time.Second)
				if got := w.forced(); got.State != v1alpha1.StateReserved || got.Operation == v1alpha1.OperationSucceeded {
					t.Errorf("%+v, events %v, operation %+v", got, w.events, w.server().Status.Operation)
				}
				if w.server().Spec.ServerClaimRef == nil {
					t.Error("its claim was let go")
				}
				m.wants(t, "while its claim runs on it")
			})
		})
	}
}

func TestForceAsksForTheClaimPastTheCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := inWorld(t, newMachine(redfish.PowerOff), append(reserved(v1alpha1.PowerOff), inventoryOfA())...)
		w.manager.Client = interceptor.NewClient(w.api, interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				if _, ok := o.(*v1alpha1.ServerClaim); ok {
					return apierrors.NewNotFound(schema.GroupResource{Resource: "serverclaims"}, key.Name)
				}
				return c.Get(ctx, key, o, opts...)
			},
		})
		w.manager.run(time.Minute)
		serverBecomes(forcedTo(v1alpha1.StateCleanup, true))(w)
		w.manager.run(20 * time.Second)
		want := forcedOutcome{"Cleanup", v1alpha1.OperationSucceeded, []string{"AbsenceIsNotEvidence", "NeverWipeClaimed"}}
		if diff := cmp.Diff(want, w.forced()); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
}

func TestWhatIsAskedForByHandIsHeldBackWithTheRest(t *testing.T) {
	for name, c := range map[string]struct {
		asked func(*v1alpha1.Server)
		// begun says that the operation was recorded before.
		begun bool
	}{
		"a force":                     {forcedTo(v1alpha1.StateCleanup, true), false},
		"a force that was begun":      {forcedTo(v1alpha1.StateCleanup, true), true},
		"a release of a claim's data": {operates(v1alpha1.OperationRelease), false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := inWorld(t, newMachine(redfish.PowerOff), serverIn(v1alpha1.StateError, holdsWeb, marked("Dirty", "Managed")), inventoryOfA())
				w.manager.run(time.Minute)
				serverBecomes(c.asked)(w)
				if c.begun {
					if _, err := w.manager.look(); err != nil {
						t.Fatal(err)
					}
				}
				w.manager.Gate.ObserveOnly = true
				w.manager.run(10 * time.Minute)
				s := w.server()
				if s.Status.State != v1alpha1.StateError || s.Spec.ServerClaimRef == nil || v1alpha1.ReleaseRecorded(s) {
					t.Errorf("while only observing: state %s, claim %v, annotations %v", s.Status.State, s.Spec.ServerClaimRef, s.Annotations)
				}
				w.manager.Gate.ObserveOnly = false
				w.manager.run(10 * time.Minute)
				if s := w.server(); !v1alpha1.ReleaseRecorded(s) {
					t.Errorf("then: state %s, annotations %v, operation %+v", s.Status.State, s.Annotations, s.Status.Operation)
				}
			})
		})
	}
}

func TestAHintToSetRulesAsideIsGivenWhereThatHelps(t *testing.T) {
	const hint = "ask with policy.metalaw.dev/force-override=true"
	for name, c := range map[string]struct {
		change func(*v1alpha1.Server)
		to     v1alpha1.ServerState
		hint   bool
		says   string
	}{
		"a dirty machine that is off":        {marked("Dirty", "Managed"), "Available", true, "NeverOfferDirty"},
		"a state in which it would not stay": {marked("Dirty", "Managed"), "Initial", false, "would lead it from there to Error at once"},
		"a state that there is not":          {marked("Dirty", "Managed"), "Attic", false, "the policy defines no state \"Attic\""},
		"a dirty machine that is handed to a maintenance, to be wiped": {func(s *v1alpha1.Server) {
			marked("Dirty", "Managed")(s)
			inService(s)
			s.Status.State = v1alpha1.StateMaintenance
		}, "Cleanup", false, "in Cleanup it boots an image of ours, and it is handed to a maintenance: clear spec.serverMaintenanceRef first, when that is over"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := inWorld(t, newMachine(redfish.PowerOff), serverIn(v1alpha1.StateError, c.change), inventoryOfA())
				w.manager.run(time.Minute)
				serverBecomes(forcedTo(c.to, false))(w)
				w.manager.run(20 * time.Second)
				said := strings.Join(w.said, "\n")
				if !strings.Contains(said, c.says) || strings.Contains(said, hint) != c.hint {
					t.Errorf("said %s", said)
				}
			})
		})
	}
}

func TestTheWayOutOfObservingThatIsAdvisedErasesTheData(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := inWorld(t, newMachine(redfish.PowerOn), serverIn(v1alpha1.StateObserving, marked("Dirty")), inventoryOfA())
		w.manager.run(time.Minute)
		asks := func(operation string) func(*v1alpha1.Server) {
			return func(s *v1alpha1.Server) {
				metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.OperationAnnotation, operation)
			}
		}
		for _, step := range []struct {
			change func(*v1alpha1.Server)
			want   v1alpha1.ServerState
		}{
			{asks(v1alpha1.OperationRelease), v1alpha1.StateObserving},
			{consented, v1alpha1.StateError},
			{asks(v1alpha1.OperationRelease), v1alpha1.StateError},
			{asks(v1alpha1.OperationRetry), v1alpha1.StateCleanup},
		} {
			serverBecomes(step.change)(w)
			w.manager.run(10 * time.Minute)
			if got := w.server(); got.Status.State != step.want {
				t.Fatalf("in %s and not %s: %v", got.Status.State, step.want, w.said)
			}
		}
	})
}
