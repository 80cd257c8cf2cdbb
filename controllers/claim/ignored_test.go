// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/controllers/scheduler"
)

func TestAClaimThatIsDeletedWhileItIsIgnoredSaysWhyItStays(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c := bound().claim
	c.Finalizers, c.Annotations = []string{v1alpha1.FinalizerServerClaim}, map[string]string{v1alpha1.OperationAnnotation: "ignore"}
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(c).WithStatusSubresource(c).Build()
	recorder := events.NewFakeRecorder(9)
	r := newReconciler(&Subject{Client: api, Live: api, Recorder: recorder, Now: time.Now})
	look := func() {
		if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(c)}); err != nil {
			t.Fatal(err)
		}
	}
	look()
	if len(recorder.Events) != 0 {
		t.Errorf("a claim that nobody deletes: %s", <-recorder.Events)
	}
	if err := api.Delete(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	look()
	look()
	if len(recorder.Events) != 1 {
		t.Fatalf("%d events", len(recorder.Events))
	}
	want := "Warning Ignored The claim is being deleted, and keeps its server for as long as the annotation metal.ironcore.dev/operation " +
		`has the value "ignore"; remove it`
	if diff := cmp.Diff(want, <-recorder.Events); diff != "" {
		t.Error(diff)
	}
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(c), c); err != nil {
		t.Fatal(err)
	}
	stalled := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionStalled)
	if stalled == nil || stalled.Status != metav1.ConditionTrue || stalled.Reason != v1alpha1.ReasonIgnored ||
		stalled.Message != want[len("Warning Ignored "):] {
		t.Errorf("%+v", stalled)
	}
}

// ignoredWhileDeleted is a claim that is being deleted and left alone, and the API server that has it, seen through funcs.
func ignoredWhileDeleted(t *testing.T, funcs interceptor.Funcs) (*v1alpha1.ServerClaim, client.WithWatch, *loop.Reconciler[*v1alpha1.ServerClaim, standing]) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c := bound().claim
	c.Finalizers, c.Annotations = []string{v1alpha1.FinalizerServerClaim}, map[string]string{v1alpha1.OperationAnnotation: "ignore"}
	c.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(c).WithStatusSubresource(c).Build()
	seen := interceptor.NewClient(api, funcs)
	return c, api, newReconciler(&Subject{Client: seen, Live: seen, Recorder: events.NewFakeRecorder(9), Now: time.Now, Scheduler: scheduler.New(seen, seen, scheduler.Options{})})
}

func stalledOf(t *testing.T, api client.Client, c *v1alpha1.ServerClaim) *metav1.Condition {
	t.Helper()
	stored := &v1alpha1.ServerClaim{}
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(c), stored); err != nil {
		t.Fatal(err)
	}
	return meta.FindStatusCondition(stored.Status.Conditions, v1alpha1.ConditionStalled)
}

func TestWhyAnIgnoredClaimStaysIsSaidUntilItIsStored(t *testing.T) {
	const down = 2 // how often the API server does not take it
	asked := 0
	c, api, r := ignoredWhileDeleted(t, interceptor.Funcs{SubResourcePatch: func(ctx context.Context, api client.Client, sub string,
		o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
		if data, _ := p.Data(o); !strings.Contains(string(data), `"resourceVersion"`) {
			t.Errorf("written without the optimistic lock: %s", data)
		}
		if asked++; asked <= down {
			return errors.New("down")
		}
		return api.SubResource(sub).Patch(ctx, o, p, opts...)
	}})
	for range 5 {
		_, _ = r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(c)})
	}
	if stalled := stalledOf(t, api, c); asked != down+1 || stalled == nil || stalled.Reason != v1alpha1.ReasonIgnored {
		t.Errorf("asked %d times, and stored %+v", asked, stalled)
	}
}

func TestAReleaseThatWaitsForSomethingElseIsNoLongerSaidToBeIgnored(t *testing.T) {
	c, api, r := ignoredWhileDeleted(t, interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return errors.New("down")
	}})
	look := func() error {
		_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(c)})
		return err
	}
	if err := look(); err != nil || stalledOf(t, api, c) == nil {
		t.Fatalf("it does not say that it is left alone: %v", err)
	}
	stored := &v1alpha1.ServerClaim{}
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(c), stored); err != nil {
		t.Fatal(err)
	}
	stored.Annotations = nil
	if err := api.Update(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
	if err := look(); err == nil {
		t.Fatal("the release succeeds")
	}
	if stalled := stalledOf(t, api, c); stalled != nil {
		t.Errorf("%+v", stalled)
	}
}
