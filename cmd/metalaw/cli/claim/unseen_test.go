// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

// A reader who may list the claims of all namespaces knows which come first.
func TestWhoDoesNotSeeTheClaimsOfOtherNamespacesIsToldSo(t *testing.T) {
	for name, c := range map[string]struct {
		everywhere bool
		server     string
		want       []string
	}{
		"one that would be bound":              {server: "", want: []string{unseenOthers}},
		"one that would wait anyway":           {server: "x", want: []string{}},
		"one that would be bound, to an admin": {everywhere: true, want: []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			a := aServer("a", c.server)
			reader := aCluster(t, inForce(t), &a)
			if c.everywhere {
				reader = interceptor.NewClient(reader, interceptor.Funcs{List: func(ctx context.Context, inner client.WithWatch, into client.ObjectList,
					given ...client.ListOption) error {
					if _, isClaims := into.(*v1alpha1.ServerClaimList); isClaims {
						given = append(given, client.InNamespace("team"))
					}
					return inner.List(ctx, into, given...)
				}})
			}
			r, err := (&attempt{}).try(t.Context(), reader, &warnings{}, "team", decoded(t, head+"metadata: {name: web}\nspec: {power: \"On\", image: os}\n"))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, r.Notes); diff != "" {
				t.Error(diff)
			}
		})
	}
}
