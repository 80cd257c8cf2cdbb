// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
)

// What a claim is told before it is there is what it is told then.
func TestAFreezeThatHoldsItsServerBackIsWhatAClaimWaitsFor(t *testing.T) {
	const frozen = "the server a, which it would get: that is held back by a freeze, until those who run the fleet lift it or it runs out (Frozen)"
	of := func(rack string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"rack": rack}}
	}
	for name, c := range map[string]struct {
		freeze policyv1alpha1.Freeze
		want   string
	}{
		"of everything":                         {policyv1alpha1.Freeze{Level: policyv1alpha1.FreezeAll}, frozen},
		"of everything on that server":          {policyv1alpha1.Freeze{Level: policyv1alpha1.FreezeAll, Selector: of("r1")}, frozen},
		"not one of another server":             {policyv1alpha1.Freeze{Level: policyv1alpha1.FreezeAll, Selector: of("r2")}, ""},
		"not one of what stops machines":        {policyv1alpha1.Freeze{Level: policyv1alpha1.FreezeDestructive}, ""},
		"not one that has run out in the while": {policyv1alpha1.Freeze{Level: policyv1alpha1.FreezeAll, Until: &metav1.Time{Time: time.Unix(0, 0)}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			control := &policyv1alpha1.FleetControl{ObjectMeta: metav1.ObjectMeta{Name: policyv1alpha1.FleetControlName},
				Spec: policyv1alpha1.FleetControlSpec{Freezes: []policyv1alpha1.Freeze{c.freeze}}}
			server := aServer("a", "")
			server.Labels = map[string]string{"rack": "r1"}
			reader := aCluster(t, inForce(t), control, &server)
			r, err := (&attempt{}).try(t.Context(), reader, &warnings{}, "team", decoded(t, head+"metadata: {name: web}\nspec: {power: \"On\", image: os}\n"))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]any{c.want, c.want == ""}, []any{r.Claims[0].WaitsFor, *r.Binds}); diff != "" {
				t.Error("try: ", diff)
			}
			claim := aMember("web", func(c *v1alpha1.ServerClaim) { c.Annotations, c.Spec.Image = nil, "os" })
			if err := reader.Create(t.Context(), &claim); err != nil {
				t.Fatal(err)
			}
			e, err := explain(t.Context(), reader, "team", "web", false)
			if err != nil {
				t.Fatal(err)
			}
			want := c.want
			if want == "" {
				want = "its turn: it would get a now"
			}
			if diff := cmp.Diff(want, e.WaitsFor); diff != "" {
				t.Error("explain: ", diff)
			}
		})
	}
}

// A freeze keeps a held server from being prepared for the claim that comes back to it, as it keeps any other.
func TestAClaimThatComesBackWaitsForTheFreezeThatHoldsItsServerBack(t *testing.T) {
	for name, c := range map[string]struct {
		level             policyv1alpha1.FreezeLevel
		waitsFor, bindsTo string
	}{
		"of everything": {policyv1alpha1.FreezeAll,
			"the server a, which is reserved for it: that is held back by a freeze, until those who run the fleet lift it or it runs out (Frozen)", ""},
		"not one of what stops machines": {policyv1alpha1.FreezeDestructive, "", "a"},
	} {
		t.Run(name, func(t *testing.T) {
			control := &policyv1alpha1.FleetControl{ObjectMeta: metav1.ObjectMeta{Name: policyv1alpha1.FleetControlName},
				Spec: policyv1alpha1.FleetControlSpec{Freezes: []policyv1alpha1.Freeze{{Level: c.level}}}}
			server := aServer("a", "web")
			r, err := (&attempt{}).try(t.Context(), aCluster(t, inForce(t), control, &server), &warnings{}, "team",
				decoded(t, head+"metadata: {name: web}\nspec: {power: \"On\", image: os, serverRef: {name: a}}\n"))
			if err != nil {
				t.Fatal(err)
			}
			one := r.Claims[0]
			if diff := cmp.Diff([]any{c.waitsFor, c.bindsTo, c.bindsTo != ""}, []any{one.WaitsFor, one.Server, *one.Binds}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The manager says so on the server's conditions a moment later; nobody is told in between that all goes well.
func TestAClaimWhoseServerIsReservedInAFreezeIsNotOnItsWay(t *testing.T) {
	for name, c := range map[string]struct {
		level policyv1alpha1.FreezeLevel
		want  string
	}{
		"of everything": {policyv1alpha1.FreezeAll,
			"the server a, which is reserved for it: that is held back by a freeze, until those who run the fleet lift it or it runs out (Frozen)"},
		"not one of what stops machines": {policyv1alpha1.FreezeDestructive, "nothing: the server a is reserved for it, and on its way"},
	} {
		t.Run(name, func(t *testing.T) {
			control := &policyv1alpha1.FleetControl{ObjectMeta: metav1.ObjectMeta{Name: policyv1alpha1.FleetControlName},
				Spec: policyv1alpha1.FleetControlSpec{Freezes: []policyv1alpha1.Freeze{{Level: c.level}}}}
			server := aServer("a", "web")
			e, err := explain(t.Context(), aCluster(t, inForce(t), control, naming("a"), &server), "team", "web", false)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, e.WaitsFor); diff != "" {
				t.Error(diff)
			}
		})
	}
}
