// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish/emulator"
	"github.com/metalaw/metalaw/test/env"
)

const (
	// soakVariable is how long the soak lasts.
	soakVariable = "SOAK"
	shortSoak    = 15 * time.Second
	// longSoak is the time from which on memory is compared over time; a shorter one is all warm-up.
	longSoak = 5 * time.Minute
	sampling = 5 * time.Second
	soaked   = 10 // machines
)

// sample is what the manager's process uses at one moment.
type sample struct {
	goroutines, heap, resident float64
}

var _ = Describe("A long life", func() {
	lasts := shortSoak
	if text := os.Getenv(soakVariable); text != "" {
		var err error
		if lasts, err = time.ParseDuration(text); err != nil {
			panic(fmt.Sprintf("%s=%s: %v; write for example 10m", soakVariable, text, err))
		}
	}

	It("uses no more goroutines and no more memory as it goes on", func(ctx SpecContext) {
		w := newWorldFor(ctx, env.Options{}, (*world).prepareMonitored)
		Expect(w.manager.Start()).To(Succeed())
		Expect(w.manager.AwaitReady(ctx)).To(Succeed())
		stories := make([]*story, soaked)
		side(stories, func(i int) {
			stories[i] = &story{world: w, m: w.machine()}
			stories[i].name = stories[i].m.Name()
			stories[i].onboard(ctx)
			stories[i].serve(ctx) // the first time makes what stays
		})
		rest := w.rest(ctx)
		until := time.Now().Add(lasts)
		sampled := w.sampleUntil(ctx, until)
		rounds := make([]int, soaked)
		side(stories, func(i int) {
			for time.Now().Before(until) {
				stories[i].serve(ctx)
				rounds[i]++
			}
		})
		samples := <-sampled
		end := w.rest(ctx)
		say("%d machines served %v claims in %s; at rest before %+v, after %+v; under way %+v", soaked, rounds, lasts, rest, end, samples)
		served := 0
		for _, n := range rounds {
			served += n
		}
		Expect(served).To(BeNumerically(">=", soaked), "claims served: fewer say nothing")
		// What stays open of connections differs from one moment of rest to the next, whatever was served: power, identity and drives
		// are read beside each other, and a connection that is kept has two goroutines.
		Expect(end.goroutines).To(BeNumerically("<=", rest.goroutines+max(4*soaked, float64(served)/4)),
			"goroutines at rest: fewer than one more for four claims")
		if lasts >= longSoak {
			third := len(samples) / 3
			early, late := least(samples[third/2:third]), least(samples[2*third:])
			Expect(late.heap).To(BeNumerically("<=", 1.2*early.heap+4<<20), "bytes in use after garbage collection, at least, early and late")
			Expect(late.resident).To(BeNumerically("<=", 1.2*early.resident+8<<20), "resident bytes, at least, early and late")
		}
		w.judge(ctx)
	}, SpecTimeout(lasts+5*time.Minute))
})

// side does something for each story at the same time.
func side(stories []*story, do func(i int)) {
	GinkgoHelper()
	var all sync.WaitGroup
	for i := range stories {
		all.Go(func() {
			defer GinkgoRecover()
			do(i)
		})
	}
	all.Wait()
}

// serve is a claim from its beginning to its end, with trouble at the BMC now and then.
func (s *story) serve(ctx context.Context) {
	GinkgoHelper()
	claim := s.claim("soak-" + s.name)
	s.ledger.change(s.m, func(p *permit) { p.claims[claim.Name] = true })
	claim.Spec = v1alpha1.ServerClaimSpec{Power: v1alpha1.PowerOn, Image: image(claim.Name, 1), ServerRef: &corev1.LocalObjectReference{Name: s.server}}
	s.do(ctx, func() error { return s.admin.Create(ctx, claim.DeepCopy()) })
	s.runs(ctx, claim.Name, 1)
	Expect(s.m.SetReachability(emulator.Refusing)).To(Succeed())
	s.patch(ctx, s.claim(claim.Name), `{"spec":{"power":"Off"}}`)
	Expect(s.m.SetReachability(emulator.Reachable)).To(Succeed())
	s.m.EndSessions()
	s.reach(ctx, "off", s.isOff)
	s.ledger.change(s.m, func(p *permit) {
		p.wipe = true
		delete(p.claims, claim.Name)
	})
	s.do(ctx, func() error { return s.admin.Delete(ctx, claim) })
	s.reach(ctx, "the claim's end", func() error { return s.missing(ctx, s.claim(claim.Name)) })
	s.stands(ctx, v1alpha1.StateAvailable)
	s.ledger.change(s.m, func(p *permit) { p.wipe = false })
}

// rest waits until the manager is at rest: until two samples in a row have the same goroutines.
func (w *world) rest(ctx context.Context) sample {
	GinkgoHelper()
	last := w.sample(ctx)
	Eventually(func() bool {
		now := w.sample(ctx)
		same := now.goroutines == last.goroutines
		last = now
		return same
	}).WithTimeout(30 * time.Second).WithPolling(2 * time.Second).Should(BeTrue())
	return last
}

func (w *world) sampleUntil(ctx context.Context, until time.Time) <-chan []sample {
	result := make(chan []sample, 1)
	go func() {
		defer GinkgoRecover()
		var all []sample
		defer func() { result <- all }()
		for time.Now().Before(until) {
			all = append(all, w.sample(ctx))
			select {
			case <-time.After(sampling):
			case <-ctx.Done():
				return
			}
		}
	}()
	return result
}

func (w *world) sample(ctx context.Context) sample {
	GinkgoHelper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(w.scrape(ctx)))
	Expect(err).NotTo(HaveOccurred())
	value := func(name string) float64 {
		Expect(families).To(HaveKey(name))
		return families[name].GetMetric()[0].GetGauge().GetValue()
	}
	return sample{value("go_goroutines"), value("go_memstats_heap_alloc_bytes"), value("process_resident_memory_bytes")}
}

// least are the least values of some samples: right after garbage collection, what is in use.
func least(samples []sample) sample {
	low := samples[0]
	for _, s := range samples {
		low = sample{min(low.goroutines, s.goroutines), min(low.heap, s.heap), min(low.resident, s.resident)}
	}
	return low
}
