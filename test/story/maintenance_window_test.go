// SPDX-License-Identifier: Apache-2.0

package story

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish/emulator"
)

// opensAt is a window for a machine that opens at a minute of every day.
func opensAt(m *emulator.Machine, at time.Time, lasts string) string {
	at = at.UTC()
	return fmt.Sprintf(`{name: %s, matchLabels: {machine: %s}, opens: "%d %d * * *", lasts: %s, zone: UTC}`, m.Name(), m.Name(),
		at.Minute(), at.Hour(), lasts)
}

// whyNot is what the condition Granted of a maintenance says.
func whyNot(ctx context.Context, m *v1alpha1.ServerMaintenance) string {
	GinkgoHelper()
	now := &v1alpha1.ServerMaintenance{}
	Expect(admin.Get(ctx, client.ObjectKeyFromObject(m), now)).To(Succeed())
	if c := meta.FindStatusCondition(now.Status.Conditions, v1alpha1.ConditionGranted); c != nil {
		return c.Message
	}
	return ""
}

var _ = Describe("A policy of maintenance", func() {
	It("grants none outside a window, none that a window is too short for, and the rest at its opening edge", func(ctx SpecContext) {
		waits, short, free := theWorld.available(ctx), theWorld.available(ctx), theWorld.available(ctx)
		edge := time.Now().Truncate(time.Minute).Add(time.Minute)
		if time.Until(edge) < 12*time.Second { // it has to be in force before
			edge = edge.Add(time.Minute)
		}
		govern(ctx, variantOf("bundle.yaml", "windows: []",
			"windows: ["+opensAt(waits, edge, "2h")+", "+opensAt(short, time.Now().Add(-time.Minute), "30m")+"]"))
		one, two, three := create(ctx, repair("window-waits", waits)), create(ctx, repair("window-short", short)),
			create(ctx, repair("window-free", free))
		Eventually(answered(ctx, three)).Should(Equal(inMaintenance), "no window covers it")
		Eventually(answered(ctx, one)).Should(Equal("Pending False/" + v1alpha1.ReasonWindowClosed))
		Eventually(answered(ctx, two)).Should(Equal("Pending False/" + v1alpha1.ReasonWindowTooShort))
		Expect(whyNot(ctx, one)).To(ContainSubstring(edge.UTC().Format("15:04")), "when it opens")
		finish(ctx, three)
		Consistently(answered(ctx, one)).WithTimeout(time.Until(edge) - time.Second).Should(HavePrefix("Pending "))
		Eventually(answered(ctx, one)).WithTimeout(time.Until(edge) + 10*time.Second).Should(Equal(inMaintenance))
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(one), one)).To(Succeed())
		Expect(one.Status.GrantedAt.Time).To(BeTemporally(">=", edge))
		Expect(answered(ctx, two)()).To(HavePrefix("Pending "))
		finish(ctx, one, two)
	}, NodeTimeout(4*time.Minute))

	It("is bounded by a budget of the fleet, and held back by a freeze", func(ctx SpecContext) {
		var machines []*emulator.Machine
		var all []*v1alpha1.ServerMaintenance
		for range 3 {
			machines = append(machines, theWorld.available(ctx))
		}
		control(ctx, func(s *policyv1alpha1.FleetControlSpec) {
			frozen(policyv1alpha1.FreezeMaintenance, machines[2])(s)
			s.Budgets = []policyv1alpha1.Budget{{Name: "one-in-maintenance", Action: policyv1alpha1.ActionMaintenance, Max: ptr.To[int32](1),
				Selector: only(machines...)}}
		})
		Eventually(controlCondition(ctx, policyv1alpha1.ConditionFrozen)).Should(Equal("True/Maintenance"))
		for i, m := range machines {
			all = append(all, create(ctx, repair(fmt.Sprintf("budget-%d", i), m)))
		}
		granted := func() (n int) {
			for _, one := range all {
				if answered(ctx, one)() == inMaintenance {
					n++
				}
			}
			return n
		}
		Eventually(granted).Should(Equal(1))
		Consistently(granted).WithTimeout(patience).Should(Equal(1))
		first, other := all[0], all[1]
		if answered(ctx, first)() != inMaintenance {
			first, other = other, first
		}
		Eventually(answered(ctx, other)).Should(Equal("Pending False/" + v1alpha1.ReasonLimitReached))
		Expect(whyNot(ctx, other)).To(ContainSubstring("one-in-maintenance"))
		Expect(answered(ctx, all[2])()).To(HavePrefix("Pending "))
		Expect(whyNot(ctx, all[2])).To(ContainSubstring("spec"), "the name of the freeze")
		finish(ctx, first)
		Eventually(answered(ctx, other)).Should(Equal(inMaintenance))
		finish(ctx, other)
		Consistently(answered(ctx, all[2])).WithTimeout(patience).Should(HavePrefix("Pending "))
		recontrol(ctx, thawed)
		Eventually(answered(ctx, all[2])).Should(Equal(inMaintenance))
		finish(ctx, all[2])
	})
})
