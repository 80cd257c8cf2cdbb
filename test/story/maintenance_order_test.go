// SPDX-License-Identifier: Apache-2.0

package story

import (
	"context"
	"fmt"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

var _ = Describe("Several maintenances of one server", func() {
	It("have it in the order of priority and policy, evict nobody, and keep it between them", func(ctx SpecContext) {
		m := claimed(ctx, "ordered")
		name := serverOf(m)
		before, boots := theWorld.fleet.LastWrite(), m.Boots()
		low := create(ctx, repair("ordered-low", m))
		high := create(ctx, repair("ordered-high", m, priority(10)))
		Eventually(answered(ctx, low)).Should(Equal("Pending False/" + v1alpha1.ReasonMaintenanceAhead))
		Eventually(answered(ctx, high)).Should(Equal(waitsForApproval))
		approve(ctx, "ordered")
		Eventually(answered(ctx, high)).Should(Equal(inMaintenance))
		Eventually(state(ctx, name)).Should(Equal("Maintenance/On"))

		By("one that is more urgent than the one that has it")
		urgent := create(ctx, repair("ordered-urgent", m, enforced, priority(1000)))
		equal := create(ctx, repair("ordered-equal", m, enforced))
		Eventually(answered(ctx, urgent)).Should(Equal(serverHeld))
		Consistently(answered(ctx, high)).WithTimeout(patience).Should(Equal(inMaintenance))
		Expect(answered(ctx, urgent)()).To(Equal(serverHeld))

		By("each ending")
		finish(ctx, high)
		for _, next := range []*v1alpha1.ServerMaintenance{urgent, equal, low} {
			Eventually(answered(ctx, next)).Should(Equal(inMaintenance))
			Expect(holder(ctx, name)()).To(Equal(next.Name))
			finish(ctx, next)
		}
		Eventually(state(ctx, name)).Should(Equal("Reserved/On"))
		Expect(entries(ctx, name)).To(Equal(1), "it never left Maintenance in between")
		Expect(touched(m, before)()).To(BeEmpty())
		Expect(m.Boots()).To(Equal(boots))
		Eventually(traces(ctx, name, low.Name, "ordered")).Should(BeEmpty())
	})

	It("have it one at a time, though fifty come at once", func(ctx SpecContext) {
		m := theWorld.available(ctx)
		name := serverOf(m)
		most := holders(ctx, name)
		var all []*v1alpha1.ServerMaintenance
		var made sync.WaitGroup
		for i := range 50 {
			all = append(all, repair(fmt.Sprintf("fifty-%d", i), m))
			made.Go(func() {
				defer GinkgoRecover()
				create(ctx, all[i])
			})
		}
		made.Wait()
		former := ""
		for range 3 {
			Eventually(holder(ctx, name)).ShouldNot(BeElementOf("", former))
			former = holder(ctx, name)()
			one := &v1alpha1.ServerMaintenance{}
			Expect(admin.Get(ctx, client.ObjectKey{Namespace: tenants, Name: former}, one)).To(Succeed())
			Eventually(answered(ctx, one)).Should(Equal(inMaintenance))
			Expect(admin.Delete(ctx, one)).To(Succeed())
		}
		for _, one := range all {
			Expect(client.IgnoreNotFound(admin.Delete(ctx, one))).To(Succeed())
		}
		Eventually(traces(ctx, name, former, "")).Should(BeEmpty())
		Eventually(state(ctx, name)).Should(Equal("Available/Off"))
		Eventually(most).Should(Equal(1)) // the watch may be behind
		Consistently(most).Should(Equal(1))
	})
})

// patience is longer than a pass of the scheduler takes, and than the notice of an enforced maintenance.
const patience = 3 * time.Second

// holders watches the maintenances of a server from now on, and returns how many that nobody had deleted had it at a time.
func holders(ctx context.Context, server string) (most func() int) {
	GinkgoHelper()
	watcher, err := client.NewWithWatch(controlPlane.Config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	w, err := watcher.Watch(ctx, &v1alpha1.ServerMaintenanceList{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(w.Stop)
	var mu sync.Mutex
	have, atMost := map[string]bool{}, 0
	go func() {
		for event := range w.ResultChan() {
			one, is := event.Object.(*v1alpha1.ServerMaintenance)
			if !is || one.Spec.ServerRef.Name != server {
				continue
			}
			mu.Lock()
			delete(have, one.Name)
			if event.Type != watch.Deleted && one.DeletionTimestamp.IsZero() && one.Status.State == v1alpha1.ServerMaintenanceStateInMaintenance {
				have[one.Name] = true
			}
			atMost = max(atMost, len(have))
			mu.Unlock()
		}
	}()
	return func() int {
		mu.Lock()
		defer mu.Unlock()
		return atMost
	}
}
