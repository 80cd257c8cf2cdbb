// SPDX-License-Identifier: Apache-2.0

package server

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
)

func TestAServerThatIsDeletedWhileItIsIgnoredIsWarnedAboutOnce(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	s := &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: "s", Finalizers: []string{v1alpha1.FinalizerServer},
		Annotations: map[string]string{v1alpha1.OperationAnnotation: "ignore-reconciliation"}}}
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(s).Build()
	recorder := events.NewFakeRecorder(9)
	r := newSubject(Options{Client: api, Reader: api, Recorder: recorder}).reconciler()
	look := func() {
		if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(s)}); err != nil {
			t.Fatal(err)
		}
	}
	look()
	if len(recorder.Events) != 0 {
		t.Errorf("a server that nobody deletes: %s", <-recorder.Events)
	}
	if err := api.Delete(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	look()
	look()
	if len(recorder.Events) != 1 {
		t.Fatalf("%d events", len(recorder.Events))
	}
	want := "Warning Ignored The server is being deleted, and stays for as long as the annotation metal.ironcore.dev/operation " +
		`has the value "ignore-reconciliation"; remove it`
	if diff := cmp.Diff(want, <-recorder.Events); diff != "" {
		t.Error(diff)
	}
}

func TestWhoIsWokenByAChangeOfTheFleetControl(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	waits := &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: "waits"}}
	waits.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionWithheld, Status: metav1.ConditionTrue}}
	rests := &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: "rests"}}
	s := &subject{Options: Options{Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(waits, rests).Build()}}
	for name, c := range map[string]struct {
		change func(*policyv1alpha1.FleetControl)
		woken  []string
	}{
		"a freeze": {func(c *policyv1alpha1.FleetControl) {
			c.Generation++
			c.Spec.Freezes = []policyv1alpha1.Freeze{{Name: "f"}}
		}, []string{"rests", "waits"}},
		"a trip": {func(c *policyv1alpha1.FleetControl) { c.Status.Trip = &policyv1alpha1.BreakerTrip{Servers: 5} }, []string{"rests", "waits"}},
		"a larger budget": {func(c *policyv1alpha1.FleetControl) {
			c.Generation++
			c.Spec.Budgets = []policyv1alpha1.Budget{{Name: "b"}}
		}, []string{"waits"}},
		"how far budgets are used": {func(c *policyv1alpha1.FleetControl) { c.Status.Usage = []policyv1alpha1.BudgetUsage{{Name: "b"}} }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			was, now := &policyv1alpha1.FleetControl{}, &policyv1alpha1.FleetControl{}
			c.change(now)
			var woken []string
			for _, w := range []struct {
				passes predicate.Predicate
				wakes  handler.MapFunc
			}{{holdChanged(), s.ofFleet}, {budgetsChanged(), s.ofWithheld}} {
				if w.passes.Update(event.UpdateEvent{ObjectOld: was, ObjectNew: now}) {
					for _, r := range w.wakes(t.Context(), now) {
						woken = append(woken, r.Name)
					}
				}
			}
			if diff := cmp.Diff(c.woken, woken); diff != "" {
				t.Error(diff)
			}
		})
	}
}
