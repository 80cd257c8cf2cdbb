// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/claims"
	"github.com/metalaw/metalaw/engine/claims/solve"
	"github.com/metalaw/metalaw/engine/selection"
	"github.com/metalaw/metalaw/policies"
)

// slow is an API server that takes every write, in so long.
type slow struct {
	accepting
	takes time.Duration
}

func (s slow) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.PatchOption) error {
	time.Sleep(s.takes)
	return s.accepting.Patch(ctx, o, p, opts...)
}

// BenchmarkBindGang is a whole pass that binds a gang of 256 among 10,000 servers, where a write takes 5 ms.
func BenchmarkBindGang(b *testing.B) {
	shipped, err := policies.Default()
	if err != nil {
		b.Fatal(err)
	}
	const members = 256
	ctx := logr.NewContext(b.Context(), logr.Discard())
	for b.Loop() {
		b.StopTimer()
		version := &atomic.Int64{}
		version.Store(1 << 20)
		s := New(slow{accepting{version: version}, 5 * time.Millisecond}, nil, Options{Now: time.Now})
		s.policy = func() (solve.Policy, engine.Revision) { return shipped.Selection, shipped.Revision }
		s.claims = func() bundle.Claims { return bundle.Claims{Priority: bundle.Priority{Max: 1000}} }
		s.rules = func(engine.Revision) policies.Rules { return nil }
		for i := range 10000 {
			s.serverChanged(s.fleet.Saw(rackServer(i)))
			s.fleet.Get(rackName(i)).Candidate()
		}
		for i := range members {
			s.claimChanged(aClaim(fmt.Sprintf("db-%03d", i), inGang(members)))
		}
		b.StartTimer()
		if _, err := s.Reconcile(ctx, pass{}); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if bound := len(s.fleet.Eligible(selection.ClaimSpec{})); bound != 10000-members {
			b.Fatalf("%d servers are left", bound)
		}
		b.StartTimer()
	}
}

// BenchmarkFindGang looks for the servers of a gang of 256 among 10,000 that are free: of alike members, of members that keep apart,
// of members of which half may have only what the other half takes first, and of members that can have half as many servers.
func BenchmarkFindGang(b *testing.B) {
	shipped, err := policies.Default()
	if err != nil {
		b.Fatal(err)
	}
	const members = 256
	picky := func(i int) string {
		if i < members/2 {
			return ""
		}
		return "where: server.name < \"s0128\"\n"
	}
	for _, tc := range []struct {
		name  string
		asks  func(i int) string
		found bool
	}{
		{"alike", func(int) string { return "" }, true},
		{"spread", func(int) string { return "spread: {key: rack}\n" }, true},
		{"picky", picky, true},
		{"short", func(int) string { return picky(members) }, false},
	} {
		w := newWorld(b)
		for i := range 10000 {
			w.s.serverChanged(w.s.fleet.Saw(aServer(fmt.Sprintf("s%04d", i), labelled(policies.RackMetadata, fmt.Sprintf("r%03d", i/20)))))
		}
		for i := range members {
			w.s.claimChanged(aClaim(fmt.Sprintf("db-%03d", i), placed(fmt.Sprintf("gang: {name: db, size: %d}\n%s", members, tc.asks(i)))))
		}
		w.s.policy = func() (solve.Policy, engine.Revision) { return shipped.Selection, shipped.Revision }
		b.Run(tc.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r := w.s.newCycle(w.now)
				_, open := w.s.pending.members(gangKey{"ns", "db"}, w.s.claims().Priority, w.now)
				var everyone []*claims.Claim
				for _, a := range open {
					everyone = append(everyone, a.ask)
				}
				results := solve.Solve(context.Background(), r.snapshot, everyone, solve.Want{})
				if (results[0].Action == solve.Bind) != tc.found {
					b.Fatal(results[0].Action)
				}
			}
		})
	}
}
