// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

func TestABMCThatIsDeletedWhileItIsIgnoredIsWarnedAboutOnce(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	b := &v1alpha1.BMC{ObjectMeta: metav1.ObjectMeta{Name: "b", Finalizers: []string{v1alpha1.FinalizerBMC},
		Annotations: map[string]string{v1alpha1.OperationAnnotation: "ignore"}}}
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(b).Build()
	recorder := events.NewFakeRecorder(9)
	r := newSubject(Options{Client: api, Reader: api, Recorder: recorder}.withDefaults(), func(string) {}).reconciler()
	look := func() {
		if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(b)}); err != nil {
			t.Fatal(err)
		}
	}
	look()
	if len(recorder.Events) != 0 {
		t.Errorf("a BMC that nobody deletes: %s", <-recorder.Events)
	}
	if err := api.Delete(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	look()
	look()
	if len(recorder.Events) != 1 {
		t.Fatalf("%d events", len(recorder.Events))
	}
	want := "Warning Ignored The BMC is being deleted, and stays for as long as the annotation metal.ironcore.dev/operation " +
		`has the value "ignore"; remove it`
	if diff := cmp.Diff(want, <-recorder.Events); diff != "" {
		t.Error(diff)
	}
}
