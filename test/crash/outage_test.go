// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"context"
	"math/rand/v2"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("A control plane that is restarted", func() {
	outages := 4
	if number(killsVariable, fewKills) >= thorough {
		outages = 20
	}
	seed := uint64(number(seedVariable, int(time.Now().UnixNano()%1_000_000)))

	It("is waited for: the manager lives on, the work goes on, and nothing is done twice", func(ctx SpecContext) {
		say("%d outages of the API server and of etcd by turns, seed %d", outages, seed)
		w := newWorld(ctx)
		// A watch that is cut tells what came in between in no order, so that a server's next claim may be seen before its
		// last one goes. What matters is what the machines do, and the ledger hears that from them.
		w.guard = &bindings{}
		Expect(w.manager.Start()).To(Succeed())
		Expect(w.manager.AwaitReady(ctx)).To(Succeed())
		ended := make(chan struct{})
		w.helpers.Go(func() {
			defer GinkgoRecover()
			defer close(ended)
			w.restartPlane(ctx, rand.New(rand.NewPCG(seed, 2)), outages)
		})
		for restarting := true; restarting; {
			w.tellSide(ctx)
			select {
			case <-ended:
				restarting = false
			default:
			}
		}
		Expect(w.manager.Starts()).To(Equal(1), "the manager lived on")
		w.judge(ctx)
	}, SpecTimeout(limit(8*time.Minute, 20*time.Minute)))
})

// restartPlane kills the API server and etcd by turns, a random while after the one before is back.
func (w *world) restartPlane(ctx context.Context, dice *rand.Rand, times int) {
	GinkgoHelper()
	restarts := []func(context.Context) error{w.plane.RestartAPIServer, w.plane.RestartEtcd}
	for i := range times {
		select {
		case <-time.After(time.Second + time.Duration(dice.IntN(3000))*time.Millisecond):
		case <-w.life.Done():
			return
		}
		Expect(restarts[i%2](ctx)).To(Succeed())
	}
}
