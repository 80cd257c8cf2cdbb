// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/claims"
	"github.com/metalaw/metalaw/engine/claims/solve"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/policies/index"
)

// BenchmarkOneClaim is a cycle of the scheduler for one claim, over servers that are all free. Its binding changes the counts.
func BenchmarkOneClaim(b *testing.B) {
	shipped, err := policies.Default()
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		claim *v1alpha1.ServerClaim
	}{
		{"any", claim()},
		{"placement", claim(placed("where: server.rack != 'r1'\n"))},
	} {
		b.Run("servers=10000/"+c.name, func(b *testing.B) {
			fleet := index.New()
			for i := range 10_000 {
				s := &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("s-%05d", i), UID: types.UID(fmt.Sprint("u", i)), ResourceVersion: "1",
					Labels: map[string]string{v1alpha1.ZoneLabel: fmt.Sprint("z", i/2500), policies.RackMetadata: fmt.Sprint("r", i/40)}},
					Spec: v1alpha1.ServerSpec{SystemUUID: fmt.Sprint("u", i)}}
				s.Status.State, s.Status.PowerState = v1alpha1.StateAvailable, v1alpha1.PowerStateOff
				fleet.Saw(s)
			}
			asked, cache := []*claims.Claim{policies.ClaimOf(c.claim, bundle.Priority{}, time.Time{})}, solve.NewPlacementCache()
			cycle := func() {
				snapshot := &solve.Snapshot{Fleet: fleet.Index, Policy: shipped.Selection, Cache: cache}
				r := solve.Solve(b.Context(), snapshot, asked, solve.Want{})[0]
				if _, ok := snapshot.Assume(r); !ok || fleet.Release(r.Server, asked[0].UID) == nil {
					b.Fatalf("%+v", r)
				}
				snapshot.Close()
			}
			cycle() // which makes the candidates
			b.ReportAllocs()
			for b.Loop() {
				cycle()
			}
		})
	}
}
