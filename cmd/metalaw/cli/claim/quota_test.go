// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
)

// A dry run stores nothing, so that admission alone counts none of the claims that come before.
func TestClaimsCountAgainstTheQuotaInTheirOrder(t *testing.T) {
	one := func(metadata string) string {
		return "---\n" + head + "metadata: {" + metadata + "}\nspec: {power: \"On\", image: os}\n"
	}
	const gang = `annotations: {policy.metalaw.dev/placement: "gang: {name: db, size: 2}"}`
	back := one("name: web") + "---\n" + head + "metadata: {name: db}\nspec: {power: \"On\", image: os, serverRef: {name: held}}\n" + one("name: late")
	stored := func(change func(*v1alpha1.ServerClaim)) *v1alpha1.ServerClaim {
		c := aMember("stored", func(c *v1alpha1.ServerClaim) { c.Annotations = nil })
		change(&c)
		return &c
	}
	held := aServer("held", "db")
	const a, b = "allowed: would be bound to a", "allowed: would be bound to b"
	over := func(used, limit, here int) string {
		return fmt.Sprintf("denied: metadata.namespace: Forbidden: exceeded quota: namespace \"team\" has %d of %d claims (%d of them come before it here); "+
			"delete one of them, or ask who keeps the policy to raise settings.claims.quota of the bundle in force (REVISION)", used, limit, here)
	}
	for name, c := range map[string]struct {
		quota   int
		text    string
		objects []client.Object
		want    []string
	}{
		"as many as it may have": {2, one("name: q1") + one("name: q2"), nil, []string{a, b}},
		"one too many":           {1, one("name: q1") + one("name: q2") + one("name: q3"), nil, []string{a, over(1, 1, 1), over(1, 1, 1)}},
		"a member of a gang too many": {1, one("name: q1, "+gang) + one("name: q2, "+gang), nil, []string{"allowed: its gang: it takes 2 servers, and the quota of the " +
			"namespace allows its claims 1. None of its members gets one until the quota is raised or the gang is smaller", over(1, 1, 1)}},
		"one that is stored counts": {2, one("name: q1") + one("name: q2"), []client.Object{stored(func(*v1alpha1.ServerClaim) {})}, []string{a, over(2, 2, 1)}},
		"one that gives its server back counts": {2, one("name: q1") + one("name: q2"), []client.Object{stored(func(c *v1alpha1.ServerClaim) {
			c.DeletionTimestamp, c.Spec.ServerRef = ptr.To(metav1.Unix(1, 0)), &corev1.LocalObjectReference{Name: "gone"}
		})}, []string{a, over(2, 2, 1)}},
		"one that ends without having had one does not": {2, one("name: q1") + one("name: q2"), []client.Object{stored(func(c *v1alpha1.ServerClaim) {
			c.DeletionTimestamp = ptr.To(metav1.Unix(1, 0))
		})}, []string{a, b}},
		"those of other namespaces do not": {1, one("name: q1, namespace: other") + one("name: q1"), nil, []string{a, b}},
		"one that is refused does not":     {1, one("name: q1, lables: {}") + one("name: q2"), nil, []string{"unasked: ", a}},
		"one that comes back is let in, and counts for those behind it": {2, back, []client.Object{&held}, []string{a,
			"allowed: would be bound to held", over(2, 2, 2)}},
	} {
		t.Run(name, func(t *testing.T) {
			revision := inForce(t, fmt.Sprintf("claims: {quota: {default: %d}}", c.quota))
			first, second := aServer("a", ""), aServer("b", "")
			r, err := (&attempt{}).try(t.Context(), aCluster(t, append(c.objects, revision, &first, &second)...), &warnings{}, "team", decoded(t, c.text))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, one := range r.Claims {
				words := one.Admission.Answer + ": " + strings.ReplaceAll(one.Admission.Message, revision.Name, "REVISION")
				switch {
				case one.Server != "":
					words += "would be bound to " + one.Server
				case one.Admission.Answer == allowed:
					words += one.WaitsFor
				}
				got = append(got, words)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWhoDoesNotKnowThePolicyIsToldThatQuotasAreNotCounted(t *testing.T) {
	one := func(name string) string {
		return "---\n" + head + "metadata: {name: " + name + "}\nspec: {power: \"On\", image: os}\n"
	}
	const unsure = "admission was asked about each claim by itself: whether a quota of namespace team has room for all 2 is not known, " +
		"because the policy in force is not known here"
	for name, c := range map[string]struct {
		text string
		want bool
	}{
		"of two claims":            {one("q1") + one("q2"), true},
		"not of one":               {one("q1"), false},
		"not of one that is wrong": {one("q1") + "---\n" + head + "metadata: {name: q2}\nspec: {imgae: os}\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := (&attempt{}).try(t.Context(), aCluster(t), &warnings{}, "team", decoded(t, c.text))
			if err != nil || slices.Contains(r.Notes, unsure) != c.want {
				t.Errorf("%q, %v", r.Notes, err)
			}
		})
	}
}

func TestWhyQuotasAreNotCountedNamesTheRightThatIsMissing(t *testing.T) {
	const text = "---\n" + head + "metadata: {name: q1}\nspec: {power: \"On\", image: os}\n" +
		"---\n" + head + "metadata: {name: q2}\nspec: {power: \"On\", image: os}\n"
	const unsure = "admission was asked about each claim by itself: whether a quota of namespace team has room for all 2 is not known, because "
	for name, c := range map[string]struct {
		forbidden client.ObjectList
		want      string
	}{
		"servers":                            {&v1alpha1.ServerList{}, unsure + "you may not list servers.metal.ironcore.dev"},
		"revisions of the policy":            {&policyv1alpha1.PolicyRevisionList{}, unsure + "you may not list policyrevisions.policy.metalaw.dev"},
		"none where no policy is in force":   {nil, unsure + "the policy in force is not known here"},
		"none that the policy is known from": {&policyv1alpha1.ServerInventoryList{}, unsure + "the policy in force is not known here"},
	} {
		t.Run(name, func(t *testing.T) {
			list := func(ctx context.Context, inner client.WithWatch, into client.ObjectList, given ...client.ListOption) error {
				if reflect.TypeOf(into) == reflect.TypeOf(c.forbidden) {
					return apierrors.NewForbidden(schema.GroupResource{}, "", errors.New(`User "tina" cannot list resource "any" at the cluster scope`))
				}
				return inner.List(ctx, into, given...)
			}
			reader := interceptor.NewClient(aCluster(t), interceptor.Funcs{List: list})
			r, err := (&attempt{}).try(t.Context(), reader, &warnings{}, "team", decoded(t, text))
			if err != nil || !slices.Contains(r.Notes, c.want) {
				t.Errorf("%q, %v; want %q", r.Notes, err, c.want)
			}
		})
	}
}
