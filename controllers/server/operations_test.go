// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/fleet"
	"github.com/metalaw/metalaw/redfish"
)

// operates is a server on which somebody asks for an operation.
func operates(operation string) func(*v1alpha1.Server) {
	return func(s *v1alpha1.Server) {
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.OperationAnnotation, operation)
	}
}

// operation is how the last operation ended: its name and state.
func (w *world) operation() string {
	w.t.Helper()
	op := w.server().Status.Operation
	if op == nil {
		return "none"
	}
	return op.Name + " " + string(op.State)
}

func TestAReleaseByHandIsRefusedWhileTheHolderLives(t *testing.T) {
	claim := func(uid types.UID, server string) *v1alpha1.ServerClaim {
		c := &v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: uid}}
		c.Spec.Power, c.Spec.Image = v1alpha1.PowerOff, "os"
		if server != "" {
			c.Spec.ServerRef = &corev1.LocalObjectReference{Name: server}
		}
		return c
	}
	cleared := func(s *v1alpha1.Server) { s.Spec.ServerClaimRef = nil }
	for name, c := range map[string]struct {
		server   func(*v1alpha1.Server)
		claim    client.Object
		released bool
	}{
		"the reference and the claim stand":                           {nil, claim("uid-web", "a"), false},
		"the claim does not name the server back":                     {nil, claim("uid-web", ""), false},
		"somebody cleared the reference and the holder lives":         {cleared, claim("uid-web", "a"), false},
		"somebody cleared the reference and the holder is gone":       {cleared, nil, true},
		"the holder is gone":                                          {nil, nil, true},
		"somebody cleared the reference and another names the server": {cleared, claim("uid-other", "a"), true},
		"somebody cleared the reference and the claim names another":  {cleared, claim("uid-web", "b"), true},
		"the holder is gone and another of its name names another":    {nil, claim("uid-other", "b"), true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := serverIn(v1alpha1.StateError, holdsWeb, operates(v1alpha1.OperationRelease), func(s *v1alpha1.Server) {
					s.Status.Lifecycle.Marks = []string{"Dirty", "Managed"}
				})
				if c.server != nil {
					c.server(s)
				}
				objects := []client.Object{s}
				if c.claim != nil {
					objects = append(objects, c.claim)
				}
				w := inWorld(t, newMachine(redfish.PowerOff), objects...)
				w.manager.run(5 * time.Second)
				after := w.server().Annotations
				if got := after[v1alpha1.ReleasedClaimAnnotation] == "uid-web"; got != c.released {
					t.Errorf("its release is recorded: %t, want %t (events %v)", got, c.released, w.events)
				}
				if after[v1alpha1.OperationAnnotation] != "" {
					t.Error("what was asked for was not taken off")
				}
			})
		})
	}
}

func TestAServerThatAnotherOperatorGaveToAClaimIsReserved(t *testing.T) {
	foreign := func(state v1alpha1.ServerState, change ...func(*v1alpha1.Server)) func(*v1alpha1.Server) {
		return func(s *v1alpha1.Server) {
			s.Status.State, s.Status.Lifecycle, s.Finalizers = state, nil, []string{"metal.ironcore.dev/server"}
			s.Spec.BootConfigurationRef = nil
			for _, c := range change {
				c(s)
			}
		}
	}
	withoutUID := func(s *v1alpha1.Server) { delete(s.Annotations, v1alpha1.ClaimUIDAnnotation) }
	for name, c := range map[string]struct {
		server func(*v1alpha1.Server)
		more   []client.Object
		power  redfish.PowerState
		want   v1alpha1.ServerState
	}{
		"whose claim is still to be told apart, and which is off": {foreign(v1alpha1.StateAvailable, withoutUID), nil, redfish.PowerOff, "Reserved"},
		"whose claim is still to be told apart, and which runs":   {foreign(v1alpha1.StateAvailable, withoutUID), nil, redfish.PowerOn, "Reserved"},
		"and to a maintenance that is not found stays there":      {foreign(v1alpha1.StateMaintenance, inService), nil, redfish.PowerOn, "Maintenance"},
		"and to a maintenance stays there":                        {foreign(v1alpha1.StateMaintenance, inService), []client.Object{maintenance()}, redfish.PowerOn, "Maintenance"},
		"and to a maintenance that is over comes back":            {foreign(v1alpha1.StateMaintenance, withoutUID), nil, redfish.PowerOn, "Reserved"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(c.power)
				w := inWorld(t, m, append(reserved(v1alpha1.PowerOff, c.server), c.more...)...)
				w.manager.run(30 * time.Minute)
				if got := w.server().Status.State; got != c.want {
					t.Errorf("it is in state %q", got)
				}
				m.wants(t, "in the end")
			})
		})
	}
}

func TestAConsentIsUsedUpOnceTheMachineIsOurs(t *testing.T) {
	stranger := func(s *v1alpha1.Server) { s.Status.Lifecycle.Marks = nil }
	for name, c := range map[string]struct {
		server *v1alpha1.Server
		power  redfish.PowerState
		stays  bool
	}{
		"ours already":                    {serverIn(v1alpha1.StateAvailable, consented), redfish.PowerOff, false},
		"not booted by us yet":            {serverIn(v1alpha1.StateAvailable, consented, stranger), redfish.PowerOff, true},
		"found running and being stopped": {serverIn(v1alpha1.StateObserving, consented, stranger), redfish.PowerOn, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := inWorld(t, newMachine(c.power), c.server)
				w.manager.run(10 * time.Minute)
				s := w.server()
				if _, stays := s.Annotations[v1alpha1.ConsentAnnotation]; stays != c.stays {
					t.Errorf("in state %s with marks %v; the annotation stays: %t", s.Status.State, s.Status.Lifecycle.Marks, stays)
				}
				if told := slices.Contains(w.events, consentUsed); told == c.stays {
					t.Errorf("it is told that it was used: %t", told)
				}
			})
		})
	}
}

func TestBudgetsCountAnOperationFromWhenItIsBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		frozen := metav1.NewTime(time.Now().Add(5 * time.Minute).Truncate(time.Second))
		control := &policyv1alpha1.FleetControl{ObjectMeta: metav1.ObjectMeta{Name: policyv1alpha1.FleetControlName}}
		control.Spec.Freezes = []policyv1alpha1.Freeze{{Name: "night", Level: policyv1alpha1.FreezeDestructive, Until: &frozen}}
		m := newMachine(redfish.PowerOn)
		w := inWorld(t, m, append(reserved(v1alpha1.PowerOn, operates(v1alpha1.OperationPowerCycleServer)), control)...)
		w.manager.run(time.Minute)
		if op := w.server().Status.Operation; op == nil || op.State != v1alpha1.OperationPending || op.BegunAt != nil {
			t.Errorf("while frozen the record is %+v", op)
		}
		w.manager.run(10 * time.Minute)
		m.wants(t, "in the end", "PowerCycle")
		s := w.server()
		op, begun := s.Status.Operation, s.Status.Lifecycle.Begun
		if op.BegunAt == nil || op.BegunAt.Before(&metav1.MicroTime{Time: frozen.Time}) {
			t.Fatalf("begun at %v, which was frozen until %v", op.BegunAt, frozen)
		}
		if len(begun) != 1 || begun[0].Action != "PowerCycle" || !begun[0].At.Equal(op.BegunAt) {
			t.Errorf("%+v outlives the operation, begun at %v", begun, op.BegunAt)
		}
	})
}

func TestAnOperationThatAFreezeStopsAtTheLastMomentGoesOnWhenItIsLifted(t *testing.T) {
	changed := &redfish.NotAskedError{What: "the reset", Err: errors.New("the claim changed meanwhile")}
	for name, c := range map[string]struct {
		freezes bool
		lost    int   // writes that come at the same time as another
		answer  error // besides the freeze
		within  string
		asked   []string
		end     v1alpha1.OperationState
	}{
		"a freeze": {true, 0, nil, "Pending Withheld", []string{"PowerCycle", "PowerCycle"}, v1alpha1.OperationSucceeded},
		"a freeze that is told only at the third try": {true, 2, nil, "Pending Withheld", []string{"PowerCycle", "PowerCycle"}, v1alpha1.OperationSucceeded},
		"what was decided changed":                    {false, 0, changed, "Failed", []string{"PowerCycle"}, v1alpha1.OperationFailed},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(redfish.PowerOn)
				w := inWorld(t, m, reserved(v1alpha1.PowerOn, operates(v1alpha1.OperationPowerCycleServer))...)
				control := &policyv1alpha1.FleetControl{ObjectMeta: metav1.ObjectMeta{Name: policyv1alpha1.FleetControlName}}
				control.Spec.Freezes = []policyv1alpha1.Freeze{{Name: "night", Level: policyv1alpha1.FreezeDestructive}}
				w.refuses = func(s *v1alpha1.Server) error {
					if op := s.Status.Operation; op != nil && op.State == v1alpha1.OperationPending && len(m.asked()) == 1 && c.lost > 0 {
						c.lost--
						return errConflict
					}
					return nil
				}
				m.refuses = func(string) error {
					if c.freezes && len(m.asked()) == 1 { // it is set while the request waits for its turn
						if err := w.api.Create(t.Context(), control); err != nil {
							t.Fatal(err)
						}
						held := decided{Options: &w.manager.subject.Options, server: w.server()}.heldBack(t.Context(), []fleet.Action{fleet.PowerCycle})
						return &redfish.NotAskedError{What: "the reset", Err: held}
					}
					return c.answer
				}
				w.manager.run(time.Minute)
				s := w.server()
				got := string(s.Status.Operation.State)
				if meta.IsStatusConditionTrue(s.Status.Conditions, v1alpha1.ConditionWithheld) {
					got += " Withheld"
				}
				if got != c.within || len(m.asked()) != 1 {
					t.Errorf("within a minute it is %q (%s) after %v, want %q", got, s.Status.Operation.Message, m.asked(), c.within)
				}
				if c.freezes {
					if err := w.api.Delete(t.Context(), control); err != nil {
						t.Fatal(err)
					}
				}
				w.manager.wake("a")
				w.manager.run(time.Minute)
				m.wants(t, "in the end", c.asked...)
				if op := w.server().Status.Operation; op.State != c.end {
					t.Errorf("it ended as %s: %s", op.State, op.Message)
				}
			})
		})
	}
}
