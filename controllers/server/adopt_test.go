// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/redfish"
)

// admits stores a move only along the lifecycle, from the state that is stored, as admission does.
func (w *world) admits() {
	l := w.manager.Bundles.Active().Lifecycle
	w.refuses = func(s *v1alpha1.Server) error {
		from, to := w.server().Status.State, s.Status.State
		if from == to || l.HasEdge(engine.State(from), engine.State(to)) {
			return nil
		}
		return apierrors.NewForbidden(schema.GroupResource{Resource: "servers"}, s.Name, errors.New("no rule leads from "+string(from)+" to "+string(to)))
	}
}

func dirtyInventory(holder *policyv1alpha1.Holder) *policyv1alpha1.ServerInventory {
	i := &policyv1alpha1.ServerInventory{Custody: &policyv1alpha1.Custody{Marks: []string{"Dirty"}, LastHolder: holder}}
	i.Name, i.Spec.SystemUUID = machineUUID, machineUUID
	return i
}

func TestAnAdoptedServerThatMayHoldDataIsNotOfferedAndSaysHowToGoOn(t *testing.T) {
	foreign := func(s *v1alpha1.Server) {
		s.Status.Lifecycle, s.Finalizers = nil, []string{"metal.ironcore.dev/server"}
	}
	web := &policyv1alpha1.Holder{Namespace: "shop", Name: "web", UID: "uid-web"}
	for name, c := range map[string]struct {
		holder *policyv1alpha1.Holder
		power  redfish.PowerState
		state  v1alpha1.ServerState
		ready  string
		// freed is the state after somebody's release and retry.
		freed v1alpha1.ServerState
	}{
		"that is off":                     {web, redfish.PowerOff, v1alpha1.StateError, "DataUnreleased", v1alpha1.StateCleanup},
		"that is off, nobody knows whose": {nil, redfish.PowerOff, v1alpha1.StateError, "DataUnreleased", v1alpha1.StateCleanup},
		"that runs":                       {web, redfish.PowerOn, v1alpha1.StateObserving, "Stable", v1alpha1.StateObserving},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(c.power)
				w := inWorld(t, m, serverIn(v1alpha1.StateAvailable, foreign), dirtyInventory(c.holder))
				w.admits()
				w.manager.run(10 * time.Minute)
				s := w.server()
				ready := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionReady)
				if s.Status.State != c.state || ready == nil || ready.Reason != c.ready || meta.IsStatusConditionTrue(s.Status.Conditions, v1alpha1.ConditionPolicyHalted) {
					t.Errorf("it is %s, %+v", s.Status.State, s.Status.Conditions)
				}
				if !slices.Contains(s.Status.Lifecycle.Marks, "Dirty") {
					t.Errorf("its marks are %v", s.Status.Lifecycle.Marks)
				}
				for _, operation := range []string{v1alpha1.OperationRelease, v1alpha1.OperationRetry} {
					edit(w, "a", &v1alpha1.Server{}, func(s *v1alpha1.Server) {
						metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.OperationAnnotation, operation)
					})
					w.manager.run(time.Minute)
				}
				if got := w.server().Status.State; got != c.freed {
					t.Errorf("after a release and a retry it is %s, want %s; events %v", got, c.freed, w.events)
				}
				m.wants(t, "in the end")
			})
		})
	}
}

func TestAnAdoptedServerOfAHolderThatWasReleasedGoesWhereItsDataBelongs(t *testing.T) {
	formerly := func(s *v1alpha1.Server) {
		s.Annotations[v1alpha1.ClaimUIDAnnotation] = "uid-web"
		released(s)
	}
	consented := func(s *v1alpha1.Server) { s.Annotations[v1alpha1.ConsentAnnotation] = v1alpha1.ConsentTakeOver }
	never := func(s *v1alpha1.Server) {
		s.Status.Lifecycle, s.Finalizers = nil, []string{"metal.ironcore.dev/server"}
	}
	byLost := func(s *v1alpha1.Server) {
		s.Status.Lifecycle.Revision, s.Status.Lifecycle.Marks = "gone", []string{"Dirty", "Managed"}
	}
	nothing := func(*v1alpha1.Server) {}
	for name, c := range map[string]struct {
		power    redfish.PowerState
		governed func(*v1alpha1.Server)
		consent  func(*v1alpha1.Server)
		state    v1alpha1.ServerState
	}{
		"to be wiped where it is off":                          {redfish.PowerOff, never, nothing, v1alpha1.StateCleanup},
		"to be stopped first where it runs and may be":         {redfish.PowerOn, never, consented, v1alpha1.StateCleanup},
		"to be left alone where it runs and may not be":        {redfish.PowerOn, never, nothing, v1alpha1.StateObserving},
		"the same where the revision that governed it is gone": {redfish.PowerOff, byLost, nothing, v1alpha1.StateCleanup},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(c.power)
				s := serverIn(v1alpha1.StateAvailable, c.governed, formerly, c.consent)
				w := inWorld(t, m, s, dirtyInventory(&policyv1alpha1.Holder{Namespace: "shop", Name: "web", UID: "uid-web"}))
				w.manager.Bundles = loses{w.manager.Bundles}
				w.admits()
				w.manager.run(5 * time.Minute)
				got := w.server()
				if got.Status.State != c.state || meta.IsStatusConditionTrue(got.Status.Conditions, v1alpha1.ConditionPolicyHalted) {
					t.Errorf("it is %s, %+v", got.Status.State, got.Status.Conditions)
				}
			})
		})
	}
}

// loses says of every revision but the active one that it is gone.
type loses struct{ Bundles }

func (loses) Lost(string) bool { return true }

func TestWhatAnAdoptedServerMayHoldOutlivesItsStatus(t *testing.T) {
	foreign := func(s *v1alpha1.Server) {
		s.Status.Lifecycle, s.Finalizers = nil, []string{"metal.ironcore.dev/server"}
	}
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(redfish.PowerOff)
		w := inWorld(t, m, serverIn(v1alpha1.StateReleased, foreign))
		w.manager.run(time.Minute)
		var kept policyv1alpha1.ServerInventory
		if err := w.api.Get(t.Context(), client.ObjectKey{Name: machineUUID}, &kept); err != nil || !slices.Equal(kept.Custody.Marks, []string{"Dirty"}) {
			t.Fatalf("its inventory keeps %+v, %v", kept.Custody, err)
		}
		lost := w.server()
		lost.Status = v1alpha1.ServerStatus{NetworkInterfaces: lost.Status.NetworkInterfaces}
		if err := w.api.Status().Update(t.Context(), lost); err != nil {
			t.Fatal(err)
		}
		w.manager.run(10 * time.Minute)
		s := w.server()
		if s.Status.State == v1alpha1.StateAvailable || !slices.Contains(s.Status.Lifecycle.Marks, "Dirty") {
			t.Errorf("it is %s with the marks %v", s.Status.State, s.Status.Lifecycle.Marks)
		}
		m.wants(t, "in the end")
	})
}
