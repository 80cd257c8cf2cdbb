// SPDX-License-Identifier: Apache-2.0

package story

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish/emulator"
)

// aboutMaintenance says of a write whether a maintenance of a machine depends on it: of the maintenances and their boot configurations,
// which begin with prefix, of the claim and of the server, but not of the status of the latter two.
func aboutMaintenance(m *emulator.Machine, prefix, claim string) func(client.Object, string) bool {
	return func(o client.Object, sub string) bool {
		switch o := o.(type) {
		case *v1alpha1.ServerMaintenance, *v1alpha1.ServerBootConfiguration:
			return strings.HasPrefix(o.GetName(), prefix)
		case *v1alpha1.ServerClaim:
			return o.Name == claim && sub == ""
		case *v1alpha1.Server:
			return o.Name == serverOf(m) && sub == ""
		}
		return false
	}
}

// begun waits until a maintenance has its machine as it asks, with the approval of its holder, or the manager was killed before. The manager
// then has no write of the beginning left, so a later kill meets the end.
func begun(ctx context.Context, one *v1alpha1.ServerMaintenance, claim string, killed <-chan struct{}) (crashed bool) {
	GinkgoHelper()
	Eventually(func(g Gomega) string {
		select {
		case <-killed:
			crashed = true
			return isServed
		default:
		}
		if claim != "" && answered(ctx, one)() == waitsForApproval {
			c := getClaim(ctx, claim)
			metav1.SetMetaDataLabel(&c.ObjectMeta, v1alpha1.MaintenanceApprovedLabel, "true")
			g.Expect(client.IgnoreNotFound(admin.Update(ctx, c))).To(Succeed())
		}
		return served(ctx, one)()
	}).Should(Equal(isServed))
	return crashed
}

var _ = Describe("A maintenance that is deleted", func() {
	// leaves deletes a maintenance after each of the writes by which it begins, and kills the manager after each by which it ends.
	leaves := func(ctx context.Context, m *emulator.Machine, prefix, claim string, change ...func(*v1alpha1.ServerMaintenance)) (kills int) {
		GinkgoHelper()
		name, counts := serverOf(m), aboutMaintenance(m, prefix, claim)
		DeferCleanup(theWorld.crash.end)
		again := func() {
			theWorld.stopManager()
			theWorld.crash.end()
			theWorld.startManager(ctx)
			kills++
		}
		for began, ended, writes := false, false, 0; !ended; writes++ {
			sm := create(ctx, repair(fmt.Sprintf("%s%d", prefix, kills), m, change...))
			By(fmt.Sprintf("a manager that is killed after %d writes, the beginning done %t", writes, began))
			if !began {
				if began = !begun(ctx, sm, claim, theWorld.crash.after(writes, counts)); !began {
					Expect(admin.Delete(ctx, sm)).To(Succeed())
					again()
				} else {
					writes = 0
				}
			} else {
				begun(ctx, sm, claim, nil)
			}
			if began {
				killed := theWorld.crash.after(writes, counts)
				Expect(admin.Delete(ctx, sm)).To(Succeed())
				ended = true
				Eventually(func() string {
					select {
					case <-killed:
						ended = false
						return "gone"
					default:
						return answered(ctx, sm)()
					}
				}).Should(Equal("gone"))
				if !ended {
					again()
				}
				theWorld.crash.end()
			}
			Eventually(traces(ctx, name, sm.Name, claim)).Should(BeEmpty())
		}
		return kills
	}

	It("leaves nothing behind on an unclaimed server, whichever write was the last before the manager was killed", func(ctx SpecContext) {
		m := theWorld.available(ctx)
		kills := leaves(ctx, m, "cut-", "", booting(tools, ""))
		Expect(kills).To(BeNumerically(">=", 6))
		Eventually(state(ctx, serverOf(m))).Should(Equal("Available/Off"))
	})

	It("leaves nothing behind on a claimed one, and its claim as it was", func(ctx SpecContext) {
		m := claimed(ctx, "cut-claim")
		before, boots := theWorld.fleet.LastWrite(), m.Boots()
		kills := leaves(ctx, m, "cut-claimed-", "cut-claim")
		Expect(kills).To(BeNumerically(">=", 6))
		Eventually(state(ctx, serverOf(m))).Should(Equal("Reserved/On"))
		Eventually(claimCondition(ctx, "cut-claim", "Ready")).Should(Equal("True/Running"))
		Expect(touched(m, before)()).To(BeEmpty())
		Expect(m.Boots()).To(Equal(boots))
	})
})

var _ = Describe("The cost of a maintenance", func() {
	// costs has one begin and end, and returns the writes that this took, but for those by which the server tells its moves.
	costs := func(ctx context.Context, m *emulator.Machine, name, claim string) []string {
		GinkgoHelper()
		theWorld.crash.after(1<<30, aboutMaintenance(m, name, claim))
		DeferCleanup(theWorld.crash.end)
		one := create(ctx, repair(name, m))
		begun(ctx, one, claim, nil)
		finish(ctx, one)
		Eventually(traces(ctx, serverOf(m), name, claim)).Should(BeEmpty())
		all := theWorld.crash.written()
		for len(all) > 0 && !strings.HasPrefix(all[len(all)-1], "*v1alpha1.ServerMaintenance") { // what comes after is for the next boot
			all = all[:len(all)-1]
		}
		return all
	}

	It("is five writes for a free server and eight for a claimed one, besides the server's own moves", func(ctx SpecContext) {
		Expect(len(costs(ctx, theWorld.available(ctx), "costs-free", ""))).To(BeNumerically("<=", 5), "%q", theWorld.crash.written())
		m := claimed(ctx, "costs")
		Expect(len(costs(ctx, m, "costs-claimed", "costs"))).To(BeNumerically("<=", 8), "%q", theWorld.crash.written())
	})
})
