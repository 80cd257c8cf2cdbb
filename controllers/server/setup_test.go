// SPDX-License-Identifier: Apache-2.0

package server

import (
	"testing"
	"time"

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
	want := "Warning Ignored The server is being deleted. It stays until the annotation metal.ironcore.dev/operation=ignore-reconciliation is removed"
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

// wakes remembers when servers are to be looked at.
type wakes map[string]time.Duration

func (w wakes) Add(r ctrl.Request)                        { w[r.Name] = 0 }
func (w wakes) AddAfter(r ctrl.Request, in time.Duration) { w[r.Name] = in }

func TestWhoIsWokenWhenWhatGovernsBecomesAnother(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	server := func(name, revision string, conditions ...metav1.Condition) client.Object {
		return &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: name},
			Status: v1alpha1.ServerStatus{Lifecycle: &v1alpha1.LifecycleStatus{Revision: revision}, Conditions: conditions}}
	}
	former, now := variant(t, "1.1.0"), variant(t, "1.2.0")
	s := &subject{Options: Options{AdoptionRate: 10, Bundles: &rules{target: now}, Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		server("a", former.Revision.Name), server("b", former.Revision.Name), server("c", former.Revision.Name),
		server("halted", former.Revision.Name, metav1.Condition{Type: v1alpha1.ConditionPolicyHalted, Status: metav1.ConditionTrue}),
		server("governed", now.Revision.Name), &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: "new"}}).Build()}}
	woken := wakes{}
	s.wakeAll(t.Context(), woken)
	want := wakes{"halted": 0, "a": 0, "b": 100 * time.Millisecond, "c": 200 * time.Millisecond}
	if diff := cmp.Diff(want, woken); diff != "" {
		t.Errorf("ten a second (-want +got)\n%s", diff)
	}
}
