// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/bundle"
)

func TestWhatShadowsHaveShownIsStoredOnce(t *testing.T) {
	for name, c := range map[string]struct{ fails, want string }{
		"where all is stored": {"", "2 fleet, 3 other"},
		"where another revision's status could not be stored":        {"status of other", "2 fleet, 3 other"},
		"where the managers that run could not be listed after that": {"leases", "2 fleet, 3 other"},
	} {
		t.Run(name, func(t *testing.T) {
			fails := ""
			l := newLeader(t, fleet(t, "shadow", nil), fleet(t, "shadow", func(cm *corev1.ConfigMap) {
				cm.Name, cm.Labels[policyv1alpha1.BundleLabel] = "other", "other"
				cm.Data[bundle.BundleFile] = strings.ReplaceAll(cm.Data[bundle.BundleFile], "name: fleet", "name: other")
			}))
			api := interceptor.NewClient(l.api.(client.WithWatch), interceptor.Funcs{
				List: func(ctx context.Context, to client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
					if _, leases := list.(*coordinationv1.LeaseList); leases && fails == "leases" {
						return errors.New("the API server is down")
					}
					return to.List(ctx, list, opts...)
				},
				SubResourcePatch: func(ctx context.Context, to client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
					if r, is := o.(*policyv1alpha1.PolicyRevision); is && fails == sub+" of "+r.Spec.Bundle {
						return errors.New("the API server is down")
					}
					return to.SubResource(sub).Patch(ctx, o, p, opts...)
				},
			})
			l.Client, l.bundles, l.Shadows = api, api, shadowsOf(t)
			l.look(t)
			var list policyv1alpha1.PolicyRevisionList
			if err := l.api.List(t.Context(), &list); err != nil {
				t.Fatal(err)
			}
			moves, stays := &engine.Decision{From: "A", To: "B", Rule: "Go"}, &engine.Decision{From: "A", To: "A"}
			if err := l.Store.follow(t.Context(), list.Items); err != nil {
				t.Fatal(err)
			}
			for i, r := range list.Items { // default, fleet, other
				for n := range i + 1 {
					l.Shadows.Observe(r.Name, fmt.Sprint("s", n), moves, stays, epoch)
				}
			}
			l.flushed, fails = time.Time{}, c.fails
			if _, err := l.Reconcile(t.Context(), reconcile.Request{}); (err == nil) != (c.fails == "") {
				t.Fatal(err)
			}
			l.flushed, fails = time.Time{}, ""
			l.look(t)
			if err := l.api.List(t.Context(), &list); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, r := range list.Items {
				if r.Status.Shadow != nil {
					got = append(got, fmt.Sprint(r.Status.Shadow.Evaluated, " ", r.Spec.Bundle))
				}
			}
			if diff := cmp.Diff(c.want, strings.Join(got, ", ")); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestWhatAShadowHasShownIsStoredBeforeItsStageChanges(t *testing.T) {
	for name, fails := range map[string]bool{"at once": false, "also where that fails the first time": true} {
		t.Run(name, func(t *testing.T) {
			l := newLeader(t, fleet(t, "shadow", nil))
			down := false
			api := interceptor.NewClient(l.api.(client.WithWatch), interceptor.Funcs{
				SubResourcePatch: func(ctx context.Context, to client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
					if down {
						return errors.New("the API server is down")
					}
					return to.SubResource(sub).Patch(ctx, o, p, opts...)
				},
			})
			l.Client, l.bundles, l.Shadows = api, api, shadowsOf(t)
			l.look(t)
			r := revisionCalled(t, l, "fleet")
			moves, stays := &engine.Decision{From: "A", To: "B", Rule: "Go"}, &engine.Decision{From: "A", To: "A"}
			for n := range 4 {
				l.Shadows.Observe(r.Name, fmt.Sprint("s", n), moves, stays, epoch)
			}
			if l.look(t); revisionCalled(t, l, "fleet").Status.Shadow != nil {
				t.Fatal("it is stored before its time")
			}
			if err := l.api.Update(t.Context(), fleet(t, "active", nil)); err != nil {
				t.Fatal(err)
			}
			if down = fails; fails {
				if _, err := l.Reconcile(t.Context(), reconcile.Request{}); err == nil {
					t.Fatal("nothing fails")
				}
				down = false
			}
			for range 2 { // the second look adds nothing
				l.look(t)
				l.flushed = time.Time{}
				r = revisionCalled(t, l, "fleet")
				if r.Status.Stage != policyv1alpha1.StageActive || r.Status.Shadow == nil || r.Status.Shadow.Evaluated != 4 || r.Status.Shadow.DifferencesTotal != 4 {
					t.Errorf("in stage %s it has shown %+v", r.Status.Stage, r.Status.Shadow)
				}
			}
		})
	}
}
