// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/policies"
)

// dearly asks of each server so many times thirty comparisons, and in words that are nobody else's.
func dearly(member, members, dear int) func(*v1alpha1.ServerClaim) {
	var text strings.Builder
	fmt.Fprintf(&text, "gang: {name: db, size: %d}\nspread: {key: zone, maxSkew: %d}\nalternatives:\n", members, 1+member%2)
	for range dear {
		fmt.Fprintf(&text, "- where: '%s&&server.name==\"m%d\"'\n", strings.Join(slices.Repeat([]string{`server.rack!="x"`}, 29), "&&"), member)
	}
	fmt.Fprintf(&text, "- where: 'server.name != \"m%d\"'\n", member)
	return placed(text.String())
}

// BenchmarkSearchForGang is how long the passes take that look for the servers of a gang of which every member asks for something else,
// among 10,000 servers. Members are spread in two ways, and there is no way to serve them all.
func BenchmarkSearchForGang(b *testing.B) {
	for _, members := range []int{32, 256} {
		for _, dear := range []int{0, 5} {
			b.Run(fmt.Sprintf("members=%d/dear=%d", members, dear), func(b *testing.B) {
				var passes, longest, total time.Duration
				for b.Loop() {
					b.StopTimer()
					s := dearGang(b, members, dear)
					b.StartTimer()
					for range 3 { // the claims become due again
						before := processorTime(b)
						if _, err := s.Reconcile(logr.NewContext(context.Background(), logr.Discard()), pass{}); err != nil {
							b.Fatal(err)
						}
						took := processorTime(b) - before
						passes, total, longest = passes+1, total+took, max(longest, took)
						s.pending.wakeAll()
					}
				}
				b.ReportMetric(float64(longest.Milliseconds()), "cpu-ms/longest-pass")
				b.ReportMetric(float64(total.Milliseconds())/float64(passes), "cpu-ms/pass")
			})
		}
	}
}

func dearGang(b *testing.B, members, dear int) *Scheduler {
	shipped, err := policies.Default()
	if err != nil {
		b.Fatal(err)
	}
	version := &atomic.Int64{}
	version.Store(1 << 20)
	s := New(accepting{version: version}, nil, Options{Now: time.Now})
	s.policy = func() (Policy, engine.Revision) { return shipped.Selection, shipped.Revision }
	s.granted = func() bundle.Priority { return bundle.Priority{Max: 1000} }
	s.quota = func() bundle.Quota { return bundle.Quota{} }
	s.rules = func(engine.Revision) policies.Rules { return nil }
	for i := range 10001 {
		server := aServer(rackName(i), labelled(policies.RackMetadata, fmt.Sprintf("r%03d", i/40)), labelled(v1alpha1.ZoneLabel, "z1"))
		if i == 10000 {
			server.Labels[v1alpha1.ZoneLabel], server.Spec.Unclaimable = "z2", true
		}
		s.serverChanged(s.fleet.Saw(server))
		s.fleet.Get(server.Name).Candidate()
	}
	for i := range members {
		c := aClaim(fmt.Sprintf("db-%03d", i), dearly(i, members, dear))
		if _, why := placementOf(c); why != "" {
			b.Fatal(why)
		}
		s.claimChanged(c)
	}
	return s
}
