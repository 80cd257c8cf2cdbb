// SPDX-License-Identifier: Apache-2.0

package server

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish"
)

func TestAnAdoptedServerThatMayHoldDataIsNotOfferedAndSaysHowToGoOn(t *testing.T) {
	dirty := func(holder *policyv1alpha1.Holder) *policyv1alpha1.ServerInventory {
		i := &policyv1alpha1.ServerInventory{Custody: &policyv1alpha1.Custody{Marks: []string{"Dirty"}, LastHolder: holder}}
		i.Name, i.Spec.SystemUUID = machineUUID, machineUUID
		return i
	}
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
				w := inWorld(t, m, serverIn(v1alpha1.StateAvailable, foreign), dirty(c.holder))
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
