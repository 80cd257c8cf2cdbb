// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/fleet"
	"github.com/metalaw/metalaw/controllers/server/plan"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/redfish"
)

// countsReads has the manager note the kinds that it reads past the cache.
func (w *world) countsReads() *[]string {
	kinds := &[]string{}
	w.manager.Reader = interceptor.NewClient(w.api, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			*kinds = append(*kinds, strings.TrimPrefix(fmt.Sprintf("%T", o), "*v1alpha1."))
			return c.Get(ctx, key, o, opts...)
		},
	})
	return kinds
}

// inspects is a server whose agent has the token of an inspection, and which holds no data.
func inspects(s *v1alpha1.Server) {
	s.Spec.ServerClaimRef = nil
	s.Status.Lifecycle.Marks = nil
	s.Status.Lifecycle.Credential = &v1alpha1.ProbeCredential{Purpose: v1alpha1.ProbePurposeProbe, Entry: s.Status.Lifecycle.Entry}
}

func TestNothingIsReadPastTheCacheThatCannotDiffer(t *testing.T) {
	stale := func(actions ...fleet.Action) func(context.Context, *scope) {
		return func(ctx context.Context, v *scope) { _, _ = v.x.decided(actions...).stale(ctx) }
	}
	mark := func(ctx context.Context, v *scope) {
		v.x.carryOut(ctx, plan.Effect(*v.seen, engine.MarkFirst("Dirty")))
	}
	release := func(ctx context.Context, v *scope) {
		v.x.carryOut(ctx, plan.Effect(*v.seen, engine.Effect{Name: policies.EffectReleaseClaim}))
	}
	server, inventory, claim := "Server", "ServerInventory", "ServerClaim"
	for name, c := range map[string]struct {
		change func(*v1alpha1.Server)
		does   func(context.Context, *scope)
		want   []string
	}{
		"no wipe before a power-on for an inspection": {inspects, stale(fleet.PowerOn), []string{server}},
		"the wipe before a power-off":                 {inspects, stale(fleet.ForcedOff), []string{server, inventory}},
		"the wipe before a power-on of a server that holds data": {func(s *v1alpha1.Server) {
			inspects(s)
			s.Status.Lifecycle.Marks = []string{"Dirty"}
		}, stale(fleet.PowerOn), []string{server, inventory}},
		"the wipe before a power-on by the token of a former entry": {func(s *v1alpha1.Server) {
			inspects(s)
			s.Status.Lifecycle.Credential.Entry--
		}, stale(fleet.PowerOn), []string{server, inventory}},
		"the wipe before a power-on by the token of a wipe": {func(s *v1alpha1.Server) {
			inspects(s)
			s.Status.Lifecycle.Credential.Purpose = v1alpha1.ProbePurposeWipe
		}, stale(fleet.PowerOn), []string{server, inventory}},
		"the inventory once, where a mark is stored":      {nil, mark, []string{server, claim, inventory}},
		"the claim alone before its reference is cleared": {nil, release, []string{claim}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := inWorld(t, newMachine(redfish.PowerOff), append(reserved(v1alpha1.PowerOff, func(s *v1alpha1.Server) {
					if c.change != nil {
						c.change(s)
					}
				}), inventoryOfA())...)
				v := w.manager.observe(t)
				kinds := w.countsReads()
				c.does(t.Context(), v)
				if !slices.Equal(*kinds, c.want) {
					t.Errorf("read past the cache: %q, want %q", *kinds, c.want)
				}
			})
		})
	}
}

func TestTheIgnitionThatThisProcessMadeIsDeletedWithoutALook(t *testing.T) {
	goes := func(w *world) {
		if err := w.api.Delete(w.t.Context(), w.ignition()); err != nil {
			w.t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		changes func(*world)
		reads   int
		left    bool
	}{
		"as it was made": {func(*world) {}, 0, false},
		"gone already":   {goes, 0, false},
		"but no other that took its place": {func(w *world) {
			goes(w)
			other := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "metalaw-system", Name: "a", UID: "uid-other"}}
			if err := w.api.Create(w.t.Context(), other); err != nil {
				w.t.Fatal(err)
			}
		}, 1, true},
		"and looked for by another process": {func(w *world) { w.start() }, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := inWorld(t, newMachine(redfish.PowerOff), serverIn(v1alpha1.StateDiscovery, marked()))
				w.manager.run(testBootGrace)
				w.ignition()
				c.changes(w)
				v := w.manager.observe(t)
				kinds, key := w.countsReads(), types.NamespacedName{Namespace: "metalaw-system", Name: "a"}
				if err := v.x.deleteIgnition(t.Context(), key); err != nil || len(*kinds) != c.reads {
					t.Errorf("%d reads past the cache (%v), want %d", len(*kinds), err, c.reads)
				}
				if err := w.api.Get(t.Context(), key, &corev1.Secret{}); apierrors.IsNotFound(err) == c.left {
					t.Errorf("left is not %t: %v", c.left, err)
				}
			})
		})
	}
}

func TestAFreezeHoldsBackAServerThatGotItsLabelSinceTheDecision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := inWorld(t, newMachine(redfish.PowerOn), reserved(v1alpha1.PowerOff)...)
		v := w.manager.observe(t)
		decided := v.x.decided(fleet.ForcedOff)
		serverBecomes(func(s *v1alpha1.Server) { s.Labels = map[string]string{"rack": "r1"} })(w)
		control := &policyv1alpha1.FleetControl{ObjectMeta: metav1.ObjectMeta{Name: policyv1alpha1.FleetControlName}}
		control.Spec.Freezes = []policyv1alpha1.Freeze{{Name: "incident", Level: policyv1alpha1.FreezeDestructive,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"rack": "r1"}}}}
		if err := w.api.Create(t.Context(), control); err != nil {
			t.Fatal(err)
		}
		now, stale, err := decided.look(t.Context())
		if err != nil || stale != "" {
			t.Fatalf("%q is stale (%v)", stale, err)
		}
		if verdict, err := decided.Gate.Look(t.Context(), now, fleet.ForcedOff); err != nil || verdict.Allowed {
			t.Errorf("allowed (%v)", err)
		}
	})
}
