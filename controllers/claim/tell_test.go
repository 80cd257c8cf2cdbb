// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/scheduler"
)

// toldAbout takes down every Event, as about whom it is, whom it names besides, and its words.
type toldAbout struct{ all *[]string }

func (n toldAbout) Eventf(about, besides runtime.Object, _, reason, _, words string, args ...any) {
	other := "nobody"
	if besides != nil {
		other = fmt.Sprintf("%T", besides)
	}
	*n.all = append(*n.all, fmt.Sprintf("%T %s %s, with %s", about, reason, fmt.Sprintf(words, args...), other))
}

func TestThatAClaimIsBoundIsToldOnceItsConditionSaysSo(t *testing.T) {
	toldOfBoth := []string{"*v1alpha1.ServerClaim Bound Bound to server s, with nobody",
		"*v1alpha1.Server Bound Bound to the claim that spec.serverClaimRef names, with nobody"}
	for name, c := range map[string]struct {
		change func(*facts)
		want   []string
	}{
		"while its server is still to be Reserved, as in a freeze": {func(f *facts) {
			unbound(f)
			f.server.Status.State = v1alpha1.StateAvailable
		}, nil},
		"once its server is Reserved":         {unbound, toldOfBoth},
		"where it was so before we came":      {func(*facts) {}, nil},
		"while its server is another claim's": {func(f *facts) { unbound(f); f.server.Spec.ServerClaimRef.Name = "other" }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := v1alpha1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			f := bound()
			f.claim.Finalizers = []string{v1alpha1.FinalizerServerClaim}
			c.change(&f)
			api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(f.claim, f.server, f.boot).WithStatusSubresource(f.claim).Build()
			var told []string
			r := newReconciler(&Subject{Client: api, Live: api, Scheduler: scheduler.New(api, api, scheduler.Options{}), Recorder: toldAbout{&told}, Now: time.Now})
			for range 2 {
				if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(f.claim)}); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(c.want, told); diff != "" {
				t.Error(diff)
			}
		})
	}
}
