// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/claims/solve"
	"github.com/metalaw/metalaw/engine/selection"
	"github.com/metalaw/metalaw/policies"
)

// accepting is an API server that takes every write at once.
type accepting struct {
	client.Client
	version *atomic.Int64
}

func (a accepting) Patch(_ context.Context, o client.Object, _ client.Patch, _ ...client.PatchOption) error {
	o.SetResourceVersion(strconv.FormatInt(a.version.Add(1), 10))
	if c, ok := o.(*v1alpha1.ServerClaim); ok {
		c.Finalizers = []string{v1alpha1.FinalizerServerClaim}
	}
	return nil
}

// spreading is the least policy that follows the fleet: the emptiest rack first.
type spreading struct{}

func (spreading) Select(_ context.Context, _ selection.Claim, all []*selection.PreparedCandidate, f selection.Fleet) (selection.Result, error) {
	r := selection.Result{Ranked: make([]selection.Ranked, 0, 64), Evaluated: len(all)}
	least, best := int64(1<<62), ""
	for rack := range f.TotalByRack {
		if n := f.ClaimedByRack[rack]; n < least || n == least && rack < best {
			least, best = n, rack
		}
	}
	for _, score := range []float64{1, 0} { // those of the emptiest rack, and then others
		for _, c := range all {
			if len(r.Ranked) == cap(r.Ranked) {
				break
			}
			if (c.Facts().Rack == best) == (score == 1) {
				r.Ranked = append(r.Ranked, selection.Ranked{Name: c.Name(), Score: score})
			}
		}
	}
	slices.SortFunc(r.Ranked, func(a, b selection.Ranked) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), strings.Compare(a.Name, b.Name))
	})
	return r, nil
}

func (spreading) Asks(selection.Claim) string { return "" }
func (spreading) FollowsFleet() bool          { return true }

// constant is a policy whose choice depends on the candidates alone.
type constant struct{ spreading }

func (constant) FollowsFleet() bool { return false }

// BenchmarkPass binds many claims that are made at once. Decisions are real, and writes cost nothing.
func BenchmarkPass(b *testing.B) {
	shipped, err := policies.Default()
	if err != nil {
		b.Fatal(err)
	}
	for _, size := range []struct{ claims, servers int }{{50, 100}, {500, 1000}, {2000, 10000}} {
		for _, policy := range []struct {
			name   string
			policy solve.Policy
		}{{"default", shipped.Selection}, {"following", spreading{}}, {"constant", constant{}}} {
			if _, tells := policy.policy.(interface{ FollowsFleet() bool }); !tells && size.servers > 1000 {
				continue // one that is asked for every claim by itself takes minutes
			}
			for _, kinds := range []int{1, 20} {
				name := fmt.Sprintf("claims=%d/servers=%d/policy=%s/kinds=%d", size.claims, size.servers, policy.name, kinds)
				b.Run(name, func(b *testing.B) { benchmarkPass(b, size.claims, size.servers, kinds, policy.policy) })
			}
		}
	}
}

func benchmarkPass(b *testing.B, claims, servers, kinds int, policy solve.Policy) {
	b.ReportAllocs()
	ctx := logr.NewContext(b.Context(), logr.Discard())
	var used time.Duration
	for b.Loop() {
		b.StopTimer()
		version := &atomic.Int64{}
		version.Store(1 << 20)
		s := New(accepting{version: version}, nil, Options{Now: time.Now})
		s.policy = func() (solve.Policy, engine.Revision) { return policy, engine.Revision{Name: "test"} }
		s.claims = func() bundle.Claims { return bundle.Claims{Priority: bundle.Priority{Max: 1000}} }
		s.rules = func(engine.Revision) policies.Rules { return nil }
		for i := range servers {
			s.serverChanged(s.fleet.Saw(rackServer(i)))
		}
		for i := range claims {
			s.claimChanged(aClaim(fmt.Sprintf("c%04d", i), selecting(fmt.Sprintf("one-of-%d", kinds), strconv.Itoa(i%kinds))))
		}
		for i := range servers {
			s.fleet.Get(rackName(i)).Candidate()
		}
		runtime.GC()
		before := processorTime(b)
		b.StartTimer()
		if _, err := s.Reconcile(ctx, pass{}); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		used += processorTime(b) - before
		if bound := servers - len(s.fleet.Eligible(selection.ClaimSpec{})); bound != claims {
			b.Fatalf("%d claims are bound", bound)
		}
		b.StartTimer()
	}
	b.ReportMetric(float64(used.Microseconds())/float64(b.N*claims), "cpu-µs/claim")
}

// processorTime is what the process has used so far: unlike the time of day it does not depend on what else the machine does.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func rackName(i int) string { return fmt.Sprintf("server-%05d", i) }

func rackServer(i int) *v1alpha1.Server {
	memory := resource.MustParse(fmt.Sprintf("%dGi", 256<<(i%3)))
	return aServer(rackName(i), labelled("one-of-1", "0"), labelled("one-of-20", strconv.Itoa(i%20)), func(s *v1alpha1.Server) {
		s.Labels[v1alpha1.ZoneLabel] = fmt.Sprintf("z%d", i%3)
		s.Annotations = map[string]string{policies.RackMetadata: fmt.Sprintf("r%03d", i/40)}
		s.Status.TotalSystemMemory = &memory
		s.Status.Manufacturer, s.Status.Model = "Dell Inc.", "PowerEdge R750"
		s.Status.Lifecycle = &v1alpha1.LifecycleStatus{EnteredAt: metav1.NewMicroTime(epoch.Add(-time.Duration(i) * time.Hour))}
	})
}
