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

// A closed Snapshot leaves room to the next, and none of its servers.
func TestASnapshotAnswersAsWithoutThoseThatWereClosed(t *testing.T) {
	shipped, err := policies.Default()
	if err != nil {
		t.Fatal(err)
	}
	cache := solve.NewPlacementCache()
	for round, servers := range []int{9, 30, 4, 0, 12} {
		fleet := index.New()
		for i := range servers {
			s := &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("s-%d-%02d", round, i), UID: types.UID(fmt.Sprint("u", i)),
				ResourceVersion: "1", Labels: map[string]string{"k": fmt.Sprint(i % 3), policies.RackMetadata: fmt.Sprint("r", i%4)}},
				Spec: v1alpha1.ServerSpec{SystemUUID: fmt.Sprint("u", i)}}
			s.Status.State, s.Status.PowerState = v1alpha1.StateAvailable, v1alpha1.PowerStateOff
			fleet.Saw(s)
		}
		shared := &solve.Snapshot{Fleet: fleet.Index, Policy: shipped.Selection, Cache: cache}
		alone := &solve.Snapshot{Fleet: fleet.Index, Policy: shipped.Selection}
		for name, c := range map[string]*v1alpha1.ServerClaim{
			"any":          claim(),
			"selector":     claim(selecting("k", "1")),
			"none":         claim(selecting("k", "v")),
			"placement":    claim(placed("where: server.rack != 'r1'\n")),
			"alternatives": claim(placed("alternatives:\n- where: server.rack == 'r9'\n- where: server.rack == 'r2'\n")),
		} {
			asked := []*claims.Claim{policies.ClaimOf(c, bundle.Priority{}, time.Time{})}
			got, want := solve.Solve(t.Context(), shared, asked, solve.Want{})[0], solve.Solve(t.Context(), alone, asked, solve.Want{})[0]
			if servers > 4 && (got.Action == solve.Bind) != (name != "none") {
				t.Errorf("round %d, %s: got %+v", round, name, got)
			}
			if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
				t.Errorf("round %d, %s: got %+v, want %+v", round, name, got, want)
			}
		}
		shared.Close()
	}
}
