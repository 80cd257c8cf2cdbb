// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

var (
	noon  = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	other = metav1.Condition{Type: "Other", Status: "True", Reason: "Theirs"}
)

func ours(generation int64) metav1.Condition {
	return metav1.Condition{Type: "Granted", Status: "False", Reason: "NothingGrants", ObservedGeneration: generation,
		LastTransitionTime: metav1.NewTime(noon), Message: "no manager grants maintenances in this version, and the server is not handed over; " +
			"to hand it over by hand, name this object in spec.serverMaintenanceRef of the Server"}
}

func TestWhatAMaintenanceIsAnswered(t *testing.T) {
	deleted := metav1.NewTime(noon)
	for name, c := range map[string]struct {
		object metav1.ObjectMeta
		was    v1alpha1.ServerMaintenanceStatus
		want   v1alpha1.ServerMaintenanceStatus
	}{
		"one without a state waits, and says that nothing grants it": {metav1.ObjectMeta{}, v1alpha1.ServerMaintenanceStatus{},
			v1alpha1.ServerMaintenanceStatus{State: "Pending", ObservedGeneration: 3, Conditions: []metav1.Condition{ours(3)}}},
		"the conditions of others stay": {metav1.ObjectMeta{},
			v1alpha1.ServerMaintenanceStatus{Conditions: []metav1.Condition{other}},
			v1alpha1.ServerMaintenanceStatus{State: "Pending", ObservedGeneration: 3, Conditions: []metav1.Condition{other, ours(3)}}},
		"one that another manager has pending is left alone": {metav1.ObjectMeta{},
			v1alpha1.ServerMaintenanceStatus{State: "Pending"}, v1alpha1.ServerMaintenanceStatus{State: "Pending"}},
		"one that another manager carries out is left alone": {metav1.ObjectMeta{},
			v1alpha1.ServerMaintenanceStatus{State: "InMaintenance"}, v1alpha1.ServerMaintenanceStatus{State: "InMaintenance"}},
		"one that failed under another manager is left alone": {metav1.ObjectMeta{},
			v1alpha1.ServerMaintenanceStatus{State: "Failed"}, v1alpha1.ServerMaintenanceStatus{State: "Failed"}},
		"ours says which spec it speaks of": {metav1.ObjectMeta{},
			v1alpha1.ServerMaintenanceStatus{State: "Pending", ObservedGeneration: 2, Conditions: []metav1.Condition{ours(2)}},
			v1alpha1.ServerMaintenanceStatus{State: "Pending", ObservedGeneration: 3, Conditions: []metav1.Condition{ours(3)}}},
		"what we said goes once another manager carries it out": {metav1.ObjectMeta{},
			v1alpha1.ServerMaintenanceStatus{State: "InMaintenance", Conditions: []metav1.Condition{other, ours(3)}},
			v1alpha1.ServerMaintenanceStatus{State: "InMaintenance", Conditions: []metav1.Condition{other}}},
		"one that is to be left alone is": {metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.OperationAnnotation: v1alpha1.OperationIgnore}},
			v1alpha1.ServerMaintenanceStatus{}, v1alpha1.ServerMaintenanceStatus{}},
		"one that goes is left alone": {metav1.ObjectMeta{DeletionTimestamp: &deleted},
			v1alpha1.ServerMaintenanceStatus{}, v1alpha1.ServerMaintenanceStatus{}},
	} {
		t.Run(name, func(t *testing.T) {
			m := &v1alpha1.ServerMaintenance{ObjectMeta: c.object, Status: c.was}
			m.Generation = 3
			got := answer(m, noon)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			m.Status = got
			if diff := cmp.Diff(got, answer(m, noon.Add(time.Hour))); diff != "" {
				t.Errorf("a second look changes it (-want +got)\n%s", diff)
			}
		})
	}
}

func TestAManagerThatAnswersMeanwhileIsNotOverwritten(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	m := &v1alpha1.ServerMaintenance{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m"}}
	locked := false
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(m).WithStatusSubresource(m).WithInterceptorFuncs(interceptor.Funcs{
		SubResourcePatch: func(_ context.Context, _ client.Client, _ string, o client.Object, p client.Patch, _ ...client.SubResourcePatchOption) error {
			data, err := p.Data(o)
			locked = err == nil && len(data) > 0 && o.GetResourceVersion() != ""
			return apierrors.NewConflict(schema.GroupResource{Resource: "servermaintenances"}, "m", nil)
		}}).Build()
	r := &reconciler{client: api, now: func() time.Time { return noon }}
	result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(m)})
	if err != nil || result.RequeueAfter == 0 || !locked {
		t.Errorf("error %v, again in %s, locked %t", err, result.RequeueAfter, locked)
	}
}

// The server is given back by a manager that grants. Until then the deletion says what it waits for, and once.
func TestADeletionThatWaitsForAnotherModeSaysSo(t *testing.T) {
	for _, mode := range []Mode{Off, Plan} {
		w := newWorld(t, free(), sm("a"))
		w.rounds()
		w.is("a", "InMaintenance ServerGranted")
		w.delete(sm("a"))
		w.mode = mode
		w.restart()
		var passes reconcile.Reconciler = &reconciler{client: w.s.client, now: w.s.now}
		if mode == Plan {
			passes = reconcile.Func(func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
				return w.s.Reconcile(ctx, pass{})
			})
		}
		w.writes = nil
		for range 3 {
			if _, err := passes.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "ops", Name: "a"}}); err != nil {
				t.Fatal(err)
			}
		}
		served := conditionOf(&w.sm("a").Status, v1alpha1.ConditionServed)
		if !strings.Contains(served.Message, "clear spec.serverMaintenanceRef of Server s1") || len(served.Message) > 200 || len(w.writes) != 1 {
			t.Errorf("%s: it says %q, after %v", mode, served.Message, w.writes)
		}
	}
}
