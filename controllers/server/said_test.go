// SPDX-License-Identifier: Apache-2.0

package server

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish"
)

// keeps is what the inventory keeps for the next Server of the machine.
func (w *world) keeps() string {
	w.t.Helper()
	i := &policyv1alpha1.ServerInventory{}
	if err := w.api.Get(w.t.Context(), client.ObjectKeyFromObject(inventoryOfA()), i); client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	}
	return i.Annotations[v1alpha1.KeptAnnotation]
}

// comesBack deletes the Server, and makes another for its machine, as the loop of its BMC does.
func (w *world) comesBack() *v1alpha1.Server {
	w.t.Helper()
	former := w.server()
	if err := w.api.Delete(w.t.Context(), former.DeepCopy()); err != nil {
		w.t.Fatal(err)
	}
	w.manager.run(time.Minute)
	again := &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: former.Name, UID: former.UID + "-again"}}
	again.Spec.SystemUUID, again.Spec.SystemURI, again.Spec.BMCRef = former.Spec.SystemUUID, former.Spec.SystemURI, former.Spec.BMCRef
	again.Spec.BMC = former.Spec.BMC
	if err := w.api.Create(w.t.Context(), again); err != nil {
		w.t.Fatal(err)
	}
	w.manager.run(time.Minute)
	return w.server()
}

func TestWhatWasSaidOfAMachineComesBackWithIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := v1alpha1.Taint{Key: "example.com/broken", Effect: v1alpha1.TaintEffectNoBind}
		ruled := v1alpha1.Taint{Key: "example.com/wiring", Effect: v1alpha1.TaintEffectNoBind}
		rule := &v1alpha1.ServerReadinessRule{ObjectMeta: metav1.ObjectMeta{Name: "wiring"}, Spec: v1alpha1.ServerReadinessRuleSpec{Taint: ruled}}
		w := inWorld(t, newMachine(redfish.PowerOff), serverIn(v1alpha1.StateAvailable, leaving, func(s *v1alpha1.Server) {
			s.Spec.Taints = []v1alpha1.Taint{broken, ruled}
		}), reported(), rule)
		w.manager.run(time.Minute)
		const all = `{"decommission":"old","unclaimable":true,"taints":[{"key":"example.com/broken","effect":"NoBind"}]}`
		if got := w.keeps(); got != all {
			t.Fatalf("its inventory keeps %s", got)
		}
		s := w.comesBack()
		if s.Annotations[v1alpha1.DecommissionAnnotation] != "old" || !s.Spec.Unclaimable {
			t.Errorf("it is back with %v, unclaimable %t", s.Annotations, s.Spec.Unclaimable)
		}
		if diff := cmp.Diff([]v1alpha1.Taint{broken}, s.Spec.Taints); diff != "" {
			t.Error(diff)
		}
		if got := w.keeps(); got != all {
			t.Errorf("its inventory keeps %s", got)
		}
	})
}

func TestWhatAPersonTakesBackDoesNotComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := inWorld(t, newMachine(redfish.PowerOff), serverIn(v1alpha1.StateAvailable, leaving), reported())
		w.manager.run(time.Minute)
		w.asksBy(v1alpha1.OperationRecommission, "needed after all", nil)
		if got, want := w.keeps(), `{"unclaimable":true}`; got != want {
			t.Errorf("after recommission its inventory keeps %s, want %s", got, want)
		}
		edit(w, "a", &v1alpha1.Server{}, func(s *v1alpha1.Server) { s.Spec.Unclaimable = false })
		w.manager.run(time.Minute)
		if got := w.keeps(); got != "" {
			t.Errorf("after uncordon its inventory keeps %s", got)
		}
		if s := w.comesBack(); s.Spec.Unclaimable || s.Annotations[v1alpha1.DecommissionAnnotation] != "" {
			t.Errorf("it is back with %v, unclaimable %t", s.Annotations, s.Spec.Unclaimable)
		}
	})
}

// A user cordons and deletes in one breath: the manager sees the deletion alone.
func TestWhatWasSaidLastIsKeptAtTheDeletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := inWorld(t, newMachine(redfish.PowerOff), serverIn(v1alpha1.StateAvailable), reported())
		w.manager.run(time.Minute)
		edit(w, "a", &v1alpha1.Server{}, func(s *v1alpha1.Server) { s.Spec.Unclaimable = true })
		if s := w.comesBack(); !s.Spec.Unclaimable {
			t.Error("it is back without its cordon")
		}
	})
}
