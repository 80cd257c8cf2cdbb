// SPDX-License-Identifier: Apache-2.0

// Package crash kills the manager, as the built program, in the middle of what it does: after each kind of write to the
// API server and to a BMC that its work consists of, before each of them, and at random moments. Whatever the moment, the
// story of every machine must go on to its end, and nothing may be done twice.
package crash

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/log"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/test/env"
)

// The environment says how much is done: KILLS is the number of kills (12 by default), SEED makes the random ones the
// same again as far as their timing allows.
const (
	killsVariable, seedVariable = "KILLS", "SEED"
	fewKills                    = 12
	// thorough is the number of kills from which on every kind is counted first, and the manager dies at both moments of
	// each, and randomKills times at least at a random moment.
	thorough, randomKills = 100, 30
	// mostSessions are open at a BMC at any time: one that a killed manager left, and one in use.
	mostSessions = 2
	// stopGrace is how long a manager may take to end in order.
	stopGrace = 20 * time.Second
	// atOnce is how many stories are told side by side.
	atOnce = 4
)

var scheme = runtime.NewScheme()

func TestCrash(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Crash")
}

var _ = BeforeSuite(func() {
	log.SetLogger(GinkgoLogr)
	Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	Expect(policyv1alpha1.AddToScheme(scheme)).To(Succeed())
})

var _ = Describe("A manager that is killed", func() {
	kills := number(killsVariable, fewKills)
	seed := uint64(number(seedVariable, int(time.Now().UnixNano()%1_000_000)))

	It("goes on where it was, and does nothing twice", func(ctx SpecContext) {
		say("%d kills, seed %d", kills, seed)
		var usual, counted []string
		if kills >= thorough {
			By("counting the kinds of writes of a life without kills")
			usual, counted = count(ctx)
		}
		w := newWorld(ctx)
		began := time.Now()
		if kills < thorough {
			w.killer.arm(kills, sometimes(w.killer, rand.New(rand.NewPCG(seed, 0))))
			Expect(w.manager.Start()).To(Succeed())
		} else {
			By("dying at each kind of write")
			w.killer.arm(math.MaxInt, w.killer.onceEach)
			Expect(w.manager.Start()).To(Succeed())
			w.tellUntil(ctx, func(news int) bool { return news == 0 })
			w.killer.arm(max(kills, w.killer.kills()+randomKills), w.killer.onceEach)
			say("%d kills at %d kinds of writes; not met: %s", w.killer.kills(), len(w.killer.kinds()), w.killer.missing(counted))
		}
		By("dying at random moments")
		w.dieAtRandom(ctx, rand.New(rand.NewPCG(seed, 1)))
		w.tellUntil(ctx, func(int) bool { return w.killer.spent() })
		took := time.Since(began)
		say("%d kills in %s, %s each; %d starts of the manager\n%s", w.killer.kills(), took.Round(time.Second),
			(took / time.Duration(w.killer.kills())).Round(time.Millisecond), w.manager.Starts(), w.killer.table())
		w.judge(ctx)
		missed := w.killer.missing(counted)
		for range 3 {
			if len(missed) == 0 {
				break
			}
			missed = dieAt(ctx, missed)
		}
		say("points at which the manager never died: %v", missed)
		for _, kind := range usual {
			Expect(missed).NotTo(ContainElement(HaveField("kind", kind)))
		}
	}, SpecTimeout(limit(8*time.Minute, 50*time.Minute)))
})

// dieAt meets some points in another world: what is written once in the life of a cluster is easily missed, where the
// manager dies of something else at that moment. It returns those that were missed again.
func dieAt(ctx context.Context, points []point) []point {
	GinkgoHelper()
	By("dying where it did not die yet")
	w := newWorld(ctx)
	w.killer.arm(len(points), func(p point) bool { return w.killer.died[p] == 0 && slices.Contains(points, p) })
	Expect(w.manager.Start()).To(Succeed())
	w.tellSide(ctx)
	w.judge(ctx)
	w.close()
	return slices.DeleteFunc(slices.Clone(points), func(p point) bool { return w.killer.died[p] > 0 })
}

// count tells stories without kills, and lists the kinds of writes that each of them consists of, and all that were seen.
func count(ctx context.Context) (usual, all []string) {
	GinkgoHelper()
	w := newWorld(ctx)
	Expect(w.manager.Start()).To(Succeed())
	began := time.Now()
	w.tellSide(ctx)
	all = w.killer.kinds()
	for _, kind := range all {
		if w.killer.seen(kind) >= atOnce {
			usual = append(usual, kind)
		}
	}
	say("%d kinds of writes in %d stories without kills, %s:\n%s", len(all), atOnce, time.Since(began).Round(time.Second), w.killer.table())
	w.judge(ctx)
	w.close()
	return usual, all
}

// sometimes chooses points now and then.
func sometimes(k *killer, dice *rand.Rand) func(point) bool {
	return func(p point) bool { return k.died[p] == 0 && dice.IntN(80) == 0 }
}

// tellSide tells some stories side by side.
func (w *world) tellSide(ctx context.Context) {
	GinkgoHelper()
	var stories sync.WaitGroup
	var ended atomic.Int32
	for range atOnce {
		stories.Go(func() {
			defer GinkgoRecover()
			w.tell(ctx)
			ended.Add(1)
		})
	}
	stories.Wait()
	w.inOrder()
	Expect(ended.Load()).To(BeEquivalentTo(atOnce), "stories that came to their end")
}

// tellUntil tells stories until enough says so; it hears how many kills the last of them brought.
func (w *world) tellUntil(ctx context.Context, enough func(news int) bool) {
	GinkgoHelper()
	for news := 1; !enough(news); {
		before := w.killer.kills()
		w.tellSide(ctx)
		news = w.killer.kills() - before
		say("%d kills", w.killer.kills())
	}
}

// dieAtRandom kills again and again, a random while after the manager was ready.
func (w *world) dieAtRandom(ctx context.Context, dice *rand.Rand) {
	w.helpers.Go(func() {
		for !w.killer.spent() && w.life.Err() == nil {
			ready, cancel := context.WithTimeout(ctx, 10*time.Second)
			err := w.manager.AwaitReady(ready)
			cancel()
			if err != nil {
				time.Sleep(20 * time.Millisecond)
				continue
			}
			select {
			case <-time.After(time.Duration(dice.IntN(2000)) * time.Millisecond):
				w.killer.killNow()
			case <-w.life.Done():
			}
		}
	})
}

// inOrder fails on any breach so far.
func (w *world) inOrder() {
	GinkgoHelper()
	Expect(w.ledger.report()).To(BeEmpty(), func() string { return w.killer.table() + strings.Join(w.killer.log, "\n") })
	Expect(w.guard.report()).To(BeEmpty())
	for _, m := range w.fleet.Machines() {
		Expect(len(m.Sessions())).To(BeNumerically("<=", mostSessions), "sessions on %s", m.Name())
	}
}

// judge looks at everything when all is told.
func (w *world) judge(ctx context.Context) {
	GinkgoHelper()
	w.inOrder()
	for _, m := range []*env.Operator{w.standby, w.manager} {
		if m != nil {
			m.Stop(stopGrace)
			Expect(m.Failures()).To(BeEmpty(), "%s ended by itself", m.Name)
		}
	}
	for _, m := range w.fleet.Machines() {
		Expect(len(m.Sessions())).To(BeNumerically("<", mostSessions), "sessions left on %s", m.Name())
	}
	if w.killer.kills() > 0 {
		return // who was killed may have left sessions, and as long as nobody knows, the lease says so
	}
	beat := &coordinationv1.Lease{}
	Expect(w.admin.Get(ctx, types.NamespacedName{Namespace: managerNamespace, Name: "metalaw-heartbeat"}, beat)).To(Succeed())
	Expect(beat.Spec.HolderIdentity).To(BeNil(), "a manager that ended in order gives its lease back")
}

// limit is a time limit where few kills are asked for, and another one for many.
func limit(few, many time.Duration) time.Duration {
	if number(killsVariable, fewKills) >= thorough {
		return many
	}
	return few
}

func say(format string, args ...any) {
	GinkgoWriter.Printf(format+"\n", args...)
	_, _ = fmt.Fprintf(os.Stderr, format+"\n", args...)
}

func number(variable string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(variable)); err == nil {
		return n
	}
	return otherwise
}
